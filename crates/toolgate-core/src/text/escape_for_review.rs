//! [`escape_for_review`]: makes invisible and look-alike characters visible.

use super::is_invisible;

/// Escapes invisible and look-alike characters, for a person who must approve the text.
///
/// The result is one line, with such characters written as their code: `\u{200b}`.
pub fn escape_for_review(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_inclusive(|c: char| !c.is_alphanumeric()) {
        // Letters that look Latin only deceive next to real Latin ones.
        let has_latin = word.chars().any(|c| c.is_ascii_alphabetic());
        for c in word.chars() {
            match c {
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                c if is_invisible(c) || is_lookalike(c) || (has_latin && is_latin_lookalike(c)) => {
                    out.push_str(&format!("\\u{{{:x}}}", u32::from(c)));
                }
                c => out.push(c),
            }
        }
    }
    out
}

// Unusual spaces, separators that only look like slash, dot or colon, and styled letters.
fn is_lookalike(c: char) -> bool {
    matches!(c,
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' | '\u{2024}' | '\u{2044}'
        | '\u{2215}' | '\u{2236}' | '\u{29f8}' | '\u{a789}' | '\u{ff01}'..='\u{ff5e}' | '\u{1d400}'..='\u{1d7ff}')
}

// Scripts with letters that look Latin: Greek, Coptic, Cyrillic, Armenian, Cherokee, Lisu.
fn is_latin_lookalike(c: char) -> bool {
    matches!(c, '\u{370}'..='\u{58f}' | '\u{13a0}'..='\u{13ff}' | '\u{2c80}'..='\u{2cff}' | '\u{a4d0}'..='\u{a4ff}' | '\u{ab70}'..='\u{abbf}')
        && c.is_alphabetic()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_and_deceptive_characters_are_written_as_codes() {
        for (text, expected) in [
            ("a\u{200b}b", "a\\u{200b}b"),
            ("exe.\u{202e}fdp", "exe.\\u{202e}fdp"),
            ("two\nlines", "two\\nlines"),
            ("a\u{a0}b", "a\\u{a0}b"),
            ("etc\u{2215}passwd", "etc\\u{2215}passwd"),
            ("ｒｍ", "\\u{ff52}\\u{ff4d}"),
            ("\u{1d42b}m", "\\u{1d42b}m"),
            ("g\u{3bf}\u{3bf}gle", "g\\u{3bf}\\u{3bf}gle"),
            ("Ελλάδα Rhône 日本 😀 5 €", "Ελλάδα Rhône 日本 😀 5 €"),
        ] {
            assert_eq!(escape_for_review(text), expected);
        }
    }
}
