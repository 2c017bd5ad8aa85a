//! TM2 and TM7: tools of servers, and who keeps a name that several of them use.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_core::{
    Annotations, DefinitionBuilder, Policy, Scope, Tool, ToolCall, ToolDefinition, ToolExecutor,
    ToolManager, ToolOutput, ToolPattern, ToolRank, ToolSource,
};

use crate::support::{
    LogCapture, answering, echo, manager_of, open_definition, secs, sleeping, tool_names, tool_of,
};

fn server(name: &str) -> ToolSource {
    ToolSource::Mcp(name.to_owned())
}

/// A server lists these tools; each answers with the server's name.
fn serve(manager: &ToolManager, name: &str, rank: ToolRank, tools: &[&str]) {
    let tools = tools
        .iter()
        .map(|tool| tool_of(name, open_definition(tool)));
    manager.replace(&server(name), rank, tools.collect());
}

fn local(name: &str) -> crate::support::ScriptedTool {
    answering(
        open_definition(name).source(ToolSource::Builtin),
        Ok(ToolOutput::text("local")),
    )
}

/// Names and where they come from.
fn listing(manager: &ToolManager) -> Vec<(String, String)> {
    let tools = manager.tools();
    let definitions = tools.iter().map(|tool| tool.definition());
    definitions
        .map(|definition| {
            (
                definition.name().to_owned(),
                definition.source().to_string(),
            )
        })
        .collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = expected.iter();
    owned
        .map(|(name, source)| ((*name).to_owned(), (*source).to_owned()))
        .collect()
}

async fn answer(executor: &ToolExecutor, name: &str) -> String {
    executor
        .execute(ToolCall::new(name, json!({})))
        .await
        .to_model_text()
}

fn executor(manager: Arc<ToolManager>) -> ToolExecutor {
    ToolExecutor::builder(manager).without_observers().build()
}

#[test]
fn tm2_tools_of_a_server_are_listed_as_they_were_discovered() {
    let schema: Value = serde_json::from_str(
        r##"{"required":["b"],"type":"object","$schema":"http://json-schema.org/draft-07/schema#",
            "properties":{"b":{"$ref":"#/definitions/x"},"a":{"type":"string","x-own":{"z":1,"a":2}}},"definitions":{"x":{}}}"##,
    )
    .unwrap();
    let definition = |name: &str| ToolDefinition::builder(name, "…", schema.clone());
    let tools: Vec<Arc<dyn Tool>> = ["zebra", "ant", "lamp", "cow"]
        .map(|name| tool_of("zoo", definition(name)))
        .into();
    let manager = manager_of([local("lamp")]);
    manager.replace(&server("zoo"), ToolRank::Server(0), tools.clone());
    assert_eq!(
        tool_names(&manager),
        ["lamp", "zebra", "ant", "zoo__lamp", "cow"]
    );
    let found = manager.tools();
    for (listed, sent) in found.iter().skip(1).zip(&tools) {
        assert_eq!(
            listed.definition().parameters().to_string(),
            schema.to_string()
        );
        let clashes = sent.definition().name() == "lamp";
        assert_eq!(Arc::ptr_eq(listed, sent), !clashes, "not even a wrapper");
    }
}

#[test]
fn tm7_a_name_belongs_to_the_highest_rank_however_late() {
    type Step = fn(&ToolManager);
    let steps: [Step; 3] = [
        |manager| manager.add(local("lamp")),
        |manager| serve(manager, "attic", ToolRank::Server(0), &["lamp"]),
        |manager| serve(manager, "cellar", ToolRank::Server(1), &["lamp"]),
    ];
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        let manager = ToolManager::new();
        order.iter().for_each(|step| steps[*step](&manager));
        assert_eq!(
            listing(&manager),
            pairs(&[
                ("lamp", "builtin"),
                ("attic__lamp", "mcp:attic"),
                ("cellar__lamp", "mcp:cellar")
            ]),
            "{order:?}"
        );
    }
}

