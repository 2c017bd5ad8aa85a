//! The tools an executor has for a client, as MCP lists them.

use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use http::HeaderMap;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::Value;
use tokio::sync::watch;
use toolgate_core::{
    Annotations, Pattern, Scope, ToolDefinition, ToolError, ToolExecutor, nearest,
};

use super::http::Mirrored;
use super::service::Call;
use super::{Readiness, RequestObserver, ServeOptions};

/// How long a list waits for tools that are on their way; later ones are told as a change.
const LISTING: Duration = Duration::from_secs(5);
/// How long a call does, of a tool that is not there yet.
const CALLING: Duration = Duration::from_secs(30);

/// Changes that come in such quick succession are told once.
const COALESCE: Duration = Duration::from_millis(50);

/// What is offered to every client of one server.
pub(super) struct Catalogue {
    pub(super) executor: ToolExecutor,
    pub(super) options: ServeOptions,
    /// The client's share of the tools, and then the shares that one was taken from.
    scopes: Vec<Scope>,
    /// Calls of all clients that are not answered yet.
    pub(super) running: Arc<AtomicUsize>,
    listing: ArcSwap<Listing>,
    pub(super) readiness: Arc<OnceLock<Box<dyn Readiness>>>,
    pub(super) requests: Arc<OnceLock<Arc<dyn RequestObserver>>>,
}

#[derive(Default)]
struct Listing {
    /// The manager's count of changes it was made at.
    version: u64,
    tools: Arc<Vec<Tool>>,
    /// By the tool's name, only of tools that have any.
    mirrored: HashMap<String, Vec<Mirrored>>,
}

impl Listing {
    fn new(version: u64, tools: Arc<Vec<Tool>>) -> Self {
        let mirrored = tools.iter().map(|tool| {
            let schema = &tool.input_schema;
            (tool.name.to_string(), Mirrored::of(schema))
        });
        Self {
            version,
            mirrored: mirrored.filter(|(_, all)| !all.is_empty()).collect(),
            tools,
        }
    }
}

impl Catalogue {
    pub(super) fn new(executor: ToolExecutor, options: ServeOptions) -> Self {
        Self::filled(Self {
            executor,
            options,
            scopes: Vec::new(),
            running: Arc::default(),
            listing: ArcSwap::default(),
            readiness: Arc::default(),
            requests: Arc::default(),
        })
    }

    /// The same for one caller, who may use less of it.
    pub(super) fn within(&self, scope: Scope) -> Self {
        let mut scopes = vec![scope];
        scopes.extend(self.scopes.iter().cloned());
        Self::filled(Self {
            executor: self.executor.clone(),
            options: self.options.clone(),
            scopes,
            running: Arc::clone(&self.running),
            listing: ArcSwap::default(),
            readiness: Arc::clone(&self.readiness),
            requests: Arc::clone(&self.requests),
        })
    }

    fn filled(self) -> Self {
        let version = *self.executor.manager().subscribe().borrow();
        let tools = Arc::new(self.convert());
        self.listing.store(Arc::new(Listing::new(version, tools)));
        self
    }

    /// All tools a client may see, in the manager's order. They are converted once for every change of the tool set; a
    /// change that a client can not see leaves the very same list.
    pub(super) fn tools(&self) -> Arc<Vec<Tool>> {
        // Read before the tools: a change in between is then seen next time.
        let version = *self.executor.manager().subscribe().borrow();
        let listing = self.listing.load();
        if listing.version == version {
            return Arc::clone(&listing.tools);
        }
        let tools = self.convert();
        let tools = if tools == *listing.tools {
            Arc::clone(&listing.tools)
        } else {
            Arc::new(tools)
        };
        let listing = Listing::new(version, Arc::clone(&tools));
        self.listing.store(Arc::new(listing));
        tools
    }

    /// Returns when the list is worth giving.
    pub(super) async fn listed(&self) {
        if let Some(readiness) = self.readiness.get() {
            drop(tokio::time::timeout(LISTING, readiness.ready()).await);
        }
    }

    /// Returns when a name that is not there will not come soon either.
    pub(super) async fn decided(&self, name: &str) {
        if let Some(readiness) = self.readiness.get()
            && self.executor.find_in(name, &self.scope()).is_err()
        {
            drop(tokio::time::timeout(CALLING, readiness.ready_for(name)).await);
        }
    }

