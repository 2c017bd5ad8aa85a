//! The scripted models of `@copilotkit/aimock` call the right tool, and its fixtures continue only
//! if they get the right result.

use std::io::Write;
use std::process::Command;

use fakellm::Api;
use serde_json::{Value, json};
use toolgate_core::ToolOutput;

use super::ThirdPartyProgram;
use crate::recorded_tools::RecordedTools;
use crate::test_conversation::APIS;

fn fixtures() -> Value {
    let call = |name: &str, arguments: Value| json!({ "toolCalls": [{ "name": name, "arguments": arguments.to_string() }] });
    json!({ "fixtures": [
        {
            "match": { "userMessage": "Switch One", "hasToolResult": false },
            "response": call("control_device", json!({ "deviceName": "Switch One", "action": "on" })),
        },
        {
            "match": { "userMessage": "Switch One", "toolResultContains": "Switch One is now on" },
            "response": { "content": "I switched on Switch One." },
        },
        {
            "match": { "userMessage": "which lamps", "hasToolResult": false },
            "response": call("control_device", json!({ "deviceName": "Switch One" })),
        },
        {
            "match": { "userMessage": "which lamps", "toolResultContains": "missing 'action'" },
            "response": { "content": "I need to know what to do." },
        },
    ] })
}

fn control_tools() -> RecordedTools {
    let schema = json!({ "type": "object", "required": ["deviceName", "action"], "properties": {
        "deviceName": { "type": "string" }, "action": { "enum": ["on", "off"] } } });
    RecordedTools::new().with("control_device", schema, |arguments| {
        let [name, action] =
            ["deviceName", "action"].map(|key| arguments[key].as_str().unwrap_or_default());
        Ok(ToolOutput::text(format!("{name} is now {action}")))
    })
}

fn start() -> Option<ThirdPartyProgram> {
    let folder = fakellm::third_parties()?;
    let mut file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    file.write_all(fixtures().to_string().as_bytes()).unwrap();
    let mut command = Command::new("node");
    command.arg(folder.join("node_modules/@copilotkit/aimock/dist/cli.js"));
    command.args([
        "--port",
        "0",
        "--host",
        "127.0.0.1",
        "--strict",
        "--chunk-size",
        "7",
        "--fixtures",
    ]);
    // It prints its address only after it has read the file.
    Some(ThirdPartyProgram::start(command.arg(file.path())))
}

#[tokio::test]
async fn qw7_a_third_party_engine_calls_the_right_tool() {
    let Some(aimock) = start() else {
        return;
    };
    for api in APIS {
        let recorded = control_tools();
        let mut conversation = aimock.conversation(api, &recorded, |_| {});
        let turn = conversation
            .turn(
                "Turn on Switch One",
                &mut |_: toolgate_models::ModelEvent<'_>| {},
            )
            .await
            .unwrap();
        assert_eq!(turn.answer, "I switched on Switch One.", "{api:?}");
        let arguments = json!({ "deviceName": "Switch One", "action": "on" });
        assert_eq!(
            recorded.calls(),
            [("control_device".to_owned(), arguments)],
            "{api:?}"
        );
    }
}

#[tokio::test]
async fn a_violation_reaches_the_model_and_nothing_runs() {
    let Some(aimock) = start() else {
        return;
    };
    for api in APIS {
        let recorded = control_tools();
        let mut conversation = aimock.conversation(api, &recorded, |_| {});
        let turn = conversation
            .turn(
                "Turn on which lamps?",
                &mut |_: toolgate_models::ModelEvent<'_>| {},
            )
            .await
            .unwrap();
        assert_eq!(turn.answer, "I need to know what to do.", "{api:?}");
        assert!(recorded.calls().is_empty(), "{api:?}");
    }
}

/// The request to Ollama as aimock's journal recorded it.
#[tokio::test]
async fn its_journal_has_the_tools_in_qwen_form() {
    let Some(aimock) = start() else {
        return;
    };
    let recorded = control_tools();
    let mut conversation = aimock.conversation(Api::Ollama, &recorded, |_| {});
    conversation
        .turn(
            "Turn on Switch One",
            &mut |_: toolgate_models::ModelEvent<'_>| {},
        )
        .await
        .unwrap();
    let journal = reqwest::get(format!("{}/__aimock/journal", aimock.url))
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    let journal: Value = serde_json::from_str(&journal).unwrap();
    let chats = journal
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["path"] == "/api/chat");
    let bodies: Vec<&Value> = chats.map(|entry| &entry["body"]).collect();
    assert_eq!(bodies.len(), 2, "{journal}");
    for body in bodies {
        let tools = body["tools"].as_array().unwrap();
        assert_eq!(tools.len(), recorded.manager.tools().len());
        assert!(
            tools.iter().all(|tool| tool["type"] == "function"
                && tool["function"]["parameters"]["type"] == "object")
        );
    }
}
