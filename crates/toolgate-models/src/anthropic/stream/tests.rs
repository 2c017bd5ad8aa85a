mod calls;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::tests::catalog;
use super::*;
use crate::tests::samples::tool;
use crate::{MessagePart, ModelEvent, Provider};

/// Reads events as `data` of a stream, and returns the reply and what was forwarded.
fn run(events: &[&str]) -> (Result<ModelReply, ReplyStreamError>, String) {
    let tools = catalog(&[
        tool("home.time", "Tells the time", json!({ "type": "object" })),
        tool("dice", "Rolls dice", json!({ "type": "object" })),
    ]);
    let mut reported = String::new();
    let mut listener = |event: ModelEvent<'_>| match event {
        ModelEvent::Text(text) => reported.push_str(text),
        ModelEvent::Thinking(text) => reported.push_str(&format!("<{text}>")),
        other => panic!("{other:?}"),
    };
    let mut stream = AnthropicReader::new(&tools);
    let mut buffer = ReplyBuffer::new(&mut listener);
    let mut events = events.iter();
    let result = events.try_for_each(|data| stream.read_event("", data.as_bytes(), &mut buffer));
    let result = result.and_then(|()| stream.finish(&mut buffer));
    (result, reported)
}

const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"claude-x","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":200,"cache_read_input_tokens":3000,"output_tokens":1}}}"#;
const TEXT: &str =
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
const HELLO: &str =
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}"#;
const END_0: &str = r#"{"type":"content_block_stop","index":0}"#;
const END_1: &str = r#"{"type":"content_block_stop","index":1}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;

fn ended(reason: &str) -> String {
    format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}","stop_sequence":null}},"usage":{{"output_tokens":25}}}}"#
    )
}

fn tool_start(index: usize, id: &str, name: &str) -> String {
    format!(
        r#"{{"type":"content_block_start","index":{index},"content_block":{{"type":"tool_use","id":"{id}","name":"{name}","input":{{}}}}}}"#
    )
}

fn piece(index: usize, partial: &str) -> String {
    json!({ "type": "content_block_delta", "index": index, "delta": { "type": "input_json_delta", "partial_json": partial } })
        .to_string()
}

fn call(id: &str, name: &str, arguments: &str) -> MessagePart {
    crate::tests::samples::call(id, name, arguments)
}

fn said(text: &str) -> MessagePart {
    MessagePart::Text {
        text: text.to_owned(),
    }
}

#[test]
fn text_is_forwarded_at_once_and_tokens_are_counted() {
    let more = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":", Zoë 👋"}}"#;
    let ping = r#"{"type":"ping"}"#;
    let new = r#"{"type":"something_new","index":"odd","delta":7}"#;
    let citation = r#"{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{}}}"#;
    let end = ended("end_turn");
    let (reply, reported) = run(&[
        START, ping, TEXT, HELLO, new, citation, more, END_0, &end, STOP,
    ]);
    assert_eq!(reported, "Hello, Zoë 👋");
    assert_eq!(
        reply.unwrap(),
        ModelReply {
            message: AssistantMessage::text("Hello, Zoë 👋"),
            stop: StopReason::End,
            usage: crate::TokenUsage {
                input: 3210,
                output: 25,
                cached: 3000
            },
            first_token: None,
        }
    );
}

