use serde_json::json;

use super::*;

/// The calls of a stream of pieces that ends in `tool_calls`: id, name, arguments. Ids of
/// our own are `?`.
pub(super) fn calls(events: &[serde_json::Value]) -> Vec<(String, String, serde_json::Value)> {
    let mut events: Vec<String> = events.iter().map(pieces).collect();
    events.extend([end("tool_calls"), "[DONE]".to_owned()]);
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let reply = reply(&events);
    assert_eq!(reply.stop, StopReason::Calls);
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

pub(super) fn called(
    id: &str,
    name: &str,
    arguments: serde_json::Value,
) -> (String, String, serde_json::Value) {
    (id.to_owned(), name.to_owned(), arguments)
}

#[test]
fn calls_are_assembled_by_index() {
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
fn nonconforming_servers_are_understood() {
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
fn a_call_with_a_normal_finish_reason_is_a_call() {
    let piece = pieces(
        &json!([{ "index": 0, "id": "call_a", "function": { "name": "time", "arguments": "{}" } }]),
    );
    let reply = reply(&[&text("I look."), &piece, &end("stop"), "[DONE]"]);
    assert_eq!(reply.stop, StopReason::Calls);
    assert_eq!(reply.message.to_text(), "I look.");
    assert_eq!(reply.message.calls().count(), 1);
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
            true => (StopReason::Length, 2),
            false => (StopReason::TruncatedCall, 1),
        };
        let made = (reply.stop, reply.message.calls().count());
        assert_eq!(made, expected, "{arguments}");
    }
    let (reported, reply) = read(true, &[&text("<tool_call>{\"name\":\"ti"), &end("length")]);
    let reply = reply.unwrap();
    assert_eq!(
        (reply.stop, reported.as_str()),
        (StopReason::Length, "<tool_call>{\"name\":\"ti")
    );
}

#[test]
fn e3_a_call_written_as_text_is_rescued_where_that_is_wanted() {
    let call = r#"<tool_call>{"name":"home_weather","arguments":{"city":"Oslo"}}</tool_call>"#;
    let events = [&text("I look. "), &text(call), &end("stop"), "[DONE]"];
    let (reported, reply) = read(true, &events);
    let reply = reply.unwrap();
    assert_eq!(
        (reported.as_str(), reply.stop),
        ("I look. !", StopReason::Calls)
    );
    assert_eq!(reply.message.to_text(), "I look.");
    assert_eq!(reply.message.calls().next().unwrap().name, "home.weather");
    let (reported, reply) = read(false, &events);
    assert_eq!(
        (reported, reply.unwrap().stop),
        (format!("I look. {call}"), StopReason::End)
    );
    // Beside a proper call it's an example.
    let native = pieces(
        &json!([{ "index": 0, "id": "a", "function": { "name": "time", "arguments": "{}" } }]),
    );
    let (reported, reply) = read(true, &[&text(call), &native, &end("tool_calls")]);
    assert_eq!(
        (reported.as_str(), reply.unwrap().message.calls().count()),
        (call, 1)
    );
    // Left in the thinking of a model that then says nothing.
    let thought = choice(&json!({ "reasoning_content": call }), None);
    let (_, reply) = read(true, &[&thought, &end("stop")]);
    assert_eq!(reply.unwrap().stop, StopReason::Calls);
    // But not if the model thought on, or was cut off before it could.
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
fn too_many_calls_are_refused() {
    let many: Vec<_> = (0..5000)
        .map(|index| json!({ "index": index, "function": { "name": "time", "arguments": "{}" } }))
        .collect();
    let reply = read(true, &[&pieces(&json!(many)), &end("tool_calls")]).1;
    assert!(
        matches!(reply, Err(ReplyStreamError::Malformed(_))),
        "{reply:?}"
    );
}
