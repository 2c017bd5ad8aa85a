//! [`PageText`]: extracts the title and the text of a file. Also formats snippets of the text.

use std::path::Path;

// These mark hits in the text that the index returns. A file can't contain them, because control
// characters are removed from its text.
pub(super) const HIT_START: char = '\u{1}';
pub(super) const HIT_END: char = '\u{2}';

// The index limits snippets by words, but a single "word" can be as long as the file.
const SNIPPET_CHARS: usize = 400;
const SNIPPET_LEAD: usize = 100;
const TITLE_CHARS: usize = 200;
// A heading further down is the title of a chapter, not of the document.
const TITLE_WITHIN_LINES: usize = 200;

#[derive(Debug, PartialEq)]
pub(super) struct PageText {
    pub(super) title: String,
    pub(super) body: String,
}

impl PageText {
    /// Returns `None` for a binary file. Invalid UTF-8 becomes U+FFFD.
    pub(super) fn new(path: &Path, bytes: &[u8]) -> Option<Self> {
        if bytes.contains(&0) {
            return None;
        }
        let text = String::from_utf8_lossy(bytes);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let title =
            heading(text).map_or_else(|| file_name(path), |heading| one_line(heading, TITLE_CHARS));
        let body = text
            .chars()
            .map(|c| if is_layout(c) { c } else { clean(c) })
            .collect();
        Some(Self { title, body })
    }
}

/// A path as text for people: lossy, and without control characters.
pub(super) fn display(path: &Path) -> String {
    path.to_string_lossy().chars().map(clean).collect()
}

/// Formats a snippet: one line, bounded, with hits in bold Markdown.
pub(super) fn snippet(marked: &str) -> String {
    let text: Vec<char> = single_spaced(marked).chars().collect();
    let first_hit = text.iter().position(|&c| c == HIT_START).unwrap_or(0);
    let from = if text.len() <= SNIPPET_CHARS {
        0
    } else {
        first_hit.saturating_sub(SNIPPET_LEAD)
    };
    let to = text.len().min(from + SNIPPET_CHARS);

    let mut short = String::with_capacity(to - from);
    let mut in_hit = false;
    if from > 0 {
        short.push('…');
    }
    for &c in &text[from..to] {
        if c == HIT_START || c == HIT_END {
            in_hit = c == HIT_START;
            short.push_str("**");
        } else {
            short.push(c);
        }
    }
    if in_hit {
        short.push_str("**");
    }
    if to < text.len() {
        short.push('…');
    }
    short
}

// Markdown `# Title`, or a line underlined with `=`. Front matter and code blocks
// may contain similar lines.
fn heading(text: &str) -> Option<&str> {
    let mut lines = text.lines().take(TITLE_WITHIN_LINES).peekable();
    if lines.peek().is_some_and(|line| line.trim_end() == "---") {
        lines
            .by_ref()
            .skip(1)
            .find(|line| line.trim_end() == "---")?;
    }
    let mut in_code = false;
    while let Some(line) = lines.next() {
        let line = line.trim();
        if line.starts_with("```") || line.starts_with("~~~") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        let underlined = lines.peek().is_some_and(|next| is_underline(next));
        if let Some(title) = hash_heading(line)
            .or_else(|| underlined.then_some(line))
            .filter(|title| has_word(title))
        {
            return Some(title);
        }
    }
    None
}

fn hash_heading(line: &str) -> Option<&str> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    let is_heading = (1..=6).contains(&level) && title.starts_with([' ', '\t']);
    is_heading.then(|| title.trim().trim_end_matches('#').trim_end())
}

fn is_underline(line: &str) -> bool {
    let line = line.trim_end();
    line.len() >= 3 && line.bytes().all(|byte| byte == b'=')
}

fn has_word(text: &str) -> bool {
    text.contains(char::is_alphanumeric)
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    one_line(&name.to_string_lossy(), TITLE_CHARS)
}

fn one_line(text: &str, chars: usize) -> String {
    let cleaned: String = text.chars().map(clean).take(chars).collect();
    single_spaced(&cleaned)
}

fn single_spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_layout(c: char) -> bool {
    matches!(c, '\n' | '\t')
}

// Control characters can move a terminal's cursor; bidirectional overrides make a text
// read as something else.
fn clean(c: char) -> char {
    let overrides_direction = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if c.is_control() || overrides_direction {
        ' '
    } else {
        c
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_title_is_the_first_heading_else_the_file_name() {
        for (text, expected) in [
            ("# Heat pump\nText", "Heat pump"),
            ("\u{feff}# Heat pump", "Heat pump"),
            ("intro\n\n###  Deep  dive ###\n# Later", "Deep dive"),
            ("Heat pump\n=========\n", "Heat pump"),
            ("---\n# comment: 1\n---\n# Real", "Real"),
            ("```sh\n# a comment\n```\n# Real", "Real"),
            ("# \n# Real", "Real"),
            ("# with \u{1b}[31mcolour", "with [31mcolour"),
            ("#hashtag\n#######  seven", "manual.md"),
            ("---\nnever closed\n# No", "manual.md"),
            ("===\n===", "manual.md"),
            ("", "manual.md"),
        ] {
            let page = PageText::new(Path::new("/docs/manual.md"), text.as_bytes()).unwrap();
            assert_eq!(page.title, expected, "{text:?}");
        }
    }

    #[test]
    fn long_titles_are_truncated() {
        let page = PageText::new(
            Path::new("a.md"),
            format!("# {}", "x".repeat(10_000)).as_bytes(),
        )
        .unwrap();
        assert_eq!(page.title.len(), TITLE_CHARS);
    }

    #[test]
    fn a_body_has_no_control_characters_and_a_binary_file_no_page() {
        for (bytes, expected) in [
            (&b"a\tb\nc"[..], Some("a\tb\nc")),
            (b"a\x1b[31mb\x07", Some("a [31mb ")),
            (b"a\x01b\x02", Some("a b ")),
            ("a\u{202e}b".as_bytes(), Some("a b")),
            (b"gr\xfc\xdfe", Some("gr\u{fffd}\u{fffd}e")),
            (b"text\0text", None),
        ] {
            let page = PageText::new(Path::new("a.txt"), bytes);
            assert_eq!(page.as_ref().map(|page| page.body.as_str()), expected);
        }
    }

    #[test]
    fn a_snippet_is_one_line_with_the_hits_in_bold() {
        for (marked, expected) in [
            ("the \u{1}heat\u{2} \n\t pump", "the **heat** pump"),
            ("no hit", "no hit"),
            ("", ""),
        ] {
            assert_eq!(snippet(marked), expected);
        }
    }

    #[test]
    fn a_long_snippet_is_cut_around_its_first_hit() {
        let before = "b".repeat(SNIPPET_CHARS);
        let endless_hit = snippet(&format!("{before}\u{1}{}", "x".repeat(1_000_000)));
        assert!(
            endless_hit.starts_with("…b")
                && endless_hit.contains("b**x")
                && endless_hit.ends_with("x**…"),
            "{endless_hit}"
        );
        let late_hit = snippet(&format!("{before} \u{1}hit\u{2} after"));
        assert!(late_hit.ends_with("b **hit** after"), "{late_hit}");
        for cut in [endless_hit, late_hit] {
            assert!(cut.chars().count() <= SNIPPET_CHARS + 6);
        }
    }
}
