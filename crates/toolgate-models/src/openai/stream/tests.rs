use proptest::prelude::*;
use serde_json::json;

use super::super::tests::{offer, tool};
use super::*;
use crate::{AssistantMessage, CallArguments, Event, Part};

fn tools() -> Offer {
    let parameters = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    offer(&[
        tool("home.weather", "The weather", parameters),
        tool("time", "The time", json!({ "type": "object" })),
    ])
}

/// What was heard, text and thinking in parentheses, and what came of it.
fn read(rescue: bool, events: &[&str]) -> (String, Result<Reply, Trouble>) {
    let tools = tools();
    let mut stream = Stream::new(&tools, rescue);
    let mut heard = String::new();
    let mut listener = |event: Event<'_>| match event {
        Event::Text(text) => heard.push_str(text),
        Event::Thinking(text) => heard.push_str(&format!("({text})")),
        Event::WasThinking => heard.push_str("(was thinking)"),
        Event::Notice(_) => heard.push('!'),
        other => panic!("{other:?}"),
    };
    let read = events
        .iter()
        .try_for_each(|event| stream.data(event, &mut listener));
    let reply = read.and_then(|()| stream.finish(&mut listener));
    (heard, reply)
}

fn reply(events: &[&str]) -> Reply {
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

/// The calls of a stream of pieces that ends in `tool_calls`: id, name, arguments. Ids of our own are `?`.
fn calls(events: &[serde_json::Value]) -> Vec<(String, String, serde_json::Value)> {
    let mut events: Vec<String> = events.iter().map(pieces).collect();
    events.extend([end("tool_calls"), "[DONE]".to_owned()]);
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let reply = reply(&events);
    assert_eq!(reply.stop, Stop::Calls);
    let calls = reply.message.calls().map(|call| {
        let given = call.id.starts_with("call_") || call.id.len() != 9;
        let id = if given { call.id.as_str() } else { "?" };
        let arguments = match &call.arguments {
            CallArguments::Object(object) => serde_json::Value::Object(object.clone()),
            CallArguments::Unusable(text) => json!(text),
        };
        (id.to_owned(), call.name.clone(), arguments)
    });
    calls.collect()
}

fn called(
    id: &str,
    name: &str,
    arguments: serde_json::Value,
) -> (String, String, serde_json::Value) {
    (id.to_owned(), name.to_owned(), arguments)
}

#[test]
fn words_are_told_as_they_come_and_usage_comes_last() {
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":8}}}"#;
    let (heard, reply) = read(
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
    assert_eq!(heard, "Hello");
    assert_eq!(reply.message, AssistantMessage::text("Hello"));
    assert_eq!(reply.stop, Stop::End);
    let usage = Usage {
        input: 12,
        output: 3,
        cached: 8,
    };
    assert_eq!(reply.usage, usage);
}

#[test]
fn calls_are_put_together_by_index() {
    let first = json!([{ "index": 0, "id": "call_a", "type": "function", "function": { "name": "home_weather", "arguments": "" } }]);
    let second = json!([{ "index": 1, "id": "call_b", "type": "function", "function": { "name": "time", "arguments": "" } }]);
    let piece =
        |index: u64, text: &str| json!([{ "index": index, "function": { "arguments": text } }]);
    let expected = [
        called("call_a", "home.weather", json!({ "city": "Oslo" })),
        called("call_b", "time", json!({})),
    ];
    let found = calls(&[
        first.clone(),
        piece(0, "{\"ci"),
        piece(0, "ty\": \"Os"),
        second.clone(),
        piece(0, "lo\"}"),
        piece(1, "{}"),
    ]);
    assert_eq!(found, expected);
    let both = json!([first[0], second[0]]);
    let found = calls(&[both, piece(0, "{\"city\": \"Oslo\"}")]);
    assert_eq!(found, expected);
}

#[test]
fn sloppy_servers_are_understood() {
    let whole = |index: Option<u64>, id: Option<&str>, name: &str, arguments: serde_json::Value| json!({ "index": index, "id": id, "function": { "name": name, "arguments": arguments } });
    let oslo = r#"{"city":"Oslo"}"#;
    let city = json!({ "city": "Oslo" });
    for (what, events, expected) in [
        (
            "no index, several calls in one piece",
            vec![json!([
                whole(None, Some("call_a"), "home_weather", json!(oslo)),
                whole(None, Some("call_b"), "time", json!("{}"))
            ])],
            vec![
                called("call_a", "home.weather", city.clone()),
                called("call_b", "time", json!({})),
            ],
        ),
        (
            "no index, no ids",
            vec![
                json!([whole(None, None, "home_weather", json!(oslo))]),
                json!([whole(None, Some(""), "home_weather", json!(oslo))]),
            ],
            vec![
                called("?", "home.weather", city.clone()),
                called("?", "home.weather", city.clone()),
            ],
        ),
        (
            "index 0 for every call, with ids",
            vec![
                json!([whole(Some(0), Some("call_a"), "time", json!(""))]),
                json!([whole(Some(0), Some("call_b"), "time", json!(""))]),
                json!([{ "index": 0, "function": { "arguments": "{\"n\":1}" } }]),
            ],
            vec![
                called("call_a", "time", json!({})),
                called("call_b", "time", json!({ "n": 1 })),
            ],
        ),
        (
            "index 0 for every call, without ids",
            vec![
                json!([whole(Some(0), None, "home_weather", json!(oslo))]),
                json!([whole(Some(0), None, "home_weather", json!(oslo))]),
                json!([whole(Some(0), None, "time", json!("{}"))]),
            ],
            vec![
                called("?", "home.weather", city.clone()),
                called("?", "home.weather", city.clone()),
                called("?", "time", json!({})),
            ],
        ),
        (
            "the name and the id again in each piece",
            vec![
                json!([whole(
                    Some(0),
                    Some("call_a"),
                    "home_weather",
                    json!("{\"city\"")
                )]),
                json!([whole(
                    Some(0),
                    Some("call_a"),
                    "home_weather",
                    json!(":\"Oslo\"}")
                )]),
                json!([whole(Some(0), Some("call_a"), "home_weather", json!(""))]),
            ],
            vec![called("call_a", "home.weather", city.clone())],
        ),
        (
            "the name again in each piece, without id or index",
            vec![
                json!([whole(None, None, "home_weather", json!("{\"city\""))]),
                json!([whole(None, None, "home_weather", json!(":\"Oslo\"}"))]),
                json!([whole(None, None, "home_weather", json!(null))]),
            ],
            vec![called("?", "home.weather", city.clone())],
        ),
        (
            "the id in a later piece",
            vec![
                json!([whole(Some(0), None, "time", json!(""))]),
                json!([{ "index": 0, "id": "call_a" }]),
            ],
            vec![called("call_a", "time", json!({}))],
        ),
        (
            "one id for two calls",
            vec![
                json!([whole(Some(0), Some("call_a"), "time", json!("{}"))]),
                json!([whole(Some(1), Some("call_a"), "time", json!("{}"))]),
            ],
            vec![
                called("call_a", "time", json!({})),
                called("call_a", "time", json!({})),
            ],
        ),
        (
            "another id in each piece",
            vec![
                json!([whole(
                    Some(0),
                    Some("call_a"),
                    "home_weather",
                    json!("{\"city\"")
                )]),
                json!([{ "index": 0, "id": "call_b", "function": { "arguments": ":\"Oslo\"}" } }]),
                json!([whole(Some(0), Some("call_c"), "time", json!("{}"))]),
            ],
            vec![
                called("call_a", "home.weather", city.clone()),
                called("call_c", "time", json!({})),
            ],
        ),
        (
            "ids that are numbers, an index that is none or has a fraction",
            vec![
                json!([{ "index": -1, "id": 7, "function": { "name": "time", "arguments": "" } }]),
                json!([{ "index": 1.0, "id": 8, "function": { "name": "time", "arguments": "{" } }]),
                json!([{ "index": 1, "id": {}, "function": { "arguments": "}" } }]),
            ],
            vec![
                called("7", "time", json!({})),
                called("8", "time", json!({})),
            ],
        ),
        (
            "all of a call again, id and all, without an index",
            vec![
                json!([whole(None, Some("call_a"), "home_weather", json!(oslo))]),
                json!([whole(None, Some("call_a"), "home_weather", json!(oslo))]),
            ],
            vec![
                called("call_a", "home.weather", city.clone()),
                called("call_a", "home.weather", city.clone()),
            ],
        ),
        (
            "arguments that are an object, null, missing or encoded twice",
            vec![json!([
                whole(Some(0), Some("call_a"), "home_weather", city.clone()),
                whole(Some(1), Some("call_b"), "time", json!(null)),
                { "index": 2, "id": "call_c", "function": { "name": "time" } },
                whole(Some(3), Some("call_d"), "home_weather", json!("\"{\\\"city\\\":\\\"Oslo\\\"}\"")),
            ])],
            vec![
                called("call_a", "home.weather", city.clone()),
                called("call_b", "time", json!({})),
                called("call_c", "time", json!({})),
                called("call_d", "home.weather", city.clone()),
            ],
        ),
        (
            "names that are wrong, in other letters, or those of this program",
            vec![json!([
                whole(Some(0), Some("call_a"), "rm", json!("{}")),
                whole(Some(1), Some("call_b"), "Home_Weather", json!("{}")),
                whole(Some(2), Some("call_c"), "home.weather", json!("{}")),
            ])],
            vec![
                called("call_a", "rm", json!({})),
                called("call_b", "home.weather", json!({})),
                called("call_c", "home.weather", json!({})),
            ],
        ),
        (
            "broken JSON, a key given twice, no object: as they came, for the model to be told",
            vec![json!([
                whole(Some(0), Some("call_a"), "time", json!("{\"a\": }")),
                whole(Some(1), Some("call_b"), "time", json!("{\"a\":1,\"a\":2}")),
                whole(Some(2), Some("call_c"), "time", json!("[1]")),
            ])],
            vec![
                called("call_a", "time", json!("{\"a\": }")),
                called("call_b", "time", json!("{\"a\":1,\"a\":2}")),
                called("call_c", "time", json!("[1]")),
            ],
        ),
        (
            "values are never made to fit: VA3",
            vec![json!([whole(
                Some(0),
                Some("call_a"),
                "home_weather",
                json!("{\"city\":5,\"n\":\"5\",\"b\":\"true\"}")
            )])],
            vec![called(
                "call_a",
                "home.weather",
                json!({ "city": 5, "n": "5", "b": "true" }),
            )],
        ),
        (
            "empty pieces",
            vec![
                json!([{}]),
                json!([{ "index": 0 }]),
                json!([whole(Some(0), Some("call_a"), "time", json!(""))]),
            ],
            vec![called("call_a", "time", json!({}))],
        ),
    ] {
        assert_eq!(calls(&events), expected, "{what}");
    }
}

#[test]
fn a_call_that_ends_like_any_other_answer_is_a_call() {
    let piece = pieces(
        &json!([{ "index": 0, "id": "call_a", "function": { "name": "time", "arguments": "{}" } }]),
    );
    let reply = reply(&[&text("I look."), &piece, &end("stop"), "[DONE]"]);
    assert_eq!(reply.stop, Stop::Calls);
    assert_eq!(reply.message.to_text(), "I look.");
    assert_eq!(reply.message.calls().count(), 1);
}

#[test]
fn e2_a_stream_that_is_cut_is_no_answer() {
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
        assert_eq!(read(true, events).1, Err(Trouble::Cut), "{events:?}");
    }
    // The connection may go once the model has said that it is done, and some only say that.
    assert_eq!(reply(&[&text("Hello"), &end("stop")]).stop, Stop::End);
    assert_eq!(reply(&[&text("Hello"), "[DONE]"]).stop, Stop::End);
}

#[test]
fn a_call_that_ran_out_of_tokens_is_dropped() {
    let whole = pieces(
        &json!([{ "index": 0, "id": "a", "function": { "name": "time", "arguments": "{}" } }]),
    );
    for arguments in ["", "{\"a\": 1", "{\"a\": 1}"] {
        let last = pieces(
            &json!([{ "index": 1, "id": "b", "function": { "name": "time", "arguments": arguments } }]),
        );
        let reply = reply(&[&text("So"), &whole, &last, &end("length"), "[DONE]"]);
        let expected = match arguments.ends_with('}') {
            true => (Stop::Length, 2),
            false => (Stop::CutCall, 1),
        };
        let made = (reply.stop, reply.message.calls().count());
        assert_eq!(made, expected, "{arguments}");
    }
    let (heard, reply) = read(true, &[&text("<tool_call>{\"name\":\"ti"), &end("length")]);
    let reply = reply.unwrap();
    assert_eq!(
        (reply.stop, heard.as_str()),
        (Stop::Length, "<tool_call>{\"name\":\"ti")
    );
}

#[test]
fn thinking_is_told_from_words_under_each_of_its_names() {
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
        let (heard, reply) = read(true, &events);
        assert_eq!(heard, "(Hm.)Yes.", "{first}");
        let thinking = Part::Thinking {
            text: "Hm.".to_owned(),
            signature: None,
        };
        let words = Part::Text {
            text: "Yes.".to_owned(),
        };
        assert_eq!(reply.unwrap().message.parts, [thinking, words]);
    }
    let (heard, reply) = read(true, &[&text("Hm.\n"), &text("</think>Yes."), &end("stop")]);
    assert_eq!(heard, "Hm.\n(was thinking)(Hm.\n)Yes.");
    assert_eq!(reply.unwrap().message.to_text(), "Yes.");
}

