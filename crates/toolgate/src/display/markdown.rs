//! Markdown as a terminal shows it: a parser of others finds out what is meant, and here it becomes lines.

use anstyle::{AnsiColor, Style};
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use pulldown_cmark::{Alignment, Event, Options, Parser, Tag, TagEnd};

use crate::clean::clean;
use crate::wrap::{fitted, seen};

/// What a model may write beyond the standard.
pub(super) const OPTIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS);

/// Deeper lists and quotes move no further to the right.
const DEEPEST: usize = 6;
/// A larger table is shown as it was written.
const MOST_CELLS: usize = 2000;
/// A column needs this much, with the space around it.
const NARROWEST_COLUMN: usize = 5;

/// A line below the heads of columns, and nothing else.
const TABLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// A text in lines of at most so many columns; code and addresses stay whole. Without colours, what they would show is shown by
/// the marks of the source.
pub(super) fn rendered(text: &str, width: usize, colours: bool) -> String {
    let mut renderer = Renderer {
        width,
        colours,
        lines: Vec::new(),
        inline: String::new(),
        styles: Vec::new(),
        containers: Vec::new(),
        lists: Vec::new(),
        links: Vec::new(),
        code: None,
        table: None,
    };
    for event in Parser::new_ext(text, OPTIONS) {
        renderer.take(event);
    }
    renderer.flush();
    renderer.lines.join("\n")
}

struct Renderer {
    width: usize,
    colours: bool,
    lines: Vec<String>,
    /// The words of the block that has begun.
    inline: String,
    styles: Vec<Style>,
    containers: Vec<Container>,
    /// The number of the next item of each open list; `None` for bullets.
    lists: Vec<Option<u64>>,
    /// Where the text of each open link began, and where it leads.
    links: Vec<(usize, String)>,
    code: Option<String>,
    table: Option<TableRows>,
}

/// A quote or an item of a list: what stands before its lines.
struct Container {
    /// Before its first line, until that has come.
    mark: Option<String>,
    margin: String,
}

#[derive(Default)]
struct TableRows {
    alignments: Vec<Alignment>,
    cells: Vec<Vec<String>>,
}

