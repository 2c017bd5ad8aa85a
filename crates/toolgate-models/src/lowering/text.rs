//! Helpers for text that is sent to a model: cutting it, and adding sentences.

pub(super) use toolgate_core::text::{is_visible, strip_invisible};

const CUT: &str = " […]";

/// Splits a text that is too long at the end of a word. Returns the beginning with a mark, and the
/// rest; `None` if the text fits.
pub(super) fn split(text: &str, most_chars: usize) -> Option<(String, &str)> {
    let fits = text.len() <= most_chars || text.chars().nth(most_chars).is_none();
    if fits {
        return None;
    }
    let room = most_chars.saturating_sub(CUT.chars().count());
    let end = text.char_indices().nth(room).map_or(0, |(at, _)| at);
    let word = text[..end].rfind(char::is_whitespace);
    // A run of a hundred bytes without a space isn't a word, so it's cut in the middle.
    let end = word.filter(|word| end - word < 100).unwrap_or(end);
    let (kept, rest) = text.split_at(end);
    Some((format!("{}{CUT}", kept.trim_end()), rest.trim_start()))
}

pub(super) fn cut(text: String, most_chars: usize) -> String {
    match split(&text, most_chars) {
        Some((kept, _)) => kept,
        None => text,
    }
}

/// Adds a sentence, after a period if the text doesn't end with punctuation.
pub(super) fn add(text: &mut String, sentence: &str) {
    if sentence.is_empty() {
        return;
    }
    let ends = text.trim_end().len();
    text.truncate(ends);
    if let Some(last) = text.chars().next_back() {
        let ended = matches!(last, '.' | '!' | '?' | ':' | ';' | ',' | ')' | '…' | '。');
        text.push_str(if ended { " " } else { ". " });
    }
    text.push_str(sentence);
}
