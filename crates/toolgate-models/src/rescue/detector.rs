//! Tells where a call may begin in text that is still coming, so that it can be held back.

use super::last::Last;
use super::mark::{FENCE, Mark, Seen, Walk, tag};

/// How far ahead it is decided whether JSON or a fence may be a call.
const FAR_ENOUGH: usize = 256;

/// How many examples of a reply are told as soon as they are known to be some. Each may be read once more.
const MOST_EXAMPLES: usize = 32;

/// The first key of a call in JSON.
const FIRST_KEYS: [&str; 6] = ["name", "function", "type", "id", "arguments", "parameters"];

/// Looks at a text that grows. The text itself is kept by whoever asks.
#[derive(Debug, Default)]
pub(crate) struct CallDetector {
    walk: Walk,
    /// What stands where the walk does and looks like a call, unless more comes after it.
    last: Option<(Seen, Last)>,
    examples: usize,
}

enum Verdict {
    Call,
    Maybe,
    Text,
}

impl CallDetector {
    /// Up to where the text is certain to hold no call: JSON is one only until more words come after it.
    pub(crate) fn decided(&mut self, text: &str) -> usize {
        let bytes = text.as_bytes();
        let walk = &mut self.walk;
        loop {
            if let Some((seen, last)) = &mut self.last {
                if self.examples == MOST_EXAMPLES || !last.is_example(bytes) {
                    return walk.at();
                }
                self.examples += 1;
                walk.pass(*seen);
                self.last = None;
            }
            let Some(seen) = walk.next(bytes) else {
                return text.len();
            };
            match judge(seen, &bytes[walk.at()..]) {
                Verdict::Text => walk.pass(seen),
                Verdict::Maybe => return walk.at(),
                Verdict::Call => self.last = Some((seen, Last::from(walk.at()))),
            }
        }
    }
}

fn judge(seen: Seen, rest: &[u8]) -> Verdict {
    let near = &rest[..rest.len().min(FAR_ENOUGH)];
    let verdict = match seen {
        Seen::Maybe => Verdict::Maybe,
        Seen::Mark(Mark::Fence) => fence(near),
        Seen::Mark(Mark::Json) => json(near),
        Seen::Mark(_) => Verdict::Call,
    };
    match verdict {
        Verdict::Maybe if rest.len() > FAR_ENOUGH => Verdict::Text,
        verdict => verdict,
    }
}

fn fence(rest: &[u8]) -> Verdict {
    let info = &rest[FENCE.len()..];
    let word = info
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    let body = info[word.count()..].trim_ascii_start();
    match body.first() {
        None => Verdict::Maybe,
        Some(b'{') => json(body),
        Some(b'<' | b'[') => match tag(body) {
            Some(Seen::Maybe) => Verdict::Maybe,
            Some(Seen::Mark(_)) => Verdict::Call,
            None => json(body),
        },
        _ => Verdict::Text,
    }
}

fn json(rest: &[u8]) -> Verdict {
    let inside = match rest.first() {
        Some(b'[') => rest[1..].trim_ascii_start(),
        _ => rest,
    };
    let key = match inside.first() {
        None => return Verdict::Maybe,
        Some(b'{') => inside[1..].trim_ascii_start(),
        Some(_) => return Verdict::Text,
    };
    match key.first() {
        None => Verdict::Maybe,
        Some(b'"') => match memchr::memchr(b'"', &key[1..]) {
            None => Verdict::Maybe,
            Some(length) => {
                let key = &key[1..=length];
                let mut known = FIRST_KEYS.iter();
                if known.any(|known| known.as_bytes() == key) {
                    Verdict::Call
                } else {
                    Verdict::Text
                }
            }
        },
        Some(_) => Verdict::Text,
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::super::tests::offer;
    use super::*;
    use crate::Event;
    use crate::reply_buffer::ReplyBuffer;

    /// What is told at once of each piece, and at the end; `!` stands for a call.
    fn told(pieces: &[&str]) -> Vec<String> {
        let now = Mutex::new(String::new());
        let mut listener = |event: Event<'_>| match event {
            Event::Text(text) => now.lock().push_str(text),
            Event::Notice(_) => now.lock().push('!'),
            _ => {}
        };
        let taken = || std::mem::take(&mut *now.lock());
        let mut buffer = ReplyBuffer::new(&mut listener);
        buffer.begin(true);
        let mut told = Vec::new();
        for piece in pieces {
            buffer.push(piece);
            told.push(taken());
        }
        buffer.finish_text(Some(&offer()));
        told.push(taken());
        told
    }

    #[test]
    fn prose_is_told_at_once() {
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
    fn what_may_be_a_call_is_told_when_it_is_none() {
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
        let spaces = " ".repeat(FAR_ENOUGH);
        assert_eq!(told(&["{", &spaces, "x"])[1].len(), 1 + spaces.len());
    }

    #[test]
    fn an_example_is_told_as_soon_as_words_come_after_it() {
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
    fn what_is_a_call_behind_an_example_is_never_told() {
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
        detector.decided(&deep);
        assert_eq!(detector.examples, MOST_EXAMPLES);
    }

    #[test]
    fn a_call_is_never_told() {
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
    fn nothing_is_held_back_where_nothing_is_rescued() {
        let mut heard = Vec::new();
        let call = r#"<tool_call>{"name":"datetime"}</tool_call>"#;
        let mut listener = |event: Event<'_>| heard.push(format!("{event:?}"));
        let mut buffer = ReplyBuffer::new(&mut listener);
        buffer.push(call);
        let (text, calls) = buffer.finish_text(Some(&offer()));
        assert_eq!((text.as_str(), calls.len()), (call, 0));
        assert_eq!(heard, [format!("Text({call:?})")]);
    }
}
