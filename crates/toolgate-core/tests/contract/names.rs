//! PN6 and PN7: parameters are renamed before they are checked, and never guessed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use toolgate_core::{Normalize, ParameterNames, Source, ToolCall, ToolExecutor, ToolOutput};

use crate::support::{Log, Recorder, builder_of, logging, scripted, with_schema};

fn zwave(mode: Normalize) -> ParameterNames {
    let mapped = [
        ("device_name", "deviceName"),
        ("command", "action"),
        ("brightness", "level"),
    ];
    let mapped = mapped.map(|(from, to)| (from.to_owned(), to.to_owned()));
    ParameterNames::new(mode, HashMap::from(mapped))
}

fn lamp(mode: Normalize, schema: Value) -> crate::support::Scripted {
    let definition = with_schema("control_zwave_device", schema)
        .source(Source::Mcp("zwave".to_owned()))
        .names(zwave(mode));
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

#[tokio::test]
async fn pn6_undeclared_names_are_mapped_then_written_in_camel_case() {
    let executor = builder_of([lamp(Normalize::Undeclared, camel())]).build();
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
    let executor = builder_of([lamp(Normalize::Undeclared, snake)]).build();
    let asked = json!({ "device_name": "a", "command": "on" });
    assert_eq!(received(&executor, asked.clone()).await, asked.to_string());
}

#[tokio::test]
async fn pn6_always_and_never_do_what_they_say() {
    let open = || json!({ "properties": { "device_name": {} } });
    let asked = json!({ "device_name": "a" });
    let always = builder_of([lamp(Normalize::Always, open())]).build();
    assert_eq!(
        received(&always, asked.clone()).await,
        r#"{"deviceName":"a"}"#
    );
    let never = builder_of([lamp(Normalize::Never, open())]).build();
    assert_eq!(received(&never, asked).await, r#"{"device_name":"a"}"#);
}

#[tokio::test]
async fn pn7_two_spellings_of_one_parameter_are_an_error_and_the_tool_is_left_alone() {
    let ran = Arc::new(AtomicBool::new(false));
    let runs = Arc::clone(&ran);
    let definition = with_schema("t", camel()).names(zwave(Normalize::Undeclared));
    let executor = builder_of([scripted(definition, move |_, _| {
        runs.store(true, Ordering::SeqCst);
        async { Ok(ToolOutput::json(1)) }
    })])
    .build();
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
        let outcome = executor.execute(ToolCall::new("t", asked)).await;
        assert_eq!(outcome.error().unwrap(), expected);
    }
    assert!(!ran.load(Ordering::SeqCst));
}

#[tokio::test]
async fn pn7_duplicate_keys_are_an_error_at_any_depth() {
    let executor = builder_of([lamp(Normalize::Undeclared, camel())]).build();
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
    let executor = builder_of([lamp(Normalize::Undeclared, camel())]).build();
    assert_eq!(
        received(&executor, json!({ "device_name": 5, "command": "dim" })).await,
        "Invalid parameters: 'deviceName' must be string, 'action' must be one of: on, off. \
         Required parameters: 'deviceName' (string)"
    );
}

#[tokio::test]
async fn pn7_what_was_validated_is_what_is_sent_to_the_order_of_the_keys() {
    let recorder = Recorder::default();
    let executor = builder_of([lamp(Normalize::Undeclared, camel())])
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
    assert_eq!(record.asked.to_string(), asked.to_string());
}

#[tokio::test]
async fn pn5_renames_are_logged_only_if_there_are_any() {
    let log = Log::json();
    let executor = logging([lamp(Normalize::Undeclared, camel())], &[]);
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
