//! Which tools one caller may use: a conversation, or sentences that need no model.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::readiness::Awaited;
use crate::{Origin, Pattern, Rules, Scope, Tool, ToolExecutor, Tools};

/// An executor with a choice of its tools.
#[derive(Clone)]
pub struct Toolbox {
    executor: ToolExecutor,
    scope: Scope,
    origin: Origin,
    /// The list, and what it was made of.
    current: Arc<Mutex<Option<Made>>>,
    awaited: Awaited,
}

type Made = (Arc<Tools>, Arc<Rules>, Arc<ToolList>);

/// The tools at one moment. Its identity is that of the moment: what is made of a list can be kept by its `Arc`.
pub struct ToolList {
    tools: Vec<Arc<dyn Tool>>,
}

impl ToolList {
    /// Of these tools.
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        Self { tools }
    }

    /// All of them, in the order of the manager.
    pub fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }
}

impl Toolbox {
    /// All tools that the policy lets callers see.
    pub fn new(executor: ToolExecutor) -> Self {
        Self {
            executor,
            scope: Scope::default(),
            origin: Origin::Chat,
            current: Arc::default(),
            awaited: Awaited::default(),
        }
    }

    /// Only tools that match one of these patterns; none means all.
    #[must_use]
    pub fn only(self, patterns: impl Into<Vec<Pattern>>) -> Self {
        match patterns.into() {
            none if none.is_empty() => self.within(Scope::default()),
            some => self.within(Scope::only(some)),
        }
    }

    /// Who the executor is told that asks; a chat, if nobody else is named.
    #[must_use]
    pub fn asked_by(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// Only what is there for a caller. Its calls carry the scope, so that the executor holds it too.
    #[must_use]
    pub fn within(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self.current = Arc::default();
        self
    }

    /// Who asks.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// What calls are limited to.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    pub(crate) fn awaited(&self) -> &Awaited {
        &self.awaited
    }

    /// What runs them.
    pub fn executor(&self) -> &ToolExecutor {
        &self.executor
    }

    /// The tools at this moment: the same list as long as nothing changes.
    pub fn current(&self) -> Arc<ToolList> {
        let (tools, rules) = (self.executor.manager().tools(), self.executor.rules());
        let mut current = self.current.lock();
        if let Some((of, under, list)) = &*current
            && Arc::ptr_eq(of, &tools)
            && Arc::ptr_eq(under, &rules)
        {
            return Arc::clone(list);
        }
        let chosen = tools.iter();
        let chosen = chosen.filter(|tool| rules.shows(tool.definition(), &self.scope));
        let list = Arc::new(ToolList::new(chosen.cloned().collect()));
        *current = Some((tools, rules, Arc::clone(&list)));
        list
    }

    /// False if a call of this name would run a tool that is not among the chosen ones. What does not exist at all is for
    /// the executor to tell.
    pub fn lets_use(&self, name: &str) -> bool {
        let found = || self.executor.find(name);
        self.scope.is_everything() || found().map_or(true, |tool| self.has(&tool))
    }

    fn has(&self, tool: &Arc<dyn Tool>) -> bool {
        self.executor.is_visible_in(tool.definition(), &self.scope)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{FunctionTool, Limits, ToolError, ToolManager};

    #[test]
    fn the_list_follows_the_policy() {
        let manager = ToolManager::new();
        let lock = FunctionTool::new(
            "lock",
            "Locks",
            async |_: serde_json::Map<String, serde_json::Value>, _| Ok::<_, ToolError>("locked"),
        );
        manager.add(lock.unwrap());
        let executor = ToolExecutor::new(Arc::new(manager));
        let toolbox = Toolbox::new(executor.clone());
        let before = toolbox.current();
        assert!(Arc::ptr_eq(&before, &toolbox.current()));
        let policy = serde_json::from_value(json!({ "deny": ["lock"] })).unwrap();
        executor.set_rules(Limits::default(), policy);
        assert_eq!(
            (before.tools().len(), toolbox.current().tools().len()),
            (1, 0)
        );
    }
}
