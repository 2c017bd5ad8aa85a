//! LangChain.js as an oracle: the same tools and the same history, ours and theirs side by side.
//! Each difference is named here with its reason.

use std::io::Write;
use std::process::{Command, Stdio};

use fakellm::{Answer, Api, FakeLlm, Script};
use serde_json::{Value, json};
use tokio::time::Instant;
use toolgate_models::{Message, ModelEvent, ModelRequest, OfferedTools};

use super::script;
use crate::recorded_tools::RecordedTools;
use crate::test_conversation::{HANG, client, settings};

const SYSTEM: &str = "Be brief.";

/// Two calls with text before them, one of which failed, an answer, and the next question.
fn history() -> Vec<Message> {
    let call = |id: &str, city: &str| json!({ "type": "call", "id": id, "name": "get_weather", "arguments": { "object": { "city": city } } });
    let history = json!([
        { "role": "user", "text": "Oslo and Atlantis?" },
        { "role": "assistant", "parts": [{ "type": "text", "text": "Let me see." }, call("call_1", "Oslo"), call("call_2", "Atlantis")] },
        { "role": "tool", "results": [
            { "id": "call_1", "name": "get_weather", "text": "3 degrees" },
            { "id": "call_2", "name": "get_weather", "text": "There is no such city", "is_error": true },
        ] },
        { "role": "assistant", "parts": [{ "type": "text", "text": "Oslo has 3 degrees." }] },
        { "role": "user", "text": "And Paris?" },
    ]);
    serde_json::from_value(history).unwrap()
}

async fn ours(api: Api, recorded: &RecordedTools) -> Value {
    let fake = FakeLlm::lenient(Script::always(Answer::text("Hello."))).await;
    let client = client(api, &settings(api, fake.url()));
    let offer = OfferedTools::all(client.catalog(&recorded.toolbox().current()));
    let history = history();
    let request = ModelRequest::new(SYSTEM, &history, &offer, Instant::now() + HANG);
    client
        .reply(request, &mut |_: ModelEvent<'_>| {})
        .await
        .unwrap();
    fake.requests()[0].json()
}

/// The body of their request; `None` if LangChain.js isn't installed.
async fn theirs(api: Api, recorded: &RecordedTools) -> Option<Value> {
    let folder = fakellm::third_parties()?;
    let fake = FakeLlm::lenient(Script::always(Answer::text("Hello."))).await;
    let tools = recorded.manager.tools();
    let mut tools: Vec<_> = tools.iter().map(|tool| tool.definition()).collect();
    tools.sort_by_key(|tool| tool.name());
    let tools = tools.iter().map(|tool| json!({ "name": tool.name(), "description": tool.description(), "parameters": tool.parameters() }));
    let input = json!({
        "provider": if api == Api::Anthropic { "anthropic" } else { "ollama" },
        "url": fake.url(), "model": "fake", "system": SYSTEM, "tools": tools.collect::<Vec<_>>(), "messages": history(),
    });
    let mut node = Command::new("node");
    node.arg(script("langchain.mjs"))
        .arg(&folder)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped());
    let mut node = node.spawn().unwrap();
    node.stdin
        .take()
        .unwrap()
        .write_all(input.to_string().as_bytes())
        .unwrap();
    let done = tokio::task::spawn_blocking(move || node.wait_with_output())
        .await
        .unwrap()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    Some(fake.requests()[0].json())
}

fn without(value: &mut Value, keys: &[&str]) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(|item| without(item, keys)),
        Value::Object(object) => {
            object.retain(|key, _| !keys.contains(&key.as_str()));
            object.values_mut().for_each(|value| without(value, keys));
        }
        _ => {}
    }
}

/// Schemas that every provider accepts unchanged.
fn weather_tools() -> RecordedTools {
    let city = json!({ "type": "object", "required": ["city"], "properties": {
        "city": { "type": "string", "description": "Which city" },
        "kind": { "type": "string", "enum": ["now", "week"] },
        "days": { "type": "array", "items": { "type": "integer" } } } });
    let nothing = json!({ "type": "object", "properties": {} });
    let done = |_: &Value| Ok(toolgate_core::ToolOutput::text("done"));
    RecordedTools::empty()
        .with("get_weather", city, done)
        .with("clock", nothing, done)
}

