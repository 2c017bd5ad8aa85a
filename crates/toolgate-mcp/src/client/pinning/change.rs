//! The reported changes of a server's tools since a person agreed to them.

use std::io;

use serde::Serialize;

use super::difference::DefinitionDifference;

/// How a server's tools differ from those that a person agreed to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ToolChanges {
    /// Identifies exactly these changes. Agreeing requires it, so that a person can't agree to
    /// changes that weren't shown.
    pub hash: String,
    /// In the server's order; removed tools come last.
    pub tools: Vec<ToolChange>,
}

impl ToolChanges {
    /// How many tools are withheld.
    pub fn withheld(&self) -> usize {
        self.tools.iter().filter(|tool| tool.withheld).count()
    }

    pub fn for_tool(&self, original_name: &str) -> Option<&ToolChange> {
        let mut tools = self.tools.iter();
        tools.find(|tool| tool.original_name == original_name)
    }
}

/// A tool that differs from the one that a person agreed to. Its texts are redacted, bounded and
/// safe for a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ToolChange {
    /// The original name, redacted and escaped for display.
    pub tool: String,
    #[serde(skip)]
    pub(super) original_name: String,
    pub kind: ToolChangeKind,
    /// True if the tool isn't offered until a person agrees.
    pub withheld: bool,
    /// The most relevant differences come first.
    pub differences: Vec<DefinitionDifference>,
    /// How many further differences were left out.
    pub more: usize,
}

/// How a tool differs from the agreement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolChangeKind {
    New,
    Changed,
    Gone,
}

/// Why [`Servers::agree_to_changes`](crate::Servers::agree_to_changes) failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgreementError {
    #[error("there is no MCP server '{0}'")]
    UnknownServer(String),
    #[error("the tools of '{0}' changed again since they were shown; review them again")]
    OtherChanges(String),
    #[error("the agreement can't be written: {0}")]
    Write(#[from] io::Error),
}