#[test]
fn an_incomplete_stream_is_an_error_wherever_it_ends() {
    let start = tool_start(1, "t", "dice");
    let (half, rest) = (piece(1, r#"{"n":"#), piece(1, "1}"));
    let end = ended("tool_use");
    let whole = [
        START, TEXT, HELLO, END_0, &start, &half, &rest, END_1, &end, STOP,
    ];
    for length in 0..whole.len() {
        assert_eq!(
            run(&whole[..length]).0,
            Err(ReplyStreamError::Truncated),
            "{length}"
        );
    }
    assert!(run(&whole).0.is_ok());
}

#[test]
fn an_unclosed_block_counts_only_if_complete() {
    let start = tool_start(0, "t", "dice");
    for (pieces, whole) in [(r#"{"n":1"#, false), ("", false), (r#"{"n":1}"#, true)] {
        let (reply, _) = run(&[&start, &piece(0, pieces), &ended("tool_use"), STOP]);
        match reply {
            Ok(reply) => assert!(whole && reply.message.calls().count() == 1, "{pieces}"),
            Err(trouble) => assert!(
                !whole && trouble == ReplyStreamError::Truncated,
                "{pieces}: {trouble:?}"
            ),
        }
    }
}

#[test]
fn every_stop_reason_is_mapped() {
    for (reason, expected) in [
        ("end_turn", StopReason::End),
        ("stop_sequence", StopReason::End),
        ("something_new", StopReason::End),
        // There is no call to wait for.
        ("tool_use", StopReason::End),
        ("max_tokens", StopReason::Length),
        ("model_context_window_exceeded", StopReason::Length),
        ("pause_turn", StopReason::Pause),
        ("refusal", StopReason::Refusal),
    ] {
        let (reply, _) = run(&[START, TEXT, HELLO, END_0, &ended(reason), STOP]);
        let reply = reply.unwrap();
        assert_eq!(reply.stop, expected, "{reason}");
        assert_eq!(reply.message.to_text(), "Hello");
    }
    let full = ended("model_context_window_exceeded");
    for nothing in [
        &[START, &full, STOP][..],
        &[START, TEXT, END_0, &full, STOP],
    ] {
        assert_eq!(run(nothing).0, Err(ReplyStreamError::ContextExceeded));
    }
}

#[test]
fn thinking_keeps_its_signature_and_unknown_blocks_are_kept() {
    let delta = |value: Value| {
        json!({ "type": "content_block_delta", "index": 0, "delta": value }).to_string()
    };
    let (reply, reported) = run(&[
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        &delta(json!({ "type": "thinking_delta", "thinking": "Let me" })),
        &delta(json!({ "type": "thinking_delta", "thinking": " see" })),
        &delta(json!({ "type": "signature_delta", "signature": "c2ln" })),
        END_0,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"xyz"}}"#,
        END_1,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}"#,
        &piece(0, r#"{"query":"x"}"#),
        END_0,
        &ended("end_turn"),
        STOP,
    ]);
    assert_eq!(reported, "<Let me>< see>");
    let opaque = |value| MessagePart::Opaque {
        provider: Provider::Anthropic,
        value,
    };
    assert_eq!(
        reply.unwrap().message.parts,
        [
            MessagePart::Thinking {
                text: "Let me see".to_owned(),
                signature: Some("c2ln".to_owned())
            },
            opaque(json!({ "type": "redacted_thinking", "data": "xyz" })),
            opaque(
                json!({ "type": "server_tool_use", "id": "s", "name": "web_search", "input": { "query": "x" } })
            ),
        ]
    );
}

#[test]
fn an_error_in_the_stream_is_reported() {
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":null}"#;
    let (reply, reported) = run(&[START, TEXT, HELLO, error]);
    assert_eq!(reported, "Hello");
    assert_eq!(
        reply,
        Err(ReplyStreamError::Reported(
            serde_json::from_str(error).unwrap()
        ))
    );
}

#[test]
fn nonsense_is_an_error_and_not_a_panic() {
    let many: Vec<String> = (0..=MAX_PARTS)
        .map(|index| tool_start(index, "t", "dice"))
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for (events, expected) in [
        (
            vec!["nonsense"],
            "expected ident at line 1 column 2: nonsense",
        ),
        (vec!["7"], "invalid type: integer `7`"),
        (vec![HELLO], "a piece of a block that did not begin"),
        (vec![END_0], "a piece of a block that did not begin"),
        (vec![TEXT, TEXT], "a block begins twice"),
        (
            vec![TEXT, END_0, HELLO],
            "a piece of a block that did not begin",
        ),
        (
            vec![&tool_start(0, "t", "dice"), HELLO],
            "a piece does not fit its block",
        ),
        (
            vec![r#"{"type":"content_block_start","index":-1,"content_block":{}}"#],
            "invalid value: integer `-1`",
        ),
        (
            vec![r#"{"type":"content_block_start","index":0,"content_block":[]}"#],
            "invalid type: sequence, expected a map",
        ),
        (many, "more than 1024 blocks"),
    ] {
        match run(&events).0 {
            Err(ReplyStreamError::Malformed(reason)) => {
                assert!(reason.starts_with(expected), "{reason}");
                assert!(reason.len() < 500);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_reply_without_streaming_is_read() {
    let body = json!({
        "type": "message",
        "content": [
            { "type": "text", "text": "Hello" },
            { "type": "tool_use", "id": "t", "name": "home_time", "input": { "zone": "UTC" } },
        ],
        "stop_reason": "tool_use",
        "usage": { "input_tokens": 1, "output_tokens": 2 },
    });
    let tools = catalog(&[tool("home.time", "Time", json!({ "type": "object" }))]);
    let mut reported = String::new();
    let mut listener = |event: ModelEvent<'_>| reported.push_str(&format!("{event:?}"));
    let mut stream = AnthropicReader::new(&tools);
    let mut buffer = ReplyBuffer::new(&mut listener);
    stream
        .read_whole(body.to_string().as_bytes(), &mut buffer)
        .unwrap();
    let reply = stream.finish(&mut buffer).unwrap();
    assert_eq!(reported, r#"Text("Hello")"#);
    assert_eq!(reply.stop, StopReason::Calls);
    assert_eq!((reply.usage.input, reply.usage.output), (1, 2));
    assert_eq!(
        reply.message.parts,
        [said("Hello"), call("t", "home.time", r#"{"zone":"UTC"}"#)]
    );
    let error = json!({ "type": "error", "error": { "message": "no" } });
    let mut listener = |_: ModelEvent<'_>| {};
    let mut buffer = ReplyBuffer::new(&mut listener);
    let said = AnthropicReader::new(&tools).read_whole(error.to_string().as_bytes(), &mut buffer);
    assert_eq!(said, Err(ReplyStreamError::Reported(error)));
}

#[test]
fn the_event_name_is_used_if_data_has_no_type() {
    let tools = catalog(&[]);
    let mut stream = AnthropicReader::new(&tools);
    let mut listener = |_: ModelEvent<'_>| {};
    let mut buffer = ReplyBuffer::new(&mut listener);
    for (name, data) in [
        (
            "content_block_start",
            r#"{"index":0,"content_block":{"type":"text","text":"Hi"}}"#,
        ),
        ("content_block_stop", r#"{"index":0}"#),
        ("message_stop", "{}"),
    ] {
        stream
            .read_event(name, data.as_bytes(), &mut buffer)
            .unwrap();
    }
    assert_eq!(stream.finish(&mut buffer).unwrap().message.to_text(), "Hi");
}

fn any_event() -> impl Strategy<Value = String> {
    let kinds = [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    let blocks = ["text", "thinking", "tool_use", "server_tool_use"];
    let deltas = [
        "text_delta",
        "thinking_delta",
        "signature_delta",
        "input_json_delta",
    ];
    let stops = ["end_turn", "tool_use", "max_tokens", "refusal"];
    let odd = prop_oneof![Just(json!(null)), Just(json!([])), Just(json!({}))];
    let parts = (0..3u8, odd, prop::bool::weighted(0.05), "[{}\"n:1]{0,4}");
    let picks = (
        0..kinds.len(),
        0..blocks.len(),
        0..deltas.len(),
        0..stops.len(),
    );
    (picks, parts).prop_map(move |((kind, block, delta, stop), (index, odd, is_odd, json))| {
        let block = json!({ "type": blocks[block], "id": "t", "name": "dice", "input": {} });
        let delta = json!({ "type": deltas[delta], "text": "a", "partial_json": json, "stop_reason": stops[stop] });
        json!({
            "type": kinds[kind],
            "index": index,
            "message": if is_odd { odd.clone() } else { json!({ "usage": { "input_tokens": 1 } }) },
            "content_block": if is_odd { odd.clone() } else { block },
            "delta": if is_odd { odd } else { delta },
        })
        .to_string()
    })
}

proptest! {
    /// Whatever arrives in whatever order: the result is an answer or an error, and never a call
    /// with half of its arguments.
    #[test]
    fn events_in_any_order_never_panic_or_make_half_a_call(
        events in prop::collection::vec(any_event(), 0..12)
    ) {
        let mut events: Vec<&str> = events.iter().map(String::as_str).collect();
        events.push(STOP);
        if let Ok(reply) = run(&events).0 {
            let calls = reply.message.calls().count();
            prop_assert!(reply.stop != StopReason::Calls || calls > 0);
            prop_assert!(reply.stop != StopReason::Refusal || calls == 0);
        }
    }
}
