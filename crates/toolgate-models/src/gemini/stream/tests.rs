use serde_json::Value;

use super::super::tests::catalog;
use super::*;
use crate::ModelEvent;
use crate::tests::samples::{call, said, tool};

/// The text that was forwarded, with thinking in parentheses, and the result.
fn read(events: &[&str]) -> (String, Result<ModelReply, ReplyStreamError>) {
    let tools = catalog(&[
        tool("home.time", "The time", json!({ "type": "object" })),
        tool("dice", "Rolls dice", json!({ "type": "object" })),
    ]);
    let mut reported = String::new();
    let mut listener = |event: ModelEvent<'_>| match event {
        ModelEvent::Text(text) => reported.push_str(text),
        ModelEvent::Thinking(text) => reported.push_str(&format!("({text})")),
        other => panic!("{other:?}"),
    };
    let mut stream = GeminiReader::new(&tools);
    let mut buffer = ReplyBuffer::new(&mut listener);
    let mut events = events.iter();
    let read = events.try_for_each(|event| stream.read_event("", event.as_bytes(), &mut buffer));
    let reply = read.and_then(|()| stream.finish(&mut buffer));
    (reported, reply)
}

fn reply(events: &[&str]) -> ModelReply {
    read(events).1.unwrap()
}

fn parts(parts: &Value) -> String {
    json!({ "candidates": [{ "content": { "role": "model", "parts": parts }, "index": 0 }] })
        .to_string()
}

fn end(reason: &str) -> String {
    json!({ "candidates": [{ "finishReason": reason, "index": 0 }] }).to_string()
}

fn signed(signature: &str) -> MessagePart {
    MessagePart::Opaque {
        provider: PROVIDER,
        value: json!({ "thoughtSignature": signature }),
    }
}

#[test]
fn text_is_forwarded_at_once_and_tokens_are_counted() {
    let last = json!({
        "candidates": [{ "content": { "parts": [{ "text": "lo" }] }, "finishReason": "STOP" },
            { "content": { "parts": [{ "text": "another" }] }, "index": 1 }],
        "usageMetadata": { "promptTokenCount": 12, "cachedContentTokenCount": 8, "candidatesTokenCount": 3, "thoughtsTokenCount": 40 },
        "modelVersion": "x", "somethingNew": 7,
    });
    let (reported, reply) = read(&[&parts(&json!([{ "text": "Hel" }])), "", &last.to_string()]);
    let reply = reply.unwrap();
    assert_eq!(reported, "Hello");
    assert_eq!(reply.message, AssistantMessage::text("Hello"));
    assert_eq!(reply.stop, StopReason::End);
    let usage = TokenUsage {
        input: 12,
        output: 43,
        cached: 8,
    };
    assert_eq!(reply.usage, usage);
}

#[test]
fn a_stream_without_a_finish_reason_is_cut() {
    let words = parts(&json!([{ "text": "Hel" }]));
    let calls = parts(&json!([{ "functionCall": { "name": "dice", "args": {} } }]));
    for events in [&[][..], &[words.as_str()], &[&words, &calls]] {
        assert_eq!(
            read(events).1,
            Err(ReplyStreamError::Truncated),
            "{events:?}"
        );
    }
}

