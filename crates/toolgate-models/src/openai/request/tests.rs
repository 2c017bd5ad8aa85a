use serde_json::json;

use super::super::tests::offer;
use super::*;
use crate::tests::samples::{ask, assistant, call, result, results, said, tool, user};
use crate::{ImageData, Message, MessagePart, Provider, ToolResult};

fn options() -> RequestOptions {
    RequestOptions {
        model: "gpt-x".to_owned(),
        max_tokens: 100,
        window: 10_000,
        temperature: None,
        seed: None,
        think: None,
    }
}

fn compat(official: bool, options: &RequestOptions) -> OpenAiCompat {
    let sent = SentOptions {
        temperature: options.temperature.is_some(),
        seed: options.seed.is_some(),
        think: options.think.is_some(),
    };
    OpenAiCompat::new(official, sent)
}

fn sent(options: &RequestOptions, request: &ModelRequest<'_>) -> String {
    String::from_utf8(body(options, compat(true, options), request).unwrap()).unwrap()
}

fn messages(history: &[Message]) -> serde_json::Value {
    let tools = offer(&[tool("time", "The time", json!({ "type": "object" }))]);
    let body = sent(&options(), &ask("", history, &tools));
    serde_json::from_str::<serde_json::Value>(&body).unwrap()["messages"].take()
}

#[test]
fn the_smallest_request_has_no_optional_fields() {
    assert_eq!(
        sent(&options(), &ask(" ", &[user("Hello")], &offer(&[]))),
        concat!(
            r#"{"model":"gpt-x","messages":[{"role":"user","content":"Hello"}],"stream":true,"#,
            r#""stream_options":{"include_usage":true},"max_completion_tokens":100}"#,
        )
    );
}

