//! VA5 and VA7: what a server's tool receives, and who validates it. EX5: its result
//! is passed on unchanged.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolgate_core::{
    Limits, ParameterNames, RenameMode, Schema, SchemaLimits, ToolCall, ToolContent, ToolExecutor,
    ToolOutput, ToolSource,
};

use crate::support::{Recorder, builder_of, on_a_small_stack, outcome_of, scripted, with_schema};

/// A server's tool that remembers what it was sent.
fn recording(
    schema: Value,
    validate: bool,
) -> (crate::support::ScriptedTool, Arc<Mutex<Vec<String>>>) {
    let sent = Arc::<Mutex<Vec<String>>>::default();
    let sends = Arc::clone(&sent);
    let definition = with_schema("t", schema)
        .source(ToolSource::Mcp("house".to_owned()))
        .parameter_names(ParameterNames::new(
            RenameMode::Undeclared,
            std::collections::HashMap::new(),
        ))
        .validate(validate);
    let tool = scripted(definition, move |arguments, _| {
        sends.lock().push(arguments.as_value().to_string());
        async { Ok(ToolOutput::json(1)) }
    });
    (tool, sent)
}

async fn error(executor: &ToolExecutor, arguments: Value) -> Option<String> {
    executor
        .execute(ToolCall::new("t", arguments))
        .await
        .error()
}