#[tokio::test]
async fn ollama_gets_what_chat_ollama_would_send() {
    let recorded = weather_tools();
    let Some(mut theirs) = theirs(Api::Ollama, &recorded).await else {
        return;
    };
    let mut ours = ours(Api::Ollama, &recorded).await;
    assert_eq!(ours["tools"], theirs["tools"]);
    assert_eq!(ours["stream"], theirs["stream"]);
    let result = |body: &Value| body["messages"][3].clone();
    // We name the call of each result, as the documentation asks. This version of ChatOllama
    // relies on the order.
    assert_eq!(result(&ours)["tool_name"], "get_weather");
    assert_eq!(result(&theirs).get("tool_name"), None);
    without(
        &mut ours["messages"],
        &["tool_name", "tool_call_id", "index"],
    );
    // Ollama drops this field of a call, because it has no such field.
    for call in theirs["messages"][2]["tool_calls"].as_array_mut().unwrap() {
        assert_eq!(
            call.as_object_mut().unwrap().shift_remove("type"),
            Some(json!("function"))
        );
    }
    assert_eq!(ours["messages"], theirs["messages"]);
    // We always send the window size and the keep-alive time; they only on request.
    assert!(ours["options"]["num_ctx"].as_u64().unwrap() >= 4096);
}

#[tokio::test]
async fn anthropic_gets_what_chat_anthropic_would_send() {
    let recorded = weather_tools();
    let Some(mut theirs) = theirs(Api::Anthropic, &recorded).await else {
        return;
    };
    let mut ours = ours(Api::Anthropic, &recorded).await;
    // We always mark what the provider may cache; LangChain does so only on request.
    assert!(ours.to_string().contains("cache_control"));
    without(&mut ours, &["cache_control"]);
    assert_eq!(ours["tools"], theirs["tools"]);
    // We report that a call failed; this version of ChatAnthropic loses that.
    assert_eq!(ours["messages"][2]["content"][1]["is_error"], true);
    assert!(!theirs.to_string().contains("is_error"));
    without(&mut ours, &["is_error"]);
    // To the provider, a text and a list of one text are the same.
    for body in [&mut ours, &mut theirs] {
        let messages = body["messages"]
            .as_array_mut()
            .unwrap()
            .iter_mut()
            .map(|message| &mut message["content"]);
        for content in messages.collect::<Vec<_>>() {
            if let Value::String(text) = content {
                *content = json!([{ "type": "text", "text": text }]);
            }
        }
        if let Value::String(text) = &body["system"] {
            body["system"] = json!([{ "type": "text", "text": text }]);
        }
    }
    assert_eq!(ours["messages"], theirs["messages"]);
    assert_eq!(ours["system"], theirs["system"]);
}

/// If a schema says more than the provider accepts, they send it unchanged, and the constraint or
/// the whole request is lost.
#[tokio::test]
async fn schemas_that_langchain_sends_unchanged_are_lowered() {
    let rich = json!({ "type": "object", "additionalProperties": false, "required": ["where"],
        "properties": { "where": { "$ref": "#/$defs/place" } },
        "$defs": { "place": { "type": "string", "minLength": 2 } } });
    let recorded = RecordedTools::empty().with("rich", rich, |_| {
        Ok(toolgate_core::ToolOutput::text("done"))
    });
    let Some(theirs) = theirs(Api::Ollama, &recorded).await else {
        return;
    };
    let ours = ours(Api::Ollama, &recorded).await;
    let parameters = |body: &Value| body["tools"][0]["function"]["parameters"].clone();
    assert!(
        parameters(&theirs)["properties"]["where"]["$ref"].is_string(),
        "{theirs}"
    );
    let lowered = parameters(&ours);
    assert_eq!(lowered["properties"]["where"]["type"], "string");
    assert!(
        lowered.get("$defs").is_none() && lowered.get("additionalProperties").is_none(),
        "{lowered}"
    );
    assert!(
        lowered["properties"]["where"]["description"]
            .as_str()
            .unwrap()
            .contains('2'),
        "{lowered}"
    );
}
