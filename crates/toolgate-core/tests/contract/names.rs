//! PN: servers' parameters are renamed before validation, and never guessed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use toolgate_core::{ParameterNames, RenameMode, ToolCall, ToolExecutor, ToolOutput, ToolSource};

use crate::support::{LogCapture, Recorder, builder_of, logging, scripted, with_schema};

fn zwave(mode: RenameMode) -> ParameterNames {
    let mapped = [
        ("device_name", "deviceName"),
        ("command", "action"),
        ("brightness", "level"),
    ];
    let mapped = mapped.map(|(from, to)| (from.to_owned(), to.to_owned()));
    ParameterNames::new(mode, HashMap::from(mapped))
}

fn lamp(mode: RenameMode, schema: Value) -> crate::support::ScriptedTool {
    let definition = with_schema("control_zwave_device", schema)
        .source(ToolSource::Mcp("zwave".to_owned()))
        .parameter_names(zwave(mode));
    scripted(definition, |arguments, _| async move {
        Ok(ToolOutput::text(arguments.as_value().to_string()))
    })
}

fn camel() -> Value {
    json!({
        "type": "object",
        "properties": { "deviceName": { "type": "string" }, "action": { "enum": ["on", "off"] }, "level": { "type": "integer" } },
        "required": ["deviceName"],
    })
}

async fn received(executor: &ToolExecutor, arguments: Value) -> String {
    let call = ToolCall::new("control_zwave_device", arguments);
    executor.execute(call).await.to_model_text()
}

/// What the server's tool receives.
async fn sent(
    source: ToolSource,
    original: &str,
    names: ParameterNames,
    schema: Value,
    asked: Value,
) -> String {
    let definition = with_schema("t", schema)
        .source(source)
        .original_name(original)
        .parameter_names(names);
    let tool = scripted(definition, |arguments, _| async move {
        Ok(ToolOutput::text(arguments.as_value().to_string()))
    });
    let executor = builder_of([tool]).build();
    executor
        .execute(ToolCall::new("t", asked))
        .await
        .to_model_text()
}

#[tokio::test]
async fn pn1_device_and_command_reach_the_server_under_its_names() {
    let executor = builder_of([lamp(RenameMode::Undeclared, camel())]).build();
    let asked = json!({ "device_name": "Switch One", "command": "on" });
    assert_eq!(
        received(&executor, asked).await,
        r#"{"deviceName":"Switch One","action":"on"}"#
    );
}

#[tokio::test]
async fn pn3_unmapped_names_become_camel_case_and_the_schema_decides() {
    let closed = json!({ "properties": { "level": {} }, "additionalProperties": false });
    let strict = json!({ "required": ["new_parameter_name"] });
    for (schema, asked, expected) in [
        (
            json!({}),
            json!({ "new_parameter_name": 1, "level": 2, "x_1": 3 }),
            r#"{"newParameterName":1,"level":2,"x_1":3}"#,
        ),
        (
            camel(),
            json!({ "device_name": "x", "new_key": 1 }),
            r#"{"deviceName":"x","newKey":1}"#,
        ),
        (
            closed,
            json!({ "new_key": 1, "level": 2 }),
            r#"{"level":2}"#,
        ),
        (
            strict,
            json!({ "new_parameter_name": 1 }),
            "Invalid parameters: missing 'new_parameter_name'. Required parameters: 'new_parameter_name' (any)",
        ),
    ] {
        let names = ParameterNames::new(RenameMode::Undeclared, HashMap::new());
        let source = ToolSource::Mcp("s".to_owned());
        assert_eq!(sent(source, "t", names, schema, asked).await, expected);
    }
}

#[tokio::test]
async fn pn4_local_tools_are_never_renamed() {
    let asked = json!({ "device_name": "x", "command": "on" });
    for source in [
        ToolSource::Builtin,
        ToolSource::Mock,
        ToolSource::Internal,
        ToolSource::Custom,
    ] {
        for mode in [RenameMode::Undeclared, RenameMode::Always] {
            let tool = "control_zwave_device";
            let received = sent(source.clone(), tool, zwave(mode), json!({}), asked.clone()).await;
            assert_eq!(received, asked.to_string());
        }
    }
}

