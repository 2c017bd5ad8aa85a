//! `toolgate list`: the tools there are.

use std::io::IsTerminal;

use comfy_table::presets::NOTHING;
use comfy_table::{Attribute, Cell, ContentArrangement, Table};
use serde_json::Value;
use toolgate_core::escape;

use super::{rendered, to_json, visible};
use crate::cli::{Global, ListOptions};
use crate::exit::Exit;
use crate::{say, wiring};

pub(crate) fn run(global: &Global, options: &ListOptions) -> anyhow::Result<Exit> {
    let config = wiring::configuration(global)?;
    let tools = wiring::tools(&config);
    wiring::warn_about(&config, &tools);
    let tools = visible(&config, &tools);
    if options.json {
        let list: Vec<Value> = tools
            .iter()
            .map(|tool| to_json(tool.definition()))
            .collect();
        say::result(&rendered(&list.into()));
        return Ok(Exit::Success);
    }
    let rows = tools.iter().map(|tool| {
        let tool = tool.definition();
        [
            escape(tool.name()),
            escape(&tool.source().to_string()),
            escape(first_sentence(tool.description())),
        ]
    });
    if std::io::stdout().is_terminal() {
        say::result(&table(rows).to_string());
    } else {
        let lines: Vec<String> = rows.map(|row| row.join("\t")).collect();
        say::result(&lines.join("\n"));
    }
    Ok(Exit::Success)
}

fn table(rows: impl Iterator<Item = [String; 3]>) -> Table {
    let mut table = Table::new();
    table
        .load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(
        ["TOOL", "SOURCE", "WHAT IT DOES"]
            .map(|title| Cell::new(title).add_attribute(Attribute::Bold)),
    );
    table.add_rows(rows);
    table
}

/// Enough to choose by; `inspect` has the rest.
fn first_sentence(text: &str) -> &str {
    let end = text
        .find(". ")
        .or_else(|| text.find('\n'))
        .unwrap_or(text.len());
    text[..end].trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_cut_after_its_first_sentence() {
        for (text, expected) in [
            ("Adds numbers", "Adds numbers"),
            ("Adds numbers. Use it often.", "Adds numbers"),
            ("Adds 1.5 and 2.", "Adds 1.5 and 2"),
            ("One\ntwo", "One"),
        ] {
            assert_eq!(first_sentence(text), expected);
        }
    }
}
