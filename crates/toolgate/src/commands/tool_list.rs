//! Prints lists of tools, for `list`, `inspect SERVER` and `/tools`.

use serde_json::Value;
use toolgate_core::text::{escape, truncate};

use super::rendered;
use crate::cli::ListOptions;
use crate::{output, wrap};

// Characters of a sentence. A longer one says too much for a list.
const MAX_SENTENCE_LEN: usize = 240;
// Bytes of a name on a terminal.
const MAX_NAME_LEN: usize = 512;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct ToolRow {
    name: String,
    source: String,
    description: String,
}

impl ToolRow {
    pub(super) fn new(name: &str, source: &str, description: &str) -> Self {
        let description = match first_sentence(description) {
            sentence if sentence.is_empty() => "(no description)".to_owned(),
            sentence => escape(&sentence),
        };
        Self {
            name: escape(name),
            source: escape(source),
            description,
        }
    }

    pub(super) fn from_json(tool: &Value) -> Self {
        let [name, source, description] = searched_texts(tool);
        let mut row = Self::new(name, source, description);
        if let Some(reason) = tool["withheld"].as_str() {
            row.description = format!("(withheld: it {}) {}", escape(reason), row.description);
        }
        row
    }
}

pub(super) struct ToolFilter<'a> {
    words: Vec<String>,
    server: Option<&'a str>,
}

impl<'a> ToolFilter<'a> {
    pub(super) fn new(options: &'a ListOptions) -> Self {
        Self {
            words: options
                .words
                .iter()
                .map(|word| word.to_lowercase())
                .collect(),
            server: options.server.as_deref(),
        }
    }

    fn matches(&self, tool: &Value) -> bool {
        let [name, source, description] = searched_texts(tool);
        let is_of_server = |server| source.strip_prefix("mcp:") == Some(server);
        let text = format!("{name} {source} {description}").to_lowercase();
        self.server.is_none_or(is_of_server) && self.words.iter().all(|word| text.contains(word))
    }

    fn nothing(&self, all: usize) -> String {
        if self.words.is_empty() && self.server.is_none() {
            return "no tools: the policy hides all of them".to_owned();
        }
        let words = escape(&self.words.join(" "));
        let what = match (self.server.map(escape), words.is_empty()) {
            (None, _) => format!("no tool matches '{words}'"),
            (Some(server), true) => format!("the server '{server}' has no tools here"),
            (Some(server), false) => format!("no tool of the server '{server}' matches '{words}'"),
        };
        format!("{what}; 'toolgate list' shows all {all}")
    }
}

fn searched_texts(tool: &Value) -> [&str; 3] {
    ["name", "source", "description"].map(|key| tool[key].as_str().unwrap_or_default())
}

pub(super) fn print(tools: Vec<Value>, options: &ListOptions) {
    let filter = ToolFilter::new(options);
    let all = tools.len();
    let wanted: Vec<Value> = tools
        .into_iter()
        .filter(|tool| filter.matches(tool))
        .collect();
    if options.json {
        return output::print_result(&rendered(&Value::Array(wanted)));
    }
    if wanted.is_empty() {
        return output::print_note(&filter.nothing(all));
    }
    let rows: Vec<ToolRow> = wanted.iter().map(ToolRow::from_json).collect();
    output::print_result(&format_tools(&rows));
}

/// Grouped by source on a terminal. In a pipe, one tab-separated line per
/// tool: name, source, description.
pub(super) fn format_tools(rows: &[ToolRow]) -> String {
    match output::stdout_width() {
        Some(width) => grouped(rows, width),
        None => {
            let lines = rows
                .iter()
                .map(|row| format!("{}\t{}\t{}", row.name, row.source, row.description));
            lines.collect::<Vec<_>>().join("\n")
        }
    }
}

/// Names and descriptions. A name that would fill the screen is cut; `list --json` has all of it.
pub(super) fn names(rows: &[ToolRow], indent: usize, width: Option<usize>) -> String {
    let rows = rows
        .iter()
        .map(|row| (truncate(&row.name, MAX_NAME_LEN), row.description.clone()));
    wrap::definition_list(&rows.collect::<Vec<_>>(), indent, width)
}

