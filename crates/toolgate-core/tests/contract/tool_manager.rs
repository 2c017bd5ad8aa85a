//! TM: the tool manager.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::Instant;
use toolgate_core::{
    DefinitionError, FunctionTool, SchemaError, Tool, ToolCall, ToolDefinition, ToolError,
    ToolExecutor, ToolManager, ToolRank, ToolSource,
};

use crate::support::{
    LogCapture, answering, echo, executor_of, manager_of, millis, open_definition, scripted,
    tool_names, tool_of, with_schema,
};

/// A server lists one tool, with its original name and the name it is listed under.
fn serve(manager: &ToolManager, server: &str, place: usize, original: &str, name: &str) {
    let tool = tool_of(server, open_definition(name).original_name(original));
    let source = ToolSource::Mcp(server.to_owned());
    manager.replace(&source, ToolRank::Server(place), vec![tool]);
}

#[test]
fn tm1_tools_of_all_sources_live_in_one_ordered_collection() {
    let manager = manager_of([
        echo(open_definition("b").source(ToolSource::Builtin)),
        echo(open_definition("m").source(ToolSource::Mock)),
        echo(open_definition("i").source(ToolSource::Internal)),
        echo(open_definition("a").source(ToolSource::Custom)),
    ]);
    serve(&manager, "zwave", 1, "z", "z");
    serve(&manager, "attic", 0, "l", "l");
    assert_eq!(tool_names(&manager), ["b", "m", "i", "a", "l", "z"]);
    let sources: Vec<String> = manager
        .tools()
        .iter()
        .map(|tool| tool.definition().source().to_string())
        .collect();
    assert_eq!(
        sources,
        [
            "builtin",
            "mock",
            "internal",
            "custom",
            "mcp:attic",
            "mcp:zwave"
        ]
    );
    manager.remove(&ToolSource::Internal);
    assert_eq!(tool_names(&manager), ["b", "m", "a", "l", "z"]);
}

#[test]
fn local_tools_can_be_replaced_beside_those_of_servers() {
    let manager = manager_of([echo(open_definition("a")), echo(open_definition("b"))]);
    serve(&manager, "zwave", 0, "a", "a");
    assert_eq!(tool_names(&manager), ["a", "b", "zwave__a"]);
    let replacement = manager_of([echo(open_definition("b")), echo(open_definition("c"))]);
    manager.replace_local(replacement.tools().iter().cloned());
    assert_eq!(tool_names(&manager), ["b", "c", "a"]);
}

#[test]
fn tm1_there_is_no_second_copy_of_a_tool() {
    let manager = ToolManager::new();
    let tool = tool_of("s", open_definition("t").original_name("the t"));
    let source = ToolSource::Mcp("s".to_owned());
    manager.replace(&source, ToolRank::Server(0), vec![Arc::clone(&tool)]);
    let all = manager.tools();
    for found in [
        manager.find("t").unwrap(),
        manager.find("s__t").unwrap(),
        manager.find("the t").unwrap(),
        Arc::clone(all.iter().next().unwrap()),
    ] {
        assert!(Arc::ptr_eq(&found, &tool));
    }
}

#[tokio::test]
async fn tm3_a_custom_tool_gets_its_arguments_directly() {
    let executor = executor_of([scripted(open_definition("t"), |arguments, _| async move {
        assert_eq!(arguments.get("input"), None);
        Ok(toolgate_core::ToolOutput::json(arguments.into_map()))
    })]);
    let envelope = executor
        .execute(ToolCall::new("t", json!({ "x": 1 })))
        .await
        .to_envelope();
    assert_eq!(envelope["result"], json!({ "x": 1 }));
}

