mod anthropic;
mod gemini;
mod ollama;
mod openai;

use serde_json::{Value, json};

use super::{Api, IssuedSignatures, ServerKind, check};
use crate::RecordedRequest;
use crate::answer::ScriptedPart;

fn schema() -> Value {
    json!({ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] })
}

/// A question, two calls with thinking before them, and both results.
fn anthropic() -> Value {
    json!({
        "model": "claude-sonnet-5", "max_tokens": 100, "stream": true, "system": "Be brief.",
        "tools": [{ "name": "weather", "description": "Weather", "input_schema": schema() }],
        "messages": [
            { "role": "user", "content": "Oslo and Rome?" },
            { "role": "assistant", "content": [
                { "type": "thinking", "thinking": "hm", "signature": "sig" },
                { "type": "tool_use", "id": "a", "name": "weather", "input": { "city": "Oslo" } },
                { "type": "tool_use", "id": "b", "name": "weather", "input": { "city": "Rome" } },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "a", "content": "3" },
                { "type": "tool_result", "tool_use_id": "b", "content": [{ "type": "text", "text": "21" }], "is_error": false },
            ] },
        ],
    })
}

fn function() -> Value {
    json!([{ "type": "function", "function": { "name": "weather", "description": "Weather", "parameters": schema() } }])
}

fn ollama() -> Value {
    json!({
        "model": "qwen3", "stream": true, "keep_alive": -1, "think": false, "options": { "num_ctx": 4096 }, "tools": function(),
        "messages": [
            { "role": "user", "content": "Oslo and Rome?" },
            { "role": "assistant", "content": "", "tool_calls": [
                { "id": "a", "function": { "name": "weather", "arguments": { "city": "Oslo" } } },
                { "function": { "name": "weather", "arguments": { "city": "Rome" } } },
            ] },
            { "role": "tool", "tool_name": "weather", "content": "3", "tool_call_id": "a" },
            { "role": "tool", "tool_name": "weather", "content": "21" },
        ],
    })
}

fn openai() -> Value {
    json!({
        "model": "qwen3", "stream": true, "stream_options": { "include_usage": true }, "max_tokens": 100, "tools": function(),
        "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": "Oslo?" },
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "a", "type": "function", "function": { "name": "weather", "arguments": "{\"city\": \"Oslo\"}" } },
            ] },
            { "role": "tool", "tool_call_id": "a", "content": "3" },
        ],
    })
}

fn request(headers: &[(&str, &str)], body: &Value) -> RecordedRequest {
    let headers = headers.iter();
    RecordedRequest {
        method: "POST".to_owned(),
        path: String::new(),
        headers: headers
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        body: body.to_string().into_bytes(),
        refused: None,
    }
}

fn problem(api: Api, body: &Value) -> String {
    let all = [
        ("content-type", "application/json"),
        ("x-api-key", "k"),
        ("anthropic-version", "2023-06-01"),
    ];
    problem_with(api, &all, body)
}

fn problem_with(api: Api, headers: &[(&str, &str)], body: &Value) -> String {
    let mut issued = IssuedSignatures::default();
    let (text, signature) = ("hm".to_owned(), "sig".to_owned());
    let call = |id: &str| ScriptedPart::Call {
        id: id.to_owned(),
        name: String::new(),
        arguments: String::new(),
    };
    issued.record(&[
        ScriptedPart::Thinking { text, signature },
        call("a"),
        call("b"),
    ]);
    check(&request(headers, body), api, ServerKind::Provider, &issued)
        .err()
        .unwrap_or_default()
}

/// Sets a value at a path, which may be a new key of an object. `null` removes it.
fn with(mut body: Value, place: &str, value: Value) -> Value {
    let (parent, key) = place.rsplit_once('/').unwrap();
    let parent = body
        .pointer_mut(parent)
        .unwrap_or_else(|| panic!("{place}"));
    match parent {
        Value::Array(list) => match key.parse::<usize>() {
            Ok(index) if value.is_null() => drop(list.remove(index)),
            Ok(index) => list[index] = value,
            Err(_) => list.push(value),
        },
        _ if value.is_null() => drop(parent.as_object_mut().unwrap().shift_remove(key)),
        _ => parent[key] = value,
    }
    body
}

fn assert_each_is_refused(api: Api, good: &Value, table: &[(&str, Value, &str)]) {
    assert_eq!(problem(api, good), "");
    for (place, value, expected) in table {
        let found = problem(api, &with(good.clone(), place, value.clone()));
        assert!(
            found.contains(expected),
            "{place} = {value}: '{found}' should have '{expected}'"
        );
    }
}
