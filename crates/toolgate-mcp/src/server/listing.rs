//! The tools an executor has for a client, as MCP lists them.

use std::borrow::Cow;
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
    Annotations, Scope, ToolDefinition, ToolError, ToolExecutor, nearest, visible, visible_schema,
    wire_names,
};

use super::http::Mirrored;
use super::service::Call;
use super::{Readiness, RequestObserver, ServeOptions};

/// The specification lets a name have 128 letters, digits, `_`, `-` and `.`. Claude Desktop, Windsurf and others take 64 without
/// the dot, and refuse the whole list for one name that has more.
const LONGEST_NAME: usize = 64;
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
    /// The names here of tools that clients know by another one.
    renamed: HashMap<String, String>,
    /// By the tool's name here, only of tools that have any.
    mirrored: HashMap<String, Vec<Mirrored>>,
}

impl Listing {
    fn new(version: u64, tools: Arc<Vec<Tool>>, names: &[String]) -> Self {
        let with_names = || tools.iter().zip(names);
        let mirrored = with_names().map(|(tool, name)| {
            let schema = &tool.input_schema;
            (name.clone(), Mirrored::of(schema))
        });
        let renamed = with_names().filter(|(tool, name)| tool.name != **name);
        Self {
            version,
            mirrored: mirrored.filter(|(_, all)| !all.is_empty()).collect(),
            renamed: renamed
                .map(|(tool, name)| (tool.name.to_string(), name.clone()))
                .collect(),
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
        let (tools, names) = self.convert();
        let listing = Listing::new(version, Arc::new(tools), &names);
        self.listing.store(Arc::new(listing));
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
        let (tools, names) = self.convert();
        let tools = if tools == *listing.tools {
            Arc::clone(&listing.tools)
        } else {
            Arc::new(tools)
        };
        let listing = Listing::new(version, Arc::clone(&tools), &names);
        self.listing.store(Arc::new(listing));
        tools
    }

    /// Returns when the list is worth giving.
    pub(super) async fn listed(&self) {
        if let Some(readiness) = self.readiness.get() {
            drop(tokio::time::timeout(LISTING, readiness.ready()).await);
        }
    }

    /// Returns when a name finds a tool, or it is decided that there is none, or after a while.
    pub(super) async fn decided(&self, asked: &str) {
        if let Some(readiness) = self.readiness.get() {
            let decided = async {
                tokio::select! {
                    () = readiness.ready_for(asked) => {}
                    () = self.found(asked) => {}
                }
            };
            drop(tokio::time::timeout(CALLING, decided).await);
        }
    }

    /// Returns when a name finds a tool. Who starts servers knows tools by their names here, and can't tell that for a name
    /// that only clients know.
    async fn found(&self, asked: &str) {
        let mut changes = self.executor.manager().subscribe();
        while self.find(&self.name_here(asked)).is_err() {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// The tools as they are listed, and their names here.
    fn convert(&self) -> (Vec<Tool>, Vec<String>) {
        let tools = self.executor.manager().tools();
        let definitions = tools.iter().map(|tool| tool.definition());
        let definitions: Vec<_> = definitions.filter(|tool| self.offers(tool)).collect();
        let names: Vec<&str> = definitions.iter().map(|tool| tool.name()).collect();
        let wire = wire_names::fixed(&names, LONGEST_NAME);
        let listed = definitions.iter().zip(wire);
        let listed = listed.map(|(tool, name)| convert(tool, name)).collect();
        (listed, names.into_iter().map(str::to_owned).collect())
    }

    /// What the tool is called here that a client knows by this name.
    pub(super) fn name_here<'a>(&self, asked: &'a str) -> Cow<'a, str> {
        self.tools(); // Up to date from here on.
        match self.listing.load().renamed.get(asked) {
            Some(name) => Cow::Owned(name.clone()),
            None => Cow::Borrowed(asked),
        }
    }

    /// The client's share of the tools.
    pub(super) fn scope(&self) -> Scope {
        self.scopes.first().cloned().unwrap_or_default()
    }

    /// True if clients may use this tool.
    pub(super) fn offers(&self, tool: &ToolDefinition) -> bool {
        self.executor.is_visible(tool) && self.is_for_clients(tool)
    }

    /// True if it is in the clients' share of the tools, whether or not it may be used now.
    pub(super) fn is_for_clients(&self, tool: &ToolDefinition) -> bool {
        let ServeOptions { allow, deny, .. } = &self.options;
        (allow.is_empty() || allow.iter().any(|pattern| pattern.grants(tool)))
            && !deny.iter().any(|pattern| pattern.matches(tool))
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
        let name = self.name_here(&call.name);
        match self.listing.load().mirrored.get(&*name) {
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

fn convert(tool: &ToolDefinition, name: String) -> Tool {
    let own_name = (name != tool.name()).then(|| tool.name());
    let mut listed = Tool::new(
        name,
        visible(tool.description()).into_owned(),
        object(tool.parameters()),
    );
    let title = tool.title().or(own_name);
    listed.title = title.map(|title| visible(title).into_owned());
    // One output schema of another type makes the TypeScript SDK refuse the whole list.
    listed.output_schema = tool
        .output_schema()
        .filter(|schema| schema["type"] == "object")
        .map(object);
    listed.annotations = annotations(tool.annotations());
    listed
}

fn object(schema: &Value) -> Arc<JsonObject> {
    match visible_schema(schema) {
        Value::Object(object) => Arc::new(object),
        _ => Arc::default(),
    }
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
