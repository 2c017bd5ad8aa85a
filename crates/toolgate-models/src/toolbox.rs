//! Which tools a conversation may use.

use std::sync::{Arc, Mutex, PoisonError};

use toolgate_core::{Pattern, Tool, ToolExecutor, Tools};

/// An executor with a choice of its tools.
#[derive(Clone)]
pub struct Toolbox {
    executor: ToolExecutor,
    only: Arc<[Pattern]>,
    /// The list, and what it was made of.
    current: Arc<Mutex<Option<Made>>>,
}

type Made = (Arc<Tools>, Arc<ToolList>);

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
            only: Arc::default(),
            current: Arc::default(),
        }
    }

    /// Only tools that match one of these patterns; none means all.
    #[must_use]
    pub fn only(mut self, patterns: impl Into<Arc<[Pattern]>>) -> Self {
        self.only = patterns.into();
        self.current = Arc::default();
        self
    }

    /// What runs them.
    pub fn executor(&self) -> &ToolExecutor {
        &self.executor
    }

    /// The tools at this moment: the same list as long as nothing changes.
    pub fn current(&self) -> Arc<ToolList> {
        let tools = self.executor.manager().tools();
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, list)) = &*current
            && Arc::ptr_eq(of, &tools)
        {
            return Arc::clone(list);
        }
        let chosen = tools.iter().filter(|tool| self.has(tool)).cloned();
        let list = Arc::new(ToolList::new(chosen.collect()));
        *current = Some((tools, Arc::clone(&list)));
        list
    }

    /// False if a call of this name would run a tool that is not among the chosen ones. What does not exist at all is for
    /// the executor to tell.
    pub fn lets_use(&self, name: &str) -> bool {
        let found = || self.executor.find(name);
        self.only.is_empty() || found().map_or(true, |tool| self.has(&tool))
    }

    fn has(&self, tool: &Arc<dyn Tool>) -> bool {
        let definition = tool.definition();
        let chosen = self.only.is_empty() || self.only.iter().any(|only| only.matches(definition));
        chosen && self.executor.is_visible(definition)
    }
}
