//! [`WithheldReason`]: why a tool must not be used for now.

use crate::ToolError;

/// Why a tool is neither offered nor called until a person agrees to it. The tool keeps its name,
/// so that no other tool answers under it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WithheldReason {
    /// Completes a sentence that begins with the tool's name.
    pub reason: String,
    /// How a person can agree to the tool.
    pub hint: String,
}

impl WithheldReason {
    pub fn new(reason: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            hint: hint.into(),
        }
    }

    /// The error for a call to this tool.
    pub fn error(&self, tool: impl Into<String>) -> ToolError {
        ToolError::Withheld {
            tool: tool.into(),
            reason: self.reason.clone(),
            hint: self.hint.clone(),
        }
    }
}
