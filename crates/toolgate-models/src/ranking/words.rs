//! The words of a text, in a form in which the same word looks the same.

use std::collections::HashSet;

/// Words that say nothing of what a person wants.
const EMPTY: [&str; 44] = [
    "a", "an", "and", "any", "are", "as", "at", "be", "by", "can", "could", "do", "does", "for",
    "from", "has", "have", "how", "i", "if", "in", "is", "it", "its", "me", "my", "of", "on", "or",
    "please", "that", "the", "there", "this", "to", "tool", "us", "was", "what", "which", "will",
    "with", "would", "you",
];

/// The longest word there is.
const LONGEST: usize = 40;

pub(super) struct Words(Vec<String>);

impl Words {
    /// Of a sentence or a name: `camelCase`, `snake_case` and `HTTPServer` are two words each.
    pub(super) fn of(text: &str) -> Self {
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

/// Takes a run of letters and digits apart where the case changes or a script without spaces begins.
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
    if !word.is_empty() && word.len() <= LONGEST && EMPTY.binary_search(&word.as_str()).is_err() {
        words.push(stem(word));
    }
}

fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}')
}

/// Without the endings that English gives a word: `lights` and `light`, `turning`, `turned` and `turn`.
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
    if (cut("ing", 3, "") || cut("ed", 3, "")) && ends_twice(&word) {
        word.pop();
    }
    if word.len() > 3 && word.ends_with('e') {
        word.pop();
    }
    word
}

/// `runn`, but not `call`.
fn ends_twice(word: &str) -> bool {
    matches!(word.as_bytes(), [.., one, other] if one == other && !b"lsz".contains(one))
}
