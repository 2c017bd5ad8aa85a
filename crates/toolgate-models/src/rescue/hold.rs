//! Text on its way to the person, held back where a call may be written in it.

use super::last::Last;
use super::mark::{FENCE, Mark, Seen, Walk, tag};
use super::{rescue, words};
use crate::{Event, Listener, ModelCall, Offer};

/// How far ahead it is decided whether JSON or a fence may be a call.
const FAR_ENOUGH: usize = 256;

/// How many examples of a reply are told as soon as they are known to be some. Each may be read once more.
const MOST_EXAMPLES: usize = 32;

/// The first key of a call in JSON.
const FIRST_KEYS: [&str; 6] = ["name", "function", "type", "id", "arguments", "parameters"];

/// Gathers the text of a reply, and tells each piece at once unless it may be the beginning of a call: then it is told when
/// it turns out to be none, as an example is that more words come after, at the latest when the reply ends.
#[derive(Debug, Default)]
pub(crate) struct Hold {
    /// `None`: nothing is held back.
    walk: Option<Walk>,
    text: String,
    told: usize,
    /// What stands where the walk does and looks like a call, unless more comes after it.
    last: Option<(Seen, Last)>,
    examples: usize,
}

enum Verdict {
    Call,
    Maybe,
    Text,
}

impl Hold {
    /// Without `rescue`, it tells everything at once and finds no calls.
    pub(crate) fn new(rescue: bool) -> Self {
        Self {
            walk: rescue.then(Walk::default),
            ..Self::default()
        }
    }

    /// True if any of it was told.
    pub(crate) fn has_told(&self) -> bool {
        self.told > 0
    }

    /// More text.
    pub(crate) fn push(&mut self, piece: &str, listener: &mut dyn Listener) {
        self.text.push_str(piece);
        let until = self.decided();
        self.tell(until, listener);
    }

    /// The reply has ended. With an offer, calls of its tools are taken out of the text; without, the text is what it is.
    pub(crate) fn finish(
        mut self,
        offer: Option<&Offer>,
        listener: &mut dyn Listener,
    ) -> (String, Vec<ModelCall>) {
        let offer = offer.filter(|_| self.walk.is_some());
        let Some(rescued) = offer.and_then(|offer| rescue(&self.text, offer)) else {
            self.tell(self.text.len(), listener);
            return (self.text, Vec::new());
        };
        let rest = words(&self.text, &rescued.kept, self.told);
        if !rest.is_empty() {
            listener.event(Event::Text(&rest));
        }
        for call in &rescued.calls {
            let name = toolgate_core::escape(&call.name);
            listener.event(Event::Notice(&format!(
                "the model wrote its call of '{name}' as text; it was understood"
            )));
        }
        (rescued.text, rescued.calls)
    }

    /// Up to where the text is certain to be no call.
    fn decided(&mut self) -> usize {
        let Some(walk) = self.walk.as_mut() else {
            return self.text.len();
        };
        let bytes = self.text.as_bytes();
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
                return self.text.len();
            };
            match judge(seen, &bytes[walk.at()..]) {
                Verdict::Text => walk.pass(seen),
                Verdict::Maybe => return walk.at(),
                Verdict::Call => self.last = Some((seen, Last::from(walk.at()))),
            }
        }
    }

    fn tell(&mut self, until: usize, listener: &mut dyn Listener) {
        if until > self.told {
            listener.event(Event::Text(&self.text[self.told..until]));
            self.told = until;
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

/// A fence around something that is no code.
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

/// An object, or a list of objects, that begins like a call.
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
    use super::super::tests::offer;
    use super::*;

    /// What is told at once of each piece, and at the end; `!` stands for a call.
    fn told(pieces: &[&str]) -> Vec<String> {
        let mut hold = Hold::new(true);
        let mut told = Vec::new();
        for piece in pieces {
            let mut now = String::new();
            hold.push(piece, &mut |event: Event<'_>| {
                if let Event::Text(text) = event {
                    now.push_str(text);
                }
            });
            told.push(now);
        }
        let mut last = String::new();
        hold.finish(Some(&offer()), &mut |event: Event<'_>| match event {
            Event::Text(text) => last.push_str(text),
            Event::Notice(_) => last.push('!'),
            _ => {}
        });
        told.push(last);
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
        let mut hold = Hold::new(true);
        hold.push(&deep, &mut |_: Event<'_>| {});
        assert_eq!(hold.examples, MOST_EXAMPLES);
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
        let mut hold = Hold::new(false);
        let mut heard = Vec::new();
        let call = r#"<tool_call>{"name":"datetime"}</tool_call>"#;
        let mut listener = |event: Event<'_>| heard.push(format!("{event:?}"));
        hold.push(call, &mut listener);
        let (text, calls) = hold.finish(Some(&offer()), &mut listener);
        assert_eq!((text.as_str(), calls.len()), (call, 0));
        assert_eq!(heard, [format!("Text({call:?})")]);
    }
}
