//! Renders a scripted message as each provider's stream.

use serde_json::{Value, json};

use crate::Answer;
use crate::answer::{AnswerBody, ScriptedMessage, ScriptedPart};
use crate::rules::Api;

/// The prompt tokens that Ollama reports by default: more than any test sends, so
/// no prompt seems cut.
const WHOLE_PROMPT: u64 = 4000;

/// The body of an answer, event by event.
pub(crate) fn body(answer: &Answer, api: Api) -> Vec<Vec<u8>> {
    match &answer.body {
        AnswerBody::Raw(bytes) => vec![bytes.clone()],
        AnswerBody::Error { kind, message } => {
            let error = error(api, answer.status, kind, message);
            vec![error.to_string().into_bytes()]
        }
        AnswerBody::Said(said) => match api {
            Api::Anthropic => anthropic(said),
            Api::Ollama => ollama(said),
            Api::OpenAi => openai(said),
            Api::Gemini => gemini(said),
        },
    }
}

fn error(api: Api, status: u16, kind: &str, message: &str) -> Value {
    match api {
        Api::Anthropic => {
            json!({ "type": "error", "error": { "type": kind, "message": message }, "request_id": "req_1" })
        }
        Api::Ollama => json!({ "error": message }),
        Api::OpenAi => {
            json!({ "error": { "message": message, "type": kind, "param": null, "code": kind } })
        }
        Api::Gemini => {
            json!({ "error": { "code": status, "message": message, "status": kind.to_uppercase() } })
        }
    }
}

/// In two halves, so that a client has something to assemble. A single character is one piece.
fn split_in_half(text: &str) -> Vec<&str> {
    let middle = text.floor_char_boundary(text.len() / 2);
    let (first, second) = text.split_at(middle);
    let parts = [first, second].into_iter();
    parts.filter(|part| !part.is_empty()).collect()
}

fn has_call(said: &ScriptedMessage) -> bool {
    said.parts
        .iter()
        .any(|part| matches!(part, ScriptedPart::Call { .. }))
}

fn anthropic(said: &ScriptedMessage) -> Vec<Vec<u8>> {
    let event = |name: &str, mut data: Value| {
        data["type"] = name.into();
        format!("event: {name}\ndata: {data}\n\n").into_bytes()
    };
    let read = said.prompt_tokens.unwrap_or(25);
    let message = json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "fake", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": read, "output_tokens": 1 } });
    let mut events = vec![
        event("message_start", json!({ "message": message })),
        event("ping", json!({})),
    ];
    for (index, part) in said.parts.iter().enumerate() {
        let (block, deltas) = anthropic_block(part);
        events.push(event(
            "content_block_start",
            json!({ "index": index, "content_block": block }),
        ));
        for delta in deltas {
            events.push(event(
                "content_block_delta",
                json!({ "index": index, "delta": delta }),
            ));
        }
        events.push(event("content_block_stop", json!({ "index": index })));
    }
    let usual = if has_call(said) {
        "tool_use"
    } else {
        "end_turn"
    };
    let stop = said.stop.as_deref().unwrap_or(usual);
    events.push(event(
        "message_delta",
        json!({ "delta": { "stop_reason": stop, "stop_sequence": null }, "usage": { "output_tokens": 12 } }),
    ));
    events.push(event("message_stop", json!({})));
    events
}

fn anthropic_block(part: &ScriptedPart) -> (Value, Vec<Value>) {
    match part {
        ScriptedPart::Text(text) => {
            let deltas = split_in_half(text)
                .into_iter()
                .map(|half| json!({ "type": "text_delta", "text": half }));
            (json!({ "type": "text", "text": "" }), deltas.collect())
        }
        ScriptedPart::Thinking { text, signature } => {
            let halves = split_in_half(text).into_iter();
            let deltas = halves.map(|half| json!({ "type": "thinking_delta", "thinking": half }));
            let signed = json!({ "type": "signature_delta", "signature": signature });
            (
                json!({ "type": "thinking", "thinking": "", "signature": "" }),
                deltas.chain([signed]).collect(),
            )
        }
        ScriptedPart::Call {
            id,
            name,
            arguments,
        } => {
            // Like the provider: an empty piece first, and no text at all if
            // the arguments are empty.
            let text = if arguments == "{}" { "" } else { arguments };
            let pieces = [""].into_iter().chain(split_in_half(text));
            let deltas =
                pieces.map(|piece| json!({ "type": "input_json_delta", "partial_json": piece }));
            (
                json!({ "type": "tool_use", "id": id, "name": name, "input": {} }),
                deltas.collect(),
            )
        }
    }
}

fn ollama(said: &ScriptedMessage) -> Vec<Vec<u8>> {
    let line = |message: Value| {
        let mut line = json!({ "model": "fake", "created_at": "2026-11-16T00:00:00.000000000Z", "message": message, "done": false });
        line["message"]["role"] = "assistant".into();
        format!("{line}\n").into_bytes()
    };
    let mut lines = Vec::new();
    for (index, part) in said.parts.iter().enumerate() {
        match part {
            ScriptedPart::Text(text) => {
                lines.extend(
                    split_in_half(text)
                        .into_iter()
                        .map(|half| line(json!({ "content": half }))),
                );
            }
            ScriptedPart::Thinking { text, .. } => {
                let halves = split_in_half(text).into_iter();
                lines.extend(halves.map(|half| line(json!({ "content": "", "thinking": half }))));
            }
            ScriptedPart::Call {
                id,
                name,
                arguments,
            } => {
                let mut call = json!({ "function": { "index": index, "name": name, "arguments": ARGUMENTS_PLACEHOLDER } });
                if !id.is_empty() {
                    call["id"] = json!(id);
                }
                let line = line(json!({ "content": "", "tool_calls": [call] }));
                let line = String::from_utf8_lossy(&line);
                let here = json!(ARGUMENTS_PLACEHOLDER).to_string();
                lines.push(line.replacen(&here, &as_json(arguments), 1).into_bytes());
            }
        }
    }
    let last = json!({ "model": "fake", "created_at": "2026-11-16T00:00:01.000000000Z",
        "message": { "role": "assistant", "content": "" }, "done": true,
        "done_reason": said.stop.as_deref().unwrap_or("stop"), "total_duration": 1_000_000, "load_duration": 1000,
        "prompt_eval_count": said.prompt_tokens.unwrap_or(WHOLE_PROMPT), "eval_count": 12 });
    lines.push(format!("{last}\n").into_bytes());
    lines
}

