//! What of a server's tools isn't as a person agreed to it.

use std::io;

use serde::Serialize;

use super::difference::Difference;

/// The tools of a server that aren't what a person agreed to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ToolChanges {
    /// Stands for these very definitions: who agrees names it, so that nobody agrees to what wasn't shown.
    pub hash: String,
    /// In the server's order; tools that are gone come last.
    pub tools: Vec<ToolChange>,
}

impl ToolChanges {
    /// How many of them may not be used.
    pub fn withheld(&self) -> usize {
        self.tools.iter().filter(|tool| tool.withheld).count()
    }

    /// What changed about one tool, by its name on the server.
    pub fn of(&self, original_name: &str) -> Option<&ToolChange> {
        let mut tools = self.tools.iter();
        tools.find(|tool| tool.original_name == original_name)
    }
}

/// A tool that isn't what a person agreed to. Its texts are redacted, bounded and fit for a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ToolChange {
    /// Its name on the server, as it is shown.
    pub tool: String,
    #[serde(skip)]
    pub(super) original_name: String,
    /// What became of it.
    pub kind: ToolChangeKind,
    /// True if it isn't offered until somebody agrees.
    pub withheld: bool,
    /// What differs, the most telling first.
    pub differences: Vec<Difference>,
    /// How many differences there are besides.
    pub more: usize,
}

/// What became of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolChangeKind {
    /// It wasn't there when the server's tools were agreed to.
    New,
    /// It is another one than before.
    Changed,
    /// The server doesn't list it any more.
    Gone,
}

/// Why an agreement came to nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgreeError {
    /// There is no such server.
    #[error("there is no MCP server '{0}'")]
    UnknownServer(String),
    /// What was shown isn't what the server has now.
    #[error("the tools of '{0}' changed again since they were shown; look at them once more")]
    OtherChanges(String),
    /// It can't be kept.
    #[error("the agreement can't be written: {0}")]
    Write(#[from] io::Error),
}