#[test]
fn tm7_names_are_assigned_again_when_a_server_comes_or_goes() {
    let manager = ToolManager::new();
    serve(&manager, "cellar", ToolRank::Server(1), &["lamp", "door"]);
    assert_eq!(tool_names(&manager), ["lamp", "door"]);
    serve(&manager, "attic", ToolRank::Server(0), &["lamp"]);
    assert_eq!(tool_names(&manager), ["lamp", "cellar__lamp", "door"]);
    assert_eq!(
        manager.find("lamp").unwrap().definition().source(),
        &server("attic")
    );
    manager.remove(&server("attic"));
    assert_eq!(tool_names(&manager), ["lamp", "door"]);
    let lamp = manager.find("lamp").unwrap();
    assert_eq!(lamp.definition().source(), &server("cellar"));
    assert_eq!(lamp.definition().original_name(), "lamp");
}

#[tokio::test]
async fn tm7_a_server_never_takes_over_a_local_tool_unless_it_may() {
    let manager = manager_of([local("unlock")]);
    let executor = executor(Arc::clone(&manager));
    serve(&manager, "house", ToolRank::Server(0), &["unlock"]);
    assert_eq!(answer(&executor, "unlock").await, "local");
    assert_eq!(answer(&executor, "house__unlock").await, "house");

    serve(&manager, "house", ToolRank::Override(0), &["unlock"]);
    assert_eq!(
        listing(&manager),
        pairs(&[("unlock", "mcp:house"), ("builtin__unlock", "builtin")])
    );
    assert_eq!(answer(&executor, "unlock").await, "house");
    assert_eq!(answer(&executor, "builtin__unlock").await, "local");
}

#[test]
fn tm7_server_and_tool_name_always_find_it() {
    let manager = manager_of([local("lamp")]);
    serve(&manager, "attic", ToolRank::Server(0), &["lamp", "door"]);
    serve(&manager, "my höuse", ToolRank::Server(1), &["lamp", "gate"]);
    assert_eq!(
        tool_names(&manager),
        ["lamp", "attic__lamp", "door", "my höuse__lamp", "gate"]
    );
    for (asked, found) in [
        ("attic__lamp", Some(("attic__lamp", "mcp:attic"))),
        ("attic__door", Some(("door", "mcp:attic"))),
        ("my höuse__lamp", Some(("my höuse__lamp", "mcp:my höuse"))),
        ("my höuse__gate", Some(("gate", "mcp:my höuse"))),
        ("my_h_use__gate", None),
        ("attic__gate", None),
        ("builtin__lamp", None),
        ("__lamp", None),
    ] {
        let tool = manager.find(asked);
        let tool = tool.as_ref().map(|tool| tool.definition());
        let found_here = tool.map(|tool| (tool.name().to_owned(), tool.source().to_string()));
        assert_eq!(
            found_here,
            found.map(|(name, source)| (name.to_owned(), source.to_owned())),
            "{asked}"
        );
    }
}

#[test]
fn tm7_a_long_name_that_is_taken_gets_a_number() {
    let manager = manager_of(["lamp", "attic__lamp", "attic__lamp_2"].map(local));
    serve(&manager, "attic", ToolRank::Server(0), &["lamp", "lamp_3"]);
    assert_eq!(
        tool_names(&manager)[3..],
        ["attic__lamp_4", "lamp_3"],
        "the third is what 'lamp_3' of that server is found by"
    );
    // Servers that differ in one character are two servers.
    let manager = manager_of([local("lamp")]);
    serve(&manager, "a b", ToolRank::Server(0), &["lamp"]);
    serve(&manager, "a_b", ToolRank::Server(1), &["lamp"]);
    assert_eq!(tool_names(&manager), ["lamp", "a b__lamp", "a_b__lamp"]);
}