#[tokio::test]
async fn tm3_a_function_is_the_same_kind_of_tool() {
    /// What a model reads.
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Add {
        /// The first.
        a: i64,
        b: Option<i64>,
    }
    let add = FunctionTool::new("add", "Adds", |add: Add, context| async move {
        assert_eq!(context.tool_name(), "add");
        Ok::<_, ToolError>(add.a + add.b.unwrap_or_default())
    })
    .unwrap();
    let definition = add.definition();
    assert_eq!(
        (definition.name(), definition.description()),
        ("add", "Adds")
    );
    assert_eq!(definition.parameters()["type"], "object");
    assert_eq!(definition.parameters()["required"], json!(["a"]));
    assert_eq!(
        definition.parameters()["properties"]["a"]["description"],
        "The first."
    );

    let manager = ToolManager::new();
    manager.add(add);
    let executor = ToolExecutor::builder(Arc::new(manager))
        .without_observers()
        .build();
    for (arguments, expected) in [
        (json!({ "a": 1, "b": 2 }), json!(3)),
        (json!({ "a": 1 }), json!(1)),
        (json!({ "a": 1, "b": null }), json!(1)),
        (json!({ "a": 1.0, "b": 2.0, "extra": true }), json!(3)),
    ] {
        let envelope = executor
            .execute(ToolCall::new("add", arguments))
            .await
            .to_envelope();
        assert_eq!(envelope["result"], expected);
    }
    let envelope = executor
        .execute(ToolCall::new("add", json!({})))
        .await
        .to_envelope();
    assert_eq!(envelope["error"], "Invalid parameters: missing 'a'");
}

#[test]
fn tm4_tools_are_returned_as_they_are() {
    let parameters: Value = serde_json::from_str(
        r##"{"title":"T","type":"object","$schema":"http://json-schema.org/draft-07/schema#","$id":"http://x.example/",
            "properties":{"z":{"type":"string","x-own":[1]},"a":{"$ref":"#/definitions/a"}},"definitions":{"a":{}}}"##,
    )
    .unwrap();
    let manager = manager_of([echo(with_schema("t", parameters.clone()))]);
    let tool = manager.find("t").unwrap();
    assert_eq!(
        tool.definition().parameters().to_string(),
        parameters.to_string(),
        "to the order of the keys"
    );
}

#[test]
fn tm5_a_tool_is_found_by_its_name_and_by_its_original_name() {
    let manager = manager_of([echo(open_definition("echo")), echo(open_definition("lamp"))]);
    for (place, server, tool) in [
        (0, "house", "lamp"),
        (1, "attic", "get weather"),
        (2, "cellar", "un\u{200b}lock"),
    ] {
        serve(&manager, server, place, tool, tool);
    }
    for (asked, found) in [
        ("echo", Some(("echo", "echo"))),
        ("lamp", Some(("lamp", "lamp"))),
        ("house__lamp", Some(("house__lamp", "lamp"))),
        ("get weather", Some(("get weather", "get weather"))),
        ("attic__get weather", Some(("get weather", "get weather"))),
        // Invisible characters are listed escaped; the server's original name finds the tool, too.
        (
            r"un\u{200b}lock",
            Some((r"un\u{200b}lock", "un\u{200b}lock")),
        ),
        (
            "un\u{200b}lock",
            Some((r"un\u{200b}lock", "un\u{200b}lock")),
        ),
        (
            "cellar__un\u{200b}lock",
            Some((r"un\u{200b}lock", "un\u{200b}lock")),
        ),
        ("unlock", None),
        ("get_weather", None),
        ("Lamp", None),
        ("", None),
        ("lamp ", None),
    ] {
        let tool = manager.find(asked);
        let tool = tool.as_ref().map(|tool| tool.definition());
        let tool = tool.map(|tool| (tool.name(), tool.original_name()));
        assert_eq!(tool, found, "{asked}");
    }
}

#[test]
fn tm5_an_exact_listed_name_wins() {
    let manager = manager_of([
        echo(open_definition("lamp").source(ToolSource::Builtin)),
        echo(open_definition("attic__lamp").source(ToolSource::Mock)),
    ]);
    serve(&manager, "house", 0, "lamp", "lamp");
    serve(&manager, "attic", 1, "lamp", "lamp");
    for (asked, found) in [
        ("lamp", ToolSource::Builtin),
        ("attic__lamp", ToolSource::Mock),
    ] {
        let tool = manager.find(asked).unwrap();
        assert_eq!(tool.definition().source(), &found);
    }
}