fn grouped(rows: &[ToolRow], width: usize) -> String {
    let bold = anstyle::Style::new().bold();
    let groups = rows.chunk_by(|one, next| one.source == next.source);
    let groups = groups.map(|group| {
        let source = group.first().map_or("", |row| &row.source);
        let title = match source.strip_prefix("mcp:") {
            Some(server) => format!("server {server}"),
            None => source.to_owned(),
        };
        format!("{bold}{title}{bold:#}\n{}", names(group, 2, Some(width)))
    });
    groups.collect::<Vec<_>>().join("\n\n")
}

pub(super) fn first_sentence(text: &str) -> String {
    let paragraph: Vec<&str> = text
        .trim()
        .lines()
        .take_while(|line| !line.trim().is_empty())
        .flat_map(str::split_whitespace)
        .collect();
    let text = paragraph.join(" ");
    let ends = text.match_indices(". ").map(|(at, _)| at);
    // An abbreviation such as "e.g." doesn't end the sentence.
    let begins_another = |at: &usize| text[at + 2..].starts_with(|c: char| !c.is_lowercase());
    let end = ends.into_iter().find(begins_another).unwrap_or(text.len());
    let sentence = text[..end].trim_end_matches('.');
    match sentence.char_indices().nth(MAX_SENTENCE_LEN) {
        Some((cut, _)) => format!("{}…", sentence[..cut].trim_end()),
        None => sentence.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_description_is_cut_after_its_first_sentence() {
        for (text, expected) in [
            ("Adds numbers", "Adds numbers"),
            ("Adds numbers. Use it often.", "Adds numbers"),
            ("Adds 1.5 and 2.", "Adds 1.5 and 2"),
            ("One\ntwo", "One two"),
            ("\nGet a  check.\n\n**Best for:** all", "Get a check"),
            ("Takes e.g. a name. Or not", "Takes e.g. a name"),
            ("", ""),
            (" \n ", ""),
        ] {
            assert_eq!(first_sentence(text), expected);
        }
        let long = first_sentence(&"word ".repeat(1000));
        assert_eq!(long.chars().count(), MAX_SENTENCE_LEN);
    }

    #[test]
    fn only_a_name_that_would_fill_the_screen_is_cut() {
        for (length, shown) in [
            (MAX_NAME_LEN, "x".repeat(MAX_NAME_LEN)),
            (5000, "x".repeat(MAX_NAME_LEN) + "… (4488 more bytes)"),
        ] {
            let rows = [ToolRow::new(&"x".repeat(length), "mcp:s", "Does")];
            assert_eq!(names(&rows, 0, Some(80)), format!("{shown}\n  Does"));
        }
    }

    #[test]
    fn every_word_must_be_somewhere() {
        let tool = json!({ "name": "browser_click", "source": "mcp:playwright", "description": "Clicks on a page" });
        for (words, server, expected) in [
            (&[][..], None, true),
            (&["browser"], None, true),
            (&["BROWSER", "page"], None, true),
            (&["playwright"], None, true),
            (&["browser", "mail"], None, false),
            (&[], Some("playwright"), true),
            (&["click"], Some("playwright"), true),
            (&[], Some("play"), false),
            (&["mail"], Some("playwright"), false),
        ] {
            let words = words.iter().map(|word| word.to_lowercase()).collect();
            let filter = ToolFilter { words, server };
            assert_eq!(filter.matches(&tool), expected);
        }
    }

    #[test]
    fn names_are_never_cut_and_sources_are_titles() {
        let long = "firecrawl_research_search_papers_and_more";
        let rows = [
            ToolRow::new("echo", "builtin", "Gives its arguments back. Nothing else."),
            ToolRow::new(long, "mcp:firecrawl", "\\nSearches"),
            ToolRow::new("check", "mcp:firecrawl", ""),
        ];
        let shown = anstream::adapter::strip_str(&grouped(&rows, 40)).to_string();
        let expected = format!(
            "builtin\n  echo  Gives its arguments back\n\nserver firecrawl\n  {long}\n         \\nSearches\n  check  (no description)"
        );
        assert_eq!(shown, expected);
    }
}
