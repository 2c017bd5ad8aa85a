//! Recovers messages from lines that mix them with other text.

use serde_json::value::RawValue;

use crate::client::message::{MessageParseError, RpcMessage};

// How many values are parsed per line.
const MAX_TRIES: usize = 32;
// Fewer for long lines, because each try may read the whole line.
const MAX_TRIES_IN_LONG_LINE: usize = 4;
const LONG_LINE: usize = 256 * 1024;

// Requests that only servers make. Any other request inside a line of text is probably our own,
// echoed by the server's log, and must not be answered.
const SERVER_REQUESTS: [&str; 3] = ["elicitation/create", "sampling/createMessage", "roots/list"];

#[derive(Debug, PartialEq)]
pub(super) enum LinePart<'a> {
    Message(RpcMessage),
    Junk(&'a [u8], String),
}

/// Splits a line that could not be parsed as one message, from left to right. JSON nested in other
/// JSON is ignored: a logged message is not a message.
pub(super) fn split_line<'a>(line: &'a [u8], error: &MessageParseError) -> Vec<LinePart<'a>> {
    let mut parts = Vec::new();
    let (mut junk, mut at) = (0, 0);
    let mut tries = if line.len() > LONG_LINE {
        MAX_TRIES_IN_LONG_LINE
    } else {
        MAX_TRIES
    };
    while let Some(found) = memchr::memchr2(b'{', b'[', &line[at..]) {
        if tries == 0 {
            break;
        }
        tries -= 1;
        let from = at + found;
        let Some(json) = whole_value(&line[from..]) else {
            at = from + 1;
            continue;
        };
        at = from + json.len();
        let Some(message) = parse_message(json) else {
            continue;
        };
        add_junk(&mut parts, &line[junk..from], error);
        parts.push(LinePart::Message(message));
        junk = at;
    }
    add_junk(&mut parts, &line[junk..], error);
    parts
}

// Returns the first JSON value, if it is complete.
fn whole_value(bytes: &[u8]) -> Option<&[u8]> {
    let value = serde_json::Deserializer::from_slice(bytes)
        .into_iter::<&RawValue>()
        .next()?;
    Some(value.ok()?.get().as_bytes())
}

fn parse_message(json: &[u8]) -> Option<RpcMessage> {
    let message = RpcMessage::parse(json).ok()?;
    match &message {
        RpcMessage::Request { method, .. } if !SERVER_REQUESTS.contains(&method.as_str()) => None,
        _ => Some(message),
    }
}

fn add_junk<'a>(parts: &mut Vec<LinePart<'a>>, junk: &'a [u8], error: &MessageParseError) {
    let junk = junk.trim_ascii();
    if !junk.is_empty() {
        parts.push(LinePart::Junk(junk, error.to_string()));
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct MessageMarks {
    /// It has a `"jsonrpc"` member, so it was meant as a message.
    pub(super) is_message: bool,
    /// The id, if it has the form of ours.
    pub(super) id: Option<u64>,
}

impl MessageMarks {
    /// Reads only top-level members: those in `head` up to the first truncated one, and the
    /// last two in `tail`.
    pub(super) fn from_ends(head: &[u8], tail: &[u8]) -> Self {
        let mut marks = Self::default();
        let Some(members) = head.trim_ascii_start().strip_prefix(b"{") else {
            return marks;
        };
        marks.read_head(members);
        if marks.id.is_none() || !marks.is_message {
            marks.read_tail(tail);
        }
        marks
    }

    fn record_member(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"\"jsonrpc\"" => self.is_message = true,
            b"\"id\"" => {
                self.id = std::str::from_utf8(value)
                    .ok()
                    .and_then(|text| text.parse().ok());
            }
            _ => {}
        }
    }

    fn read_head(&mut self, mut rest: &[u8]) {
        loop {
            rest = rest.trim_ascii_start();
            let Some(name) = string(rest) else { return };
            let Some(after) = rest[name.len()..].trim_ascii_start().strip_prefix(b":") else {
                return;
            };
            let after = after.trim_ascii_start();
            // A number is complete only if something follows it.
            let value = match whole_value(after) {
                Some(value) if value.len() < after.len() => value,
                _ => return self.record_member(name, b""),
            };
            self.record_member(name, value);
            let Some(next) = after[value.len()..].trim_ascii_start().strip_prefix(b",") else {
                return;
            };
            rest = next;
        }
    }

    fn read_tail(&mut self, tail: &[u8]) {
        let Some(mut rest) = tail.trim_ascii_end().strip_suffix(b"}") else {
            return;
        };
        for _ in 0..2 {
            let Some(comma) = memchr::memrchr(b',', rest) else {
                return;
            };
            let member = &rest[comma + 1..];
            let Some(colon) = memchr::memchr(b':', member) else {
                return;
            };
            let (name, value) = (&member[..colon], &member[colon + 1..]);
            let (name, value) = (name.trim_ascii(), value.trim_ascii());
            if !matches!(name, b"\"id\"" | b"\"jsonrpc\"") {
                return;
            }
            self.record_member(name, value);
            rest = &rest[..comma];
        }
    }
}

