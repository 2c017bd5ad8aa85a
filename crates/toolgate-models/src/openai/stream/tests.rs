mod calls;

use proptest::prelude::*;
use serde_json::json;

use self::calls::{called, calls};
use super::super::tests::offer;
use super::*;
use crate::tests::samples::tool;
use crate::{AssistantMessage, CallArguments, MessagePart, ModelEvent};

fn tools() -> OfferedTools {
    let parameters = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    offer(&[
        tool("home.weather", "The weather", parameters),
        tool("time", "The time", json!({ "type": "object" })),
    ])
}

/// The text and (in parentheses) thinking that were forwarded, and the result.
fn read(rescue: bool, events: &[&str]) -> (String, Result<ModelReply, ReplyStreamError>) {
    let tools = tools();
    let mut stream = OpenAiReader::new(&tools);
    let mut reported = String::new();
    let mut listener = |event: ModelEvent<'_>| match event {
        ModelEvent::Text(text) => reported.push_str(text),
        ModelEvent::Thinking(text) => reported.push_str(&format!("({text})")),
        ModelEvent::WasThinking => reported.push_str("(was thinking)"),
        ModelEvent::Notice(_) => reported.push('!'),
        other => panic!("{other:?}"),
    };
    let mut buffer = ReplyBuffer::new(&mut listener);
    buffer.begin(rescue);
    let read = events
        .iter()
        .try_for_each(|event| stream.read_event("", event.as_bytes(), &mut buffer));
    let reply = read.and_then(|()| stream.finish(&mut buffer));
    (reported, reply)
}

fn reply(events: &[&str]) -> ModelReply {
    read(true, events).1.unwrap()
}

