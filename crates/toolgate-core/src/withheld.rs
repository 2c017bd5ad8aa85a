//! Tools that are there and may not be used: somebody has to agree to them first.

use crate::ToolError;

/// Why a tool is neither offered nor called. It keeps its name, so that no other tool answers under it.
///
/// ```
/// use serde_json::json;
/// use toolgate_core::{ToolDefinition, Withheld};
///
/// let tool = ToolDefinition::builder("wipe", "Wipes", json!({ "type": "object" })).build()?;
/// let tool = tool.withhold(Withheld::new("changed since you agreed to it", "'toolgate trust house' agrees"));
/// assert_eq!(tool.withheld().unwrap().reason, "changed since you agreed to it");
/// # Ok::<_, toolgate_core::DefinitionError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Withheld {
    /// The rest of a sentence that begins with the tool's name.
    pub reason: String,
    /// How to agree to the tool.
    pub hint: String,
}

impl Withheld {
    /// For this reason, and with this way out.
    pub fn new(reason: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            hint: hint.into(),
        }
    }

    /// How a call of the tool ends.
    pub fn error(&self, tool: impl Into<String>) -> ToolError {
        ToolError::Withheld {
            tool: tool.into(),
            reason: self.reason.clone(),
            hint: self.hint.clone(),
        }
    }
}
