//! The commands, one file each.

pub(crate) mod add;
#[cfg(feature = "chat")]
pub(crate) mod ask;
pub(crate) mod call;
pub(crate) mod calls;
#[cfg(feature = "chat")]
pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod content;
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

use anyhow::Context;
use serde_json::{Value, json};
use tokio::runtime::Builder;
use toolgate_core::text::is_invisible;
use toolgate_core::{ToolDefinition, ToolSource};

use crate::servers::ServerFleet;
use crate::{exit, output};

// A runtime on this thread starts faster, and a command that makes one call needs no more.
fn block_on<T>(command: impl Future<Output = T>) -> anyhow::Result<T> {
    run_on(Builder::new_current_thread(), command)
}

fn block_on_threads<T>(command: impl Future<Output = T>) -> anyhow::Result<T> {
    run_on(Builder::new_multi_thread(), command)
}

/// Runs a command that Ctrl-C may end at once. `None` if it did.
fn block_on_interruptible<T>(command: impl Future<Output = T>) -> anyhow::Result<Option<T>> {
    block_on(async {
        tokio::select! {
            output = command => Some(output),
            () = exit::wait_for_interrupt() => None,
        }
    })
}

fn run_on<T>(mut builder: Builder, command: impl Future<Output = T>) -> anyhow::Result<T> {
    let runtime = builder.enable_all().build().context("cannot start")?;
    let output = runtime.block_on(command);
    // A thread may still be reading from the terminal, and can't be stopped.
    runtime.shutdown_background();
    Ok(output)
}

fn to_json(tool: &ToolDefinition, fleet: Option<&ServerFleet>) -> Value {
    let mut object = json!(tool);
    if let ToolSource::Mcp(server) = tool.source()
        && let Some(status) = fleet.and_then(|fleet| fleet.status(server))
    {
        object["transport"] = json!(status.transport);
        object["era"] = json!(status.era);
        object["state"] = json!(status.state);
        object["remembered"] = json!(status.remembered);
    }
    object
}

fn rendered(value: &Value) -> String {
    match output::stdout_is_terminal() {
        true => escaped(&format!("{value:#}")),
        false => value.to_string(),
    }
}

fn rendered_line(value: &Value) -> String {
    match output::stdout_is_terminal() {
        true => escaped(&value.to_string()),
        false => value.to_string(),
    }
}

fn escaped(json: &str) -> String {
    let mut shown = String::new();
    for c in json.chars() {
        if is_invisible(c) && c != '\n' {
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
    fn f27_json_at_a_terminal_is_escaped_and_means_the_same() {
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
