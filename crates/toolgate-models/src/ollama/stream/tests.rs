use serde_json::json;

use super::*;
use crate::MessagePart;
use crate::ollama::tests::samples::{OllamaEventLog, offer};
use crate::reply_buffer::ReplyText;

const DONE: &str = r#"{"done":true,"done_reason":"stop","prompt_eval_count":30,"eval_count":5}"#;

/// A reply, taken apart for assertions.
#[derive(Debug, PartialEq)]
struct ReplySummary {
    said: ReplyText,
    stop: StopReason,
    usage: TokenUsage,
}

impl From<ModelReply> for ReplySummary {
    fn from(reply: ModelReply) -> Self {
        let mut said = ReplyText::default();
        for part in reply.message.parts {
            match part {
                MessagePart::Thinking { text, .. } => said.thoughts = text,
                MessagePart::Text { text } => said.text = text,
                MessagePart::Call(call) => said.calls.push(call),
                other => panic!("{other:?}"),
            }
        }
        Self {
            said,
            stop: reply.stop,
            usage: reply.usage,
        }
    }
}

/// Reads these lines, and returns the reply and the events.
fn read(lines: &[&str]) -> (Result<ReplySummary, ReplyStreamError>, Vec<String>) {
    let offer = offer();
    let mut reported = OllamaEventLog::default();
    let mut stream = OllamaReader::new(&offer);
    let mut buffer = ReplyBuffer::new(&mut reported);
    buffer.begin(true);
    let mut lines = lines.iter();
    let read = lines.try_for_each(|line| stream.read_event("", line.as_bytes(), &mut buffer));
    let reply = read.and_then(|()| stream.finish(&mut buffer));
    (reply.map(ReplySummary::from), reported.0)
}

fn answer(lines: &[&str]) -> ReplySummary {
    read(lines).0.unwrap()
}

fn content(text: &str) -> String {
    json!({ "model": "m", "message": { "role": "assistant", "content": text }, "done": false })
        .to_string()
}

