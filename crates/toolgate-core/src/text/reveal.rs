//! Text for a person who has to decide on it: what is invisible or looks like something else is
//! written as its code.

use crate::is_invisible;

/// Returns the text on one line with nothing hidden: invisible characters, and those that look like
/// others, are written as their code.
pub fn reveal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_inclusive(|c: char| !c.is_alphanumeric()) {
        // Only in mixed words: in a word of a single script, letters are what they look like to
        // people who read that script.
        let is_mixed = word.chars().any(|c| c.is_ascii_alphabetic());
        for c in word.chars() {
            match c {
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                c if is_invisible(c) || is_lookalike(c) || (is_mixed && has_latin_twins(c)) => {
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
fn has_latin_twins(c: char) -> bool {
    matches!(c, '\u{370}'..='\u{58f}' | '\u{13a0}'..='\u{13ff}' | '\u{2c80}'..='\u{2cff}' | '\u{a4d0}'..='\u{a4ff}' | '\u{ab70}'..='\u{abbf}')
        && c.is_alphabetic()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_is_written_out_and_plain_text_of_any_script_is_not() {
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
            assert_eq!(reveal(text), expected);
        }
    }
}