impl Renderer {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(code) => self.inline_code(&code),
            Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::SoftBreak | Event::HardBreak => self.text("\n"),
            Event::TaskListMarker(done) => self.text(if done { "[x] " } else { "[ ] " }),
            Event::Rule => {
                self.begin_block();
                self.emit(&"─".repeat(self.room().min(40)));
            }
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin_block(),
            Tag::Heading { level, .. } => {
                self.begin_block();
                if !self.colours {
                    self.inline = format!("{} ", "#".repeat(level as usize));
                }
                self.push_style(Style::bold);
            }
            Tag::BlockQuote(_) => {
                self.begin_block();
                self.enter(None, "│ ".to_owned());
            }
            Tag::CodeBlock(_) => {
                self.begin_block();
                self.code = Some(String::new());
            }
            Tag::List(first) => {
                self.begin_block();
                self.lists.push(first);
            }
            Tag::Item => {
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let mark = format!("{number}. ");
                        *number = number.saturating_add(1);
                        mark
                    }
                    _ => "• ".to_owned(),
                };
                let margin = " ".repeat(seen(&mark));
                self.enter(Some(mark), margin);
            }
            Tag::Table(alignments) => {
                self.begin_block();
                self.table = Some(TableRows {
                    alignments,
                    cells: Vec::new(),
                });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(rows) = &mut self.table {
                    rows.cells.push(Vec::new());
                }
            }
            Tag::Emphasis => self.push_style(Style::italic),
            Tag::Strong => self.push_style(Style::bold),
            Tag::Strikethrough => self.push_style(Style::strikethrough),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push((self.inline.len(), clean(&dest_url)));
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.flush(),
            TagEnd::Heading(_) => {
                self.pop_style();
                self.flush();
            }
            TagEnd::BlockQuote(_) => self.leave(),
            TagEnd::Item => {
                self.flush();
                // An item without words is still one.
                if self
                    .containers
                    .last()
                    .is_some_and(|item| item.mark.is_some())
                {
                    self.emit("");
                }
                self.leave();
            }
            TagEnd::List(_) => drop(self.lists.pop()),
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::Table => self.end_table(),
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline);
                if let Some(row) = self.table.as_mut().and_then(|rows| rows.cells.last_mut()) {
                    row.push(cell.trim().replace('\n', " "));
                }
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => self.pop_style(),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => {}
        }
    }

    /// What a model writes; an entity such as `&#27;` becomes a character only here.
    fn text(&mut self, text: &str) {
        let text = clean(text).replace('\t', "    ");
        match &mut self.code {
            Some(code) => code.push_str(&text),
            None => self.inline.push_str(&text),
        }
    }

    fn inline_code(&mut self, code: &str) {
        match self.colours && self.table.is_none() {
            true => {
                self.push_style(|style| style.fg_color(Some(AnsiColor::Cyan.into())));
                self.text(code);
                self.pop_style();
            }
            false => self.text(&format!("`{code}`")),
        }
    }

    fn end_link(&mut self) {
        let Some((start, url)) = self.links.pop() else {
            return;
        };
        let text = self.inline.get(start..).unwrap_or_default();
        let is_shown = url.is_empty() || url == text || url == format!("mailto:{text}");
        if !is_shown {
            self.inline.push_str(" (");
            self.push_style(Style::dimmed);
            self.inline.push_str(&url);
            self.pop_style();
            self.inline.push(')');
        }
    }

    fn push_style(&mut self, add: impl FnOnce(Style) -> Style) {
        let style = add(self.styles.last().copied().unwrap_or_default());
        self.styles.push(style);
        if self.is_styled() {
            self.inline.push_str(&style.render().to_string());
        }
    }

    fn pop_style(&mut self) {
        self.styles.pop();
        if self.is_styled() {
            let outer = self.styles.last().copied().unwrap_or_default();
            let (reset, outer) = (anstyle::Reset.render(), outer.render());
            self.inline.push_str(&format!("{reset}{outer}"));
        }
    }

    /// Cells are measured without styles.
    fn is_styled(&self) -> bool {
        self.colours && self.table.is_none()
    }

    fn enter(&mut self, mark: Option<String>, margin: String) {
        self.containers.push(Container { mark, margin });
    }

    fn leave(&mut self) {
        self.flush();
        self.containers.pop();
    }

    /// Ends the words before, and sets the next block apart from them.
    fn begin_block(&mut self) {
        self.flush();
        if self.containers.is_empty() && self.lists.is_empty() && !self.lines.is_empty() {
            self.lines.push(String::new());
        }
    }

    fn flush(&mut self) {
        let text = std::mem::take(&mut self.inline);
        if !text.trim().is_empty() {
            let text = fitted(text.trim_matches([' ', '\n']), self.room());
            text.split('\n').for_each(|line| self.emit(line));
        }
    }

    /// How wide a line may be behind what stands before it.
    fn room(&self) -> usize {
        let containers = self.containers.iter().take(DEEPEST);
        let used: usize = containers.map(|container| seen(&container.margin)).sum();
        self.width.saturating_sub(used).max(NARROWEST_COLUMN)
    }

    fn emit(&mut self, line: &str) {
        let mut whole = String::new();
        for container in self.containers.iter_mut().take(DEEPEST) {
            let mark = container.mark.take();
            whole.push_str(mark.as_ref().unwrap_or(&container.margin));
        }
        for deeper in self.containers.iter_mut().skip(DEEPEST) {
            deeper.mark = None;
        }
        whole.push_str(line);
        self.lines.push(whole.trim_end().to_owned());
    }

    fn end_code(&mut self) {
        let code = self.code.take().unwrap_or_default();
        let style = match self.colours {
            true => Style::new().fg_color(Some(AnsiColor::Cyan.into())),
            false => Style::new(),
        };
        for line in code.lines() {
            self.emit(&format!("  {style}{line}{style:#}"));
        }
    }

    fn end_table(&mut self) {
        let rows = self.table.take().unwrap_or_default();
        let columns = rows.alignments.len();
        let cells: usize = rows.cells.iter().map(Vec::len).sum();
        let is_shown = columns * NARROWEST_COLUMN <= self.room() && cells <= MOST_CELLS;
        let text = match is_shown {
            true => drawn(&rows, self.room(), self.colours),
            false => {
                let lines = rows.cells.iter().map(|row| row.join(" | "));
                fitted(&lines.collect::<Vec<_>>().join("\n"), self.room())
            }
        };
        text.split('\n').for_each(|line| self.emit(line));
    }
}

fn drawn(rows: &TableRows, width: usize, colours: bool) -> String {
    let mut table = Table::new();
    table
        .load_style(TABLE)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(u16::try_from(width).unwrap_or(u16::MAX));
    let mut cells = rows.cells.iter();
    if let Some(head) = cells.next() {
        table.set_header(head);
    }
    table.add_rows(cells);
    for (column, alignment) in table.column_iter_mut().zip(&rows.alignments) {
        column.set_cell_alignment(match alignment {
            Alignment::Right => CellAlignment::Right,
            Alignment::Center => CellAlignment::Center,
            Alignment::Left | Alignment::None => CellAlignment::Left,
        });
    }
    let text = table.trim_fmt();
    match colours {
        true => with_bold_head(&text),
        false => text,
    }
}