#[tokio::test]
async fn tm2_no_tool_is_left_out_or_mistaken_because_of_its_name() {
    let long = "a very long name ".repeat(20_000);
    let odd = [
        "a_b",
        "a+b",
        "a b",
        "größe",
        "日本",
        "tool(1)",
        "a$b,c@d",
        " padded ",
        "\"quoted\" \\ 'it'",
        "{\"json\":1}",
        "--help",
        "../../etc/passwd",
        "a\nb",
        "a\u{200b}b",
        r"a\u{200b}b",
        r"a\\u{200b}b",
        r"a\nb",
        r"C:\users",
        " ",
        "   ",
        "\u{a0}",
        &*long,
    ];
    let manager = manager_of([]);
    let tools = odd.iter().map(|name| {
        let definition = open_definition(name).source(server("odd"));
        Arc::new(answering(definition, Ok(ToolOutput::text(*name)))) as Arc<dyn Tool>
    });
    manager.replace(&server("odd"), ToolRank::Server(0), tools.collect());
    let tools = manager.tools();
    let originals = tools.iter().map(|tool| tool.definition().original_name());
    assert!(
        originals.eq(odd),
        "all of them, in order, as the server calls them"
    );
    let executor = executor(Arc::clone(&manager));
    for (tool, original) in tools.iter().zip(odd) {
        let listed = tool.definition().name();
        assert!(!listed.contains(['\n', '\u{200b}']), "{listed:?}");
        for name in [listed.to_owned(), format!("odd__{listed}")] {
            assert_eq!(answer(&executor, &name).await, original, "{name:?}");
        }
        // Its name on the server finds it too, unless another tool is listed under that name:
        // exact listed names win.
        let is_listed = |tool: &&Arc<dyn Tool>| tool.definition().name() == original;
        let meant = tools.iter().find(is_listed).unwrap_or(tool);
        let meant = meant.definition().original_name();
        for name in [original.to_owned(), format!("odd__{original}")] {
            assert_eq!(answer(&executor, &name).await, meant, "{name:?}");
        }
    }
    for (original, name) in [
        ("a\u{200b}b", r"a\u{200b}b"),
        (r"a\u{200b}b", r"a\\u{200b}b"),
        (r"a\\u{200b}b", r"a\\\\u{200b}b"),
        ("a\nb", r"a\nb"),
        (r"a\nb", r"a\\nb"),
        (r"C:\users", r"C:\users"),
        (" ", r"\u{20}"),
        ("\u{a0}", r"\u{a0}"),
        (&*long, &*long),
    ] {
        let tool = tools.find(name).unwrap();
        assert_eq!(tool.definition().original_name(), original);
    }
    for nobody in ["a-b", "odd__a-b", "odd__a.b", "gr__e", "a_b ", "odd_a_b"] {
        assert!(manager.find(nobody).is_none(), "{nobody}");
    }
}

#[tokio::test]
async fn tm7_no_two_names_mean_one_tool() {
    let manager = manager_of([]);
    serve(&manager, "odd", ToolRank::Server(0), &["a_b"]);
    serve(&manager, "od", ToolRank::Server(1), &["a+b"]);
    for (name, found) in [("odd__a_b", true), ("odd__a+b", false), ("od__a_b", false)] {
        assert_eq!(manager.find(name).is_some(), found, "{name}");
    }
}

#[tokio::test]
async fn tm7_no_server_lists_a_tool_as_that_of_another() {
    for rank in [
        ToolRank::Server(0),
        ToolRank::Server(2),
        ToolRank::Override(0),
    ] {
        let manager = manager_of([]);
        let executor = executor(Arc::clone(&manager));
        serve(&manager, "evil", rank, &["house__unlock"]);
        serve(&manager, "house", ToolRank::Server(1), &["unlock"]);
        assert_eq!(
            answer(&executor, "house__unlock").await,
            "house",
            "{rank:?}"
        );
        assert_eq!(answer(&executor, "unlock").await, "house");
        assert_eq!(answer(&executor, "evil__house__unlock").await, "evil");
    }
}

#[test]
fn tm7_a_clash_is_one_warning_that_names_both() {
    let log = LogCapture::json();
    let manager = manager_of([local("lamp")]);
    serve(&manager, "attic\nERROR", ToolRank::Server(1), &["lamp"]);
    let warning = log.only();
    assert_eq!(warning["level"], "WARN");
    assert_eq!(
        warning["fields"],
        json!({
            "message": "two tools have the same name; the second one is listed under a longer name",
            "tool": "lamp", "first": "builtin", "second": r"mcp:attic\nERROR", "listed": r"attic\nERROR__lamp",
        })
    );
    serve(
        &manager,
        "attic\nERROR",
        ToolRank::Server(1),
        &["lamp", "door"],
    );
    serve(&manager, "other", ToolRank::Server(2), &["gate"]);
    manager.remove(&server("other"));
    assert_eq!(log.lines().len(), 1, "nothing new");
    serve(&manager, "other", ToolRank::Server(0), &["door"]);
    assert_eq!(log.lines().len(), 2, "another clash");
    manager.remove(&server("attic\nERROR"));
    serve(&manager, "attic\nERROR", ToolRank::Server(1), &["lamp"]);
    assert_eq!(log.lines().len(), 3, "a clash that is there again");
}

