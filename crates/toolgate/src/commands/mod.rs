//! One file per command.

pub(crate) mod call;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod init;
pub(crate) mod inspect;
pub(crate) mod list;

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_core::{Tool, ToolDefinition};

use crate::config::Config;
use crate::wiring::Tools;

/// A runtime on this very thread: a command that runs one call needs no more, and starts faster.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

/// The tools the policy lets a caller see.
fn visible(config: &Config, tools: &Tools) -> Vec<Arc<dyn Tool>> {
    let all = tools.manager.tools();
    let visible = all
        .iter()
        .filter(|tool| config.policy.decide(tool.definition()) != toolgate_core::Decision::Hide);
    visible.cloned().collect()
}

/// A tool for programs.
fn to_json(tool: &ToolDefinition) -> Value {
    let annotations = tool.annotations();
    json!({
        "name": tool.name(),
        "source": tool.source().to_string(),
        "description": tool.description(),
        "parameters": tool.parameters(),
        "annotations": {
            "read_only": annotations.read_only,
            "idempotent": annotations.idempotent,
            "destructive": annotations.destructive,
        },
    })
}

/// JSON as a terminal or a pipe wants it: for eyes, or one line for programs.
fn rendered(value: &Value) -> String {
    use std::io::IsTerminal;
    if std::io::stdout().is_terminal() {
        format!("{value:#}")
    } else {
        value.to_string()
    }
}
