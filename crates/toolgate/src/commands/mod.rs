//! One file per command.

pub(crate) mod add;
pub(crate) mod ask;
pub(crate) mod call;
pub(crate) mod calls;
pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod inspect;
pub(crate) mod list;
pub(crate) mod mcp;
pub(crate) mod remove;
pub(crate) mod replay;
pub(crate) mod serve;
mod server;
pub(crate) mod trust;
pub(crate) mod voice;
pub(crate) mod zwave_mcp_server;

use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};
use serde_json::{Value, json};
use toolgate_core::{Source, ToolDefinition, is_unseen};

use crate::say;
use crate::servers::Fleet;

/// A runtime on this very thread: a command that runs one call needs no more, and starts faster.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

/// A tool for programs; one of an MCP server with how that is.
fn to_json(tool: &ToolDefinition, fleet: Option<&Fleet>) -> Value {
    let mut object = json!(tool);
    if let Source::Mcp(server) = tool.source()
        && let Some(status) = fleet.and_then(|fleet| fleet.status(server))
    {
        object["transport"] = json!(status.transport);
        object["era"] = json!(status.era);
        object["state"] = json!(status.state);
    }
    object
}

/// JSON as a terminal or a pipe wants it: for eyes, or one line for programs.
fn rendered(value: &Value) -> String {
    if !say::is_watched() {
        return value.to_string();
    }
    let mut shown = String::new();
    for c in format!("{value:#}").chars() {
        // Still the same JSON, but nothing in it drives the terminal.
        if is_unseen(c) && c != '\n' {
            c.encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| shown.push_str(&format!("\\u{unit:04x}")));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Enough to choose by; `inspect` has the rest.
fn first_sentence(text: &str) -> &str {
    let end = text
        .find(". ")
        .or_else(|| text.find('\n'))
        .unwrap_or(text.len());
    text[..end].trim_end_matches('.')
}

/// Fits its rows to the width of the terminal.
fn table<const N: usize>(rows: Vec<[String; N]>) -> Table {
    let mut table = Table::new();
    table
        .load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .add_rows(rows);
    table
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