#[tokio::test]
async fn va5_unknown_arguments_are_forwarded_unless_the_schema_is_closed() {
    let closed = json!({ "properties": { "a": {} }, "additionalProperties": false });
    for (schema, sent, dropped) in [
        (
            json!({ "properties": { "a": {} } }),
            r#"{"z":1,"a":2,"b":{"c":3}}"#,
            &[][..],
        ),
        (
            json!({ "properties": { "a": {} }, "additionalProperties": true }),
            r#"{"z":1,"a":2,"b":{"c":3}}"#,
            &[],
        ),
        (closed, r#"{"a":2}"#, &["z", "b"]),
    ] {
        let recorder = Recorder::default();
        let (tool, received) = recording(schema, true);
        let executor = builder_of([tool]).observer(recorder.clone()).build();
        let asked = json!({ "z": 1, "a": 2, "b": { "c": 3 } });
        assert_eq!(error(&executor, asked).await, None);
        assert_eq!(*received.lock(), [sent]);
        assert_eq!(recorder.only().dropped, dropped);
    }
}

#[tokio::test]
async fn va7_the_tools_of_servers_are_validated_too() {
    let schema = json!({ "properties": { "level": { "type": "integer" } }, "required": ["level"] });
    let (tool, sent) = recording(schema, true);
    let executor = builder_of([tool]).build();
    for (arguments, expected) in [
        (json!({}), Some("Invalid parameters: missing 'level'")),
        (
            json!({ "level": "5" }),
            Some("Invalid parameters: 'level' must be integer"),
        ),
        (json!({ "level": 5 }), None),
    ] {
        assert_eq!(error(&executor, arguments).await.as_deref(), expected);
    }
    assert_eq!(*sent.lock(), [r#"{"level":5}"#]);
}

#[tokio::test]
async fn va7_validate_false_leaves_the_checking_to_the_server() {
    let schema = json!({
        "properties": { "level": { "type": "integer" }, "x_y": {} },
        "required": ["level"], "additionalProperties": false,
    });
    let (tool, sent) = recording(schema.clone(), false);
    let mut limits = Limits::default();
    limits.max_arguments = 1_000;
    let executor = builder_of([tool]).limits(limits).build();
    let tool = executor.manager().find("t").unwrap();
    assert_eq!(tool.definition().parameters(), &schema);
    assert!(!tool.definition().schema().is_checked());

    let nested = (0..70).fold(json!(1), |inner, _| json!([inner]));
    for (arguments, expected) in [
        (json!({ "z": 1, "level": "5", "x_y": null, "a_b": 1 }), None),
        (json!({}), None),
        (
            json!([]),
            Some("Invalid parameters: 'arguments' must be object"),
        ),
        (
            json!({ "aB": 1, "a_b": 1 }),
            Some("Invalid parameters: 'aB' and 'a_b' are the same parameter"),
        ),
        (
            json!({ "level": nested }),
            Some("Invalid parameters: 'arguments' must not be nested deeper than 64"),
        ),
        (
            json!({ "level": "x".repeat(1_000) }),
            Some("The arguments of 't' take 1012 bytes; the limit is 1000"),
        ),
    ] {
        assert_eq!(error(&executor, arguments).await.as_deref(), expected);
    }
    assert_eq!(
        *sent.lock(),
        [r#"{"z":1,"level":"5","x_y":null,"aB":1}"#, "{}"],
        "renamed, but nothing else"
    );
}

#[test]
fn va7_an_unsupported_schema_can_be_kept_unchecked() {
    let doubling = |next: usize| json!({ "allOf": [{ "$ref": format!("#/$defs/d{next}") }, { "$ref": format!("#/$defs/d{next}") }] });
    let mut doubled: Value = (0..40)
        .map(|i| (format!("d{i}"), doubling(i + 1)))
        .collect();
    doubled["d40"] = json!({});
    for schema in [
        json!({ "properties": { "a": { "type": "string", "pattern": "^(?!x)" } } }),
        json!({ "properties": { "a": { "$id": "https://example.org/a" } } }),
        json!({ "properties": { "a": { "$ref": "https://example.org/a" } } }),
        json!({ "$ref": "#/$defs/d0", "$defs": doubled }),
    ] {
        let definition =
            with_schema("t", schema.clone()).source(ToolSource::Mcp("house".to_owned()));
        let error = definition.clone().build().unwrap_err();
        assert!(error.is_unsupported(), "{error}");
        let kept = definition.validate(false).build().unwrap();
        assert_eq!(kept.parameters().to_string(), schema.to_string());
    }
}

#[test]
fn va7_non_object_and_overly_deep_schemas_are_always_refused() {
    let deep = (0..150).fold(json!({}), |inner, _| json!({ "not": inner }));
    for schema in [
        Value::Null,
        json!([]),
        json!(true),
        json!({ "type": "string" }),
        deep,
    ] {
        for validate in [true, false] {
            let error = with_schema("t", schema.clone())
                .validate(validate)
                .build()
                .unwrap_err();
            assert!(!error.is_unsupported(), "{error}");
        }
    }
    // A faulty schema is refused, unless validation is turned off.
    let mistaken = with_schema("t", json!({ "properties": { "a": { "type": "strin" } } }));
    assert!(!mistaken.clone().build().unwrap_err().is_unsupported());
    mistaken.validate(false).build().unwrap();
}

#[test]
fn va7_an_exponential_schema_is_kept_unchecked_quickly() {
    let link = |next: usize| json!({ "properties": { format!("p_{next}"): {} }, "anyOf": vec![json!({ "$ref": format!("#/$defs/d{next}") }); 100] });
    let mut defs: Value = (0..30).map(|i| (format!("d{i}"), link(i + 1))).collect();
    defs["d30"] = json!({ "$ref": "#/$defs/d0" });
    let schema = json!({ "$ref": "#/$defs/d0", "$defs": defs });
    on_a_small_stack("an unchecked schema", move || recording(schema, false));
}

#[tokio::test]
async fn ex5_a_servers_blocks_are_passed_on_unchanged() {
    let blocks: Value = serde_json::from_str(
        r#"[{"text":"hi","type":"text","annotations":{"audience":["user"],"priority":0.5},"_meta":{"x/y":1}},
            {"type":"image","mimeType":"image/png","data":"aGk=","_meta":{}},
            {"type":"audio","data":"aGk=","mimeType":"audio/wav","annotations":{"lastModified":"2025-01-12T15:00:58Z"}},
            {"type":"resource_link","uri":"file:///a","name":"a","title":"A","description":"…","mimeType":"text/plain","size":7,
             "icons":[{"src":"data:,"}]},
            {"type":"resource","resource":{"uri":"file:///a","text":"…","_meta":{"a":1}},"annotations":{}},
            {"type":"hologram","depth":3},
            {"no":"type"},
            "not even a block"]"#,
    )
    .unwrap();
    let content: Vec<ToolContent> = serde_json::from_value(blocks.clone()).unwrap();
    assert_eq!(serde_json::to_string(&content).unwrap(), blocks.to_string());
    let outcome = outcome_of(Ok(ToolOutput::blocks(content))).await;
    assert_eq!(
        outcome.to_envelope()["result"].to_string(),
        blocks.to_string()
    );
    let text = outcome.to_model_text();
    assert!(text.starts_with("hi\n{\"type\":\"image\""), "{text}");
    assert!(
        text.ends_with(
            "{\"type\":\"hologram\",\"depth\":3}\n{\"no\":\"type\"}\n\"not even a block\""
        ),
        "{text}"
    );
}

#[tokio::test]
async fn every_field_of_a_block_counts_towards_the_size_of_a_result() {
    let mut limits = Limits::default();
    limits.max_result = 1_000;
    let long = "x".repeat(1_000);
    let deep = (0..600).fold(json!(1), |inner, _| json!([inner]));
    for (block, is_fine) in [
        (json!({ "type": "text", "text": long }), true),
        (
            json!({ "type": "text", "text": "", "_meta": { "a": long } }),
            false,
        ),
        (json!({ "type": "text", "text": 5, "x": long }), false),
        (
            json!({ "type": "resource_link", "uri": "a", "name": "a", "description": long }),
            false,
        ),
        (json!({ "type": "hologram", "a": deep }), false),
        (json!(long), false),
    ] {
        let output = ToolOutput::blocks(vec![ToolContent::from(block)]);
        let tool = crate::support::answering(crate::support::open_definition("t"), Ok(output));
        let executor = builder_of([tool]).limits(limits.clone()).build();
        assert_eq!(error(&executor, json!({})).await.is_none(), is_fine);
    }
}

#[test]
fn a_deferred_schema_checks_like_a_compiled_one() {
    let limits = SchemaLimits::default();
    let document = json!({
        "type": "object", "required": ["level"], "additionalProperties": false,
        "properties": { "level": { "type": "integer", "minimum": 0 }, "on": { "type": "boolean" } },
    });
    let at_once = Schema::compile(document.clone(), &limits).unwrap();
    let later = Schema::deferred(document, &limits).unwrap();
    for arguments in [
        json!({ "level": 5 }),
        json!({ "level": -1, "on": "yes" }),
        json!({ "on": null, "extra": 1 }),
        json!({ "level": 1, "on": null, "extra": 1 }),
    ] {
        let checked = |schema: &Schema| {
            let checked = schema.check(arguments.clone());
            checked.map(|valid| (valid.as_value().clone(), valid.dropped().to_vec()))
        };
        let (one, other) = (checked(&at_once), checked(&later));
        assert_eq!(format!("{one:?}"), format!("{other:?}"), "{arguments}");
    }
    // A schema that isn't an object is still refused at once; one that can't
    // be compiled accepts anything.
    assert!(Schema::deferred(json!({ "type": "string" }), &limits).is_err());
    let endless = json!({ "type": "object", "$ref": "https://example.org/s.json" });
    assert!(Schema::compile(endless.clone(), &limits).is_err());
    let endless = Schema::deferred(endless, &limits).unwrap();
    assert!(!endless.is_checked() && endless.check(json!({ "x": 1 })).is_ok());
}
