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
mod tests;