#[test]
fn a_round_of_tools_is_sent_in_chat_completions_form() {
    let parameters = json!({ "type": "object", "properties": { "zone": { "type": "string" } }, "required": ["zone"] });
    let tools = offer(&[
        tool("home.time", "What time it is", parameters),
        tool("dice", "Rolls a die", json!({ "type": "object" })),
    ]);
    let options = RequestOptions {
        temperature: Some(0.5),
        seed: Some(7),
        think: Some(false),
        ..options()
    };
    let history = [
        user("What time is it?"),
        assistant(vec![
            said("I look."),
            call("call_1", "home.time", r#"{"zone": "Asia/Tokyo", "a": 1}"#),
            call("call_2", "dice", ""),
        ]),
        results(vec![result("call_1", "12:00"), result("call_2", "4")]),
    ];
    let mut request = ask("Be brief.", &history, &tools);
    request.forbid_tools = true;
    assert_eq!(
        sent(&options, &request),
        concat!(
            r#"{"model":"gpt-x","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"What time is it?"},"#,
            r#"{"role":"assistant","content":"I look.","tool_calls":["#,
            r#"{"id":"call_1","type":"function","function":{"name":"home_time","arguments":"{\"zone\":\"Asia/Tokyo\",\"a\":1}"}},"#,
            r#"{"id":"call_2","type":"function","function":{"name":"dice","arguments":"{}"}}]},"#,
            r#"{"role":"tool","content":"12:00","tool_call_id":"call_1"},{"role":"tool","content":"4","tool_call_id":"call_2"}],"#,
            r#""tools":[{"type":"function","function":{"name":"dice","description":"Rolls a die","parameters":{"type":"object","properties":{}}}},"#,
            r#"{"type":"function","function":{"name":"home_time","description":"What time it is","#,
            r#""parameters":{"type":"object","properties":{"zone":{"type":"string"}},"required":["zone"]}}}],"#,
            r#""tool_choice":"none","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":100,"#,
            r#""temperature":0.5,"seed":7,"chat_template_kwargs":{"enable_thinking":false}}"#,
        )
    );
}

#[test]
fn other_servers_get_the_old_limit_name() {
    let body = body(
        &options(),
        compat(false, &options()),
        &ask("", &[user("Hi")], &offer(&[])),
    );
    let body = String::from_utf8(body.unwrap()).unwrap();
    assert!(
        body.ends_with(
            r#""stream":true,"stream_options":{"include_usage":true},"max_tokens":100}"#
        )
    );
}

#[test]
fn unknown_fields_are_not_sent_again() {
    let hot = RequestOptions {
        temperature: Some(0.5),
        ..options()
    };
    let old = compat(false, &hot);
    let new = compat(true, &options());
    for (compat, status, message, expected) in [
        (
            old,
            400,
            "Unrecognized request argument supplied: stream_options",
            OpenAiCompat {
                asks_usage: false,
                ..old
            },
        ),
        (
            old,
            422,
            "body.stream_options: Extra inputs are not permitted",
            OpenAiCompat {
                asks_usage: false,
                ..old
            },
        ),
        (
            old,
            400,
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            OpenAiCompat {
                limit: LimitName::MaxCompletionTokens,
                swapped: true,
                ..old
            },
        ),
        (
            new,
            400,
            "Unrecognized request argument supplied: max_completion_tokens",
            OpenAiCompat {
                limit: LimitName::MaxTokens,
                swapped: true,
                ..new
            },
        ),
        // The names may occur in words that mean something else.
        (
            old,
            400,
            "'max_tokens' is too large: 4096. This model's maximum context length is 2048 tokens",
            old,
        ),
        (
            old,
            400,
            "Unsupported parameter: 'temperature'",
            OpenAiCompat {
                sent: SentOptions {
                    temperature: false,
                    ..old.sent
                },
                ..old
            },
        ),
        // A setting that wasn't sent can't be the one that was refused.
        (new, 400, "Unsupported parameter: 'temperature'", new),
        (old, 500, "stream_options", old),
        (
            OpenAiCompat {
                swapped: true,
                ..old
            },
            400,
            "unknown field max_tokens",
            OpenAiCompat {
                swapped: true,
                ..old
            },
        ),
    ] {
        assert_eq!(compat.adapted_to(status, message), expected, "{message}");
    }
}

#[test]
fn a_setting_that_was_refused_is_not_in_the_next_request() {
    let options = RequestOptions {
        temperature: Some(0.5),
        seed: Some(7),
        think: Some(false),
        ..options()
    };
    let mut compat = self::compat(false, &options);
    let keys = ["temperature", "seed", "chat_template_kwargs"];
    for (index, key) in keys.iter().enumerate() {
        compat = compat.adapted_to(400, &format!("Unknown parameter: '{key}'."));
        let body = body(&options, compat, &ask("", &[user("Hi")], &offer(&[]))).unwrap();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let sent = keys.map(|key| body.get(key).is_some());
        assert_eq!(sent, [false, index < 1, index < 2], "{body}");
    }
}

#[test]
fn every_call_has_exactly_one_result() {
    let none = "(no result: the call was stopped)";
    let history = [
        results(vec![result("stray", "lost")]),
        user("Go"),
        assistant(vec![call("a", "time", "{}"), call("b", "gone.tool", "{}")]),
        results(vec![result("b", ""), result("zzz", "lost")]),
        user("Again"),
        assistant(vec![call("c", "time", "{}")]),
    ];
    assert_eq!(
        messages(&history),
        json!([
            { "role": "user", "content": "Go" },
            { "role": "assistant", "content": "", "tool_calls": [
                { "id": "a", "type": "function", "function": { "name": "time", "arguments": "{}" } },
                { "id": "b", "type": "function", "function": { "name": "gone_tool", "arguments": "{}" } },
            ] },
            { "role": "tool", "content": "(no output)", "tool_call_id": "b" },
            { "role": "tool", "content": none, "tool_call_id": "a" },
            { "role": "user", "content": "Again" },
            { "role": "assistant", "content": "", "tool_calls": [
                { "id": "c", "type": "function", "function": { "name": "time", "arguments": "{}" } },
            ] },
            { "role": "tool", "content": none, "tool_call_id": "c" },
        ])
    );
}

#[test]
fn arguments_are_always_the_text_of_an_object() {
    for (given, expected) in [
        (r#"{"a": {"b": "\""}}"#, r#"{"a":{"b":"\""}}"#),
        ("", "{}"),
        ("null", "{}"),
        (r#"{"a": "#, "{}"),
        (r#"{"a":1,"a":2}"#, "{}"),
        ("[1]", "{}"),
    ] {
        let history = [assistant(vec![call("a", "time", given)])];
        let call = &messages(&history)[0]["tool_calls"][0];
        assert_eq!(call["function"]["arguments"], expected, "{given}");
    }
}

#[test]
fn ids_are_never_empty_too_long_or_the_same() {
    let long = format!("toolu_{}é{}", "x".repeat(30), "y".repeat(39));
    let history = [
        assistant(vec![
            call(&long, "time", ""),
            call("", "time", ""),
            call("b", "time", ""),
            call("b", "time", ""),
        ]),
        results(vec![
            result(&long, "1"),
            result("", "2"),
            result("b", "3"),
            result("b", "4"),
        ]),
    ];
    let messages = messages(&history);
    let ids: Vec<&str> = (0..4)
        .map(|index| messages[0]["tool_calls"][index]["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids[0], "y".repeat(39));
    assert_eq!((ids[1].len(), ids[2], ids[3].len()), (9, "b", 9));
    for (index, id) in ids.iter().enumerate() {
        assert_eq!(messages[index + 1]["tool_call_id"], **id);
        assert_eq!(messages[index + 1]["content"], (index + 1).to_string());
    }
}

#[test]
fn images_are_described_in_words() {
    let image = ImageData {
        mime_type: "image/png".to_owned(),
        data: "A".repeat(4096),
    };
    for (text, expected) in [
        ("A chart", "A chart\n[image image/png, 3 KB, not shown]"),
        ("", "[image image/png, 3 KB, not shown]"),
    ] {
        let result = ToolResult {
            images: vec![image.clone()],
            ..result("a", text)
        };
        let history = [
            assistant(vec![call("a", "time", "")]),
            results(vec![result]),
        ];
        assert_eq!(messages(&history)[1]["content"], expected);
    }
}

#[test]
fn thinking_and_foreign_blocks_are_not_sent() {
    let thinking = MessagePart::Thinking {
        text: "Hm.".to_owned(),
        signature: Some("proof".to_owned()),
    };
    let opaque = MessagePart::Opaque {
        provider: Provider::Anthropic,
        value: json!({ "type": "redacted_thinking" }),
    };
    let history = [
        user("Hi"),
        assistant(vec![thinking.clone(), opaque, said("Hello")]),
        assistant(vec![thinking]),
    ];
    assert_eq!(
        messages(&history),
        json!([{ "role": "user", "content": "Hi" }, { "role": "assistant", "content": "Hello" }])
    );
}

#[test]
fn the_answer_limit_fits_the_rest_of_the_window() {
    let tools = offer(&[]);
    let history = [user(&"word ".repeat(300))];
    for (window, most, expected) in [
        (10_000, 4096, 4096),
        // The prompt is 308 tokens.
        (1000, 4096, 692),
        (1000, 500, 500),
        // As much as a conversation keeps free.
        (400, 4096, 100),
    ] {
        let options = RequestOptions {
            window,
            max_tokens: most,
            ..options()
        };
        let body = sent(&options, &ask("", &history, &tools));
        assert!(body.contains(&format!("_tokens\":{expected}}}")), "{body}");
    }
}
