//! From words for the eye to words for the ear, in English.
//!
//! `markdown` takes the marks away, `numbers` says what stands around a number, `symbols` names or drops the rest.

mod markdown;
mod numbers;
mod symbols;
mod units;

/// What is longer is cut: nobody listens for that long. In bytes.
const LONGEST: usize = 16 << 10;

/// What of a text can be said, in words: no Markdown, no code, no addresses of links, no emoji, and numbers with the names of
/// their units. Empty if nothing is left.
pub(crate) fn speakable(text: &str) -> String {
    let text = &text[..text.floor_char_boundary(LONGEST)];
    let mut spoken = String::new();
    for line in markdown::lines(text) {
        let line = numbers::words(&markdown::inline(line));
        let line = symbols::words(&line);
        if !line.contains(char::is_alphanumeric) {
            continue;
        }
        // A line is a breath of its own.
        if spoken.ends_with(|last: char| !last.is_ascii_punctuation()) {
            spoken.push('.');
        }
        if !spoken.is_empty() {
            spoken.push(' ');
        }
        spoken.push_str(&line);
    }
    spoken
}

#[cfg(test)]
mod tests;
