//! Streams an answer to the terminal: complete blocks are printed, the rest is only drawn.

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};

use super::markdown::{OPTIONS, render_markdown};
use crate::output;
use crate::wrap::wrap_text;

// Longer blocks are printed in pieces.
const MAX_BLOCK_LEN: usize = 8 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum AnswerFormat {
    /// Text as it is, such as the answer to a matched sentence: `2*3*4` has no emphasis in it.
    #[default]
    Plain,
    Markdown,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct AnswerStyle {
    format: AnswerFormat,
    width: usize,
    colors: bool,
}

impl AnswerStyle {
    pub(super) fn new(format: AnswerFormat) -> Self {
        Self {
            format,
            // One column stays free, so that drawn and printed lines break at the same places.
            width: output::stdout_width()
                .unwrap_or(80)
                .saturating_sub(1)
                .max(1),
            colors: output::stdout_has_color(),
        }
    }

    pub(super) fn render(self, text: &str) -> String {
        match self.format {
            AnswerFormat::Plain => wrap_text(text.strip_suffix('\n').unwrap_or(text), self.width),
            AnswerFormat::Markdown => render_markdown(text, self.width, self.colors),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct AnswerStream {
    pending: String,
    has_begun: bool,
    /// The last printed block continues: another item of the same list follows, or more
    /// of the same code.
    continues: bool,
}

/// Where a text can be split without changing its meaning.
struct SplitPoint {
    end: usize,
    continues: bool,
    fence: Option<String>,
}

impl AnswerStream {
    pub(super) fn push(&mut self, text: &str, style: AnswerStyle) -> Option<String> {
        let text = match self.pending.is_empty() && !self.has_begun {
            // Leading white space doesn't begin the answer.
            true => text.trim_start_matches(['\n', ' ', '\t']),
            false => text,
        };
        self.pending.push_str(text);
        if !text.contains('\n') && self.pending.len() <= MAX_BLOCK_LEN {
            return None;
        }
        let cut = match style.format {
            AnswerFormat::Plain => split_plain(&self.pending),
            AnswerFormat::Markdown => split_markdown(&self.pending),
        };
        let cut = match cut.end {
            0 if self.pending.len() > MAX_BLOCK_LEN => force_split(&self.pending),
            _ => cut,
        };
        if cut.end == 0 {
            return None;
        }
        let rest = self.pending.split_off(cut.end);
        let done = std::mem::replace(&mut self.pending, cut.fence.unwrap_or_default() + &rest);
        self.print(&done, cut.continues, style)
    }

    pub(super) fn finish(&mut self, style: AnswerStyle) -> Option<String> {
        let rest = std::mem::take(&mut self.pending);
        let printed = self.print(rest.trim_end(), false, style);
        *self = Self::default();
        printed
    }

    pub(super) fn preview(&self, style: AnswerStyle) -> String {
        self.with_separator(style.render(self.pending.trim_end()), style)
    }

    pub(super) fn is_pending(&self) -> bool {
        !self.pending.trim().is_empty()
    }

    fn print(&mut self, text: &str, continues: bool, style: AnswerStyle) -> Option<String> {
        let shown = style.render(text);
        // A closing fence alone renders as nothing.
        let printed = (!shown.trim().is_empty()).then(|| self.with_separator(shown, style));
        self.has_begun |= printed.is_some();
        self.continues = continues;
        printed
    }

    fn with_separator(&self, shown: String, style: AnswerStyle) -> String {
        match style.format == AnswerFormat::Markdown && self.has_begun && !self.continues {
            true => format!("\n{shown}"),
            false => shown,
        }
    }
}

// Cuts after whole lines, but not after trailing empty ones, since nothing may follow them.
fn split_plain(text: &str) -> SplitPoint {
    SplitPoint {
        end: text.trim_end().rfind('\n').map_or(0, |at| at + 1),
        continues: true,
        fence: None,
    }
}

/// Cuts after a complete block: another one has begun, or an empty line follows. Lists are cut
/// between items and code between lines. A line that hasn't ended may still become anything.
fn split_markdown(text: &str) -> SplitPoint {
    let whole = text.rfind('\n').map_or(0, |at| at + 1);
    let text = text.get(..whole).unwrap_or_default();
    let (mut depth, mut start, mut last_item) = (0_usize, 0, None);
    let mut block = None;
    for (event, range) in Parser::new_ext(text, OPTIONS).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                if depth == 0 {
                    (start, last_item) = (range.start, None);
                    block = Some(tag);
                } else if depth == 1 && matches!(tag, Tag::Item) {
                    last_item = Some(range.start);
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            _ if depth == 0 => (start, block, last_item) = (range.start, None, None),
            _ => {}
        }
    }
    let has_ended = text
        .strip_suffix('\n')
        .is_some_and(|text| text.trim_end_matches(' ').ends_with('\n'));
    let split_at = |end| SplitPoint {
        end,
        continues: false,
        fence: None,
    };
    match (block, last_item) {
        (_, Some(item)) if item > start => SplitPoint {
            continues: true,
            ..split_at(item)
        },
        (Some(Tag::CodeBlock(CodeBlockKind::Fenced(_))), _) => split_code(text, start),
        (Some(Tag::Paragraph | Tag::Heading { .. } | Tag::Table(_) | Tag::BlockQuote(_)), _)
            if has_ended =>
        {
            split_at(whole)
        }
        _ => split_at(start),
    }
}

fn split_code(text: &str, start: usize) -> SplitPoint {
    let block = text.get(start..).unwrap_or_default();
    let mut lines = block.split_inclusive('\n');
    let opening = lines.next().unwrap_or_default();
    let mark: String = opening
        .trim_start()
        .chars()
        .take_while(|c| matches!(c, '`' | '~'))
        .collect();
    let closes = |line: &str| {
        let line = line.trim();
        line.starts_with(&mark) && line.chars().all(|c| mark.starts_with(c))
    };
    let is_closed = !mark.is_empty() && lines.any(closes);
    let has_lines = block.len() > opening.len();
    SplitPoint {
        end: if has_lines { text.len() } else { start },
        continues: has_lines && !is_closed,
        fence: (has_lines && !is_closed).then(|| opening.to_owned()),
    }
}

fn force_split(text: &str) -> SplitPoint {
    let near = text.floor_char_boundary(MAX_BLOCK_LEN);
    let before = text.get(..near).unwrap_or(text);
    SplitPoint {
        end: before.rfind(['\n', ' ']).map_or(near, |at| at + 1),
        continues: true,
        fence: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn narrow(format: AnswerFormat) -> AnswerStyle {
        AnswerStyle {
            format,
            width: 20,
            colors: false,
        }
    }

    /// What is printed after each piece, and at the end.
    fn printed(pieces: &[&str], format: AnswerFormat) -> Vec<String> {
        let style = narrow(format);
        let mut answer = AnswerStream::default();
        let mut printed: Vec<String> = pieces
            .iter()
            .filter_map(|piece| answer.push(piece, style))
            .collect();
        printed.extend(answer.finish(style));
        printed
    }

    #[test]
    fn blocks_are_printed_as_soon_as_they_are_complete() {
        for (pieces, expected) in [
            (&["one ", "two"][..], &["one two"][..]),
            (&["\n ", "one\n\n", "two"], &["one", "\ntwo"]),
            (&["# T\n", "text\n"], &["# T", "\ntext"]),
            (&["- a\n", "- b\n", "- c"], &["• a", "• b\n• c"]),
            (&["1. a\n", "2. b\n", "\nend"], &["1. a", "2. b\n\nend"]),
            (
                &["```sh\n", "ls\n", "cd", " /\n", "```\n", "end"],
                &["  ls", "  cd /", "\nend"],
            ),
            (&["```\n", "x\n", "```\n", "\nend\n"], &["  x", "\nend"]),
            (
                &["a\n\n```\n", "x\n\ny\n", "```", "\nend"],
                &["a", "\n  x\n\n  y", "\nend"],
            ),
        ] {
            assert_eq!(
                printed(pieces, AnswerFormat::Markdown),
                expected,
                "{pieces:?}"
            );
        }
    }

    #[test]
    fn a_table_waits_for_all_of_its_rows() {
        let pieces = ["| a | b |\n", "|---|---|\n", "| 1 | 2 |\n", "\n", "end"];
        let printed = printed(&pieces, AnswerFormat::Markdown);
        assert_eq!(printed.len(), 2, "{printed:?}");
        assert!(
            printed[0].contains('1') && printed[1] == "\nend",
            "{printed:?}"
        );
    }

    #[test]
    fn plain_words_stay_as_they_are() {
        for (pieces, expected) in [
            (&["2*3*4 is 24"][..], &["2*3*4 is 24"][..]),
            (
                &["one\n", "two\n\n", "three\n\n"],
                &["one", "two\n", "three"],
            ),
            (&["a line that is too long"], &["a line that is too\nlong"]),
        ] {
            assert_eq!(printed(pieces, AnswerFormat::Plain), expected, "{pieces:?}");
        }
    }

    #[test]
    fn any_split_prints_everything_once_in_order() {
        let text = "# Title\n\nSome *words* and `code`.\n\n1. one\n   - nested\n2. two\n\n```rust\nfn main() {}\n\n// end\n```\n\n> quoted\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nThe end.";
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let whole = words(&render_markdown(text, 20, false));
        for size in 1..=text.chars().count() {
            let characters: Vec<char> = text.chars().collect();
            let pieces: Vec<String> = characters
                .chunks(size)
                .map(|piece| piece.iter().collect())
                .collect();
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            let printed = printed(&pieces, AnswerFormat::Markdown).join("\n");
            assert_eq!(words(&printed), whole, "{size}");
        }
    }

    #[test]
    fn an_endless_block_is_printed_in_pieces() {
        let mut answer = AnswerStream::default();
        let mut count = 0;
        for _ in 0..10_000 {
            let piece = answer.push("word |", narrow(AnswerFormat::Markdown));
            count += usize::from(piece.is_some());
            assert!(answer.pending.len() <= MAX_BLOCK_LEN + 10);
        }
        assert!(count > 5, "{count}");
    }
}
