//! Who calls, and which tools there are for it beyond what the policy says for all.

use std::sync::Arc;

use crate::{Pattern, ToolDefinition};

/// A caller's share of the tools, and what it is called. A tool outside of it is not found for this caller, as if the policy
/// hid it.
///
/// ```
/// use serde_json::json;
/// use toolgate_core::{Pattern, Scope, ToolDefinition};
///
/// let lights = Scope::only(vec![Pattern::new("*_light")]);
/// let echo = ToolDefinition::builder("echo", "Echoes", json!({ "type": "object" })).build()?;
/// assert!(!lights.has(&echo) && Scope::default().has(&echo));
/// assert_eq!(lights.of("kitchen").caller(), Some("kitchen"));
/// # Ok::<_, toolgate_core::DefinitionError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Scope {
    patterns: Option<Arc<[Pattern]>>,
    caller: Option<Arc<str>>,
}

impl Scope {
    /// Only what one of these patterns means; with none, nothing.
    pub fn only(patterns: Vec<Pattern>) -> Self {
        Self {
            patterns: Some(patterns.into()),
            caller: None,
        }
    }

    /// The share of a caller of this name, which stands in the log and in the journal.
    #[must_use]
    pub fn of(mut self, caller: impl Into<Arc<str>>) -> Self {
        self.caller = Some(caller.into());
        self
    }

    /// What the caller is called, if callers are told apart.
    pub fn caller(&self) -> Option<&str> {
        self.caller.as_deref()
    }

    /// The same caller without a limit: for a call that is refused with words of its own, and only recorded.
    #[must_use]
    pub fn without_limit(&self) -> Self {
        Self {
            patterns: None,
            caller: self.caller.clone(),
        }
    }

    pub(crate) fn shared_caller(&self) -> Option<Arc<str>> {
        self.caller.clone()
    }

    /// True if the caller may use this tool.
    pub fn has(&self, tool: &ToolDefinition) -> bool {
        match &self.patterns {
            None => true,
            Some(patterns) => patterns.iter().any(|pattern| pattern.grants(tool)),
        }
    }

    /// True if it leaves nothing out.
    pub fn is_everything(&self) -> bool {
        self.patterns.is_none()
    }

    /// The patterns, if it leaves something out.
    pub fn patterns(&self) -> Option<&[Pattern]> {
        self.patterns.as_deref()
    }
}