fn choice(delta: &serde_json::Value, reason: Option<&str>) -> String {
    json!({ "id": "x", "object": "chat.completion.chunk", "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }] }).to_string()
}

fn text(text: &str) -> String {
    choice(&json!({ "content": text }), None)
}

fn pieces(pieces: &serde_json::Value) -> String {
    choice(&json!({ "tool_calls": pieces }), None)
}

fn end(reason: &str) -> String {
    choice(&json!({}), Some(reason))
}

#[test]
fn text_is_forwarded_as_it_arrives_and_usage_comes_last() {
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":8}}}"#;
    let (reported, reply) = read(
        true,
        &[
            &choice(&json!({ "role": "assistant", "content": "" }), None),
            &text("Hel"),
            &text("lo"),
            &end("stop"),
            usage,
            "[DONE]",
        ],
    );
    let reply = reply.unwrap();
    assert_eq!(reported, "Hello");
    assert_eq!(reply.message, AssistantMessage::text("Hello"));
    assert_eq!(reply.stop, StopReason::End);
    let usage = TokenUsage {
        input: 12,
        output: 3,
        cached: 8,
    };
    assert_eq!(reply.usage, usage);
}

#[test]
fn e2_a_cut_stream_is_not_an_answer() {
    let half = pieces(
        &json!([{ "index": 0, "id": "a", "function": { "name": "time", "arguments": "{\"a\"" } }]),
    );
    let words = text("Hel");
    for events in [
        &[][..],
        &[words.as_str()],
        &[&words, &half],
        &[&half, "[DONE]"],
    ] {
        assert_eq!(
            read(true, events).1,
            Err(ReplyStreamError::Truncated),
            "{events:?}"
        );
    }
    // The connection may close once the model says that it's done, and some servers only say that.
    assert_eq!(reply(&[&text("Hello"), &end("stop")]).stop, StopReason::End);
    assert_eq!(reply(&[&text("Hello"), "[DONE]"]).stop, StopReason::End);
}

#[test]
fn thinking_is_separated_under_each_of_its_field_names() {
    let thought = |name: &str| choice(&json!({ name: "Hm.", "content": null }), None);
    let both = choice(
        &json!({ "reasoning": "Hm.", "reasoning_content": "Hm." }),
        None,
    );
    for first in [
        thought("reasoning_content"),
        thought("reasoning"),
        both,
        text("<think>Hm.</think>"),
    ] {
        let events = [&first, &text("Yes."), &end("stop"), "[DONE]"];
        let (reported, reply) = read(true, &events);
        assert_eq!(reported, "(Hm.)Yes.", "{first}");
        let thinking = MessagePart::Thinking {
            text: "Hm.".to_owned(),
            signature: None,
        };
        let words = MessagePart::Text {
            text: "Yes.".to_owned(),
        };
        assert_eq!(reply.unwrap().message.parts, [thinking, words]);
    }
    let (reported, reply) = read(true, &[&text("Hm.\n"), &text("</think>Yes."), &end("stop")]);
    assert_eq!(reported, "Hm.\n(was thinking)(Hm.\n)Yes.");
    assert_eq!(reply.unwrap().message.to_text(), "Yes.");
}

#[test]
fn tokens_are_counted_however_they_are_written() {
    for (written, expected) in [
        (json!(12), 12),
        (json!(12.0), 12),
        (json!(-1), 0),
        (json!("12"), 0),
        (json!(null), 0),
        (json!(1e300), u64::MAX),
    ] {
        let usage = json!({ "choices": [], "usage": { "prompt_tokens": written } }).to_string();
        let reply = reply(&[&text("Hi"), &end("stop"), &usage]);
        assert_eq!(reply.usage.input, expected, "{written}");
        let mut sum = reply.usage;
        sum += reply.usage;
        assert_eq!(sum.input, expected.saturating_mul(2));
    }
}

#[test]
fn a_refusal_is_reported_and_calls_nothing() {
    let call = pieces(
        &json!([{ "index": 0, "id": "a", "function": { "name": "time", "arguments": "{}" } }]),
    );
    let refusal = choice(&json!({ "refusal": "I will not." }), None);
    let (reported, reply) = read(true, &[&refusal, &call, &end("stop")]);
    let reply = reply.unwrap();
    assert_eq!(
        (reported.as_str(), reply.stop),
        ("I will not.", StopReason::Refusal)
    );
    assert_eq!(reply.message, AssistantMessage::text("I will not."));
    let (_, reply) = read(true, &[&text("So"), &call, &end("content_filter")]);
    let reply = reply.unwrap();
    assert_eq!(
        (reply.stop, reply.message.calls().count()),
        (StopReason::Refusal, 0)
    );
}

#[test]
fn an_error_in_the_stream_is_quoted() {
    for error in [
        json!({ "error": { "message": "The server had an error", "type": "server_error", "code": null } }),
        json!({ "error": "queue full" }),
        json!({ "error": { "message": "oops" }, "choices": [{ "index": 0, "delta": { "content": "" }, "finish_reason": "error" }] }),
        json!({ "object": "error", "message": "oops", "code": 40001 }),
        json!({ "detail": "Not Found" }),
        json!({ "error": "oops", "choices": "none" }),
    ] {
        let (reported, reply) = read(true, &[&text("Hel"), &error.to_string()]);
        assert_eq!(
            (reported.as_str(), reply),
            ("Hel", Err(ReplyStreamError::Reported(error)))
        );
    }
    for garbled in ["no JSON", "{\"choices\":[", "{\"choices\":5}", "5"] {
        let reply = read(true, &[garbled]).1;
        assert!(
            matches!(reply, Err(ReplyStreamError::Malformed(_))),
            "{garbled}: {reply:?}"
        );
    }
}

#[test]
fn unknown_fields_are_ignored() {
    let other = json!({ "choices": [{ "index": 1, "delta": { "content": "other" }, "finish_reason": "stop" }] });
    let (reported, reply) = read(
        true,
        &[
            "",
            r#"{"id":"x","object":"ping"}"#,
            &other.to_string(),
            r#"{"choices":[],"prompt_filter_results":[]}"#,
            r#"{"choices":[{"delta":{"content":[{"type":"text","text":"Hel"},{"type":"new"}]}}],"error":null}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":"","logprobs":null}],"usage":null}"#,
            &end("eos"),
        ],
    );
    assert_eq!(
        (reported.as_str(), reply.unwrap().stop),
        ("Hello", StopReason::End)
    );
}

#[test]
fn a_reply_without_streaming_is_understood() {
    let body = json!({
        "choices": [{ "index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": "I look.", "refusal": null,
            "tool_calls": [{ "id": "call_a", "type": "function", "function": { "name": "time", "arguments": "{}" } }] } }],
        "usage": { "prompt_tokens": 5, "completion_tokens": 2 }
    });
    let tools = tools();
    let mut stream = OpenAiReader::new(&tools);
    let mut listener = |_: ModelEvent<'_>| ();
    let mut buffer = ReplyBuffer::new(&mut listener);
    buffer.begin(true);
    stream
        .read_whole(body.to_string().as_bytes(), &mut buffer)
        .unwrap();
    assert_eq!(stream.progress(), StreamProgress::Done);
    let reply = stream.finish(&mut buffer).unwrap();
    assert_eq!((reply.stop, reply.usage.input), (StopReason::Calls, 5));
    assert_eq!(reply.message.to_text(), "I look.");
    let mut stream = OpenAiReader::new(&tools);
    let error = json!({ "error": { "message": "oops" } });
    let read = stream.read_whole(error.to_string().as_bytes(), &mut buffer);
    assert_eq!(read, Err(ReplyStreamError::Reported(error)));
}

proptest! {
    #[test]
    fn pieces_may_be_cut_anywhere(arguments in "\\{\"a\":\"[^\"\\\\]{0,12}\",\"b\":\\[1,\\{\\}\\]\\}", cuts in prop::collection::vec(0_usize..40, 0..6), names in any::<bool>()) {
        let chars: Vec<char> = arguments.chars().collect();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(chars.len())).chain([0, chars.len()]).collect();
        cuts.sort_unstable();
        let events: Vec<_> = cuts.windows(2).enumerate().map(|(index, cut)| {
            let name = (index == 0 || names).then_some("time");
            json!([{ "index": 0, "function": { "name": name, "arguments": chars[cut[0]..cut[1]].iter().collect::<String>() } }])
        }).collect();
        let expected = serde_json::from_str::<serde_json::Value>(&arguments).ok();
        if let Some(expected) = expected {
            prop_assert_eq!(calls(&events), vec![called("?", "time", expected)]);
        }
    }

    #[test]
    fn unexpected_events_never_panic(events in prop::collection::vec(prop_oneof![
        ".{0,40}",
        Just("[DONE]".to_owned()),
        "\\{\"choices\":\\[\\{\"delta\":\\{\"(content|tool_calls|refusal|reasoning)\":(null|5|\"x\"|\\[\\]|\\[\\{\\}\\]|\\[null\\]|\\{\\})\\},\"finish_reason\":(null|\"stop\"|\"length\"|7)\\}\\]\\}",
    ], 0..8)) {
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        if let (_, Ok(reply)) = read(true, &events) {
            prop_assert!(reply.message.calls().all(|call| !call.id.is_empty()));
        }
    }
}
