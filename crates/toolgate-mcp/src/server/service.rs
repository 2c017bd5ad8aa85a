//! An executor as MCP clients see it, whatever their messages travel on.
//!
//! `methods.rs` lists the methods it answers, `tool_call.rs` runs calls.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use serde_json::{Value, json};
use tokio::sync::watch;
use toolgate_core::{Scope, ToolExecutor};

use super::methods::SERVER_INFO;
use super::tool_list::ToolList;
use super::{Readiness, RequestObserver, ServeOptions};

/// What is offered to all clients with the same share of the tools.
pub(super) struct McpService {
    pub(super) executor: ToolExecutor,
    pub(super) options: ServeOptions,
    /// The clients' share of the tools: the only rule here about what they see.
    pub(super) scope: Scope,
    /// `_meta` of results in 2026-07-28, which name the server every time.
    pub(super) result_meta: Arc<Value>,
    pub(super) shared: Arc<SharedState>,
    tool_list: ArcSwap<ToolList>,
    /// The manager's count of changes.
    version: watch::Receiver<u64>,
}

/// What clients with different shares have in common.
#[derive(Default)]
pub(super) struct SharedState {
    /// Calls of all clients that are not answered yet.
    pub(super) running: AtomicUsize,
    pub(super) readiness: OnceLock<Box<dyn Readiness>>,
    pub(super) observer: OnceLock<Arc<dyn RequestObserver>>,
}

impl McpService {
    pub(super) fn new(executor: ToolExecutor, options: ServeOptions) -> Self {
        let allowed = match options.allow.as_slice() {
            [] => Scope::default(),
            allow => Scope::only(allow.to_vec()),
        };
        let scope = allowed.except(options.deny.clone());
        Self::with_scope(executor, options, scope, Arc::default())
    }

    /// The same for one caller, who may use less of it.
    pub(super) fn within(&self, scope: Scope) -> Self {
        let scope = scope.within(&self.scope);
        let shared = Arc::clone(&self.shared);
        Self::with_scope(self.executor.clone(), self.options.clone(), scope, shared)
    }

    fn with_scope(
        executor: ToolExecutor,
        options: ServeOptions,
        scope: Scope,
        shared: Arc<SharedState>,
    ) -> Self {
        let info = json!({ "name": options.name, "version": options.version });
        let service = Self {
            version: executor.manager().subscribe(),
            executor,
            options,
            scope,
            result_meta: Arc::new(json!({ SERVER_INFO: info })),
            shared,
            tool_list: ArcSwap::default(),
        };
        service.make_list(&ToolList::default());
        service
    }

    /// All tools that clients may see, in the manager's order.
    pub(super) fn tool_list(&self) -> Arc<ToolList> {
        let list = self.tool_list.load();
        if list.version == *self.version.borrow() {
            return Arc::clone(&list);
        }
        self.make_list(&list)
    }

    fn make_list(&self, before: &ToolList) -> Arc<ToolList> {
        // Read before the tools: a change in between is then seen next time.
        let version = *self.version.borrow();
        let tools = self.executor.manager().tools();
        let rules = self.executor.rules();
        let definitions = tools.iter().map(|tool| tool.definition());
        let shown = definitions.filter(|tool| rules.shows(tool, &self.scope));
        let shown: Vec<_> = shown.collect();
        let list = Arc::new(ToolList::new(version, &shown, before));
        self.tool_list.store(Arc::clone(&list));
        list
    }

    /// How many values a message may hold.
    pub(super) fn max_message_values(&self) -> usize {
        self.executor.rules().limits.max_message_values()
    }
}
