//! Splits a streamed answer into pieces that can be spoken one after the other.

// Speaking starts sooner if the first clause doesn't wait for the end of its sentence.
const FIRST_CLAUSE: usize = 24;
const MAX_PIECE_BYTES: usize = 300;
/// A dot after these doesn't end a sentence.
const ABBREVIATIONS: &[&str] = &[
    "approx", "capt", "cf", "col", "dr", "e.g", "gen", "gov", "hon", "i.e", "lt", "mr", "mrs",
    "ms", "mt", "prof", "rev", "sen", "sgt", "st", "vs",
];

/// A dot after these and before a number doesn't end a sentence.
const NUMBERED: &[&str] = &["art", "ch", "fig", "no", "nos", "p", "pp", "sec", "vol"];
/// Capitalized words that may follow `3 p.m.` in the same sentence.
const AFTER_A_TIME: &str = "\
monday tuesday wednesday thursday friday saturday sunday january february march april may june \
july august september october november december eastern central mountain pacific est edt cst cdt \
mst mdt pst pdt utc gmt cet cest";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnswerPiece {
    /// The words unchanged. All pieces joined are the answer.
    pub(crate) words: String,
    /// True for lines between code fences, which are not spoken.
    pub(crate) code: bool,
}

/// Splits an answer into sentences while it is still arriving. The first piece of a round may be a
/// clause, so that sound starts early.
#[derive(Debug, Default)]
pub(crate) struct SentenceSplitter {
    pending: String,
    begun: bool,
    within_line: bool,
    code: bool,
}

impl SentenceSplitter {
    pub(crate) fn push(&mut self, words: &str) -> Vec<AnswerPiece> {
        self.pending.push_str(words);
        let pending = std::mem::take(&mut self.pending);
        let mut pieces = Vec::new();
        let mut rest = pending.as_str();
        while let Some(end) = self.find_end_of_piece(rest) {
            let (words, after) = rest.split_at(end);
            pieces.push(self.finish_piece(words));
            rest = after;
        }
        self.pending = rest.to_owned();
        pieces
    }

    pub(crate) fn finish_round(&mut self) -> Option<AnswerPiece> {
        let rest = std::mem::take(&mut self.pending);
        let piece = (!rest.is_empty()).then(|| self.finish_piece(&rest));
        self.begun = false;
        piece
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    fn find_end_of_piece(&self, text: &str) -> Option<usize> {
        match match_fence(text) {
            FenceMatch::Unknown if !self.within_line => None,
            FenceMatch::Yes if !self.within_line => find_end_of_line(text),
            _ if self.code => find_end_of_line(text),
            _ => find_end_of_sentence(text, !self.begun),
        }
    }

    fn finish_piece(&mut self, words: &str) -> AnswerPiece {
        let is_fence = !self.within_line && match_fence(words) == FenceMatch::Yes;
        let code = self.code || is_fence;
        self.code ^= is_fence;
        self.within_line = !words.ends_with('\n');
        self.begun |= !words.trim().is_empty();
        AnswerPiece {
            words: words.to_owned(),
            code,
        }
    }
}

#[derive(PartialEq)]
enum FenceMatch {
    Yes,
    No,
    Unknown,
}

fn match_fence(line: &str) -> FenceMatch {
    let start = &line[..line.floor_char_boundary(MAX_PIECE_BYTES)];
    let line = start.trim_start_matches([' ', '\t']);
    if line.is_empty() && start.len() >= MAX_PIECE_BYTES {
        return FenceMatch::No;
    }
    for fence in ["```", "~~~"] {
        if line.starts_with(fence) {
            return FenceMatch::Yes;
        }
        if fence.starts_with(line) {
            return FenceMatch::Unknown;
        }
    }
    FenceMatch::No
}

fn find_end_of_line(text: &str) -> Option<usize> {
    let start = &text[..text.floor_char_boundary(MAX_PIECE_BYTES)];
    match start.find('\n') {
        Some(newline) => Some(newline + 1),
        None => (start.len() < text.len()).then_some(start.len()),
    }
}

fn find_end_of_sentence(text: &str, first: bool) -> Option<usize> {
    // Where to cut a sentence that is too long: after a comma rather than after a word.
    let (mut comma, mut blank) = (None, None);
    let mut before = None;
    for (count, (at, letter)) in text.char_indices().enumerate() {
        if count >= MAX_PIECE_BYTES {
            return comma.or(blank).or(Some(at));
        }
        let after = at + letter.len_utf8();
        let next = text[after..].chars().next();
        let follows_mark = before.replace(letter).is_some_and(is_mark);
        match letter {
            '\n' | '。' | '！' | '？' => return Some(after),
            // Only the first of several marks in a row is examined.
            _ if is_mark(letter) && follows_mark => {}
            _ if is_mark(letter) => match find_sentence_end(text, at, after) {
                SentenceEnd::At(end) => return Some(end),
                SentenceEnd::Unknown if text.len() - at < MAX_PIECE_BYTES => return None,
                SentenceEnd::Unknown | SentenceEnd::No => {}
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

enum SentenceEnd {
    At(usize),
    No,
    Unknown,
}

fn find_sentence_end(text: &str, at: usize, after: usize) -> SentenceEnd {
    let closers = |letter: char| ".!?…\"'”’»)]}*_".contains(letter);
    let text = &text[..text.floor_char_boundary(after + MAX_PIECE_BYTES)];
    let rest = text[after..].trim_start_matches(closers);
    let Some(next) = rest.chars().next() else {
        return SentenceEnd::Unknown;
    };
    if !next.is_whitespace() {
        return SentenceEnd::No;
    }
    let end = text.len() - rest.len() + next.len_utf8();
    let (before, mark) = (&text[..at], &text[at..]);
    if next == '\n' || mark.starts_with(['!', '?']) {
        return SentenceEnd::At(end);
    }
    let following = rest.trim_start();
    let Some(next) = following.chars().next() else {
        return SentenceEnd::Unknown;
    };
    if next.is_lowercase() || (mark.starts_with('.') && is_abbreviation(before, next)) {
        return SentenceEnd::No;
    }
    if is_time(before) {
        let Some(end_of_word) = following.find(|letter: char| !letter.is_alphabetic()) else {
            return SentenceEnd::Unknown;
        };
        let word = following[..end_of_word].to_lowercase();
        if AFTER_A_TIME.split(' ').any(|known| known == word) {
            return SentenceEnd::No;
        }
    }
    SentenceEnd::At(end)
}

fn is_abbreviation(before: &str, next: char) -> bool {
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
    let end = before
        .get(before.len().saturating_sub(3)..)
        .unwrap_or_default();
    end.eq_ignore_ascii_case("p.m") || end.eq_ignore_ascii_case("a.m")
}

#[cfg(test)]
mod tests;
