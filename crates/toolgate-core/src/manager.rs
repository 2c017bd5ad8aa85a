//! [`ToolManager`]: the only collection of tools, in order.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use futures::future::{BoxFuture, join_all};
use parking_lot::Mutex;
use tokio::sync::watch;
use tracing::warn;

use crate::text::{escape, escape_truncated};
use crate::tool_set::{RegisteredTool, strip_server};
use crate::{ContentSet, ContentSource, SourceContent, Tool, ToolRank, ToolSet, ToolSource};

/// The registry of all tools, which can change at any time.
///
/// Tools are sorted by rank, and within a rank in the order in which they were added.
///
/// Readers take an atomic snapshot and never wait; each change replaces the whole snapshot. A
/// running call keeps the tool it found. Names are assigned again at every change.
#[derive(Default)]
pub struct ToolManager {
    tools: ArcSwap<ToolSet>,
    content: ArcSwap<ContentSet>,
    // Held while a new snapshot is built.
    change: Mutex<()>,
    version: watch::Sender<u64>,
    // Configured servers without tools, with the reason.
    absent: ArcSwap<BTreeMap<String, String>>,
    refreshers: Mutex<Vec<Weak<dyn ListRefresher>>>,
}

/// Re-reads sources that don't announce changes, before a list is shown.
pub trait ListRefresher: Send + Sync {
    /// Called before a list is shown. It waits only a moment: changes that take longer to read are
    /// registered after it has returned. Implementations limit how often they re-read a source.
    fn refresh(&self) -> BoxFuture<'_, ()>;
}

impl ToolManager {
    pub fn new() -> Self {
        Self::default()
    }

    /// Records why a server has no tools; `None` clears it. A call to `<server>__<tool>` then fails
    /// with that reason instead of a suggestion for another tool.
    pub fn set_absent_reason(&self, server: &str, reason: Option<&str>) {
        self.absent.rcu(|absent| {
            let mut absent = BTreeMap::clone(absent);
            match reason {
                Some(reason) => absent.insert(server.to_owned(), reason.to_owned()),
                None => absent.remove(server),
            };
            absent
        });
    }

    /// For a name `<server>__<tool>` of a server without tools: the server, the
    /// tool and the reason.
    pub(crate) fn find_absent(&self, name: &str) -> Option<(String, String, String)> {
        let absent = self.absent.load();
        absent.iter().find_map(|(server, reason)| {
            let tool = strip_server(server, name)?;
            Some((server.clone(), tool.to_owned(), reason.clone()))
        })
    }

    /// Adds a local tool after the others. A local tool with the same name is
    /// replaced, with a WARN.
    pub fn add(&self, tool: impl Tool + 'static) {
        self.add_all([Arc::new(tool) as Arc<dyn Tool>]);
    }

    /// Adds several local tools at once; readers see all of them or none.
    pub fn add_all(&self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) {
        self.update(|all| add_local(all, tools));
    }

    /// Replaces all local tools in one change, for example after a file was edited.
    pub fn replace_local(&self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) {
        self.update(|all| {
            all.retain(|registered| !registered.tool.definition().source().is_local());
            add_local(all, tools);
        });
    }

    /// Replaces all tools of a server in one change. If the server lists a name twice, the later
    /// tool takes the place of the first, with a WARN.
    pub fn replace(&self, source: &ToolSource, rank: ToolRank, tools: Vec<Arc<dyn Tool>>) {
        if tools.is_empty() {
            return self.remove(source);
        }
        self.update(|all| {
            all.retain(|registered| registered.tool.definition().source() != source);
            let mut places = HashMap::new();
            for tool in tools {
                let name = tool.definition().original_name().to_owned();
                match places.entry(name) {
                    Entry::Vacant(free) => {
                        free.insert(all.len());
                        all.push(RegisteredTool { rank, tool });
                    }
                    Entry::Occupied(taken) => {
                        let source = escape(&source.to_string());
                        warn!(tool = %escape_truncated(tool.definition().name(), 200), %source, "a server lists a tool twice; the later one is used");
                        all[*taken.get()].tool = tool;
                    }
                }
            }
        });
    }

