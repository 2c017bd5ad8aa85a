//! Detects where a call may begin in text that is still arriving, so that it isn't shown.

use super::call_mark::{CallMark, FENCE, MarkMatch, MarkScanner, match_tag};
use super::trailing_json::TrailingJson;

// JSON or a fenced block that doesn't look like a call after this many bytes is text.
const MAX_LOOKAHEAD: usize = 256;

// Text after an example may have to be scanned again, so their number is bounded. After that many,
// text is held back until the reply ends.
const MAX_EXAMPLES: usize = 32;

const FIRST_KEYS: [&str; 6] = ["name", "function", "type", "id", "arguments", "parameters"];

#[derive(Debug, Default)]
pub(crate) struct CallDetector {
    walk: MarkScanner,
    // What may be a call at the current position, as long as nothing comes after it.
    last: Option<(MarkMatch, TrailingJson)>,
    examples: usize,
}

enum TextVerdict {
    Call,
    Maybe,
    Text,
}

impl CallDetector {
    /// The length of the beginning of `text` that certainly has no call. It grows when text arrives
    /// after JSON, which makes that JSON an example.
    pub(crate) fn safe_len(&mut self, text: &str) -> usize {
        let bytes = text.as_bytes();
        let walk = &mut self.walk;
        loop {
            if let Some((seen, last)) = &mut self.last {
                if self.examples == MAX_EXAMPLES || !last.is_example(bytes) {
                    return walk.at();
                }
                self.examples += 1;
                walk.skip(*seen);
                self.last = None;
            }
            let Some(seen) = walk.next(bytes) else {
                return text.len();
            };
            match judge(seen, &bytes[walk.at()..]) {
                TextVerdict::Text => walk.skip(seen),
                TextVerdict::Maybe => return walk.at(),
                TextVerdict::Call => self.last = Some((seen, TrailingJson::starting_at(walk.at()))),
            }
        }
    }
}

fn judge(seen: MarkMatch, rest: &[u8]) -> TextVerdict {
    let near = &rest[..rest.len().min(MAX_LOOKAHEAD)];
    let verdict = match seen {
        MarkMatch::Maybe => TextVerdict::Maybe,
        MarkMatch::Mark(CallMark::Fence) => judge_fence(near),
        MarkMatch::Mark(CallMark::Json) => judge_json(near),
        MarkMatch::Mark(_) => TextVerdict::Call,
    };
    match verdict {
        TextVerdict::Maybe if rest.len() > MAX_LOOKAHEAD => TextVerdict::Text,
        verdict => verdict,
    }
}

fn judge_fence(rest: &[u8]) -> TextVerdict {
    let info = &rest[FENCE.len()..];
    let word = info
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    let body = info[word.count()..].trim_ascii_start();
    match body.first() {
        None => TextVerdict::Maybe,
        Some(b'{') => judge_json(body),
        Some(b'<' | b'[') => match match_tag(body) {
            Some(MarkMatch::Maybe) => TextVerdict::Maybe,
            Some(MarkMatch::Mark(_)) => TextVerdict::Call,
            None => judge_json(body),
        },
        _ => TextVerdict::Text,
    }
}