#[tokio::test]
async fn tm7_if_a_server_lists_a_name_twice_the_later_tool_wins_with_a_warning() {
    let log = LogCapture::json();
    let manager = manager_of([]);
    let tools = [("lamp", "first"), ("door", "door"), ("lamp", "second")].map(|(name, text)| {
        let definition = open_definition(name).source(server("attic"));
        Arc::new(answering(definition, Ok(ToolOutput::text(text)))) as Arc<dyn Tool>
    });
    manager.replace(&server("attic"), ToolRank::Server(0), tools.into());
    assert_eq!(
        tool_names(&manager),
        ["lamp", "door"],
        "in the place of the first"
    );
    let warning = log.only();
    assert_eq!(
        (&warning["level"], &warning["fields"]["tool"]),
        (&json!("WARN"), &json!("lamp"))
    );
    let executor = executor(manager);
    assert_eq!(answer(&executor, "lamp").await, "second");
    assert_eq!(answer(&executor, "attic__lamp").await, "second");
}

#[tokio::test]
async fn tm7_policies_match_the_server_with_its_own_name_and_the_listed_one() {
    let manager = manager_of([local("lamp")]);
    serve(&manager, "attic", ToolRank::Server(0), &["lamp"]);
    serve(&manager, "cellar", ToolRank::Server(1), &["lamp"]);
    let policy = |patterns: Value| {
        let policy: Policy = serde_json::from_value(json!({ "deny": patterns })).unwrap();
        let builder = ToolExecutor::builder(Arc::clone(&manager)).without_observers();
        builder.policy(policy).build()
    };
    for (denied, expected) in [
        (json!(["attic/lamp"]), ["local", "", "cellar"]),
        (json!(["attic__lamp"]), ["local", "", "cellar"]),
        (json!(["cellar__*"]), ["local", "attic", ""]),
        (json!(["lamp"]), ["", "", ""]),
        (json!(["*/lamp"]), ["local", "", ""]),
    ] {
        let executor = policy(denied);
        for (name, expected) in ["lamp", "attic__lamp", "cellar__lamp"]
            .into_iter()
            .zip(expected)
        {
            let outcome = executor.execute(ToolCall::new(name, json!({}))).await;
            assert_eq!(outcome.is_success(), !expected.is_empty(), "{name}");
            assert!(expected.is_empty() || outcome.to_model_text() == expected);
        }
    }
}

/// Neither another server's tool of the same name is granted, nor one that reads like a tool
/// of the listed server.
#[tokio::test]
async fn tm7_an_allow_list_grants_only_what_it_names() {
    let manager = manager_of([local("datetime")]);
    serve(&manager, "house", ToolRank::Server(0), &["lamp"]);
    let hostile = ["datetime", "house/lamp2", "house__lamp2", "lamp"];
    serve(&manager, "evil", ToolRank::Server(1), &hostile);
    assert_eq!(
        tool_names(&manager),
        [
            "datetime",
            "lamp",
            "evil__datetime",
            "house/lamp2",
            "evil__house__lamp2",
            "evil__lamp"
        ]
    );
    for (allowed, expected) in [
        ("datetime", &["datetime"][..]),
        ("evil__datetime", &["evil__datetime"]),
        ("lamp", &["lamp"]),
        ("lam*", &["lamp"]),
        ("house/*", &["lamp"]),
        ("house__*", &["lamp"]),
        ("house/lamp2", &[]),
        ("house__lamp2", &[]),
        ("evil/house/lamp2", &["house/lamp2"]),
    ] {
        let policy: Policy = serde_json::from_value(json!({ "allow": [allowed] })).unwrap();
        let builder = || ToolExecutor::builder(Arc::clone(&manager)).without_observers();
        let by_policy = builder().policy(policy).build();
        let by_scope = builder().build();
        let scope = Scope::only(vec![ToolPattern::new(allowed)]);
        for tool in manager.tools().iter() {
            let tool = tool.definition();
            let expected = expected.contains(&tool.name());
            assert_eq!(
                by_policy.is_visible(tool),
                expected,
                "{allowed}: {}",
                tool.name()
            );
            let found = by_scope.is_visible_in_scope(tool, &scope);
            assert_eq!(found, expected, "{allowed}: {}", tool.name());
        }
        // Nor by the name it would have liked to have.
        let outcome = by_policy
            .execute(ToolCall::new("house__lamp2", json!({})))
            .await;
        assert!(!outcome.is_success(), "{allowed}");
    }
}