/// Two servers with a tool of the same name, which a local tool has already.
fn shared(manager: &ToolManager) {
    serve(manager, "attic", 0, "lamp", "lamp");
    serve(manager, "cellar", 1, "lamp", "lamp");
}

#[tokio::test]
async fn tm5_an_ambiguous_original_name_finds_none_and_lists_them() {
    // A policy hides the local tool, and with it the bare name.
    let manager = manager_of([
        echo(open_definition("lamb")),
        echo(open_definition("lamp").source(ToolSource::Mock)),
    ]);
    shared(&manager);
    let policy = json!({ "allow": ["*/lamp", "lamb"] });
    let executor = ToolExecutor::builder(Arc::clone(&manager))
        .policy(serde_json::from_value(policy).unwrap())
        .without_observers()
        .build();
    let envelope = executor
        .execute(ToolCall::new("lamp", json!({})))
        .await
        .to_envelope();
    assert_eq!(envelope["error"], "Tool 'lamp' not found");
    assert_eq!(
        envelope["hint"],
        "Did you mean 'attic__lamp' or 'cellar__lamp'?"
    );
    // The names in the hint find them.
    for name in ["attic__lamp", "cellar__lamp"] {
        let outcome = executor.execute(ToolCall::new(name, json!({}))).await;
        assert!(outcome.is_success(), "{name}");
    }
}

#[tokio::test]
async fn tm5_an_original_name_is_unambiguous_once_one_server_is_gone() {
    let manager = manager_of([]);
    shared(&manager);
    let source = |name: &str| manager.find(name).unwrap().definition().source().clone();
    assert_eq!(source("lamp"), ToolSource::Mcp("attic".to_owned()));
    assert_eq!(source("cellar__lamp"), ToolSource::Mcp("cellar".to_owned()));
    manager.remove(&ToolSource::Mcp("attic".to_owned()));
    assert_eq!(source("lamp"), ToolSource::Mcp("cellar".to_owned()));
    // Behind a local tool of that name, only the long name still finds it.
    manager.add(echo(open_definition("lamp").source(ToolSource::Mock)));
    assert_eq!(source("lamp"), ToolSource::Mock);
    assert_eq!(source("cellar__lamp"), ToolSource::Mcp("cellar".to_owned()));
}