    /// Removes all tools of a source.
    pub fn remove(&self, source: &ToolSource) {
        let is_from_source = |tool: &Arc<dyn Tool>| tool.definition().source() == source;
        if self.tools.load().iter().any(is_from_source) {
            self.update(|all| all.retain(|registered| !is_from_source(&registered.tool)));
        }
    }

    /// Finds a tool by its name, by `<server>__<tool>`, or by its name on its server if only
    /// one server has it.
    pub fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.tools.load().find(name).cloned()
    }

    /// A snapshot of all tools.
    pub fn tools(&self) -> Arc<ToolSet> {
        self.tools.load_full()
    }

    /// Replaces the resources and prompts of a source in one change. `None` removes them.
    pub fn replace_content(
        &self,
        source: &ToolSource,
        rank: ToolRank,
        content: Option<Arc<SourceContent>>,
    ) {
        let _one_at_a_time = self.change.lock();
        let before = self.content.load();
        let others = before
            .sources()
            .iter()
            .filter(|entry| entry.source != *source);
        let mut sources: Vec<ContentSource> = others.cloned().collect();
        if content.is_none() && sources.len() == before.sources().len() {
            return;
        }
        sources.extend(content.map(|content| ContentSource {
            source: source.clone(),
            rank,
            content,
        }));
        self.content.store(Arc::new(ContentSet::new(sources)));
        self.notify_changed();
    }

    /// The resources and prompts of all sources.
    pub fn content(&self) -> Arc<ContentSet> {
        self.content.load_full()
    }

    /// Adds a refresher for [`refresh_lists`](Self::refresh_lists), for as long as it exists.
    pub fn add_refresher(&self, refresher: Weak<dyn ListRefresher>) {
        let mut refreshers = self.refreshers.lock();
        refreshers.retain(|known| known.strong_count() > 0);
        refreshers.push(refresher);
    }

    /// Runs all refreshers. To be called before a list is shown.
    pub async fn refresh_lists(&self) {
        let refreshers: Vec<_> = {
            let refreshers = self.refreshers.lock();
            refreshers.iter().filter_map(Weak::upgrade).collect()
        };
        join_all(refreshers.iter().map(|refresher| refresher.refresh())).await;
    }

    /// Returns a counter that increases whenever tools, resources or prompts change, or the policy
    /// that hides some of them. Await its `changed`.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    // For a new policy: the tools are the same, but others may be visible.
    pub(crate) fn notify_changed(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    fn update(&self, change: impl FnOnce(&mut Vec<RegisteredTool>)) {
        // Without the lock, two concurrent changes would start from the same snapshot, and one
        // would be lost.
        let _guard = self.change.lock();
        let before = self.tools.load();
        let mut all = before.registered().cloned().collect();
        change(&mut all);
        self.tools
            .store(Arc::new(ToolSet::assign_names(all, &before)));
        self.version.send_modify(|version| *version += 1);
    }
}

fn add_local(all: &mut Vec<RegisteredTool>, tools: impl IntoIterator<Item = Arc<dyn Tool>>) {
    let local = |(place, registered): (usize, &RegisteredTool)| {
        let name = registered.tool.definition().name().to_owned();
        (registered.rank == ToolRank::Local).then_some((name, place))
    };
    let mut places: HashMap<_, _> = all.iter().enumerate().filter_map(local).collect();
    for tool in tools {
        let name = tool.definition().name().to_owned();
        let rank = ToolRank::Local;
        match places.get(&name) {
            Some(place) => {
                let old = std::mem::replace(&mut all[*place].tool, tool);
                warn_about_replacement(&old, &all[*place].tool);
            }
            None => {
                places.insert(name, all.len());
                all.push(RegisteredTool { rank, tool });
            }
        }
    }
}

fn warn_about_replacement(old: &Arc<dyn Tool>, new: &Arc<dyn Tool>) {
    let (old, new) = (old.definition(), new.definition());
    warn!(tool = %escape_truncated(new.name(), 200), old = %old.source(), new = %new.source(), "tool registered again; the new one replaces the old one");
}
