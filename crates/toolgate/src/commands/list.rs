//! `toolgate list`: the tools there are.

use comfy_table::{Attribute, Cell};
use serde_json::Value;
use toolgate_core::escape;

use super::{rendered, table, to_json};
use crate::cli::{Global, ListOptions};
use crate::exit::Exit;
use crate::{say, wiring};

pub(crate) fn run(global: &Global, options: &ListOptions) -> anyhow::Result<Exit> {
    let config = wiring::configuration(global)?;
    let tools = wiring::tools(&config);
    wiring::warn_about(&config, &tools);
    let executor = wiring::probe(&config, &tools);
    let all = tools.manager.tools();
    let visible: Vec<_> = all
        .iter()
        .map(|tool| tool.definition())
        .filter(|tool| executor.is_visible(tool))
        .collect();
    if options.json {
        let list: Vec<Value> = visible.into_iter().map(to_json).collect();
        say::result(&rendered(&list.into()));
        return Ok(Exit::Success);
    }
    if visible.is_empty() {
        say::note("no tools: the policy hides all there are");
        return Ok(Exit::Success);
    }
    let rows = visible.into_iter().map(|tool| {
        [
            escape(tool.name()),
            escape(&tool.source().to_string()),
            escape(first_sentence(tool.description())),
        ]
    });
    if say::is_watched() {
        let titles = ["TOOL", "SOURCE", "WHAT IT DOES"]
            .map(|title| Cell::new(title).add_attribute(Attribute::Bold));
        say::result(&table(rows.collect()).set_header(titles).to_string());
    } else {
        let lines: Vec<String> = rows.map(|row| row.join("\t")).collect();
        say::result(&lines.join("\n"));
    }
    Ok(Exit::Success)
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