/// Replaced by the arguments as they were written, because a `Value` can't have duplicate keys.
const ARGUMENTS_PLACEHOLDER: &str = "<arguments>";

/// On one line. Text that isn't JSON is sent as a string.
fn as_json(arguments: &str) -> String {
    match serde_json::from_str::<Value>(arguments) {
        Ok(_) => arguments.replace(['\n', '\r'], " "),
        Err(_) => json!(arguments).to_string(),
    }
}

fn openai(said: &ScriptedMessage) -> Vec<Vec<u8>> {
    let event = |choices: Value, usage: Value| {
        let data = json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "fake",
            "choices": choices, "usage": usage });
        format!("data: {data}\n\n").into_bytes()
    };
    let delta = |delta: Value| {
        event(
            json!([{ "index": 0, "delta": delta, "finish_reason": null }]),
            Value::Null,
        )
    };
    let mut events = vec![delta(json!({ "role": "assistant", "content": null }))];
    let mut index = 0;
    for part in &said.parts {
        match part {
            ScriptedPart::Text(text) => {
                events.extend(
                    split_in_half(text)
                        .into_iter()
                        .map(|half| delta(json!({ "content": half }))),
                );
            }
            ScriptedPart::Thinking { text, .. } => {
                events.push(delta(json!({ "reasoning_content": text })));
            }
            ScriptedPart::Call {
                id,
                name,
                arguments,
            } => {
                let first = json!({ "index": index, "id": id, "type": "function", "function": { "name": name, "arguments": "" } });
                events.push(delta(json!({ "tool_calls": [first] })));
                events.extend(split_in_half(arguments).into_iter().map(|half| {
                    delta(json!({ "tool_calls": [{ "index": index, "function": { "arguments": half } }] }))
                }));
                index += 1;
            }
        }
    }
    let usual = if has_call(said) { "tool_calls" } else { "stop" };
    let stop = said.stop.as_deref().unwrap_or(usual);
    events.push(event(
        json!([{ "index": 0, "delta": {}, "finish_reason": stop }]),
        Value::Null,
    ));
    let read = said.prompt_tokens.unwrap_or(25);
    let usage =
        json!({ "prompt_tokens": read, "completion_tokens": 12, "total_tokens": read + 12 });
    events.push(event(json!([]), usage));
    events.push(b"data: [DONE]\n\n".to_vec());
    events
}

/// A signature comes with the first call after the thinking, otherwise with an empty
/// part at the end.
fn gemini(said: &ScriptedMessage) -> Vec<Vec<u8>> {
    let event = |candidate: Value, usage: Value| {
        let mut candidate = candidate;
        candidate["index"] = 0.into();
        let data = json!({ "candidates": [candidate], "usageMetadata": usage, "modelVersion": "fake", "responseId": "r1" });
        format!("data: {data}\n\n")
    };
    let read = said.prompt_tokens.unwrap_or(25);
    let so_far = json!({ "promptTokenCount": read, "totalTokenCount": read });
    let part = |part: Value| {
        let content = json!({ "content": { "role": "model", "parts": [part] } });
        event(content, so_far.clone()).into_bytes()
    };
    let mut events = Vec::new();
    let mut unsigned = None;
    for said in &said.parts {
        match said {
            ScriptedPart::Text(text) => {
                let halves = split_in_half(text).into_iter();
                events.extend(halves.map(|half| part(json!({ "text": half }))));
            }
            ScriptedPart::Thinking { text, signature } => {
                events.push(part(json!({ "text": text, "thought": true })));
                unsigned = Some(signature);
            }
            ScriptedPart::Call {
                id,
                name,
                arguments,
            } => {
                let mut call =
                    json!({ "functionCall": { "name": name, "args": ARGUMENTS_PLACEHOLDER } });
                if !id.is_empty() {
                    call["functionCall"]["id"] = json!(id);
                }
                if let Some(signature) = unsigned.take() {
                    call["thoughtSignature"] = json!(signature);
                }
                let event = String::from_utf8_lossy(&part(call)).into_owned();
                let here = json!(ARGUMENTS_PLACEHOLDER).to_string();
                events.push(event.replacen(&here, &as_json(arguments), 1).into_bytes());
            }
        }
    }
    if let Some(signature) = unsigned {
        events.push(part(json!({ "text": "", "thoughtSignature": signature })));
    }
    let stop = said.stop.as_deref().unwrap_or("STOP");
    let usage = json!({ "promptTokenCount": read, "candidatesTokenCount": 12, "totalTokenCount": read + 12 });
    events.push(event(json!({ "finishReason": stop }), usage).into_bytes());
    events
}
