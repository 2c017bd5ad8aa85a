//! PN: the parameters of servers are renamed before they are checked, and never guessed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use toolgate_core::{Normalize, ParameterNames, Source, ToolCall, ToolExecutor, ToolOutput};

use crate::support::{Log, Recorder, builder_of, logging, scripted, with_schema};

fn zwave(mode: Normalize) -> ParameterNames {
    ParameterNames::of_server_tool(mode, "control_zwave_device", &HashMap::new())
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

/// What reaches the tool that a server calls so.
async fn sent(
    source: Source,
    original: &str,
    names: ParameterNames,
    schema: Value,
    asked: Value,
) -> String {
    let definition = with_schema("t", schema)
        .source(source)
        .original_name(original)
        .names(names);
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
async fn pn1_the_device_and_its_command_reach_the_server_as_it_calls_them() {
    let executor = builder_of([lamp(Normalize::Undeclared, camel())]).build();
    let asked = json!({ "device_name": "Switch One", "command": "on" });
    assert_eq!(
        received(&executor, asked).await,
        r#"{"deviceName":"Switch One","action":"on"}"#
    );
}

#[tokio::test]
async fn pn2_the_zwave_names_ship_for_any_server_and_configuration_adds_to_them() {
    let none = HashMap::new();
    let configured = HashMap::from(
        [("room", "area"), ("command", "verb")].map(|(from, to)| (from.to_owned(), to.to_owned())),
    );
    let asked = || json!({ "device_name": "x", "command": "on", "brightness": 5, "room": "r" });
    for (server, tool, configured, expected) in [
        (
            "zwave",
            "control_zwave_device",
            &none,
            r#"{"deviceName":"x","action":"on","level":5,"room":"r"}"#,
        ),
        (
            "house",
            "control_zwave_device",
            &none,
            r#"{"deviceName":"x","action":"on","level":5,"room":"r"}"#,
        ),
        (
            "zwave",
            "get_device_sensor_data",
            &none,
            r#"{"deviceName":"x","command":"on","brightness":5,"room":"r"}"#,
        ),
        (
            "zwave",
            "other",
            &none,
            r#"{"deviceName":"x","command":"on","brightness":5,"room":"r"}"#,
        ),
        (
            "zwave",
            "control_zwave_device",
            &configured,
            r#"{"deviceName":"x","verb":"on","level":5,"area":"r"}"#,
        ),
        (
            "zwave",
            "other",
            &configured,
            r#"{"deviceName":"x","verb":"on","brightness":5,"area":"r"}"#,
        ),
    ] {
        let names = ParameterNames::of_server_tool(Normalize::Undeclared, tool, configured);
        let source = Source::Mcp(server.to_owned());
        assert_eq!(
            sent(source, tool, names, json!({}), asked()).await,
            expected,
            "{tool}"
        );
    }
}

#[tokio::test]
async fn pn3_unmapped_names_are_written_in_camel_case_and_the_schema_decides() {
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
        let names = ParameterNames::new(Normalize::Undeclared, HashMap::new());
        let source = Source::Mcp("s".to_owned());
        assert_eq!(sent(source, "t", names, schema, asked).await, expected);
    }
}

#[tokio::test]
async fn pn4_local_tools_are_never_renamed() {
    let asked = json!({ "device_name": "x", "command": "on" });
    for source in [
        Source::Builtin,
        Source::Mock,
        Source::Internal,
        Source::Custom,
    ] {
        for mode in [Normalize::Undeclared, Normalize::Always] {
            let tool = "control_zwave_device";
            let received = sent(source.clone(), tool, zwave(mode), json!({}), asked.clone()).await;
            assert_eq!(received, asked.to_string());
        }
    }
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
    let definition = with_schema("t", camel())
        .source(Source::Mcp("zwave".to_owned()))
        .names(zwave(Normalize::Undeclared));
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
