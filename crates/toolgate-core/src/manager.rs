//! Where tools are kept: one ordered collection for all sources.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use indexmap::IndexMap;
use tokio::sync::watch;
use tracing::warn;

use crate::{Source, Tool};

/// All tools there are, in the order they were added.
///
/// One ordered map behind an atomic snapshot: a reader never waits, a change swaps the whole map, and a call in flight keeps
/// the tool it found.
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
}

/// The tools at one moment.
///
/// ```
/// use toolgate_core::ToolManager;
///
/// let tools = ToolManager::new().tools();
/// assert!(tools.is_empty() && tools.find("echo").is_none());
/// ```
#[derive(Clone, Default)]
pub struct Tools {
    by_name: IndexMap<String, Arc<dyn Tool>>,
    /// Where a tool's name on its server is another one than here.
    by_original: HashMap<String, Vec<usize>>,
}

impl Tools {
    /// By exact name, else by a name that only one server uses for one of its tools.
    pub fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        if let Some(tool) = self.by_name.get(name) {
            return Some(tool);
        }
        match self.by_original.get(name)?.as_slice() {
            [only] => Some(&self.by_name[*only]),
            _ => None,
        }
    }

    /// All tools that have this name on their servers and another one here.
    pub fn sharing(&self, original_name: &str) -> impl Iterator<Item = &Arc<dyn Tool>> {
        let indexes = self.by_original.get(original_name).into_iter().flatten();
        indexes.map(|index| &self.by_name[*index])
    }

    /// All of them, as they are, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<dyn Tool>> {
        self.by_name.values()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    fn insert(&mut self, tool: Arc<dyn Tool>) {
        let definition = tool.definition();
        let name = definition.name().to_owned();
        if let Some(old) = self.by_name.get(&name) {
            warn!(tool = %name, old = %old.definition().source(), new = %definition.source(), "tool registered again: the new one replaces the old");
        }
        self.by_name.insert(name, tool);
    }

    fn index_originals(mut self) -> Self {
        self.by_original.clear();
        for (index, (name, tool)) in self.by_name.iter().enumerate() {
            let original = tool.definition().original_name();
            if original != name {
                self.by_original
                    .entry(original.to_owned())
                    .or_default()
                    .push(index);
            }
        }
        self
    }
}

impl ToolManager {
    /// Without any tools.
    pub fn new() -> Self {
        Self {
            tools: ArcSwap::default(),
            change: Mutex::new(()),
            version: watch::Sender::new(0),
        }
    }

    /// Adds a tool at the end; one of the same name is replaced where it stands, with a WARN.
    pub fn add(&self, tool: impl Tool + 'static) {
        self.add_all([Arc::new(tool) as Arc<dyn Tool>]);
    }

    /// Adds many tools at once, as [`add`](Self::add) does; readers see all of them or none.
    pub fn add_all(&self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) {
        self.change(|all| tools.into_iter().for_each(|tool| all.insert(tool)));
    }

    /// Removes the tools of one source.
    pub fn remove(&self, source: &Source) {
        self.change(|all| {
            all.by_name
                .retain(|_, tool| tool.definition().source() != source);
        });
    }

    /// Finds a tool by its name, or by its name on its server if only one has it.
    pub fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.tools.load().find(name).cloned()
    }

    /// All tools at this moment, as they are.
    pub fn tools(&self) -> Arc<Tools> {
        self.tools.load_full()
    }

    /// Counts changes of the tool set; await its `changed`.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    fn change(&self, change: impl FnOnce(&mut Tools)) {
        let _one_at_a_time = self.change.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tools = Tools::clone(&self.tools.load());
        change(&mut tools);
        self.tools.store(Arc::new(tools.index_originals()));
        self.version.send_modify(|version| *version += 1);
    }
}

impl Default for ToolManager {
    fn default() -> Self {
        Self::new()
    }
}