/// The titles stand above the line. Their style can't be part of the cells: it has no width.
fn with_bold_head(table: &str) -> String {
    let bold = Style::new().bold();
    let mut is_head = true;
    let lines = table.lines().map(|line| {
        is_head &= !line.starts_with('─');
        match is_head {
            true => format!("{bold}{line}{bold:#}"),
            false => line.to_owned(),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str, width: usize) -> String {
        rendered(text, width, false)
    }

    #[test]
    fn blocks_become_lines() {
        for (text, expected) in [
            ("one two three", "one two\nthree"),
            ("one\ntwo", "one\ntwo"),
            ("one\n\ntwo", "one\n\ntwo"),
            ("# Title\ntext", "# Title\n\ntext"),
            ("- a\n- b b b b b\n  - c", "• a\n• b b b b\n  b\n  • c"),
            ("3. c\n4. d", "3. c\n4. d"),
            ("- a\n\n- b", "• a\n• b"),
            ("-\n- b", "•\n• b"),
            ("> a\n> b", "│ a\n│ b"),
            (
                "```rust\nlet a = \"long line\";\n```",
                "  let a = \"long line\";",
            ),
            ("a\n***\nb", "a\n\n──────────\n\nb"),
            ("- [x] a\n- [ ] b", "• [x] a\n• [ ] b"),
            ("<b>x</b>", "<b>x</b>"),
            ("", ""),
        ] {
            assert_eq!(plain(text, 10), expected, "{text:?}");
        }
    }

    #[test]
    fn words_are_styled_and_without_colours_keep_what_tells_them_apart() {
        for (text, coloured, bare) in [
            ("a **b** c", "a \u{1b}[1mb\u{1b}[0m c", "a b c"),
            (
                "*a **b***",
                "\u{1b}[3ma \u{1b}[1m\u{1b}[3mb\u{1b}[0m\u{1b}[3m\u{1b}[0m",
                "a b",
            ),
            ("`x`", "\u{1b}[36mx\u{1b}[0m", "`x`"),
            ("# T", "\u{1b}[1mT\u{1b}[0m", "# T"),
            (
                "[a](http://h/)",
                "a (\u{1b}[2mhttp://h/\u{1b}[0m)",
                "a (http://h/)",
            ),
            ("<http://h/>", "http://h/", "http://h/"),
            ("2 * 3 * 4", "2 * 3 * 4", "2 * 3 * 4"),
        ] {
            assert_eq!(rendered(text, 80, true), coloured, "{text}");
            assert_eq!(plain(text, 80), bare, "{text}");
        }
    }

    #[test]
    fn a_table_fits_and_one_that_can_not_is_shown_as_it_was_written() {
        let table = "| Room | °C |\n|---|---:|\n| Bedroom | 19.4 |\n| Living Room | 21 |";
        let shown = plain(table, 24);
        assert!(shown.lines().all(|line| seen(line) <= 24), "{shown}");
        assert!(
            shown.contains("Living Room") && shown.contains("  21"),
            "{shown}"
        );
        let wide = format!(
            "|{}\n|{}\n|{}",
            "a|".repeat(40),
            "-|".repeat(40),
            "b|".repeat(40)
        );
        assert!(
            plain(&wide, 80).starts_with("a | a | a"),
            "{}",
            plain(&wide, 80)
        );
    }

    #[test]
    fn nothing_in_it_drives_the_terminal() {
        let hostile = "&#27;]0;title&#7;x &#x9b;2J &#x202e;y [a](http://h/&#27;[2J) `\u{1b}[31m`\n\n```\n\u{1b}[2J\n```\n\n|a&#27;[1m|\n|-|\n|b|";
        for colours in [true, false] {
            let shown = rendered(hostile, 80, colours);
            let left = anstream::adapter::strip_str(&shown).to_string();
            assert!(
                !left.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}']),
                "{left:?}"
            );
            assert!(
                !shown.contains("\u{1b}[2J") && !shown.contains("\u{1b}]"),
                "{shown:?}"
            );
        }
    }

    #[test]
    fn depth_and_width_have_bounds() {
        for text in [
            "> ".repeat(3000),
            "> ".repeat(3000) + "x",
            format!("{}x", "- ".repeat(2000)),
            "*".repeat(4000),
            "[".repeat(4000),
            "`".repeat(4001),
            "|a".repeat(2000) + "\n" + &"|-".repeat(2000),
        ] {
            let shown = plain(&text, 20);
            let widest = shown.lines().map(seen).max().unwrap_or(0);
            assert!(widest <= 8000, "{widest}");
        }
        assert_eq!(
            plain(&format!("{}x", "> ".repeat(100)), 20),
            "│ │ │ │ │ │ x"
        );
    }
}
