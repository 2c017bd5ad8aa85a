//! Separates `<think>…</think>` from the answer, for servers that send thinking as
//! part of the text.

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ThinkPiece<'a> {
    Text(&'a str),
    Thinking(&'a str),
    // All text so far was thinking. Some templates end the prompt with the opening tag, so the
    // reply has only the closing one.
    AllWasThinking,
}

/// Separates text from thinking while both arrive in pieces of any size.
///
/// Outside of thinking, a tag counts only at the beginning of a line, because an answer may
/// be *about* such tags.
#[derive(Debug, Default)]
pub(crate) struct ThinkSplitter {
    inside: bool,
    pending: String,
    within_line: bool,
    // White space at the beginning and after a tag is dropped until this is set.
    past_blanks: bool,
    // A tag was found before, so a closing tag without an opening one is text.
    seen: bool,
}

const OPENING: [&str; 2] = ["<think>", "<thinking>"];
const CLOSING: [&str; 2] = ["</think>", "</thinking>"];

enum TagMatch {
    Tag(usize),
    Partial,
    Nothing,
}

impl ThinkSplitter {
    pub(crate) fn feed(&mut self, chunk: &str, each: &mut dyn FnMut(ThinkPiece<'_>)) {
        if self.pending.is_empty()
            && self.past_blanks
            && memchr::memchr(b'<', chunk.as_bytes()).is_none()
        {
            return self.emit(chunk, each);
        }
        let mut text = std::mem::take(&mut self.pending);
        text.push_str(chunk);
        let mut rest = text.as_str();
        while let Some(after) = self.next_tag(rest, each) {
            rest = after;
        }
    }

    /// Ends the reply. Text that was held back is plain text, and thinking that
    /// wasn't closed stays thinking.
    pub(crate) fn finish(&mut self, each: &mut dyn FnMut(ThinkPiece<'_>)) {
        let held = std::mem::take(&mut self.pending);
        self.emit(&held, each);
    }

    /// Notes that the provider separates thinking itself, so that a closing tag without an
    /// opening one is text.
    pub(crate) fn mark_thinking_separate(&mut self) {
        self.seen = true;
    }

    // Handles everything up to and including the next tag, and returns the rest. `None` once
    // everything is forwarded or held back.
    fn next_tag<'t>(
        &mut self,
        text: &'t str,
        each: &mut dyn FnMut(ThinkPiece<'_>),
    ) -> Option<&'t str> {
        let text = self.skip_leading_blanks(text);
        let places = memchr::memchr_iter(b'<', text.as_bytes());
        let (mut begins_line, mut seen) = (!self.within_line, 0);
        for place in places {
            let (before, at) = text.split_at(place);
            begins_line = ends_blank(begins_line, &before[seen..]);
            seen = place;
            match self.match_tag(begins_line, at) {
                TagMatch::Nothing => {}
                TagMatch::Partial => {
                    self.emit(before, each);
                    self.pending = at.to_owned();
                    return None;
                }
                TagMatch::Tag(length) => {
                    self.emit(before, each);
                    self.enter_or_leave(at, each);
                    return Some(&at[length..]);
                }
            }
        }
        self.emit(text, each);
        None
    }

    fn match_tag(&self, begins_line: bool, at: &str) -> TagMatch {
        let ends = if self.inside || !self.seen {
            &CLOSING[..]
        } else {
            &[]
        };
        let begins = if self.inside { &[] } else { &OPENING[..] };
        if !self.inside && !begins_line {
            return TagMatch::Nothing;
        }
        let mut tags = begins.iter().chain(ends);
        if let Some(tag) = tags.clone().find(|tag| at.starts_with(**tag)) {
            return TagMatch::Tag(tag.len());
        }
        if tags.any(|tag| tag.starts_with(at)) {
            return TagMatch::Partial;
        }
        TagMatch::Nothing
    }

    fn enter_or_leave(&mut self, at: &str, each: &mut dyn FnMut(ThinkPiece<'_>)) {
        let is_end = at.starts_with("</");
        if is_end && !self.inside {
            each(ThinkPiece::AllWasThinking);
        }
        self.inside = !is_end;
        self.seen = true;
        self.past_blanks = false;
        self.within_line = false;
    }

    fn skip_leading_blanks<'t>(&mut self, text: &'t str) -> &'t str {
        if self.past_blanks {
            return text;
        }
        let text = text.trim_start();
        self.past_blanks = !text.is_empty();
        text
    }

    fn emit(&mut self, text: &str, each: &mut dyn FnMut(ThinkPiece<'_>)) {
        if text.is_empty() {
            return;
        }
        self.within_line = !ends_blank(!self.within_line, text);
        each(if self.inside {
            ThinkPiece::Thinking(text)
        } else {
            ThinkPiece::Text(text)
        });
    }
}

fn ends_blank(was_blank: bool, text: &str) -> bool {
    match text.rfind('\n') {
        Some(at) => is_blank(&text[at..]),
        None => was_blank && is_blank(text),
    }
}

fn is_blank(text: &str) -> bool {
    text.chars().all(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    /// Expects the same thinking, in parentheses, and text for all ways to cut the words in two
    /// and into single characters.
    fn check(said: &str, expected: &str) {
        let cuts = said
            .char_indices()
            .map(|(at, _)| vec![&said[..at], &said[at..]]);
        let single = said.split_inclusive(|_| true).collect();
        for chunks in cuts.chain([single]) {
            assert_eq!(split(&chunks), expected, "{chunks:?}");
        }
    }

    fn split(chunks: &[&str]) -> String {
        let mut splitter = ThinkSplitter::default();
        let (mut text, mut thinking) = (String::new(), String::new());
        let mut each = |piece: ThinkPiece<'_>| match piece {
            ThinkPiece::Text(more) => text.push_str(more),
            ThinkPiece::Thinking(more) => thinking.push_str(more),
            ThinkPiece::AllWasThinking => thinking.push_str(&std::mem::take(&mut text)),
        };
        for chunk in chunks {
            splitter.feed(chunk, &mut each);
        }
        splitter.finish(&mut each);
        format!("({thinking}){text}")
    }

    #[test]
    fn thinking_is_separated_wherever_chunks_are_cut() {
        for (said, expected) in [
            ("Hello", "()Hello"),
            (
                "<think>\nHm, größer?\n</think>\n\nYes.",
                "(Hm, größer?\n)Yes.",
            ),
            ("<thinking>a < b</thinking>Yes.", "(a < b)Yes."),
            ("  \n<think></think>Yes.", "()Yes."),
            (
                "Wait.\n<think>really?</think>\nYes.",
                "(really?)Wait.\nYes.",
            ),
            ("<think>never closed", "(never closed)"),
            ("<think>ends in </thi", "(ends in </thi)"),
            ("no opening tag\n</think>\nYes.", "(no opening tag\n)Yes."),
            (
                "The tag <think> opens, </think> closes.",
                "()The tag <think> opens, </think> closes.",
            ),
            ("<think>a</think>b\n</think>c", "(a)b\n</think>c"),
            ("1 < 2\n<thin air", "()1 < 2\n<thin air"),
        ] {
            check(said, expected);
        }
    }

    #[test]
    fn words_are_passed_on_at_once() {
        let mut splitter = ThinkSplitter::default();
        let mut reported = Vec::new();
        for chunk in ["Good", " <", "b> morn", "ing"] {
            splitter.feed(chunk, &mut |piece| reported.push(format!("{piece:?}")));
        }
        let expected =
            ["Good", " <", "b> morn", "ing"].map(|text| format!("{:?}", ThinkPiece::Text(text)));
        assert_eq!(reported, expected);
    }

    #[test]
    fn a_line_of_brackets_takes_linear_time() {
        let said = "<".repeat(4 << 20);
        let started = tokio::time::Instant::now();
        assert_eq!(split(&[&said]).len(), said.len() + 2);
        // A hang guard: it took the square of its length, which is hours.
        assert!(started.elapsed() < std::time::Duration::from_secs(30));
    }

    proptest! {
        #[test]
        fn cuts_make_no_difference(words in vec(select(WORDS), 0..12), cuts in vec(0_usize..80, 0..6)) {
            let said = words.concat();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| said.floor_char_boundary(*cut)).collect();
            cuts.extend([0, said.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&str> = cuts.windows(2).map(|cut| &said[cut[0]..cut[1]]).collect();
            prop_assert_eq!(split(&chunks), split(&[&said]));
        }
    }

    const WORDS: &[&str] = &[
        "<think>",
        "</think>",
        "<thinking>",
        "</thinking>",
        "</",
        "<",
        "think>",
        "\n",
        " ",
        "ö",
        "word",
    ];
}
