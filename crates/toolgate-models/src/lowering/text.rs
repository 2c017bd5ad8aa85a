//! Text on its way to a model: nothing in it that a person would not see, and no more than the provider takes.

use std::borrow::Cow;

use toolgate_core::is_unseen;

/// Stands where something was cut.
const CUT: &str = " […]";

/// True if all of a text is visible: nothing hides from a person what the model reads.
pub(super) fn is_shown(text: &str) -> bool {
    is_plain(text) || !text.chars().any(is_hidden)
}

/// The visible part of a text.
pub(super) fn shown(text: &str) -> Cow<'_, str> {
    if is_shown(text) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().filter(|c| !is_hidden(*c)).collect())
}

fn is_plain(text: &str) -> bool {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t' | b'\r');
    // To the end whatever comes: many bytes are looked at in one step then.
    text.bytes().fold(true, |all, byte| all & is_plain(byte))
}

/// Line breaks are no secret. The variation selectors of plane 14 are: they carry bytes behind any character.
fn is_hidden(c: char) -> bool {
    !matches!(c, '\n' | '\t' | '\r') && (is_unseen(c) || matches!(c, '\u{e0100}'..='\u{e01ef}'))
}

/// Splits a text that is too long at the end of a word: what fits, with a mark, and what does not.
pub(super) fn split(text: &str, most_chars: usize) -> Option<(String, &str)> {
    let fits = text.len() <= most_chars || text.chars().nth(most_chars).is_none();
    if fits {
        return None;
    }
    let room = most_chars.saturating_sub(CUT.chars().count());
    let end = text.char_indices().nth(room).map_or(0, |(at, _)| at);
    let word = text[..end].rfind(char::is_whitespace);
    // A word of a hundred letters is none: it is cut in the middle.
    let end = word.filter(|word| end - word < 100).unwrap_or(end);
    let (kept, rest) = text.split_at(end);
    Some((format!("{}{CUT}", kept.trim_end()), rest.trim_start()))
}

/// The same without the rest.
pub(super) fn cut(text: String, most_chars: usize) -> String {
    match split(&text, most_chars) {
        Some((kept, _)) => kept,
        None => text,
    }
}

/// Adds a sentence to a text.
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