fn calls(calls: &str, rest: &str) -> String {
    format!(r#"{{"message":{{"role":"assistant","content":"","tool_calls":{calls}}},{rest}}}"#)
}

fn names(answer: &ReplySummary) -> Vec<&str> {
    answer
        .said
        .calls
        .iter()
        .map(|call| call.name.as_str())
        .collect()
}

#[test]
fn text_is_forwarded_at_once_and_counted_at_the_end() {
    let (one, two) = (content("Good "), content("morning, größer!"));
    let (answer, reported) = read(&[&one, "", "  ", &two, DONE]);
    assert_eq!(reported, ["text Good ", "text morning, größer!"]);
    let expected = ReplySummary {
        said: ReplyText {
            text: "Good morning, größer!".to_owned(),
            ..ReplyText::default()
        },
        stop: StopReason::End,
        usage: TokenUsage {
            input: 30,
            output: 5,
            cached: 0,
        },
    };
    assert_eq!(answer, Ok(expected));
}

#[test]
fn calls_are_found_on_any_line_and_on_several() {
    let weather = r#"[{"id":"a","function":{"name":"weather","arguments":{"city":"Oslo"}}}]"#;
    let lamp = r#"[{"id":"b","function":{"index":1,"name":"lamp","arguments":{"on":true}}}]"#;
    let on_a_line = [
        calls(weather, r#""done":false"#),
        calls(lamp, r#""done":false"#),
        DONE.to_owned(),
    ];
    let on_the_last = [
        calls(weather, r#""done":false"#),
        calls(lamp, r#""done":true,"done_reason":"stop""#),
    ];
    for lines in [&on_a_line[..], &on_the_last[..]] {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let answer = answer(&lines);
        assert_eq!(names(&answer), ["weather", "house__lamp"]);
        assert_eq!(
            answer.said.calls[0].arguments,
            CallArguments::parse(r#"{"city":"Oslo"}"#)
        );
        assert_eq!(answer.stop, StopReason::Calls);
    }
}

#[test]
fn a_call_and_words_in_one_answer_are_both_kept() {
    let words = content("Let me look.");
    let call = calls(
        r#"[{"id":"a","function":{"name":"weather","arguments":{}}}]"#,
        r#""done":true"#,
    );
    let answer = answer(&[&words, &call]);
    assert_eq!(
        (answer.said.text.as_str(), names(&answer)),
        ("Let me look.", vec!["weather"])
    );
}

#[test]
fn arguments_may_be_written_in_many_ways() {
    let object = |text: &str| CallArguments::parse(text);
    for (written, expected) in [
        (
            r#","arguments":{"city":"Oslo"}"#,
            object(r#"{"city":"Oslo"}"#),
        ),
        (
            r#","arguments":"{\"city\":\"Oslo\"}""#,
            object(r#"{"city":"Oslo"}"#),
        ),
        (r#","arguments":"""#, object("{}")),
        (r#","arguments":null"#, object("{}")),
        ("", object("{}")),
        (
            r#","arguments":{"city":"5","days":5}"#,
            object(r#"{"city":"5","days":5}"#),
        ),
    ] {
        let call = calls(
            &format!(r#"[{{"id":"a","function":{{"name":"weather"{written}}}}}]"#),
            r#""done":true"#,
        );
        assert_eq!(
            answer(&[&call]).said.calls[0].arguments,
            expected,
            "{written}"
        );
    }
}

#[test]
fn invalid_arguments_are_kept_as_written() {
    for written in [
        r#"{"city":"Oslo","city":"Bergen"}"#,
        "[1]",
        r#""{\"city\": ""#,
    ] {
        let call = calls(
            &format!(r#"[{{"id":"a","function":{{"name":"weather","arguments":{written}}}}}]"#),
            r#""done":true"#,
        );
        let expected = CallArguments::Unusable(written.to_owned());
        assert_eq!(answer(&[&call]).said.calls[0].arguments, expected);
    }
}

#[test]
fn a_call_without_an_id_gets_one() {
    for ids in [
        ["", ""],
        [r#""id":"","#, r#""id":null,"#],
        [r#""id":7,"#, r#""id":{},"#],
    ] {
        let one = format!(
            r#"{{{}"function":{{"name":"weather","arguments":{{"city":"Oslo"}}}}}}"#,
            ids[0]
        );
        let two = format!(
            r#"{{{}"function":{{"name":"weather","arguments":{{"city":"Rome"}}}}}}"#,
            ids[1]
        );
        let answer = answer(&[&calls(&format!("[{one},{two}]"), r#""done":true"#)]);
        let [first, second] = &answer.said.calls[..] else {
            panic!("{answer:?}");
        };
        assert!(
            !first.id.is_empty() && !second.id.is_empty() && first.id != second.id,
            "{answer:?}"
        );
    }
}

#[test]
fn a_repeated_call_keeps_its_id() {
    let call = r#"[{"id":"a","function":{"name":"weather","arguments":{"city":"Oslo"}}}]"#;
    let answer = answer(&[
        &calls(call, r#""done":false"#),
        &calls(call, r#""done":true"#),
    ]);
    assert_eq!(answer.said.calls.len(), 2);
    assert_eq!(answer.said.calls[0], answer.said.calls[1]);
}

#[test]
fn an_unknown_name_reaches_the_executor() {
    for (written, expected) in [
        (r#""name":"lamp","#, "house__lamp"),
        (r#""name":"Wetter","#, "Wetter"),
        (r#""name":"","#, ""),
        (r#""name":null,"#, ""),
        ("", ""),
    ] {
        let call = calls(
            &format!(r#"[{{"id":"a","function":{{{written}"arguments":{{}}}}}}]"#),
            r#""done":true"#,
        );
        assert_eq!(names(&answer(&[&call])), [expected]);
    }
    assert_eq!(
        names(&answer(&[&calls(r#"[{"id":"a"}]"#, r#""done":true"#)])),
        [""]
    );
}

#[test]
fn two_hundred_calls_are_kept_and_thousands_are_not() {
    let many = |count: usize| {
        let one = r#"{"function":{"name":"weather","arguments":{}}}"#;
        calls(
            &format!("[{}]", vec![one; count].join(",")),
            r#""done":true"#,
        )
    };
    assert_eq!(answer(&[&many(200)]).said.calls.len(), 200);
    assert!(matches!(
        read(&[&many(5000)]).0,
        Err(ReplyStreamError::Malformed(_))
    ));
}

#[test]
fn a_reply_cut_by_the_token_limit_has_no_half_calls() {
    let words = content("It is");
    let length = r#""done":true,"done_reason":"length""#;
    let cut = answer(&[&words, &format!("{{{length}}}")]);
    assert_eq!(
        (cut.said.text.as_str(), cut.stop),
        ("It is", StopReason::Length)
    );
    let half = calls(
        r#"[{"id":"a","function":{"name":"weather","arguments":"{\"city\": \"Os"}}]"#,
        length,
    );
    let cut = answer(&[&words, &half]);
    assert_eq!(
        (cut.said.calls.len(), cut.stop),
        (0, StopReason::TruncatedCall)
    );
    let whole = calls(
        r#"[{"id":"a","function":{"name":"weather","arguments":{"city":"Oslo"}}}]"#,
        length,
    );
    assert_eq!(answer(&[&whole]).stop, StopReason::Calls);
}

#[test]
fn a_stream_without_its_end_is_cut() {
    let call = calls(
        r#"[{"id":"a","function":{"name":"weather","arguments":{}}}]"#,
        r#""done":false"#,
    );
    let words = content("It is");
    for lines in [&[][..], &[words.as_str()], &[call.as_str()]] {
        assert_eq!(read(lines).0, Err(ReplyStreamError::Truncated));
    }
}

#[test]
fn an_error_inside_a_stream_is_an_error_under_any_key() {
    let words = content("It");
    for line in [
        r#"{"error":"llama runner process has terminated"}"#,
        r#"{"error":{"message":"overloaded"}}"#,
        r#"{"message":"upstream is gone"}"#,
        r#"{"detail":"upstream is gone"}"#,
        r#"{"errors":["upstream is gone"]}"#,
        r#"{"error parsing tool call":"invalid character 'c' looking for beginning of value"}"#,
        r#"{"error":"out of memory","message":{"role":"assistant","content":"x"},"done":true}"#,
    ] {
        let expected = ReplyStreamError::Reported(serde_json::from_str(line).unwrap());
        assert_eq!(read(&[&words, line, DONE]).0, Err(expected));
    }
}

#[test]
fn an_invalid_line_is_an_error() {
    for line in [
        "<html>",
        "{\"message\":",
        "[1]",
        "\"text\"",
        "{\"message\":{\"content\":7}}",
        "\u{0}",
    ] {
        let (read, _) = read(&[line]);
        assert!(
            matches!(read, Err(ReplyStreamError::Malformed(_))),
            "{line}: {read:?}"
        );
    }
}

#[test]
fn empty_lines_are_ignored() {
    let words = content("Yes.");
    let lines = [
        r#"{"model":"m","created_at":"now","done":false}"#,
        r#"{"message":{"role":"assistant","content":null,"thinking":null,"tool_calls":null},"done":false,"error":null}"#,
        r#"{"message":null,"done":false,"unheard":{"of":1}}"#,
        &words,
        DONE,
    ];
    assert_eq!(answer(&lines).said.text, "Yes.");
}

#[test]
fn thinking_is_separated_by_server_or_client() {
    let native = [
        r#"{"message":{"role":"assistant","content":"","thinking":"Hm"},"done":false}"#.to_owned(),
        r#"{"message":{"role":"assistant","content":"","thinking":", yes"},"done":false}"#
            .to_owned(),
        content("Yes."),
    ];
    let tags = [
        content("<thi"),
        content("nk>Hm, yes"),
        content("</think>\n\nYes."),
    ];
    for lines in [native, tags] {
        let mut lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        lines.push(DONE);
        let (answer, reported) = read(&lines);
        let answer = answer.unwrap();
        assert_eq!(
            (answer.said.thoughts.as_str(), answer.said.text.as_str()),
            ("Hm, yes", "Yes.")
        );
        let told: String = reported
            .iter()
            .filter_map(|event| event.strip_prefix("thinking "))
            .collect();
        assert_eq!(told, "Hm, yes");
        assert_eq!(reported.last().unwrap(), "text Yes.");
    }
}

#[test]
fn text_before_a_lone_closing_tag_is_withdrawn() {
    let (one, two) = (content("Hm, yes\n"), content("</think>Yes."));
    let (answer, reported) = read(&[&one, &two, DONE]);
    assert_eq!(
        reported,
        [
            "text Hm, yes\n",
            "WasThinking",
            "thinking Hm, yes\n",
            "text Yes."
        ]
    );
    assert_eq!(answer.unwrap().said.text, "Yes.");
}

#[test]
fn a_call_written_as_text_is_run_and_never_shown() {
    for written in [
        "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>",
        "<function=weather><parameter=city>Oslo</parameter></function>",
        "```json\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}\n```",
        "{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}",
    ] {
        let lines: Vec<String> = written.split_inclusive(' ').map(content).collect();
        let mut lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        lines.push(DONE);
        let (answer, reported) = read(&lines);
        let answer = answer.unwrap();
        assert_eq!(
            (names(&answer), answer.said.text.as_str(), answer.stop),
            (vec!["weather"], "", StopReason::Calls),
            "{written}"
        );
        assert_eq!(
            answer.said.calls[0].arguments,
            CallArguments::parse(r#"{"city":"Oslo"}"#)
        );
        assert!(
            reported
                .iter()
                .all(|event| event.starts_with("notice ") && event.contains("'weather'")),
            "{reported:?}"
        );
    }
}

#[test]
fn text_that_only_looks_like_a_call_is_text() {
    let calling = r#"[{"id":"a","function":{"name":"weather","arguments":{}}}]"#;
    let unknown = "{\"name\": \"rocket\", \"arguments\": {}}";
    let (read_unknown, reported) = read(&[&content(unknown), DONE]);
    assert_eq!(
        (read_unknown.unwrap().stop, reported),
        (StopReason::End, vec![format!("text {unknown}")])
    );
    let known = "{\"name\": \"weather\", \"arguments\": {}}";
    let beside_a_real_one = answer(&[&content(known), &calls(calling, r#""done":true"#)]);
    assert_eq!(
        (
            beside_a_real_one.said.calls.len(),
            beside_a_real_one.said.text.as_str()
        ),
        (1, known)
    );
}

#[test]
fn disabled_rescue_leaves_text_alone() {
    let written = "<tool_call>{\"name\": \"weather\", \"arguments\": {}}</tool_call>";
    let (offer, mut reported) = (offer(), OllamaEventLog::default());
    let mut stream = OllamaReader::new(&offer);
    let mut buffer = ReplyBuffer::new(&mut reported);
    for line in [content(written), DONE.to_owned()] {
        stream.read_event("", line.as_bytes(), &mut buffer).unwrap();
    }
    let answer = ReplySummary::from(stream.finish(&mut buffer).unwrap());
    assert_eq!(
        (answer.said.text.as_str(), answer.said.calls.len()),
        (written, 0)
    );
    assert_eq!(reported.0, [format!("text {written}")]);
}

#[test]
fn a_call_at_the_end_of_thinking_is_run() {
    let thought = "I need the weather.\n<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}</tool_call>";
    let native =
        json!({ "message": { "content": "", "thinking": thought }, "done": false }).to_string();
    let tags = content(&format!("<think>{thought}"));
    for line in [native, tags] {
        let (answer, reported) = read(&[&line, DONE]);
        assert_eq!(names(&answer.unwrap()), ["weather"]);
        assert!(
            reported.last().unwrap().contains("inside its thinking"),
            "{reported:?}"
        );
    }
    let mere_thought =
        json!({ "message": { "content": "No need.", "thinking": thought }, "done": true })
            .to_string();
    assert_eq!(answer(&[&mere_thought]).said.calls.len(), 0);
}

#[test]
fn a_call_considered_in_thinking_is_not_run() {
    let call = r#"<tool_call>{"name": "weather", "arguments": {"city": "Oslo"}}</tool_call>"#;
    let rejected = format!("I could say {call}\nbut nobody asked for it.");
    for (thought, reason) in [
        (rejected.as_str(), "stop"),
        (&rejected, "length"),
        (call, "length"),
    ] {
        let line = json!({ "message": { "content": "", "thinking": thought }, "done": true, "done_reason": reason });
        let answer = answer(&[&line.to_string()]);
        assert_eq!(answer.said.calls.len(), 0, "{thought} {reason}");
        assert_ne!(answer.stop, StopReason::Calls);
    }
    let decided = format!("{rejected} Or rather:\n{call}");
    let line = json!({ "message": { "content": "", "thinking": decided }, "done": true });
    assert_eq!(names(&answer(&[&line.to_string()])), ["weather"]);
}
