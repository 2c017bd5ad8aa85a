//! Renders Markdown for a terminal, from the events of `pulldown_cmark`.

use anstyle::{AnsiColor, Style};
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use pulldown_cmark::{Alignment, Event, Options, Parser, Tag, TagEnd};

use crate::clean::clean;
use crate::wrap::{display_width, wrap_text};

// Extensions of CommonMark that models use.
pub(super) const OPTIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS);

// Deeper lists and quotes aren't indented further.
const MAX_DEPTH: usize = 6;
// A larger table is shown as it was written.
const MAX_CELLS: usize = 2000;
// Including its padding.
const NARROWEST_COLUMN: usize = 5;

// Only a line below the header.
const TABLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Renders text in lines of at most `width` columns. Code and URLs stay whole. Without colors,
/// keeps the Markdown marks for emphasis and headings.
pub(super) fn render_markdown(text: &str, width: usize, colors: bool) -> String {
    let mut renderer = MarkdownRenderer {
        width,
        colors,
        ..Default::default()
    };
    for event in Parser::new_ext(text, OPTIONS) {
        renderer.handle_event(event);
    }
    renderer.flush();
    renderer.lines.join("\n")
}

#[derive(Default)]
struct MarkdownRenderer {
    width: usize,
    colors: bool,
    lines: Vec<String>,
    inline: String,
    styles: Vec<Style>,
    containers: Vec<MarkdownContainer>,
    /// The number of the next item of each open list; `None` for bullets.
    lists: Vec<Option<u64>>,
    links: Vec<(usize, String)>,
    code: Option<String>,
    table: Option<TableRows>,
}

struct MarkdownContainer {
    mark: Option<String>,
    margin: String,
}

#[derive(Default)]
struct TableRows {
    alignments: Vec<Alignment>,
    cells: Vec<Vec<String>>,
}

impl MarkdownRenderer {
    fn handle_event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.push_text(&text),
            Event::Code(code) => self.push_inline_code(&code),
            Event::Html(text) | Event::InlineHtml(text) => self.push_text(&text),
            Event::SoftBreak | Event::HardBreak => self.push_text("\n"),
            Event::TaskListMarker(done) => self.push_text(if done { "[x] " } else { "[ ] " }),
            Event::Rule => {
                self.begin_block();
                self.emit(&"─".repeat(self.available_width().min(40)));
            }
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin_block(),
            Tag::Heading { level, .. } => {
                self.begin_block();
                if !self.colors {
                    self.inline = format!("{} ", "#".repeat(level as usize));
                }
                self.push_style(Style::bold);
            }
            Tag::BlockQuote(_) => {
                self.begin_block();
                self.enter_container(None, "│ ".to_owned());
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
                let margin = " ".repeat(display_width(&mark));
                self.enter_container(Some(mark), margin);
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
            TagEnd::BlockQuote(_) => self.leave_container(),
            TagEnd::Item => {
                self.flush();
                // An empty item still has its bullet.
                if self
                    .containers
                    .last()
                    .is_some_and(|item| item.mark.is_some())
                {
                    self.emit("");
                }
                self.leave_container();
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

    // Cleaned only here, because the parser has turned entities such as `&#27;` into characters.
    fn push_text(&mut self, text: &str) {
        let text = clean(text).replace('\t', "    ");
        match &mut self.code {
            Some(code) => code.push_str(&text),
            None => self.inline.push_str(&text),
        }
    }

    fn push_inline_code(&mut self, code: &str) {
        match self.colors && self.table.is_none() {
            true => {
                self.push_style(|style| style.fg_color(Some(AnsiColor::Cyan.into())));
                self.push_text(code);
                self.pop_style();
            }
            false => self.push_text(&format!("`{code}`")),
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

    // Cells are measured with everything in them, so a style would spoil the layout.
    fn is_styled(&self) -> bool {
        self.colors && self.table.is_none()
    }

    fn enter_container(&mut self, mark: Option<String>, margin: String) {
        self.containers.push(MarkdownContainer { mark, margin });
    }

    fn leave_container(&mut self) {
        self.flush();
        self.containers.pop();
    }

    fn begin_block(&mut self) {
        self.flush();
        if self.containers.is_empty() && self.lists.is_empty() && !self.lines.is_empty() {
            self.lines.push(String::new());
        }
    }

    fn flush(&mut self) {
        let text = std::mem::take(&mut self.inline);
        if !text.trim().is_empty() {
            let text = wrap_text(text.trim_matches([' ', '\n']), self.available_width());
            text.split('\n').for_each(|line| self.emit(line));
        }
    }

    fn available_width(&self) -> usize {
        let containers = self.containers.iter().take(MAX_DEPTH);
        let used: usize = containers
            .map(|container| display_width(&container.margin))
            .sum();
        self.width.saturating_sub(used).max(NARROWEST_COLUMN)
    }

    fn emit(&mut self, line: &str) {
        let mut whole = String::new();
        for container in self.containers.iter_mut().take(MAX_DEPTH) {
            let mark = container.mark.take();
            whole.push_str(mark.as_ref().unwrap_or(&container.margin));
        }
        for deeper in self.containers.iter_mut().skip(MAX_DEPTH) {
            deeper.mark = None;
        }
        whole.push_str(line);
        self.lines.push(whole.trim_end().to_owned());
    }

    fn end_code(&mut self) {
        let code = self.code.take().unwrap_or_default();
        let style = match self.colors {
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
        let is_shown = columns * NARROWEST_COLUMN <= self.available_width() && cells <= MAX_CELLS;
        let text = match is_shown {
            true => draw_table(&rows, self.available_width(), self.colors),
            false => {
                let lines = rows.cells.iter().map(|row| row.join(" | "));
                wrap_text(
                    &lines.collect::<Vec<_>>().join("\n"),
                    self.available_width(),
                )
            }
        };
        text.split('\n').for_each(|line| self.emit(line));
    }
}

fn draw_table(rows: &TableRows, width: usize, colors: bool) -> String {
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
    if colors { embolden_header(&text) } else { text }
}

// Applied after the layout, because a style inside a cell would count towards its width.
fn embolden_header(table: &str) -> String {
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