#[test]
fn e3_a_call_written_as_text_is_rescued_where_that_is_wanted() {
    let call = r#"<tool_call>{"name":"home_weather","arguments":{"city":"Oslo"}}</tool_call>"#;
    let events = [&text("I look. "), &text(call), &end("stop"), "[DONE]"];
    let (heard, reply) = read(true, &events);
    let reply = reply.unwrap();
    assert_eq!((heard.as_str(), reply.stop), ("I look. !", Stop::Calls));
    assert_eq!(reply.message.to_text(), "I look.");
    assert_eq!(reply.message.calls().next().unwrap().name, "home.weather");
    let (heard, reply) = read(false, &events);
    assert_eq!(
        (heard, reply.unwrap().stop),
        (format!("I look. {call}"), Stop::End)
    );
    // Beside a proper call it is an example.
    let native = pieces(
        &json!([{ "index": 0, "id": "a", "function": { "name": "time", "arguments": "{}" } }]),
    );
    let (heard, reply) = read(true, &[&text(call), &native, &end("tool_calls")]);
    assert_eq!(
        (heard.as_str(), reply.unwrap().message.calls().count()),
        (call, 1)
    );
    // Left in the thinking of a model that then says nothing.
    let thought = choice(&json!({ "reasoning_content": call }), None);
    let (_, reply) = read(true, &[&thought, &end("stop")]);
    assert_eq!(reply.unwrap().stop, Stop::Calls);
    // But not of one that thought on, or was cut before it could.
    let more = choice(&json!({ "reasoning_content": "\nNo, better not." }), None);
    for events in [
        &[&thought, &more, &end("stop")][..],
        &[&thought, &end("length")],
    ] {
        let events: Vec<&str> = events.iter().map(|event| event.as_str()).collect();
        let reply = read(true, &events).1.unwrap();
        assert_eq!(reply.message.calls().count(), 0, "{events:?}");
    }
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
fn a_refusal_is_told_and_nothing_is_called() {
    let call = pieces(
        &json!([{ "index": 0, "id": "a", "function": { "name": "time", "arguments": "{}" } }]),
    );
    let refusal = choice(&json!({ "refusal": "I will not." }), None);
    let (heard, reply) = read(true, &[&refusal, &call, &end("stop")]);
    let reply = reply.unwrap();
    assert_eq!((heard.as_str(), reply.stop), ("I will not.", Stop::Refusal));
    assert_eq!(reply.message, AssistantMessage::text("I will not."));
    let (_, reply) = read(true, &[&text("So"), &call, &end("content_filter")]);
    let reply = reply.unwrap();
    assert_eq!(
        (reply.stop, reply.message.calls().count()),
        (Stop::Refusal, 0)
    );
}

#[test]
fn an_error_in_the_stream_is_told_in_its_own_words() {
    for error in [
        json!({ "error": { "message": "The server had an error", "type": "server_error", "code": null } }),
        json!({ "error": "queue full" }),
        json!({ "error": { "message": "oops" }, "choices": [{ "index": 0, "delta": { "content": "" }, "finish_reason": "error" }] }),
        json!({ "object": "error", "message": "oops", "code": 40001 }),
        json!({ "detail": "Not Found" }),
        json!({ "error": "oops", "choices": "none" }),
    ] {
        let (heard, reply) = read(true, &[&text("Hel"), &error.to_string()]);
        assert_eq!((heard.as_str(), reply), ("Hel", Err(Trouble::Said(error))));
    }
    for garbled in ["no JSON", "{\"choices\":[", "{\"choices\":5}", "5"] {
        let reply = read(true, &[garbled]).1;
        assert!(
            matches!(reply, Err(Trouble::Garbled(_))),
            "{garbled}: {reply:?}"
        );
    }
}

#[test]
fn what_is_new_or_not_meant_for_us_is_passed_over() {
    let other = json!({ "choices": [{ "index": 1, "delta": { "content": "other" }, "finish_reason": "stop" }] });
    let (heard, reply) = read(
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
    assert_eq!((heard.as_str(), reply.unwrap().stop), ("Hello", Stop::End));
}

#[test]
fn a_whole_answer_is_understood_too() {
    let body = json!({
        "choices": [{ "index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": "I look.", "refusal": null,
            "tool_calls": [{ "id": "call_a", "type": "function", "function": { "name": "time", "arguments": "{}" } }] } }],
        "usage": { "prompt_tokens": 5, "completion_tokens": 2 }
    });
    let tools = tools();
    let mut stream = Stream::new(&tools, true);
    let mut listener = |_: Event<'_>| ();
    stream
        .whole(body.to_string().as_bytes(), &mut listener)
        .unwrap();
    assert!(stream.is_done());
    let reply = stream.finish(&mut listener).unwrap();
    assert_eq!((reply.stop, reply.usage.input), (Stop::Calls, 5));
    assert_eq!(reply.message.to_text(), "I look.");
    let mut stream = Stream::new(&tools, true);
    let error = json!({ "error": { "message": "oops" } });
    let read = stream.whole(error.to_string().as_bytes(), &mut listener);
    assert_eq!(read, Err(Trouble::Said(error)));
}

#[test]
fn more_calls_than_anybody_means_are_refused() {
    let many: Vec<_> = (0..5000)
        .map(|index| json!({ "index": index, "function": { "name": "time", "arguments": "{}" } }))
        .collect();
    let reply = read(true, &[&pieces(&json!(many)), &end("tool_calls")]).1;
    assert!(matches!(reply, Err(Trouble::Garbled(_))), "{reply:?}");
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
    fn no_event_is_too_strange(events in prop::collection::vec(prop_oneof![
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