#[test]
fn tm7_a_renamed_tool_is_otherwise_the_same() {
    let definition = |builder: DefinitionBuilder| {
        let mut annotations = Annotations::READ_ONLY;
        annotations.open_world = Some(true);
        builder
            .annotations(annotations)
            .original_name("The Lamp")
            .title("Lamp")
            .output_schema(json!({ "type": "object" }))
            .timeout(secs(7))
    };
    let manager = manager_of([local("lamp")]);
    let tool = tool_of("attic", definition(open_definition("lamp")));
    manager.replace(
        &server("attic"),
        ToolRank::Server(0),
        vec![Arc::clone(&tool)],
    );
    let listed = manager.find("attic__lamp").unwrap();
    let (listed, plain) = (listed.definition(), tool.definition());
    assert_eq!(listed.name(), "attic__lamp");
    assert_eq!(listed.original_name(), "The Lamp");
    assert_eq!(listed.title(), Some("Lamp"));
    assert_eq!(listed.annotations(), plain.annotations());
    assert!(
        std::ptr::eq(listed.parameters(), plain.parameters()),
        "no second copy"
    );
    assert!(std::ptr::eq(
        listed.output_schema().unwrap(),
        plain.output_schema().unwrap()
    ));
    assert_eq!(listed.timeout(&toolgate_core::Limits::default()), secs(7));
}

#[tokio::test(start_paused = true)]
async fn tm7_a_call_in_flight_keeps_the_tool_it_found() {
    let manager = manager_of([]);
    let slow = sleeping(open_definition("lamp").source(server("attic")), secs(5));
    manager.replace(&server("attic"), ToolRank::Server(0), vec![Arc::new(slow)]);
    let executor = executor(Arc::clone(&manager));
    let call = tokio::spawn({
        let executor = executor.clone();
        async move { answer(&executor, "lamp").await }
    });
    tokio::time::sleep(secs(1)).await;
    manager.add(local("lamp"));
    manager.remove(&server("attic"));
    assert_eq!(answer(&executor, "lamp").await, "local");
    assert_eq!(call.await.unwrap(), "done");
}

#[test]
fn the_tools_of_a_server_change_at_once_and_only_if_there_are_any() {
    let manager = manager_of([echo(open_definition("echo"))]);
    let changes = manager.subscribe();
    let count = || *changes.borrow();
    let before = count();
    serve(&manager, "attic", ToolRank::Server(0), &["a", "b", "c"]);
    assert_eq!(count(), before + 1);
    serve(&manager, "attic", ToolRank::Server(0), &["c"]);
    assert_eq!(tool_names(&manager), ["echo", "c"]);
    assert_eq!(count(), before + 2);
    serve(&manager, "attic", ToolRank::Server(0), &[]);
    assert_eq!(tool_names(&manager), ["echo"]);
    assert_eq!(count(), before + 3);
    serve(&manager, "attic", ToolRank::Server(0), &[]);
    manager.remove(&server("cellar"));
    assert_eq!(count(), before + 3, "there was nothing to remove");
}

#[tokio::test]
async fn a_misspelled_tool_after_a_server_name_is_suggested_from_that_server() {
    let manager = ToolManager::new();
    let tools = ["create_issue", "search"];
    serve(&manager, "github", ToolRank::Server(0), &tools);
    serve(&manager, "gitlab", ToolRank::Server(1), &tools);
    let executor = ToolExecutor::new(Arc::new(manager));
    for (asked, expected) in [
        (
            "github__creat_issue",
            "Did you mean 'github__create_issue'?",
        ),
        // Listed with its server's name, as it clashes with the first.
        ("gitlab__serch", "Did you mean 'gitlab__search'?"),
        ("gitub__create_issue", "Did you mean 'gitlab__create_issue'"),
    ] {
        let outcome = executor.execute(ToolCall::new(asked, json!({}))).await;
        let error = outcome.result.unwrap_err();
        assert_eq!(error.to_string(), format!("Tool '{asked}' not found"));
        let hint = error.hint().unwrap_or_default();
        assert!(hint.starts_with(expected), "{asked}: {hint}");
    }
}
