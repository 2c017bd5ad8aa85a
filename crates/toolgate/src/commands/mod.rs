//! One file per command.

pub(crate) mod add;
#[cfg(feature = "chat")]
pub(crate) mod ask;
pub(crate) mod call;
pub(crate) mod calls;
#[cfg(feature = "chat")]
pub(crate) mod chat;
pub(crate) mod completions;
#[cfg(feature = "demo")]
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod health;
#[cfg(feature = "zwave")]
pub(crate) mod home_server;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod inspect;
pub(crate) mod list;
pub(crate) mod mcp;
pub(crate) mod remove;
pub(crate) mod replay;
#[cfg(feature = "keyring")]
pub(crate) mod secret;
#[cfg(feature = "serve")]
pub(crate) mod serve;
mod server;
mod tool_list;
pub(crate) mod trust;
mod trust_tools;
#[cfg(feature = "voice")]
pub(crate) mod voice;

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
        object["remembered"] = json!(status.remembered);
    }
    object
}

/// JSON as a terminal or a pipe wants it: for eyes, or one line for programs.
fn rendered(value: &Value) -> String {
    match say::is_watched() {
        true => escaped(&format!("{value:#}")),
        false => value.to_string(),
    }
}

/// The same on one line in both cases, for lists that go on.
fn rendered_line(value: &Value) -> String {
    match say::is_watched() {
        true => escaped(&value.to_string()),
        false => value.to_string(),
    }
}

/// Still the same JSON, but nothing in it drives a terminal or hides text.
fn escaped(json: &str) -> String {
    let mut shown = String::new();
    for c in json.chars() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f27_json_at_a_terminal_drives_and_hides_nothing_and_stays_the_same() {
        // C1 CSI, DEL, bidi, zero width, a Unicode tag.
        let call = json!({ "error": "a\u{9b}2J\u{7f}\u{202e}\u{200b}\u{e0041}é" });
        let shown = escaped(&call.to_string());
        assert_eq!(
            shown,
            "{\"error\":\"a\\u009b2J\\u007f\\u202e\\u200b\\udb40\\udc41é\"}"
        );
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), call);
    }
}
