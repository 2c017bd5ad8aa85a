use serde_json::{Value, json};

use super::super::PROVIDER;
use super::super::tests::offer;
use super::*;
use crate::compat::RequestCompat;
use crate::tests::samples::{ask, assistant, call, result, results, said, tool, user};
use crate::{ImageData, Message, MessagePart, Provider, ToolResult};

fn options() -> RequestOptions {
    RequestOptions {
        model: "gemini-x".to_owned(),
        max_tokens: 100,
        window: 10_000,
        temperature: None,
        seed: None,
        think: None,
    }
}

const ALL: SentOptions = SentOptions {
    temperature: true,
    seed: true,
    think: true,
};

fn sent(options: &RequestOptions, request: &ModelRequest<'_>) -> String {
    String::from_utf8(body(options, ALL, request).unwrap()).unwrap()
}

fn contents(history: &[Message]) -> Value {
    let tools = offer(&[tool("time", "The time", json!({ "type": "object" }))]);
    let body = sent(&options(), &ask("", history, &tools));
    serde_json::from_str::<Value>(&body).unwrap()["contents"].take()
}

fn signature(text: &str) -> MessagePart {
    MessagePart::Opaque {
        provider: PROVIDER,
        value: json!({ "thoughtSignature": text }),
    }
}

fn named(result: ToolResult, name: &str) -> ToolResult {
    ToolResult {
        name: name.to_owned(),
        ..result
    }
}

#[test]
fn the_smallest_request_has_no_optional_fields() {
    assert_eq!(
        sent(&options(), &ask(" ", &[user("Hello")], &offer(&[]))),
        r#"{"contents":[{"role":"user","parts":[{"text":"Hello"}]}],"generationConfig":{"maxOutputTokens":100}}"#
    );
}

#[test]
fn a_round_of_tools_is_sent_in_api_form() {
    let parameters = json!({ "type": "object", "properties": { "zone": { "type": "string", "format": "tz" } }, "required": ["zone"], "additionalProperties": false });
    let tools = offer(&[tool("home.time", "What time it is", parameters)]);
    let options = RequestOptions {
        temperature: Some(0.5),
        seed: Some(7),
        think: Some(true),
        ..options()
    };
    let history = [
        user("What time is it?"),
        assistant(vec![
            said("I look."),
            signature("proof"),
            call("a", "home.time", r#"{"zone":"UTC"}"#),
        ]),
        results(vec![named(result("a", "12:00"), "home.time")]),
    ];
    let request = ModelRequest {
        forbid_tools: true,
        ..ask("Be brief.", &history, &tools)
    };
    let body: Value = serde_json::from_str(&sent(&options, &request)).unwrap();
    let declaration = &body["tools"][0]["functionDeclarations"][0];
    assert_eq!(declaration["name"], "home_time");
    let schema = &declaration["parametersJsonSchema"];
    assert_eq!(schema["required"], json!(["zone"]));
    assert_eq!(schema["properties"]["zone"]["type"], "string");
    assert!(schema.get("additionalProperties").is_none());
    assert!(schema["properties"]["zone"].get("format").is_none());
    let mut rest = body.clone();
    rest.as_object_mut().unwrap().remove("tools");
    assert_eq!(
        rest,
        json!({
            "systemInstruction": { "parts": [{ "text": "Be brief." }] },
            "contents": [
                { "role": "user", "parts": [{ "text": "What time is it?" }] },
                { "role": "model", "parts": [
                    { "text": "I look." },
                    { "functionCall": { "id": "a", "name": "home_time", "args": { "zone": "UTC" } }, "thoughtSignature": "proof" },
                ] },
                { "role": "user", "parts": [
                    { "functionResponse": { "id": "a", "name": "home_time", "response": { "output": "12:00" } } },
                ] },
            ],
            "toolConfig": { "functionCallingConfig": { "mode": "NONE" } },
            "generationConfig": { "maxOutputTokens": 100, "temperature": 0.5, "seed": 7,
                "thinkingConfig": { "includeThoughts": true } },
        })
    );
}

#[test]
fn a_setting_that_was_refused_is_not_sent() {
    let options = RequestOptions {
        temperature: Some(0.5),
        think: Some(false),
        ..options()
    };
    let learned = ALL.adapted_to(400, "temperature is not supported by this model");
    assert!(!learned.temperature && learned.think);
    let learned = learned.adapted_to(400, "Thinking level is not supported for this model.");
    let body = body(&options, learned, &ask("", &[user("Hi")], &offer(&[]))).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["generationConfig"], json!({ "maxOutputTokens": 100 }));
    assert_eq!(
        ALL.adapted_to(400, "tools[0]: unknown name \"temperature\""),
        ALL
    );
}