    fn convert(&self) -> Vec<Tool> {
        let tools = self.executor.manager().tools();
        let definitions = tools.iter().map(|tool| tool.definition());
        definitions
            .filter(|tool| self.offers(tool))
            .map(convert)
            .collect()
    }

    /// The client's share of the tools.
    pub(super) fn scope(&self) -> Scope {
        self.scopes.first().cloned().unwrap_or_default()
    }

    /// True if clients may use this tool.
    pub(super) fn offers(&self, tool: &ToolDefinition) -> bool {
        let ServeOptions { allow, deny, .. } = &self.options;
        self.executor.is_visible(tool)
            && (allow.is_empty() || matches(allow, tool))
            && !matches(deny, tool)
            && self.scopes.iter().all(|scope| scope.has(tool))
    }

    /// For a tool that does not exist here, whatever else the executor knows.
    pub(super) fn not_found(&self, name: &str) -> ToolError {
        let tools = self.tools();
        let known: Vec<String> = tools.iter().map(|tool| tool.name.to_string()).collect();
        ToolError::NotFound {
            name: name.to_owned(),
            nearest: nearest(name, known.iter().map(String::as_str), 3),
            known,
        }
    }

    /// Follows the list from now on.
    pub(super) fn watch(self: &Arc<Self>) -> Watch {
        let version = self.executor.manager().subscribe();
        Watch {
            version,
            seen: self.tools(),
            catalogue: Arc::clone(self),
        }
    }

    /// Follows it from an earlier list on.
    pub(super) fn watch_from(self: &Arc<Self>, seen: Arc<Vec<Tool>>) -> Watch {
        let mut watch = self.watch();
        if !Arc::ptr_eq(&watch.seen, &seen) {
            watch.seen = seen;
            watch.version.mark_changed();
        }
        watch
    }

    /// In 2026-07-28 some arguments stand in headers too, where a tool's schema says so.
    pub(super) fn check_mirrored(&self, headers: &HeaderMap, call: &Call) -> Result<(), String> {
        self.tools(); // Up to date from here on.
        match self.listing.load().mirrored.get(&call.name) {
            None => Ok(()),
            Some(mirrored) => mirrored
                .iter()
                .try_for_each(|one| one.check(headers, &call.arguments)),
        }
    }
}

/// One client's view of the list over time.
pub(super) struct Watch {
    catalogue: Arc<Catalogue>,
    version: watch::Receiver<u64>,
    seen: Arc<Vec<Tool>>,
}

impl Watch {
    /// The list as it was last seen.
    pub(super) fn seen(&self) -> Arc<Vec<Tool>> {
        Arc::clone(&self.seen)
    }

    /// Returns when the list is another one than before; never, if it can not change any more.
    pub(super) async fn changed(&mut self) {
        loop {
            if self.version.changed().await.is_err() {
                return std::future::pending().await;
            }
            tokio::time::sleep(COALESCE).await;
            self.version.mark_unchanged();
            let tools = self.catalogue.tools();
            if !Arc::ptr_eq(&tools, &self.seen) {
                self.seen = tools;
                return;
            }
        }
    }
}

fn matches(patterns: &[Pattern], tool: &ToolDefinition) -> bool {
    patterns.iter().any(|pattern| pattern.matches(tool))
}

fn convert(tool: &ToolDefinition) -> Tool {
    let mut listed = Tool::new(
        tool.name().to_owned(),
        tool.description().to_owned(),
        object(tool.parameters()),
    );
    listed.title = tool.title().map(str::to_owned);
    // One output schema of another type makes the TypeScript SDK refuse the whole list.
    listed.output_schema = tool
        .output_schema()
        .filter(|schema| schema["type"] == "object")
        .map(object);
    listed.annotations = annotations(tool.annotations());
    listed
}

fn object(schema: &Value) -> Arc<JsonObject> {
    Arc::new(schema.as_object().cloned().unwrap_or_default())
}

/// Only what the tool says: MCP has defaults for the rest.
fn annotations(said: Annotations) -> Option<ToolAnnotations> {
    (said != Annotations::default()).then(|| {
        ToolAnnotations::from_raw(
            None,
            said.read_only,
            said.destructive,
            said.idempotent,
            said.open_world,
        )
    })
}
