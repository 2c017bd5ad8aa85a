//! Text that fits a terminal: a terminal itself breaks words at its edge.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Text in lines of at most so many columns, broken between words where that can be.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines().filter(|line| !line.trim().is_empty()) {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            let gap = usize::from(!line.is_empty());
            if line.width() + gap + word.width() <= width {
                line.extend(std::iter::repeat_n(' ', gap));
                line.push_str(word);
                continue;
            }
            if !line.is_empty() {
                lines.push(std::mem::take(&mut line));
            }
            for c in word.chars() {
                if line.width() + c.width().unwrap_or(0) > width && !line.is_empty() {
                    lines.push(std::mem::take(&mut line));
                }
                line.push(c);
            }
        }
        lines.push(line);
    }
    lines
}

/// Lines for a terminal of this width: those that are too long are broken between words, and go on below their own beginning.
/// Colours take no room.
pub(super) fn fitted(text: &str, width: usize) -> String {
    let lines = text.split('\n').map(|line| match seen(line) <= width {
        true => line.to_owned(),
        false => broken(line, width),
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn broken(line: &str, width: usize) -> String {
    let words = line.trim_start_matches(' ');
    let indent = &line[..line.len() - words.len()];
    let mut shown = String::new();
    let mut used = 0;
    for word in words.split(' ') {
        let length = seen(word);
        if shown.is_empty() {
            shown = format!("{indent}{word}");
            used = indent.len() + length;
        } else if used + 1 + length <= width {
            shown = format!("{shown} {word}");
            used += 1 + length;
        } else {
            shown = format!("{shown}\n{indent}{word}");
            used = indent.len() + length;
        }
    }
    shown
}

/// How many columns it takes.
fn seen(text: &str) -> usize {
    let plain = anstream::adapter::strip_str(text);
    plain.map(UnicodeWidthStr::width).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_between_words_where_that_can_be() {
        for (text, width, expected) in [
            ("", 10, &[][..]),
            ("one two three", 7, &["one two", "three"]),
            ("one\n\ntwo", 10, &["one", "two"]),
            ("abcdefgh", 3, &["abc", "def", "gh"]),
            ("a abcdef", 3, &["a", "abc", "def"]),
            ("日本語", 4, &["日本", "語"]),
            ("日", 1, &["日"]),
        ] {
            assert_eq!(wrapped(text, width), expected, "{text:?}");
        }
    }

    #[test]
    fn lines_that_are_too_long_go_on_below_their_beginning() {
        for (text, width, expected) in [
            ("one two", 7, "one two"),
            ("one two three\n\nfour", 7, "one two\nthree\n\nfour"),
            ("  one two three", 9, "  one two\n  three"),
            ("abcdefgh", 3, "abcdefgh"),
            ("\u{1b}[2mone two\u{1b}[0m", 7, "\u{1b}[2mone two\u{1b}[0m"),
            (
                "\u{1b}[2mone\u{1b}[0m two three",
                7,
                "\u{1b}[2mone\u{1b}[0m two\nthree",
            ),
            ("日本 語", 5, "日本\n語"),
        ] {
            assert_eq!(fitted(text, width), expected, "{text:?}");
        }
    }
}
