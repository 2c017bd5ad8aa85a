//! `<think>…</think>` inside of what a model says: servers that do not take it out themselves pass it on as words.

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Text(&'a str),
    Thinking(&'a str),
    /// All text so far was thinking: some templates write the opening tag into the prompt, so that only its end is seen.
    AllWasThinking,
}

/// Tells words from thinking while they arrive in pieces of any size.
///
/// A tag counts only at the beginning of a line: an answer may speak *about* such tags.
#[derive(Debug)]
pub(crate) struct Splitter {
    inside: bool,
    pending: String,
    line_is_blank: bool,
    /// Blanks after thinking belong to nobody.
    skip_blanks: bool,
    /// An opening tag or the end of one was there: another lone end is text.
    seen: bool,
}

const OPENING: [&str; 2] = ["<think>", "<thinking>"];
const CLOSING: [&str; 2] = ["</think>", "</thinking>"];

/// What stands at a `<`.
enum Found {
    Tag(usize),
    MayBecome,
    Nothing,
}

impl Default for Splitter {
    fn default() -> Self {
        Self {
            inside: false,
            pending: String::new(),
            line_is_blank: true,
            skip_blanks: true,
            seen: false,
        }
    }
}

impl Splitter {
    pub(crate) fn feed(&mut self, chunk: &str, each: &mut dyn FnMut(Piece<'_>)) {
        if self.pending.is_empty()
            && !self.skip_blanks
            && memchr::memchr(b'<', chunk.as_bytes()).is_none()
        {
            return self.say(chunk, each);
        }
        let mut text = std::mem::take(&mut self.pending);
        text.push_str(chunk);
        let mut rest = text.as_str();
        while let Some(after) = self.step(rest, each) {
            rest = after;
        }
    }

    /// Nothing more comes: what was held back is what it looks like, and thinking that was not closed stays thinking.
    pub(crate) fn finish(&mut self, each: &mut dyn FnMut(Piece<'_>)) {
        let held = std::mem::take(&mut self.pending);
        self.say(&held, each);
    }

    /// True if the provider itself told thinking from words: a lone end of a tag is then no tag.
    pub(crate) fn thinking_came_apart(&mut self) {
        self.seen = true;
    }

    /// Up to and including the next tag; `None` once all is said or held back.
    fn step<'t>(&mut self, text: &'t str, each: &mut dyn FnMut(Piece<'_>)) -> Option<&'t str> {
        let text = self.without_blanks(text);
        let places = memchr::memchr_iter(b'<', text.as_bytes());
        let (mut begins_line, mut seen) = (self.line_is_blank, 0);
        for place in places {
            let (before, at) = text.split_at(place);
            begins_line = ends_blank(begins_line, &before[seen..]);
            seen = place;
            match self.look(begins_line, at) {
                Found::Nothing => {}
                Found::MayBecome => {
                    self.say(before, each);
                    self.pending = at.to_owned();
                    return None;
                }
                Found::Tag(length) => {
                    self.say(before, each);
                    self.pass(at, each);
                    return Some(&at[length..]);
                }
            }
        }
        self.say(text, each);
        None
    }

    fn look(&self, begins_line: bool, at: &str) -> Found {
        let ends = if self.inside || !self.seen {
            &CLOSING[..]
        } else {
            &[]
        };
        let begins = if self.inside { &[] } else { &OPENING[..] };
        if !self.inside && !begins_line {
            return Found::Nothing;
        }
        let mut tags = begins.iter().chain(ends);
        if let Some(tag) = tags.clone().find(|tag| at.starts_with(**tag)) {
            return Found::Tag(tag.len());
        }
        if tags.any(|tag| tag.starts_with(at)) {
            return Found::MayBecome;
        }
        Found::Nothing
    }

    fn pass(&mut self, at: &str, each: &mut dyn FnMut(Piece<'_>)) {
        let is_end = at.starts_with("</");
        if is_end && !self.inside {
            each(Piece::AllWasThinking);
        }
        self.inside = !is_end;
        self.seen = true;
        self.skip_blanks = true;
        self.line_is_blank = true;
    }

    fn without_blanks<'t>(&mut self, text: &'t str) -> &'t str {
        if !self.skip_blanks {
            return text;
        }
        let text = text.trim_start();
        self.skip_blanks = text.is_empty();
        text
    }

    fn say(&mut self, text: &str, each: &mut dyn FnMut(Piece<'_>)) {
        if text.is_empty() {
            return;
        }
        self.line_is_blank = ends_blank(self.line_is_blank, text);
        each(if self.inside {
            Piece::Thinking(text)
        } else {
            Piece::Text(text)
        });
    }
}

/// Whether the last line is blank, if it was before this text.
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

    /// Text, and thinking in parentheses. All ways to cut the words in two and into single characters give the same.
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
        let mut splitter = Splitter::default();
        let (mut text, mut thinking) = (String::new(), String::new());
        let mut each = |piece: Piece<'_>| match piece {
            Piece::Text(more) => text.push_str(more),
            Piece::Thinking(more) => thinking.push_str(more),
            Piece::AllWasThinking => thinking.push_str(&std::mem::take(&mut text)),
        };
        for chunk in chunks {
            splitter.feed(chunk, &mut each);
        }
        splitter.finish(&mut each);
        format!("({thinking}){text}")
    }

    #[test]
    fn thinking_is_told_from_words_wherever_the_chunks_are_cut() {
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
        let mut splitter = Splitter::default();
        let mut heard = Vec::new();
        for chunk in ["Good", " <", "b> morn", "ing"] {
            splitter.feed(chunk, &mut |piece| heard.push(format!("{piece:?}")));
        }
        let expected =
            ["Good", " <", "b> morn", "ing"].map(|text| format!("{:?}", Piece::Text(text)));
        assert_eq!(heard, expected);
    }

    #[test]
    fn a_line_of_nothing_but_brackets_takes_no_more_than_its_length() {
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
