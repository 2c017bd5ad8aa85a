//! [`Toolbox`]: the tools that one conversation may use.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::readiness::ToolStartup;
use crate::{ExecutionRules, Origin, Scope, Tool, ToolExecutor, ToolPattern, ToolSet};

/// One conversation's view of an executor, restricted to the tools that it may use.
#[derive(Clone)]
pub struct Toolbox {
    executor: ToolExecutor,
    scope: Scope,
    origin: Origin,
    // Cached with the snapshots that it was made from.
    current: Arc<Mutex<Option<CachedList>>>,
    startup: ToolStartup,
}

type CachedList = (Arc<ToolSet>, Arc<ExecutionRules>, Arc<ToolList>);

/// A snapshot of the tools of a [`Toolbox`]. It stays the same `Arc` while nothing changes, so it
/// can be a cache key.
pub struct ToolList {
    tools: Vec<Arc<dyn Tool>>,
}

impl ToolList {
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        Self { tools }
    }

    pub fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }
}

impl Toolbox {
    /// Creates a toolbox with all tools that the policy shows.
    pub fn new(executor: ToolExecutor) -> Self {
        Self {
            executor,
            scope: Scope::default(),
            origin: Origin::Chat,
            current: Arc::default(),
            startup: ToolStartup::default(),
        }
    }

    /// Restricts the toolbox to tools that match one of these patterns. An empty list restricts
    /// nothing, unlike in [`Scope::only`].
    #[must_use]
    pub fn only_if_any(self, patterns: impl Into<Vec<ToolPattern>>) -> Self {
        match patterns.into() {
            none if none.is_empty() => self.with_scope(Scope::default()),
            some => self.with_scope(Scope::only(some)),
        }
    }

    /// Sets the origin of calls; [`Origin::Chat`] by default.
    #[must_use]
    pub fn with_origin(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// Restricts it to a caller's scope. Its calls carry the scope, so that the
    /// executor enforces it too.
    #[must_use]
    pub fn with_scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self.current = Arc::default();
        self
    }

    pub fn origin(&self) -> Origin {
        self.origin
    }

    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    pub(crate) fn startup(&self) -> &ToolStartup {
        &self.startup
    }

    pub fn executor(&self) -> &ToolExecutor {
        &self.executor
    }

    /// The tools at this moment; the same list as long as nothing changes.
    pub fn current(&self) -> Arc<ToolList> {
        let (tools, rules) = (self.executor.manager().tools(), self.executor.rules());
        let mut current = self.current.lock();
        if let Some((cached_tools, cached_rules, list)) = &*current
            && Arc::ptr_eq(cached_tools, &tools)
            && Arc::ptr_eq(cached_rules, &rules)
        {
            return Arc::clone(list);
        }
        let offered = tools.iter();
        let offered = offered.filter(|tool| {
            let tool = tool.definition();
            tool.is_for_models() && rules.offers(tool, &self.scope)
        });
        let list = Arc::new(ToolList::new(offered.cloned().collect()));
        *current = Some((tools, rules, Arc::clone(&list)));
        list
    }

    /// False if a call to this name would run a tool outside this toolbox. True for unknown names,
    /// because the executor reports those.
    pub fn allows(&self, name: &str) -> bool {
        self.executor.find(name).map_or(true, |tool| {
            tool.definition().is_for_models()
                && (self.scope.is_unrestricted() || self.contains(&tool))
        })
    }

    fn contains(&self, tool: &Arc<dyn Tool>) -> bool {
        self.executor
            .is_visible_in_scope(tool.definition(), &self.scope)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{FunctionTool, Limits, ToolError, ToolManager};

    #[test]
    fn what_only_a_page_may_call_is_not_for_models() {
        let manager = ToolManager::new();
        for (name, visibility) in [
            ("both", json!(["model", "app"])),
            ("model", json!(["model"])),
            ("app", json!(["app"])),
            ("nobody", json!([])),
            ("unclear", json!("app")),
        ] {
            let meta = json!({ "_meta": { "ui": { "visibility": visibility } } });
            let tool = crate::ToolDefinition::builder(name, "Does it", json!({ "type": "object" }))
                .extra(meta.as_object().unwrap().clone())
                .build();
            manager.add(FunctionTool::mock(tool.unwrap(), json!({})));
        }
        let toolbox = Toolbox::new(ToolExecutor::new(Arc::new(manager)));
        let list = toolbox.current();
        let names = list.tools().iter().map(|tool| tool.definition().name());
        assert_eq!(names.collect::<Vec<_>>(), ["both", "model", "unclear"]);
        assert!(toolbox.allows("both") && toolbox.allows("unknown"));
        assert!(!toolbox.allows("app") && !toolbox.allows("nobody"));
    }

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
