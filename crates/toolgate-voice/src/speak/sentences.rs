//! From words as a model streams them to pieces that can be spoken one after the other.

/// A clause of this many letters is worth speaking while the rest of the sentence is still to come.
const FIRST_CLAUSE: usize = 24;

/// Nothing is said in one breath that is longer, in letters.
const LONGEST: usize = 300;

/// Titles and the like: what they are short for goes on after the dot.
const ABBREVIATIONS: &[&str] = &[
    "approx", "capt", "cf", "col", "dr", "e.g", "gen", "gov", "hon", "i.e", "lt", "mr", "mrs",
    "ms", "mt", "prof", "rev", "sen", "sgt", "st", "vs",
];

/// Short for something that has a number.
const NUMBERED: &[&str] = &["art", "ch", "fig", "no", "nos", "p", "pp", "sec", "vol"];

/// What may follow `3 p.m.` in the same sentence, in spite of its capital.
const AFTER_A_TIME: &str = "\
monday tuesday wednesday thursday friday saturday sunday january february march april may june \
july august september october november december eastern central mountain pacific est edt cst cdt \
mst mdt pst pdt utc gmt cet cest";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Its words as they came: all pieces together are the answer, to the last blank.
    pub(crate) words: String,
    /// True for lines between two fences: nobody wants to hear them.
    pub(crate) code: bool,
}

/// Cuts an answer into sentences while it still comes. The first piece of a round may be less than a sentence, for the sake of
/// an early first sound.
#[derive(Debug, Default)]
pub(crate) struct Sentences {
    pending: String,
    /// A piece of this round was given: from now on, whole sentences.
    begun: bool,
    /// What was given last did not end its line.
    within_line: bool,
    code: bool,
}

impl Sentences {
    pub(crate) fn push(&mut self, words: &str) -> Vec<Piece> {
        self.pending.push_str(words);
        let pending = std::mem::take(&mut self.pending);
        let mut pieces = Vec::new();
        let mut rest = pending.as_str();
        while let Some(end) = self.end_of_piece(rest) {
            let (words, after) = rest.split_at(end);
            pieces.push(self.piece(words));
            rest = after;
        }
        self.pending = rest.to_owned();
        pieces
    }

