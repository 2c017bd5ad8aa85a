//! Where tools are kept: one ordered collection for all sources.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::watch;
use tracing::warn;

use crate::tools::{Registered, of_server};
use crate::{Rank, Source, Tool, Tools};

/// All tools there are: by rank, then in the order they were added.
///
/// One ordered map behind an atomic snapshot: a reader never waits, a change swaps the whole map, and a call in flight keeps
/// the tool it found. Which name a tool is listed under is decided anew at every change.
///
/// ```
/// use toolgate_core::{FunctionTool, ToolError, ToolManager};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Nothing {}
///
/// let manager = ToolManager::new();
/// manager.add(FunctionTool::new("ping", "Answers", |_: Nothing, _| async { Ok::<_, ToolError>("pong") })?);
/// assert_eq!(manager.find("ping").unwrap().definition().description(), "Answers");
/// assert!(manager.find("pong").is_none());
/// # Ok::<_, toolgate_core::DefinitionError>(())
/// ```
pub struct ToolManager {
    tools: ArcSwap<Tools>,
    /// Held while a new snapshot is made, so that two changes do not undo each other.
    change: Mutex<()>,
    version: watch::Sender<u64>,
    /// Servers that are known and have no tools here, with the reason.
    absent: ArcSwap<BTreeMap<String, String>>,
}

impl ToolManager {
    /// Without any tools.
    pub fn new() -> Self {
        Self {
            tools: ArcSwap::default(),
            change: Mutex::new(()),
            version: watch::Sender::new(0),
            absent: ArcSwap::default(),
        }
    }

    /// A server has no tools here, for this reason; `None`: it has, or is not known any more. A call of `<server>__<tool>` is
    /// then told the reason instead of another tool's name.
    ///
    /// ```
    /// use serde_json::json;
    /// use toolgate_core::{ToolCall, ToolExecutor, ToolManager};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// let manager = std::sync::Arc::new(ToolManager::new());
    /// manager.set_absent("house", Some("its server 'house' is disabled"));
    /// let outcome = ToolExecutor::new(manager).execute(ToolCall::new("house__lamp", json!({}))).await;
    /// assert_eq!(outcome.error().unwrap(), "The house__lamp service is currently unavailable: its server 'house' is disabled");
    /// # });
    /// ```
    pub fn set_absent(&self, server: &str, reason: Option<&str>) {
        self.absent.rcu(|absent| {
            let mut absent = BTreeMap::clone(absent);
            match reason {
                Some(reason) => absent.insert(server.to_owned(), reason.to_owned()),
                None => absent.remove(server),
            };
            absent
        });
    }

    /// The absent server that `name` asks, the tool it asks for, and the reason.
    pub(crate) fn absent(&self, name: &str) -> Option<(String, String, String)> {
        let absent = self.absent.load();
        absent.iter().find_map(|(server, reason)| {
            let tool = of_server(server, name)?;
            Some((server.clone(), tool.to_owned(), reason.clone()))
        })
    }

    /// Adds a local tool at the end of the local ones; one of the same name is replaced where it stands, with a WARN.
    pub fn add(&self, tool: impl Tool + 'static) {
        self.add_all([Arc::new(tool) as Arc<dyn Tool>]);
    }

    /// Adds many local tools at once, as [`add`](Self::add) does; readers see all of them or none.
    pub fn add_all(&self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) {
        self.change(|all| add_local(all, tools));
    }

    /// Makes these all the local tools, in one change, as a file that was edited has them.
    ///
    /// ```
    /// use toolgate_core::ToolManager;
    ///
    /// fn reload(running: &ToolManager, made_anew: &ToolManager) {
    ///     running.replace_local(made_anew.tools().iter().cloned());
    /// }
    /// ```
    pub fn replace_local(&self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) {
        self.change(|all| {
            all.retain(|registered| !registered.tool.definition().source().is_local());
            add_local(all, tools);
        });
    }

    /// Makes these all the tools of a server, in one change. Where the server lists a name twice, the later tool stands in the
    /// place of the first, with a WARN.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use toolgate_core::{Rank, Source, Tool, ToolManager};
    ///
    /// fn listed(manager: &ToolManager, server: &str, place: usize, tools: Vec<Arc<dyn Tool>>) {
    ///     manager.replace(&Source::Mcp(server.to_owned()), Rank::Server(place), tools);
    /// }
    /// ```
    pub fn replace(&self, source: &Source, rank: Rank, tools: Vec<Arc<dyn Tool>>) {
        if tools.is_empty() {
            return self.remove(source);
        }
        self.change(|all| {
            all.retain(|registered| registered.tool.definition().source() != source);
            let mut places = HashMap::new();
            for tool in tools {
                let name = tool.definition().original_name().to_owned();
                match places.entry(name) {
                    Entry::Vacant(free) => {
                        free.insert(all.len());
                        all.push(Registered { rank, tool });
                    }
                    Entry::Occupied(taken) => {
                        let source = crate::escape(&source.to_string());
                        warn!(tool = %crate::text::cut(tool.definition().name(), 200), %source, "a server lists a tool twice: the later one counts");
                        all[*taken.get()].tool = tool;
                    }
                }
            }
        });
    }

    /// Removes the tools of one source.
    pub fn remove(&self, source: &Source) {
        let is_its = |tool: &Arc<dyn Tool>| tool.definition().source() == source;
        if self.tools.load().iter().any(is_its) {
            self.change(|all| all.retain(|registered| !is_its(&registered.tool)));
        }
    }

    /// Finds a tool by its name, by `<server>__<tool>`, or by its name on its server if only one has it.
    pub fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.tools.load().find(name).cloned()
    }

    /// All tools at this moment, as they are.
    pub fn tools(&self) -> Arc<Tools> {
        self.tools.load_full()
    }

    /// Counts changes of the tool set, and of what the policy shows of it; await its `changed`.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Other tools may be visible than before, though they are the same.
    pub(crate) fn tell_changed(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Registered>)) {
        let _one_at_a_time = self.change.lock();
        let before = self.tools.load();
        let mut all = before.registered().cloned().collect();
        change(&mut all);
        self.tools.store(Arc::new(Tools::name(all, &before)));
        self.version.send_modify(|version| *version += 1);
    }
}

/// Where the local tools stand, by name.
fn add_local(all: &mut Vec<Registered>, tools: impl IntoIterator<Item = Arc<dyn Tool>>) {
    let mut places = local_places(all);
    for tool in tools {
        let name = tool.definition().name().to_owned();
        let rank = Rank::Local;
        match places.get(&name) {
            Some(place) => {
                let old = std::mem::replace(&mut all[*place].tool, tool);
                warn_of_replacement(&old, &all[*place].tool);
            }
            None => {
                places.insert(name, all.len());
                all.push(Registered { rank, tool });
            }
        }
    }
}

fn local_places(all: &[Registered]) -> HashMap<String, usize> {
    let places = all.iter().enumerate();
    let local = places.filter(|(_, registered)| registered.rank == Rank::Local);
    local
        .map(|(place, registered)| (registered.tool.definition().name().to_owned(), place))
        .collect()
}

fn warn_of_replacement(old: &Arc<dyn Tool>, new: &Arc<dyn Tool>) {
    let (old, new) = (old.definition(), new.definition());
    warn!(tool = %crate::text::cut(new.name(), 200), old = %old.source(), new = %new.source(), "tool registered again: the new one replaces the old");
}

impl Default for ToolManager {
    fn default() -> Self {
        Self::new()
    }
}