fn string(bytes: &[u8]) -> Option<&[u8]> {
    bytes.starts_with(b"\"").then(|| whole_value(bytes))?
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parts(line: &[u8]) -> Vec<Result<u64, String>> {
        let refused = RpcMessage::parse(line).unwrap_err();
        let parts = split_line(line, &refused).into_iter();
        parts
            .map(|part| match part {
                LinePart::Message(RpcMessage::Response { id, .. }) => Ok(id.as_u64().unwrap()),
                LinePart::Message(RpcMessage::Request { .. }) => Ok(1000),
                LinePart::Message(RpcMessage::Notification { .. }) => Ok(2000),
                LinePart::Junk(junk, _) => Err(String::from_utf8_lossy(junk).into_owned()),
            })
            .collect()
    }

    #[test]
    fn only_whole_messages_are_rescued_from_a_line() {
        let junk = |text: &str| Err(text.to_owned());
        let answer = r#"{"jsonrpc":"2.0","id":7,"result":{"a":[1,{"b":"}"}]}}"#;
        let echoed = r#"got {"jsonrpc":"2.0","id":7,"method":"tools/call"}"#;
        let logged = format!(r#"{{"level":"debug","sent":{answer}}}"#);
        let batch = format!("[{answer}]");
        for (line, expected) in [
            (
                format!("Progress: 50% {answer}"),
                vec![junk("Progress: 50%"), Ok(7)],
            ),
            (format!("{answer} done"), vec![Ok(7), junk("done")]),
            (
                format!("a{answer}{answer}b"),
                vec![junk("a"), Ok(7), Ok(7), junk("b")],
            ),
            (
                format!("[INFO] {{x}} {answer}"),
                vec![junk("[INFO] {x}"), Ok(7)],
            ),
            (format!("[1] {answer}"), vec![junk("[1]"), Ok(7)]),
            (
                format!(r#"{{"a":1}} {answer}"#),
                vec![junk(r#"{"a":1}"#), Ok(7)],
            ),
            (
                r#"x{"id":7,"result":1,"jsonrpc":"2.0"}"#.to_owned(),
                vec![junk("x"), Ok(7)],
            ),
            (
                format!(r#"{{"jsonrpc":"2.0","id":6,"res{answer}"#),
                vec![junk(r#"{"jsonrpc":"2.0","id":6,"res"#), Ok(7)],
            ),
            (
                r#"x {"jsonrpc":"2.0","id":1,"method":"roots/list"}"#.to_owned(),
                vec![junk("x"), Ok(1000)],
            ),
            (
                r#"x {"jsonrpc":"2.0","method":"y"}"#.to_owned(),
                vec![junk("x"), Ok(2000)],
            ),
            (echoed.to_owned(), vec![junk(echoed)]),
            (logged.clone(), vec![junk(&logged)]),
            (batch.clone(), vec![junk(&batch)]),
            ("plain".to_owned(), vec![junk("plain")]),
            ("  \r".to_owned(), vec![]),
        ] {
            assert_eq!(parts(line.as_bytes()), expected, "{line}");
        }
        let not_utf8 = [b"\xff\xfe ", answer.as_bytes()].concat();
        assert_eq!(parts(&not_utf8)[1], Ok(7));
    }

    #[test]
    fn a_rescued_message_is_the_one_that_was_sent() {
        let line = br#"50% {"jsonrpc":"2.0","id":7,"result":{"z":1.50,"a":"\u00e9 {"}}"#;
        let refused = RpcMessage::parse(line).unwrap_err();
        let LinePart::Message(RpcMessage::Response { answer, .. }) = &split_line(line, &refused)[1]
        else {
            panic!("no message")
        };
        let expected = json!({ "z": 1.5, "a": "é {" });
        assert_eq!(answer.as_ref().unwrap().to_string(), expected.to_string());
    }

    #[test]
    fn a_line_of_braces_is_not_tried_forever() {
        let line = r#"{"a":"#.repeat(60_000);
        let refused = RpcMessage::parse(line.as_bytes()).unwrap_err();
        assert_eq!(split_line(line.as_bytes(), &refused).len(), 1);
    }

    #[test]
    fn ids_are_made_out_at_the_top_level_only() {
        let marks = |message, id| MessageMarks {
            is_message: message,
            id,
        };
        for (head, tail, expected) in [
            (
                r#"{"jsonrpc":"2.0","id":7,"result":{"text":"aaa"#,
                "",
                marks(true, Some(7)),
            ),
            (
                r#" { "id" : 7 , "jsonrpc" : "2.0", "result" : ["#,
                "",
                marks(true, Some(7)),
            ),
            (
                r#"{"result":{"id":3,"x":"aaa"#,
                r#"a"},"id":8,"jsonrpc":"2.0"}"#,
                marks(true, Some(8)),
            ),
            (
                r#"{"result":{"id":3,"x":"aaa"#,
                r#"a"},"jsonrpc":"2.0", "id": 8 } "#,
                marks(true, Some(8)),
            ),
            (
                r#"{"jsonrpc":"2.0","result":{"x":"aaa"#,
                r#"a","id":8}}"#,
                marks(true, None),
            ),
            (
                r#"{"jsonrpc":"2.0","id":"7","result":{"x":"aaa"#,
                "",
                marks(true, None),
            ),
            (r#"{"jsonrpc":"2.0","id":7"#, "", marks(true, None)),
            (
                r#"{"jsonrpc":"2.0","id":-7,"method":"x"#,
                "",
                marks(true, None),
            ),
            (r#"{"level":"info","id":7,"x":"#, "", marks(false, Some(7))),
            ("hello", r#","id":8}"#, marks(false, None)),
            ("", "", marks(false, None)),
        ] {
            assert_eq!(
                MessageMarks::from_ends(head.as_bytes(), tail.as_bytes()),
                expected,
                "{head} … {tail}"
            );
        }
    }
}