    /// What is left, whole or not. The round is over: the next piece is a first one again.
    pub(crate) fn rest(&mut self) -> Option<Piece> {
        let rest = std::mem::take(&mut self.pending);
        let piece = (!rest.is_empty()).then(|| self.piece(&rest));
        self.begun = false;
        piece
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    fn end_of_piece(&self, text: &str) -> Option<usize> {
        match fence(text) {
            Fence::Unknown if !self.within_line => None,
            Fence::Yes if !self.within_line => end_of_line(text),
            _ if self.code => end_of_line(text),
            _ => end_of_sentence(text, !self.begun),
        }
    }

    fn piece(&mut self, words: &str) -> Piece {
        let is_fence = !self.within_line && fence(words) == Fence::Yes;
        let code = self.code || is_fence;
        self.code ^= is_fence;
        self.within_line = !words.ends_with('\n');
        self.begun |= !words.trim().is_empty();
        Piece {
            words: words.to_owned(),
            code,
        }
    }
}

#[derive(PartialEq)]
enum Fence {
    Yes,
    No,
    Unknown,
}

fn fence(line: &str) -> Fence {
    let start = &line[..line.floor_char_boundary(LONGEST)];
    let line = start.trim_start_matches([' ', '\t']);
    if line.is_empty() && start.len() >= LONGEST {
        return Fence::No;
    }
    for fence in ["```", "~~~"] {
        if line.starts_with(fence) {
            return Fence::Yes;
        }
        if fence.starts_with(line) {
            return Fence::Unknown;
        }
    }
    Fence::No
}

fn end_of_line(text: &str) -> Option<usize> {
    let start = &text[..text.floor_char_boundary(LONGEST)];
    match start.find('\n') {
        Some(newline) => Some(newline + 1),
        None => (start.len() < text.len()).then_some(start.len()),
    }
}

/// Where the first piece of a text ends, if that is known yet.
fn end_of_sentence(text: &str, first: bool) -> Option<usize> {
    // Where to cut what has no end: after a comma rather than after a word.
    let (mut comma, mut blank) = (None, None);
    let mut before = None;
    for (count, (at, letter)) in text.char_indices().enumerate() {
        if count >= LONGEST {
            return comma.or(blank).or(Some(at));
        }
        let after = at + letter.len_utf8();
        let next = text[after..].chars().next();
        let follows_mark = before.replace(letter).is_some_and(is_mark);
        match letter {
            '\n' | '。' | '！' | '？' => return Some(after),
            // Of several marks in a row, the first one stands for all.
            _ if is_mark(letter) && follows_mark => {}
            _ if is_mark(letter) => match ending(text, at, after) {
                Ending::At(end) => return Some(end),
                Ending::Unknown if text.len() - at < LONGEST => return None,
                Ending::Unknown | Ending::No => {}
            },
            ':' | ';' | ',' | '—' => {
                let next = next?;
                let is_clause = matches!(letter, ':' | ';') || count >= FIRST_CLAUSE;
                if next.is_whitespace() && first && is_clause {
                    return Some(after + next.len_utf8());
                }
                if next.is_whitespace() {
                    comma = Some(after + next.len_utf8());
                }
            }
            _ if letter.is_whitespace() => blank = Some(after),
            _ => {}
        }
    }
    None
}

fn is_mark(letter: char) -> bool {
    matches!(letter, '.' | '!' | '?' | '…')
}

enum Ending {
    /// The piece ends there, behind quotes and blanks.
    At(usize),
    No,
    Unknown,
}

/// Whether the mark at `at` ends its sentence.
fn ending(text: &str, at: usize, after: usize) -> Ending {
    let closers = |letter: char| ".!?…\"'”’»)]}*_".contains(letter);
    let text = &text[..text.floor_char_boundary(after + LONGEST)];
    let rest = text[after..].trim_start_matches(closers);
    let Some(next) = rest.chars().next() else {
        return Ending::Unknown;
    };
    if !next.is_whitespace() {
        return Ending::No;
    }
    let end = text.len() - rest.len() + next.len_utf8();
    let (before, mark) = (&text[..at], &text[at..]);
    if next == '\n' || mark.starts_with(['!', '?']) {
        return Ending::At(end);
    }
    let following = rest.trim_start();
    let Some(next) = following.chars().next() else {
        return Ending::Unknown;
    };
    if next.is_lowercase() || (mark.starts_with('.') && goes_on(before, next)) {
        return Ending::No;
    }
    if is_time(before) {
        let word_end = following.find(|letter: char| !letter.is_alphabetic());
        return match word_end {
            None => Ending::Unknown,
            Some(end_of_word) => {
                let word = following[..end_of_word].to_lowercase();
                if AFTER_A_TIME.split(' ').any(|known| known == word) {
                    Ending::No
                } else {
                    Ending::At(end)
                }
            }
        };
    }
    Ending::At(end)
}

/// True if the dot behind these words does not end their sentence.
fn goes_on(before: &str, next: char) -> bool {
    let line = before.rsplit('\n').next().unwrap_or_default();
    let word = line
        .rsplit(|letter: char| letter.is_whitespace() || "([{\"“‘*_".contains(letter))
        .next()
        .unwrap_or_default();
    let lower = word.to_lowercase();
    let is_marker =
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()) && line.trim() == word;
    let is_initials = word.split('.').all(|part| {
        let mut letters = part.chars();
        letters.next().is_some_and(char::is_uppercase) && letters.next().is_none()
    });
    is_marker
        || ABBREVIATIONS.contains(&lower.as_str())
        || (NUMBERED.contains(&lower.as_str()) && next.is_ascii_digit())
        || (is_initials && word != "I")
}

fn is_time(before: &str) -> bool {
    let lower = before
        .get(before.len().saturating_sub(3)..)
        .unwrap_or_default();
    lower.eq_ignore_ascii_case("p.m") || lower.eq_ignore_ascii_case("a.m")
}

#[cfg(test)]
mod tests;
