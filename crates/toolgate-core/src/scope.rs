//! Which tools one caller may use, beyond what the policy says for all.

use std::sync::Arc;

use crate::{Pattern, ToolDefinition};

/// A caller's share of the tools. One outside of it is not found for this caller, as if the policy hid it.
///
/// ```
/// use serde_json::json;
/// use toolgate_core::{Pattern, Scope, ToolDefinition};
///
/// let lights = Scope::only(vec![Pattern::new("*_light")]);
/// let echo = ToolDefinition::builder("echo", "Echoes", json!({ "type": "object" })).build()?;
/// assert!(!lights.has(&echo) && Scope::default().has(&echo));
/// # Ok::<_, toolgate_core::DefinitionError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Scope(Option<Arc<[Pattern]>>);

impl Scope {
    /// Only what one of these patterns means; with none, nothing.
    pub fn only(patterns: Vec<Pattern>) -> Self {
        Self(Some(patterns.into()))
    }

    /// True if the caller may use this tool.
    pub fn has(&self, tool: &ToolDefinition) -> bool {
        match &self.0 {
            None => true,
            Some(patterns) => patterns.iter().any(|pattern| pattern.matches(tool)),
        }
    }

    /// True if it leaves nothing out.
    pub fn is_everything(&self) -> bool {
        self.0.is_none()
    }

    /// The patterns, if it leaves something out.
    pub fn patterns(&self) -> Option<&[Pattern]> {
        self.0.as_deref()
    }
}