#[test]
fn tm6_an_incomplete_definition_is_refused() {
    let object = || json!({ "type": "object" });
    for (name, description, parameters, expected) in [
        ("", "d", object(), "tool name '' is empty".to_owned()),
        (" \t", "d", object(), r"tool name ' \t' is empty".to_owned()),
        ("a\nb", "d", object(), r"tool name 'a\nb' has characters that can't be seen: control or invisible ones".to_owned()),
        ("t", "", object(), "tool 't' has no description".to_owned()),
        ("t", " \n\t", object(), "tool 't' has no description".to_owned()),
        ("t", "d", Value::Null, "parameters of tool 't': must be a JSON Schema object, not null".to_owned()),
        ("t", "d", json!(true), "parameters of tool 't': must be a JSON Schema object, not boolean".to_owned()),
        ("t", "d", json!([]), "parameters of tool 't': must be a JSON Schema object, not array".to_owned()),
        ("t", "d", json!("object"), "parameters of tool 't': must be a JSON Schema object, not string".to_owned()),
        (
            "t",
            "d",
            json!({ "type": "string" }),
            "parameters of tool 't': must describe an object, but its type is \"string\"".to_owned(),
        ),
        (
            "t",
            "d",
            json!({ "type": ["string", "null"] }),
            "parameters of tool 't': must describe an object, but its type is [\"string\",\"null\"]".to_owned(),
        ),
        (
            "t",
            "d",
            json!({ "type": "object", "properties": { "a": { "type": "strin" } } }),
            "parameters of tool 't': is not a valid JSON Schema: \"strin\" is not valid under any of the schemas listed in \
             the 'anyOf' keyword"
                .to_owned(),
        ),
    ] {
        let error = ToolDefinition::builder(name, description, parameters).build().unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn tm6_an_object_schema_may_be_written_in_several_ways() {
    for parameters in [
        json!({}),
        json!({ "type": "object" }),
        json!({ "type": ["object", "null"] }),
        json!({ "properties": {} }),
        json!({ "$ref": "#/$defs/a", "$defs": { "a": { "type": "object" } } }),
    ] {
        with_schema("t", parameters).build().unwrap();
    }
}

#[tokio::test]
async fn tm6_an_unknown_schema_uri_is_ignored_and_kept() {
    for uri in [
        json!("https://example.org/my-dialect"),
        json!("http://json-schema.org/draft-99/schema#"),
        json!(""),
        json!(7),
    ] {
        let schema = json!({ "$schema": uri, "type": "object", "required": ["a"] });
        let definition = with_schema("t", schema.clone()).build().unwrap();
        assert_eq!(definition.parameters(), &schema);
        let error = definition.schema().check(json!({})).unwrap_err();
        assert_eq!(error.to_string(), "Invalid parameters: missing 'a'");
    }
}

#[test]
fn tm6_a_refusal_names_the_keyword() {
    let schema = json!({ "properties": { "a": { "$ref": "http://example.org/a" } } });
    let DefinitionError::Schema { error, .. } = with_schema("t", schema).build().unwrap_err()
    else {
        panic!("another error");
    };
    assert_eq!(
        error,
        SchemaError::Keyword {
            keyword: "$ref".to_owned(),
            path: "/properties/a".to_owned(),
            problem: "to 'http://example.org/a' does not stay inside the schema".to_owned(),
        }
    );
}

#[tokio::test]
async fn tm7_registering_a_name_again_replaces_in_place_and_warns() {
    let log = LogCapture::json();
    let manager = manager_of(["a", "b", "c"].map(|name| echo(open_definition(name))));
    assert_eq!(log.lines().len(), 0);
    manager.add(answering(
        open_definition("b").source(ToolSource::Mock),
        Ok(toolgate_core::ToolOutput::text("new")),
    ));
    assert_eq!(tool_names(&manager), ["a", "b", "c"]);
    assert_eq!(manager.tools().len(), 3);

    let warning = log.only();
    assert_eq!(warning["level"], "WARN");
    let fields = &warning["fields"];
    assert_eq!(
        (&fields["tool"], &fields["old"], &fields["new"]),
        (&json!("b"), &json!("custom"), &json!("mock"))
    );

    let executor = ToolExecutor::builder(manager).without_observers().build();
    let outcome = executor.execute(ToolCall::new("b", json!({}))).await;
    assert_eq!(outcome.to_model_text(), "new");
}

#[test]
fn tm8_local_tools_stay_first_while_servers_come_and_go() {
    let manager = manager_of([
        echo(open_definition("echo").source(ToolSource::Builtin)),
        echo(open_definition("now").source(ToolSource::Builtin)),
    ]);
    assert!(manager.find("echo").is_some(), "before there is any server");
    for _ in 0..3 {
        serve(&manager, "zwave", 0, "lamp", "lamp");
        assert_eq!(tool_names(&manager), ["echo", "now", "lamp"]);
        manager.remove(&ToolSource::Mcp("zwave".to_owned()));
        assert_eq!(tool_names(&manager), ["echo", "now"]);
    }
}

#[test]
fn tm9_lookup_is_fast_with_20_and_with_10_000_tools() {
    const LOOKUPS: usize = 1_000;
    for count in [20, 10_000] {
        let manager = manager_of((0..count).map(|i| echo(open_definition(&format!("tool_{i}")))));
        let wanted: Vec<String> = (0..LOOKUPS)
            .map(|i| format!("tool_{}", i * 7 % count))
            .collect();
        let begin = Instant::now();
        for name in &wanted {
            assert!(manager.find(name).is_some());
            assert!(manager.find("absent").is_none());
        }
        let each = begin.elapsed() / (2 * LOOKUPS as u32);
        assert!(each < millis(1), "{each:?} with {count}");
    }
}

#[tokio::test]
async fn a_change_of_the_tools_can_be_awaited() {
    let manager = manager_of([]);
    let mut changes = manager.subscribe();
    assert!(!changes.has_changed().unwrap());
    manager.add(echo(open_definition("t")));
    changes.changed().await.unwrap();
    assert!(!manager.tools().is_empty());
}
