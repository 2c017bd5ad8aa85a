//! [`Scope`]: restricts the tools of one caller, in addition to the policy for everyone.

use std::sync::Arc;

use crate::{ToolDefinition, ToolPattern};

/// The name of a caller, and the tools it may use.
///
/// All other tools are hidden: they're neither listed nor named in errors.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    patterns: Option<Arc<[ToolPattern]>>,
    denied: Option<Arc<[ToolPattern]>>,
    // The enclosing scope, if it is restricted.
    outer: Option<Arc<Scope>>,
    caller: Option<Arc<str>>,
}

impl Scope {
    /// Allows only tools that match one of these patterns. An empty list allows nothing.
    pub fn only(patterns: Vec<ToolPattern>) -> Self {
        Self {
            patterns: Some(patterns.into()),
            ..Self::default()
        }
    }

    /// Excludes tools that match one of these patterns. Replaces earlier exclusions.
    #[must_use]
    pub fn except(mut self, patterns: Vec<ToolPattern>) -> Self {
        self.denied = (!patterns.is_empty()).then(|| patterns.into());
        self
    }

    /// Restricts this scope to the tools that `outer` allows too. The caller's name stays.
    #[must_use]
    pub fn within(mut self, outer: &Scope) -> Self {
        if !outer.is_unrestricted() {
            let outer = match &self.outer {
                None => outer.clone(),
                Some(own) => Self::clone(own).within(outer),
            };
            self.outer = Some(Arc::new(outer));
        }
        self
    }

    /// Sets the caller's name, which appears in the log and the journal.
    #[must_use]
    pub fn for_caller(mut self, caller: impl Into<Arc<str>>) -> Self {
        self.caller = Some(caller.into());
        self
    }

    /// The caller's name, if callers have names.
    pub fn caller(&self) -> Option<&str> {
        self.caller.as_deref()
    }

    /// Returns a scope with the same caller and all tools. For a call that is only recorded,
    /// because it already has an error of its own.
    #[must_use]
    pub fn without_restrictions(&self) -> Self {
        Self {
            caller: self.caller.clone(),
            ..Self::default()
        }
    }

    pub(crate) fn shared_caller(&self) -> Option<Arc<str>> {
        self.caller.clone()
    }

    pub fn allows(&self, tool: &ToolDefinition) -> bool {
        let grants = |patterns: &[ToolPattern]| patterns.iter().any(|pattern| pattern.grants(tool));
        let denies =
            |patterns: &[ToolPattern]| patterns.iter().any(|pattern| pattern.matches(tool));
        self.patterns.as_deref().is_none_or(grants)
            && !self.denied.as_deref().is_some_and(denies)
            && self.outer.as_ref().is_none_or(|outer| outer.allows(tool))
    }

    pub fn is_unrestricted(&self) -> bool {
        self.patterns.is_none() && self.denied.is_none() && self.outer.is_none()
    }

    /// The patterns given to [`only`](Self::only), without those of outer scopes.
    pub fn patterns(&self) -> Option<&[ToolPattern]> {
        self.patterns.as_deref()
    }
}