#[test]
fn thinking_is_separated_and_signatures_stay_with_their_parts() {
    let (reported, reply) = read(&[
        &parts(&json!([{ "text": "Hm", "thought": true }])),
        &parts(
            &json!([{ "text": ".", "thought": true }, { "text": "Let me " }, { "text": "look." }]),
        ),
        &parts(
            &json!([{ "functionCall": { "id": "c1", "name": "home_time", "args": { "zone": "UTC" } }, "thoughtSignature": "A" },
            { "functionCall": { "name": "dice" } }]),
        ),
        &parts(&json!([{ "text": "", "thoughtSignature": "B" }])),
        &end("STOP"),
    ]);
    let reply = reply.unwrap();
    assert_eq!(reported, "(Hm)(.)Let me look.");
    let thinking = MessagePart::Thinking {
        text: "Hm.".to_owned(),
        signature: None,
    };
    let parts = &reply.message.parts;
    assert_eq!(parts[..3], [thinking, said("Let me look."), signed("A")]);
    assert_eq!(parts[3], call("c1", "home.time", r#"{"zone":"UTC"}"#));
    assert!(
        matches!(&parts[4], MessagePart::Call(call) if call.name == "dice" && call.id.len() == 9)
    );
    assert_eq!(parts[5..], [signed("B")]);
    assert_eq!(reply.stop, StopReason::Calls);
}

#[test]
fn every_finish_reason_is_mapped() {
    let words = parts(&json!([{ "text": "Hi" }]));
    let calls = parts(&json!([{ "functionCall": { "name": "dice", "args": {} } }]));
    for (reason, with_words, with_calls) in [
        ("STOP", StopReason::End, StopReason::Calls),
        ("MAX_TOKENS", StopReason::Length, StopReason::Calls),
        ("SAFETY", StopReason::Refusal, StopReason::Refusal),
        ("RECITATION", StopReason::Refusal, StopReason::Refusal),
        (
            "PROHIBITED_CONTENT",
            StopReason::Refusal,
            StopReason::Refusal,
        ),
        ("OTHER", StopReason::End, StopReason::Calls),
        ("SOMETHING_NEW", StopReason::End, StopReason::Calls),
    ] {
        assert_eq!(reply(&[&words, &end(reason)]).stop, with_words, "{reason}");
        let reply = reply(&[&calls, &end(reason)]);
        assert_eq!(reply.stop, with_calls, "{reason}");
        let runs = reply.message.calls().count();
        assert_eq!(
            runs,
            usize::from(with_calls == StopReason::Calls),
            "{reason}"
        );
    }
    for reason in ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"] {
        let Err(ReplyStreamError::Reported(error)) = read(&[&end(reason)]).1 else {
            panic!("{reason}");
        };
        assert_eq!(error["error"]["code"], 500);
    }
}

#[test]
fn a_question_that_is_blocked_is_refused() {
    let blocked =
        r#"{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":4}}"#;
    let reply = reply(&[blocked]);
    assert_eq!(
        (reply.stop, reply.message.parts.len(), reply.usage.input),
        (StopReason::Refusal, 0, 4)
    );
    let said = r#"{"promptFeedback":{"blockReason":"OTHER","blockReasonMessage":"Not this."}}"#;
    assert_eq!(read(&[said]).0, "Not this.");
}

#[test]
fn a_list_of_chunks_is_read_with_its_errors() {
    let list = format!("[{},{}]", parts(&json!([{ "text": "Hi" }])), end("STOP"));
    assert_eq!(reply(&[&list]).message.to_text(), "Hi");
    let error = json!({ "error": { "code": 429, "message": "no" } });
    for text in [error.to_string(), format!("[{error}]")] {
        assert_eq!(
            read(&[&text]).1,
            Err(ReplyStreamError::Reported(error.clone()))
        );
    }
}

#[test]
fn an_invalid_reply_is_an_error_and_not_a_panic() {
    for odd in [
        "no JSON",
        "7",
        "{\"candidates\":7}",
        "{\"candidates\":[{\"content\":{\"parts\":[7]}}]}",
        "[7]",
    ] {
        let read = read(&[odd]).1;
        assert!(
            matches!(read, Err(ReplyStreamError::Malformed(_))),
            "{odd}: {read:?}"
        );
    }
    let many: Vec<Value> = (0..=MAX_PARTS)
        .map(|_| json!({ "functionCall": { "name": "dice" } }))
        .collect();
    let read = read(&[&parts(&json!(many))]).1;
    assert!(
        matches!(read, Err(ReplyStreamError::Malformed(_))),
        "{read:?}"
    );
}

#[test]
fn arguments_are_kept_as_they_were_written() {
    let twice = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"dice","args":{"n":1,"n":2}}}]},"finishReason":"STOP"}]}"#;
    let reply = reply(&[twice]);
    let call = reply.message.calls().next().unwrap();
    assert!(
        matches!(call.arguments, CallArguments::Unusable(_)),
        "{call:?}"
    );
}
