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
    denied: Option<Arc<[Pattern]>>,
    /// The share this one was taken from, if that one left something out.
    outer: Option<Arc<Scope>>,
    caller: Option<Arc<str>>,
}

impl Scope {
    /// Only what one of these patterns means; with none, nothing.
    pub fn only(patterns: Vec<Pattern>) -> Self {
        Self {
            patterns: Some(patterns.into()),
            ..Self::default()
        }
    }

    /// This share without what one of these patterns matches.
    ///
    /// ```
    /// use serde_json::json;
    /// use toolgate_core::{Pattern, Scope, ToolDefinition};
    ///
    /// let echo = ToolDefinition::builder("echo", "Echoes", json!({ "type": "object" })).build()?;
    /// let quiet = Scope::default().except(vec![Pattern::new("echo")]);
    /// assert!(!quiet.has(&echo) && !quiet.is_everything());
    /// # Ok::<_, toolgate_core::DefinitionError>(())
    /// ```
    #[must_use]
    pub fn except(mut self, patterns: Vec<Pattern>) -> Self {
        self.denied = (!patterns.is_empty()).then(|| patterns.into());
        self
    }

    /// Of this share only what `outer` has as well. The caller stays the same.
    ///
    /// ```
    /// use serde_json::json;
    /// use toolgate_core::{Pattern, Scope, ToolDefinition};
    ///
    /// let echo = ToolDefinition::builder("echo", "Echoes", json!({ "type": "object" })).build()?;
    /// let all = Scope::default().of("kitchen");
    /// let lights = all.within(&Scope::only(vec![Pattern::new("*_light")]));
    /// assert!(!lights.has(&echo));
    /// assert_eq!(lights.caller(), Some("kitchen"));
    /// # Ok::<_, toolgate_core::DefinitionError>(())
    /// ```
    #[must_use]
    pub fn within(mut self, outer: &Scope) -> Self {
        if !outer.is_everything() {
            let outer = match &self.outer {
                None => outer.clone(),
                Some(own) => Self::clone(own).within(outer),
            };
            self.outer = Some(Arc::new(outer));
        }
        self
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
            caller: self.caller.clone(),
            ..Self::default()
        }
    }

    pub(crate) fn shared_caller(&self) -> Option<Arc<str>> {
        self.caller.clone()
    }

    /// True if the caller may use this tool.
    pub fn has(&self, tool: &ToolDefinition) -> bool {
        let grants = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.grants(tool));
        let denies = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(tool));
        self.patterns.as_deref().is_none_or(grants)
            && !self.denied.as_deref().is_some_and(denies)
            && self.outer.as_ref().is_none_or(|outer| outer.has(tool))
    }

    /// True if it leaves nothing out.
    pub fn is_everything(&self) -> bool {
        self.patterns.is_none() && self.denied.is_none() && self.outer.is_none()
    }

    /// The patterns of [`only`](Self::only).
    pub fn patterns(&self) -> Option<&[Pattern]> {
        self.patterns.as_deref()
    }
}
