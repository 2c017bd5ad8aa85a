//! Splits text into words and normalizes them.

use std::collections::HashSet;

// Stop words: they say nothing about what the user wants. Sorted for the binary search.
const STOP_WORDS: [&str; 44] = [
    "a", "an", "and", "any", "are", "as", "at", "be", "by", "can", "could", "do", "does", "for",
    "from", "has", "have", "how", "i", "if", "in", "is", "it", "its", "me", "my", "of", "on", "or",
    "please", "that", "the", "there", "this", "to", "tool", "us", "was", "what", "which", "will",
    "with", "would", "you",
];

const MAX_WORD_LEN: usize = 40;

pub(super) struct NormalizedWords(Vec<String>);

impl NormalizedWords {
    /// Splits sentences and names: `camelCase`, `snake_case` and `HTTPServer` are two words each.
    pub(super) fn from_text(text: &str) -> Self {
        let mut words = Vec::new();
        for run in text.split(|c: char| !c.is_alphanumeric()) {
            split_names(run, &mut words);
        }
        Self(words)
    }

    pub(super) fn distinct(self) -> Vec<String> {
        let mut seen = HashSet::new();
        let mut words = self.0;
        words.retain(|word| seen.insert(word.clone()));
        words
    }
}

// Splits where the case changes, and at each character of scripts without spaces.
fn split_names(run: &str, words: &mut Vec<String>) {
    let mut word = String::new();
    let mut chars = run.chars().peekable();
    let mut last: Option<char> = None;
    while let Some(c) = chars.next() {
        let next_is_lower = chars.peek().is_some_and(|next| next.is_lowercase());
        let starts = match last {
            Some(last) if c.is_uppercase() => !last.is_uppercase() || next_is_lower,
            _ => false,
        };
        if starts || is_ideograph(c) || last.is_some_and(is_ideograph) {
            push(&mut word, words);
        }
        word.extend(c.to_lowercase());
        last = Some(c);
    }
    push(&mut word, words);
}

fn push(word: &mut String, words: &mut Vec<String>) {
    let word = std::mem::take(word);
    if !word.is_empty()
        && word.len() <= MAX_WORD_LEN
        && STOP_WORDS.binary_search(&word.as_str()).is_err()
    {
        words.push(stem(word));
    }
}

fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}')
}

// Strips English endings, so that `lights` matches `light`, and `turning` and `turned` match
// `turn`.
fn stem(mut word: String) -> String {
    if !word.is_ascii() {
        return word;
    }
    let mut cut = |ending: &str, least: usize, instead: &str| {
        let rest = word.strip_suffix(ending).filter(|rest| rest.len() >= least);
        match rest.map(str::len) {
            Some(length) => {
                word.truncate(length);
                word.push_str(instead);
                true
            }
            None => false,
        }
    };
    if !cut("ies", 2, "y") && !cut("sses", 1, "ss") && !cut("ss", 1, "ss") && !cut("us", 1, "us") {
        cut("s", 3, "");
    }
    if (cut("ing", 3, "") || cut("ed", 3, "")) && ends_in_doubled_letter(&word) {
        word.pop();
    }
    if word.len() > 3 && word.ends_with('e') {
        word.pop();
    }
    word
}

// True for `runn`, but not for `call`.
fn ends_in_doubled_letter(word: &str) -> bool {
    matches!(word.as_bytes(), [.., one, other] if one == other && !b"lsz".contains(one))
}