fn judge_json(rest: &[u8]) -> TextVerdict {
    let inside = match rest.first() {
        Some(b'[') => rest[1..].trim_ascii_start(),
        _ => rest,
    };
    let key = match inside.first() {
        None => return TextVerdict::Maybe,
        Some(b'{') => inside[1..].trim_ascii_start(),
        Some(_) => return TextVerdict::Text,
    };
    match key.first() {
        None => TextVerdict::Maybe,
        Some(b'"') => match memchr::memchr(b'"', &key[1..]) {
            None => TextVerdict::Maybe,
            Some(length) => {
                let key = &key[1..=length];
                let mut known = FIRST_KEYS.iter();
                if known.any(|known| known.as_bytes() == key) {
                    TextVerdict::Call
                } else {
                    TextVerdict::Text
                }
            }
        },
        Some(_) => TextVerdict::Text,
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::super::tests::offer;
    use super::*;
    use crate::ModelEvent;
    use crate::reply_buffer::ReplyBuffer;

    /// What is forwarded for each piece, and at the end; `!` stands for a call.
    fn told(pieces: &[&str]) -> Vec<String> {
        let now = Mutex::new(String::new());
        let mut listener = |event: ModelEvent<'_>| match event {
            ModelEvent::Text(text) => now.lock().push_str(text),
            ModelEvent::Notice(_) => now.lock().push('!'),
            _ => {}
        };
        let taken = || std::mem::take(&mut *now.lock());
        let mut buffer = ReplyBuffer::new(&mut listener);
        buffer.begin(true);
        let mut told = Vec::new();
        for piece in pieces {
            buffer.push_text(piece);
            told.push(taken());
        }
        buffer.finish_text(Some(&offer()));
        told.push(taken());
        told
    }

    #[test]
    fn prose_is_forwarded_at_once() {
        for pieces in [
            &["It", " is", " sunny", ".\n", "And"][..],
            &["é", "\u{1f600}"],
            &["a < b", " <b>", " [1]", " {x}", " `code`"],
            &["[link](x)", "\n{x}", "\n- [ ] done"],
            &["{ \"answer\": 42", ", \"name\": 1 }"],
            &[
                "```rust\nfn",
                " main() {\n",
                "{\"name\": 1}\n",
                "```\n",
                "end",
            ],
        ] {
            let mut expected: Vec<String> =
                pieces.iter().map(|piece| (*piece).to_owned()).collect();
            expected.push(String::new());
            assert_eq!(told(pieces), expected);
        }
    }

    #[test]
    fn held_text_is_forwarded_once_it_is_not_a_call() {
        for (pieces, expected) in [
            (&["a <", "b"][..], &["a ", "<b", ""][..]),
            (&["a <tool", "s", "hed"], &["a ", "", "<toolshed", ""]),
            (
                &["``", "`", "py", "\n", "x"],
                &["", "", "", "", "```py\nx", ""],
            ),
            (&["[", "1]"], &["", "[1]", ""]),
            (&["[", "TOOL", "_BOX]"], &["", "", "[TOOL_BOX]", ""]),
            (
                &["\n {", "\"na", "tion\"", ": 1}"],
                &["\n ", "", "{\"nation\"", ": 1}", ""],
            ),
            (
                &["{\"name\"", ": \"Ada\"}"],
                &["", "", "{\"name\": \"Ada\"}"],
            ),
            (&["ok <tool_call>", "x"], &["ok ", "", "<tool_call>x"]),
        ] {
            assert_eq!(told(pieces), expected, "{pieces:?}");
        }
        let spaces = " ".repeat(MAX_LOOKAHEAD);
        assert_eq!(told(&["{", &spaces, "x"])[1].len(), 1 + spaces.len());
    }

    #[test]
    fn an_example_is_forwarded_once_text_follows() {
        let example = r#"{"name":"datetime","arguments":{"a":"}\\\"{"}}"#;
        let fenced = format!("```json\n{example}\n```");
        let known = |next: &str| vec![String::new(), format!("{example}{next}"), String::new()];
        for next in [" is", "\nSo.", ", and", "\n`x`", "\n<b>", "\n[1] x", "}"] {
            assert_eq!(told(&[example, next]), known(next), "{next:?}");
        }
        for (pieces, expected) in [
            // Not before it is certain that they are words.
            (&[example, "\n", "`", "``", "py\n", "x"][..], 5),
            (&[example, "; ", example, "\n<", "too", "th"], 5),
            (&[fenced.as_str(), "\n", "The ", "end."], 2),
            (&["```json\n", example, "\n", "x"], 3),
            (
                &[fenced.as_str(), "\n", fenced.as_str(), "\n\n", "Both."],
                4,
            ),
        ] {
            let (now, later) = (told(pieces), pieces[..=expected].concat());
            assert_eq!(now[..expected].concat(), "", "{pieces:?}");
            assert_eq!(now[expected], later, "{pieces:?}");
            assert_eq!(now.concat(), pieces.concat(), "{pieces:?}");
        }
    }

    #[test]
    fn a_call_after_an_example_is_not_shown() {
        let call = r#"{"name":"datetime","arguments":{}}"#;
        let example = r#"{"name":"Ada"}"#;
        let tagged = format!("<tool_call>{call}</tool_call>");
        for (pieces, expected) in [
            (
                &[example, "\nNow.\n", call][..],
                &["", "{\"name\":\"Ada\"}\nNow.\n", "", "!"][..],
            ),
            (
                &[example, "\n", &tagged],
                &["", "", "", "{\"name\":\"Ada\"}!"],
            ),
            (
                &[example, "\nNow ", &tagged],
                &["", "{\"name\":\"Ada\"}\nNow ", "", "!"],
            ),
        ] {
            assert_eq!(told(pieces), expected, "{pieces:?}");
        }
    }

    #[test]
    fn examples_without_end_are_read_a_bounded_number_of_times() {
        let deep = format!("{}1{} x", "{\"name\":\n".repeat(50_000), "}".repeat(50_000));
        let mut detector = CallDetector::default();
        detector.safe_len(&deep);
        assert_eq!(detector.examples, MAX_EXAMPLES);
    }

    #[test]
    fn a_call_is_never_shown() {
        let call = r#"{"name":"datetime","arguments":{}}"#;
        for (pieces, expected) in [
            (
                &["I look. ", "<tool", "_call>", call, "</tool_call>"][..],
                &["I look. ", "", "", "", "", "!"][..],
            ),
            (
                &["I look.\n", "{\"", "name\":\"datetime\",\"arguments\":{}}"],
                &["I look.\n", "", "", "!"],
            ),
            (&["```js", "on\n", call, "\n```"], &["", "", "", "", "!"]),
            (
                &["<function=", "datetime>", "</function>", " So."],
                &["", "", "", "", "So.!"],
            ),
            (&["[TOOL_", "CALLS]", "datetime{}"], &["", "", "", "!"]),
        ] {
            assert_eq!(told(pieces), expected, "{pieces:?}");
        }
    }

    #[test]
    fn without_rescue_nothing_is_held_back() {
        let mut reported = Vec::new();
        let call = r#"<tool_call>{"name":"datetime"}</tool_call>"#;
        let mut listener = |event: ModelEvent<'_>| reported.push(format!("{event:?}"));
        let mut buffer = ReplyBuffer::new(&mut listener);
        buffer.push_text(call);
        let (text, calls) = buffer.finish_text(Some(&offer()));
        assert_eq!((text.as_str(), calls.len()), (call, 0));
        assert_eq!(reported, [format!("Text({call:?})")]);
    }
}
