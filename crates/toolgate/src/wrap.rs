//! Wraps text for a terminal, which would break words at its edge.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

// Without a terminal, terms up to this width are on one line with their meaning.
const MAX_TERM_LEN: usize = 32;

/// Breaks text into lines of at most `width` columns, between words if possible.
pub(crate) fn wrap_lines(text: &str, width: usize) -> Vec<String> {
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

/// Breaks long lines between words, and continues below their own beginning. Styles take no
/// columns. A word that is wider than the terminal stays whole, so that URLs can be copied.
pub(crate) fn wrap_text(text: &str, width: usize) -> String {
    wrap_hanging(text, 0, width)
}

pub(crate) fn wrap_hanging(text: &str, indent: usize, width: usize) -> String {
    let lines = text
        .split('\n')
        .map(|line| match display_width(line) <= width {
            true => line.to_owned(),
            false => wrap_line(line, indent, width),
        });
    lines.collect::<Vec<_>>().join("\n")
}

fn wrap_line(line: &str, indent: usize, width: usize) -> String {
    let words = line.trim_start_matches(' ');
    let own = line.len() - words.len();
    // On a narrow terminal the words need the space more.
    let indent = (own + indent).min(width / 2);
    let mut shown = " ".repeat(own);
    let mut used = own;
    let mut is_first = true;
    for word in words.split(' ') {
        let length = display_width(word);
        if is_first {
            used += length;
        } else if used + 1 + length <= width {
            shown.push(' ');
            used += 1 + length;
        } else if word.is_empty() {
            continue;
        } else {
            shown.truncate(shown.trim_end_matches(' ').len());
            shown.push('\n');
            shown.extend(std::iter::repeat_n(' ', indent));
            used = indent + length;
        }
        shown.push_str(word);
        is_first = false;
    }
    shown
}

/// Terms and meanings in two columns. The meaning moves below a term that is too long. Nothing is
/// broken without a width.
pub(crate) fn definition_list(
    rows: &[(String, String)],
    indent: usize,
    width: Option<usize>,
) -> String {
    let most = width.map_or(MAX_TERM_LEN, |width| width * 2 / 5);
    let terms = rows.iter().map(|(term, _)| display_width(term));
    let column = terms.filter(|term| *term <= most).max().unwrap_or(0);
    let margin = " ".repeat(indent);
    let behind = indent + column + 2;
    let mut lines = Vec::new();
    for (term, meaning) in rows {
        let meaning = match width {
            Some(width) => wrap_text(meaning, width.saturating_sub(behind).max(1)),
            None => meaning.clone(),
        };
        let mut meaning = meaning.split('\n');
        let first = match column.checked_sub(display_width(term)) {
            Some(gap) => " ".repeat(gap + 2) + meaning.next().unwrap_or_default(),
            None => String::new(),
        };
        lines.push(format!("{margin}{term}{first}").trim_end().to_owned());
        let rest = meaning.filter(|line| !line.trim().is_empty());
        lines.extend(rest.map(|line| format!("{:behind$}{line}", "")));
    }
    lines.join("\n")
}

pub(crate) fn pluralize(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

pub(crate) fn display_width(text: &str) -> usize {
    let plain = anstream::adapter::strip_str(text);
    plain.map(UnicodeWidthStr::width).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_wraps_between_words_if_possible() {
        for (text, width, expected) in [
            ("", 10, &[][..]),
            ("one two three", 7, &["one two", "three"]),
            ("one\n\ntwo", 10, &["one", "two"]),
            ("abcdefgh", 3, &["abc", "def", "gh"]),
            ("a abcdef", 3, &["a", "abc", "def"]),
            ("日本語", 4, &["日本", "語"]),
            ("日", 1, &["日"]),
        ] {
            assert_eq!(wrap_lines(text, width), expected, "{text:?}");
        }
    }

    #[test]
    fn long_lines_continue_below_their_beginning() {
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
            ("one  two   three", 8, "one  two\nthree"),
            ("one   two", 4, "one\ntwo"),
        ] {
            assert_eq!(wrap_text(text, width), expected, "{text:?}");
        }
    }

    #[test]
    fn text_after_a_label_continues_below_itself() {
        for (text, indent, width, expected) in [
            ("a:  one two three", 4, 11, "a:  one two\n    three"),
            ("  a: one two", 3, 8, "  a: one\n    two"),
            ("a: one", 3, 10, "a: one"),
            ("a: one two", 300, 8, "a: one\n    two"),
        ] {
            assert_eq!(wrap_hanging(text, indent, width), expected, "{text:?}");
        }
    }

    #[test]
    fn the_meaning_of_a_long_term_is_below_it() {
        let rows = [
            ("a", "one two three"),
            ("a_long_name", "four"),
            ("bcd", "five\nsix"),
        ]
        .map(|(term, meaning)| (term.to_owned(), meaning.to_owned()));
        let shown =
            "  a    one two\n       three\n  a_long_name\n       four\n  bcd  five\n       six";
        assert_eq!(definition_list(&rows, 2, Some(16)), shown);
        let whole =
            "a            one two three\na_long_name  four\nbcd          five\n             six";
        assert_eq!(definition_list(&rows, 0, None), whole);
        assert_eq!(definition_list(&[], 0, Some(80)), "");
    }
}