#[test]
fn every_call_has_exactly_one_response() {
    let failed = ToolResult {
        is_error: true,
        ..result("b", "no")
    };
    let picture = ToolResult {
        images: vec![ImageData {
            mime_type: "image/png".to_owned(),
            data: "AAAA".to_owned(),
        }],
        ..result("a", "seen")
    };
    let sent = contents(&[
        user("Go"),
        assistant(vec![
            call("a", "time", "{}"),
            call("b", "time", "{}"),
            call("c", "time", "{}"),
        ]),
        results(vec![picture, failed, result("stray", "?")]),
        user("And?"),
    ]);
    let parts = sent[2]["parts"].as_array().unwrap();
    let responses: Vec<&Value> = parts.iter().map(|part| &part["functionResponse"]).collect();
    assert_eq!(
        responses[0]["response"]["output"],
        "seen\n[image image/png, 1 KB, not shown]"
    );
    assert_eq!(responses[1]["response"], json!({ "error": "no" }));
    assert_eq!(
        responses[2]["response"],
        json!({ "error": "(no result: the call was stopped)" })
    );
    assert_eq!(parts[3], json!({ "text": "And?" }));
    assert_eq!((parts.len(), sent.as_array().unwrap().len()), (4, 3));
}

#[test]
fn roles_alternate_and_the_user_begins() {
    let other = MessagePart::Opaque {
        provider: Provider::Anthropic,
        value: json!({ "type": "redacted_thinking" }),
    };
    let thinking = MessagePart::Thinking {
        text: "hm".to_owned(),
        signature: Some("of another".to_owned()),
    };
    let sent = contents(&[
        user(" "),
        assistant(vec![other, thinking, said("Hi."), said("There.")]),
        assistant(vec![said("Again.")]),
        user("One"),
        user("Two"),
    ]);
    assert_eq!(
        sent,
        json!([
            { "role": "user", "parts": [{ "text": "(no words)" }] },
            { "role": "model", "parts": [{ "text": "Hi." }, { "text": "There." }, { "text": "Again." }] },
            { "role": "user", "parts": [{ "text": "One" }, { "text": "Two" }] },
        ])
    );
}

#[test]
fn a_signature_is_sent_back_on_its_own_part() {
    let sent = contents(&[
        user("Hi"),
        assistant(vec![
            said("Hello"),
            signature("one"),
            signature("two"),
            said("!"),
        ]),
        user("?"),
    ]);
    assert_eq!(
        sent[1]["parts"],
        json!([
            { "text": "Hello" },
            { "text": "", "thoughtSignature": "one" },
            { "text": "!", "thoughtSignature": "two" },
        ])
    );
}

#[test]
fn a_tool_whose_name_begins_with_a_digit_is_left_out() {
    let tools = offer(&[
        tool("3d", "Prints", json!({ "type": "object" })),
        tool("time", "The time", json!({ "type": "object" })),
    ]);
    assert_eq!(tools.len(), 1);
    let left_out = tools.catalog().excluded();
    assert_eq!(left_out[0].name, "3d");
    assert!(
        left_out[0].reason.contains("letter"),
        "{}",
        left_out[0].reason
    );
}
