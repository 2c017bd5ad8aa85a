//! Turns written text into spoken English.
//!
//! `markdown` strips markup, `numbers` reads numbers with their units, `symbols` names
//! or drops the rest.

mod markdown;
mod numbers;
mod symbols;
mod units;

// In bytes. Nobody listens to more.
const MAX_TEXT_BYTES: usize = 16 << 10;

/// The speakable part of a text: no Markdown, code, link addresses or emoji, and numbers with the
/// names of their units. Empty if nothing is left.
pub(crate) fn speakable(text: &str) -> String {
    let text = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
    let mut spoken = String::new();
    for line in markdown::text_lines(text) {
        let line = numbers::speak_numbers(&markdown::strip_inline(line));
        let line = symbols::speak_symbols(&line);
        if !line.contains(char::is_alphanumeric) {
            continue;
        }
        // A full stop makes the engine pause between lines.
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