#[tokio::test]
async fn pn6_undeclared_names_are_mapped_or_become_camel_case() {
    let executor = builder_of([lamp(RenameMode::Undeclared, camel())]).build();
    for (asked, sent) in [
        (
            json!({ "device_name": "Switch One", "command": "on" }),
            r#"{"deviceName":"Switch One","action":"on"}"#,
        ),
        (
            json!({ "deviceName": "a", "new_key": 1 }),
            r#"{"deviceName":"a","newKey":1}"#,
        ),
        (
            json!({ "brightness": 5, "deviceName": "a" }),
            r#"{"level":5,"deviceName":"a"}"#,
        ),
    ] {
        assert_eq!(received(&executor, asked).await, sent);
    }
}

#[tokio::test]
async fn pn6_a_name_that_the_schema_declares_is_never_touched() {
    let snake =
        json!({ "properties": { "device_name": {}, "command": {} }, "required": ["device_name"] });
    let executor = builder_of([lamp(RenameMode::Undeclared, snake)]).build();
    let asked = json!({ "device_name": "a", "command": "on" });
    assert_eq!(received(&executor, asked.clone()).await, asked.to_string());
}

/// Everything that could make our renaming lose an argument: names that are required, typed, and
/// in a closed schema.
fn snake() -> Value {
    json!({
        "type": "object",
        "properties": {
            "device_name": { "type": "string" }, "command": { "enum": ["on", "off"] }, "brightness": { "type": "integer" },
            "fade_time": { "type": "number" },
        },
        "required": ["device_name", "command"],
        "additionalProperties": false,
    })
}

#[tokio::test]
async fn pn6_always_validates_the_declared_spelling_and_sends_the_other() {
    let asked = json!({ "device_name": "Switch One", "command": "on" });
    let sent = r#"{"deviceName":"Switch One","action":"on"}"#;
    let open = || {
        let mut schema = snake();
        schema["additionalProperties"] = json!(true);
        schema
    };
    for schema in [snake(), open(), camel(), json!({ "type": "object" })] {
        let always = builder_of([lamp(RenameMode::Always, schema.clone())]).build();
        assert_eq!(received(&always, asked.clone()).await, sent, "{schema}");
    }
    let always = builder_of([lamp(RenameMode::Always, snake())]).build();
    for (asked, expected) in [
        // The spelling that is sent works as well.
        (
            json!({ "action": "off", "deviceName": "x", "level": 5, "fadeTime": 1.5 }),
            r#"{"action":"off","deviceName":"x","level":5,"fadeTime":1.5}"#,
        ),
        (
            json!({ "device_name": "x", "command": "on", "brightness": 5, "fade_time": 2 }),
            r#"{"deviceName":"x","action":"on","level":5,"fadeTime":2}"#,
        ),
        // Undeclared names are dropped, and an optional null counts as not given, as always.
        (
            json!({ "device_name": "x", "command": "on", "fade_time": null, "extra_key": 1 }),
            r#"{"deviceName":"x","action":"on"}"#,
        ),
        (
            json!({ "device_name": 5, "fade_time": "slow" }),
            "Invalid parameters: missing 'command', 'device_name' must be string, 'fade_time' must be number. \
             Required parameters: 'device_name' (string), 'command' (one of: on, off)",
        ),
    ] {
        assert_eq!(received(&always, asked).await, expected);
    }
}

/// Ways to accept `x_foo` in an otherwise closed object.
fn closed_schemas() -> [Value; 6] {
    let named = || json!({ "properties": { "x_foo": {} } });
    let closed = |keyword: &str, value: Value| json!({ "type": "object", keyword: value, "unevaluatedProperties": false });
    [
        json!({ "patternProperties": { "^x_": {} }, "additionalProperties": false }),
        json!({ "allOf": [{ "patternProperties": { "_foo$": {} }, "additionalProperties": false }] }),
        closed("dependentSchemas", json!({ "x_foo": named() })),
        json!({ "if": { "required": ["x_foo"] }, "then": named(), "unevaluatedProperties": false }),
        json!({ "if": { "required": ["y"] }, "else": named(), "unevaluatedProperties": false }),
        json!({ "$ref": "#x", "$defs": { "x": { "$anchor": "x", "patternProperties": { "^x_": {} } } }, "unevaluatedProperties": false }),
    ]
}

