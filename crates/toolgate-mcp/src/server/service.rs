//! The service behind both transports: an executor, the tools it offers, and shared limits.

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};
use toolgate_core::{Scope, ToolExecutor};

use super::content_list::ContentLists;
use super::methods::SERVER_INFO;
use super::sole_client::SoleClient;
use super::suspended::SuspendedCalls;
use super::tasks::TaskTable;
use super::tool_call::MAX_CALLS;
use super::tool_list::ClientLists;
use super::{KnownCaller, RequestObserver, ServeOptions, ServerReadiness};

pub(super) struct McpService {
    pub(super) executor: ToolExecutor,
    pub(super) options: ServeOptions,
    // Decides which tools clients see.
    pub(super) scope: Scope,
    // Tells callers apart, even over restarts.
    identity: Option<Arc<str>>,
    // Results in 2026-07-28 name the server every time, so this is built once.
    pub(super) result_meta: Arc<Value>,
    pub(super) shared: Arc<SharedState>,
    lists: ArcSwap<ClientLists>,
    // The manager's current version. A list with another version is stale.
    version: watch::Receiver<u64>,
}

pub(super) struct SharedState {
    // One permit for each call that is not answered yet.
    pub(super) calls: Semaphore,
    // Calls that wait for answers of their clients.
    pub(super) suspended: Arc<SuspendedCalls>,
    pub(super) tasks: TaskTable,
    pub(super) sole_client: Arc<SoleClient>,
    pub(super) readiness: OnceLock<Box<dyn ServerReadiness>>,
    pub(super) observer: OnceLock<Arc<dyn RequestObserver>>,
}

impl McpService {
    pub(super) fn new(executor: ToolExecutor, options: ServeOptions) -> Self {
        let allowed = match options.allow.as_slice() {
            [] => Scope::default(),
            allow => Scope::only(allow.to_vec()),
        };
        let scope = allowed.except(options.deny.clone());
        let shared = SharedState {
            calls: Semaphore::new(MAX_CALLS),
            suspended: Arc::default(),
            tasks: TaskTable::new(options.tasks.clone()),
            sole_client: Arc::default(),
            readiness: OnceLock::new(),
            observer: OnceLock::new(),
        };
        Self::with_scope(executor, options, scope, None, Arc::new(shared))
    }

    /// The same service for one caller, who sees only what its scope allows.
    pub(super) fn within(&self, scope: Scope) -> Self {
        let (options, identity) = (self.options.clone(), self.identity.clone());
        self.restricted(options, scope, identity)
    }

    /// Like [`within`](Self::within), for a caller that can be recognized.
    pub(super) fn for_caller(&self, caller: KnownCaller) -> Self {
        let options = ServeOptions {
            clients_may_approve: caller.may_approve,
            ..self.options.clone()
        };
        self.restricted(options, caller.scope, Some(caller.identity))
    }

    fn restricted(&self, options: ServeOptions, scope: Scope, identity: Option<Arc<str>>) -> Self {
        let shared = Arc::clone(&self.shared);
        let scope = scope.within(&self.scope);
        Self::with_scope(self.executor.clone(), options, scope, identity, shared)
    }

    /// Whose tasks these are. The identity survives restarts; the number doesn't.
    pub(super) fn task_owner(&self, number: u64) -> String {
        match &self.identity {
            Some(identity) => identity.to_string(),
            None => format!("#{number}"),
        }
    }

    fn with_scope(
        executor: ToolExecutor,
        options: ServeOptions,
        scope: Scope,
        identity: Option<Arc<str>>,
        shared: Arc<SharedState>,
    ) -> Self {
        let info = json!({ "name": options.name, "version": options.version });
        let service = Self {
            version: executor.manager().subscribe(),
            executor,
            options,
            scope,
            identity,
            result_meta: Arc::new(json!({ SERVER_INFO: info })),
            shared,
            lists: ArcSwap::default(),
        };
        service.rebuild_lists(&ClientLists::default());
        service
    }

    /// All that clients may see, in the manager's order. Rebuilt only after a change.
    pub(super) fn lists(&self) -> Arc<ClientLists> {
        let lists = self.lists.load();
        if lists.version == *self.version.borrow() {
            return Arc::clone(&lists);
        }
        self.rebuild_lists(&lists)
    }

    fn rebuild_lists(&self, before: &ClientLists) -> Arc<ClientLists> {
        // Read before the tools, so that a change in between is noticed next time.
        let version = *self.version.borrow();
        let tools = self.executor.manager().tools();
        let rules = self.executor.rules();
        let definitions = tools.iter().map(|tool| tool.definition());
        let shown = definitions.filter(|tool| rules.offers(tool, &self.scope));
        let shown: Vec<_> = shown.collect();
        let all = self.executor.manager().content();
        let content = ContentLists::new(&all, &rules, &self.scope, &before.content);
        let lists = Arc::new(ClientLists::new(version, &shown, content, &all, before));
        self.lists.store(Arc::clone(&lists));
        lists
    }

    pub(super) fn max_message_values(&self) -> usize {
        self.executor.rules().limits.max_message_values()
    }
}