#[tokio::test]
async fn pn6_renaming_never_makes_a_closed_schema_drop_an_argument() {
    let names = |mode| ParameterNames::new(mode, HashMap::new());
    for schema in closed_schemas() {
        for (mode, expected) in [
            (RenameMode::Never, r#"{"x_foo":1}"#),
            (RenameMode::Undeclared, r#"{"x_foo":1}"#),
            (RenameMode::Always, r#"{"xFoo":1}"#),
        ] {
            let asked = json!({ "x_foo": 1 });
            let source = ToolSource::Mcp("s".to_owned());
            let received = sent(source, "t", names(mode), schema.clone(), asked).await;
            assert_eq!(received, expected, "{mode:?} {schema}");
        }
    }
}

#[tokio::test]
async fn pn6_a_name_that_matches_a_pattern_of_the_schema_is_validated_by_it() {
    let schema = json!({ "properties": { "device_name": {} }, "patternProperties": { "^x_|^d": { "type": "integer" } } });
    let names = |mode| ParameterNames::new(mode, HashMap::new());
    for (mode, asked, expected) in [
        (
            RenameMode::Undeclared,
            json!({ "x_foo": "a" }),
            "Invalid parameters: 'x_foo' must be integer",
        ),
        (
            RenameMode::Always,
            json!({ "x_foo": "a" }),
            "Invalid parameters: 'x_foo' must be integer",
        ),
        (
            RenameMode::Undeclared,
            json!({ "y_foo": "a" }),
            r#"{"yFoo":"a"}"#,
        ),
        // A declared name takes precedence over a pattern.
        (
            RenameMode::Always,
            json!({ "deviceName": 1 }),
            r#"{"deviceName":1}"#,
        ),
    ] {
        let source = ToolSource::Mcp("s".to_owned());
        let received = sent(source, "t", names(mode), schema.clone(), asked).await;
        assert_eq!(received, expected, "{mode:?}");
    }
}

#[tokio::test]
async fn pn6_names_that_take_too_long_to_match_are_refused() {
    let schema = json!({ "patternProperties": { "^[a-z_]{1,20000}$": {} } });
    for validate in [true, false] {
        let definition = with_schema("t", schema.clone())
            .source(ToolSource::Mcp("s".to_owned()))
            .validate(validate)
            .parameter_names(ParameterNames::new(RenameMode::Undeclared, HashMap::new()));
        let executor = builder_of([scripted(definition, |_, _| async {
            Ok(ToolOutput::json(1))
        })])
        .build();
        let asked = json!({ "a_b".repeat(1000): 1 });
        let outcome = executor.execute(ToolCall::new("t", asked)).await;
        assert_eq!(
            outcome.error().unwrap(),
            "Invalid parameters: 'arguments' are too large or nested too deeply to be checked against this schema"
        );
    }
}

#[tokio::test]
async fn pn6_always_records_what_was_sent_and_what_was_renamed() {
    let recorder = Recorder::default();
    let executor = builder_of([lamp(RenameMode::Always, snake())])
        .observer(recorder.clone())
        .build();
    let asked = json!({ "command": "on", "device_name": "x", "none_such": 1 });
    let rehearsal = executor.dry_run(&ToolCall::new("control_zwave_device", asked.clone()));
    let sent = received(&executor, asked.clone()).await;
    assert_eq!(sent, r#"{"action":"on","deviceName":"x"}"#);
    let record = recorder.only();
    assert_eq!(record.executed.unwrap().to_string(), sent);
    assert_eq!(record.requested.to_string(), asked.to_string());
    assert_eq!(record.dropped, ["noneSuch"]);
    let pairs = [
        ("command", "action"),
        ("device_name", "deviceName"),
        ("none_such", "noneSuch"),
    ];
    let pairs = pairs.map(|(from, to)| (from.to_owned(), to.to_owned()));
    assert_eq!(record.renamed, pairs);
    let rehearsal = rehearsal.unwrap();
    assert_eq!(rehearsal.arguments.as_value().to_string(), sent);
    assert_eq!(rehearsal.renamed, pairs);
}

#[tokio::test]
async fn pn6_mode_never_sends_the_arguments_unchanged() {
    let never = builder_of([lamp(RenameMode::Never, snake())]).build();
    let asked = json!({ "device_name": "a", "command": "on" });
    assert_eq!(received(&never, asked.clone()).await, asked.to_string());
    assert_eq!(
        received(&never, json!({ "deviceName": "a", "action": "on" })).await,
        "Invalid parameters: missing 'device_name', missing 'command'. \
         Required parameters: 'device_name' (string), 'command' (one of: on, off)"
    );
}

#[tokio::test]
async fn pn7_two_spellings_of_one_parameter_are_rejected() {
    let ran = Arc::new(AtomicBool::new(false));
    let executor = |mode, schema| {
        let runs = Arc::clone(&ran);
        let definition = with_schema("t", schema)
            .source(ToolSource::Mcp("zwave".to_owned()))
            .parameter_names(zwave(mode));
        builder_of([scripted(definition, move |_, _| {
            runs.store(true, Ordering::SeqCst);
            async { Ok(ToolOutput::json(1)) }
        })])
        .build()
    };
    let executors = [
        executor(RenameMode::Undeclared, camel()),
        executor(RenameMode::Always, camel()),
        executor(RenameMode::Always, snake()),
    ];
    for (asked, expected) in [
        (
            json!({ "device_name": "Lamp", "deviceName": "Door" }),
            "Invalid parameters: 'device_name' and 'deviceName' are the same parameter",
        ),
        (
            json!({ "deviceName": "Lamp", "device_name": "Lamp" }),
            "Invalid parameters: 'deviceName' and 'device_name' are the same parameter",
        ),
        (
            json!({ "deviceName": "Lamp", "action": "on", "command": "off" }),
            "Invalid parameters: 'action' and 'command' are the same parameter",
        ),
        (
            json!({ "deviceName": "Lamp", "x_y": 1, "xY": 2 }),
            "Invalid parameters: 'x_y' and 'xY' are the same parameter",
        ),
    ] {
        for executor in &executors {
            let outcome = executor.execute(ToolCall::new("t", asked.clone())).await;
            assert_eq!(outcome.error().unwrap(), expected);
        }
    }
    assert!(!ran.load(Ordering::SeqCst));
}

#[tokio::test]
async fn pn7_duplicate_keys_are_an_error_at_any_depth() {
    let executor = builder_of([lamp(RenameMode::Undeclared, camel())]).build();
    for text in [
        r#"{"deviceName":"Lamp","deviceName":"Door"}"#,
        r#"{"deviceName":"Lamp","x":[{"deviceName":1,"deviceName":1}]}"#,
        r#"{"deviceName":"Lamp","\u0064eviceName":"Door"}"#,
    ] {
        let call = ToolCall::from_json("control_zwave_device", text.as_bytes());
        let outcome = executor.execute(call).await;
        assert_eq!(
            outcome.error().unwrap(),
            "Invalid parameters: 'deviceName' given twice"
        );
    }
}

#[tokio::test]
async fn pn7_renaming_happens_before_validation() {
    let executor = builder_of([lamp(RenameMode::Undeclared, camel())]).build();
    assert_eq!(
        received(&executor, json!({ "device_name": 5, "command": "dim" })).await,
        "Invalid parameters: 'deviceName' must be string, 'action' must be one of: on, off. \
         Required parameters: 'deviceName' (string)"
    );
}

#[tokio::test]
async fn pn7_validated_arguments_are_sent_in_the_same_order() {
    let recorder = Recorder::default();
    let executor = builder_of([lamp(RenameMode::Undeclared, camel())])
        .observer(recorder.clone())
        .build();
    let asked = json!({ "z": 1, "level": 3, "command": "on", "a": 2, "device_name": "x" });
    let sent = received(&executor, asked.clone()).await;
    assert_eq!(
        sent,
        r#"{"z":1,"level":3,"action":"on","a":2,"deviceName":"x"}"#
    );
    let record = recorder.only();
    assert_eq!(record.executed.unwrap().to_string(), sent);
    assert_eq!(record.requested.to_string(), asked.to_string());
}

#[tokio::test]
async fn pn5_renames_are_logged_only_if_there_are_any() {
    let log = LogCapture::json();
    let executor = logging([lamp(RenameMode::Undeclared, camel())], &[]);
    received(&executor, json!({ "device_name": "x" })).await;
    received(&executor, json!({ "deviceName": "x" })).await;
    let lines: Vec<Value> = log
        .lines()
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        lines[0]["fields"]["changes"],
        "{device_name: …} → {deviceName: …}"
    );
    assert_eq!(lines[1]["fields"].get("changes"), None);
}
