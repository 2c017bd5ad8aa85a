//! Reads the names that can fill slots from tools, and caches them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::time::Instant;
use toolgate_core::{Tool, ToolCall, ToolList, Toolbox};
use toolgate_home::HomeTool;

use super::engine::{CompiledSlot, SentenceEngine};
use super::items::{ItemRules, collect_items};
use super::matcher::ListState;
use super::meaning::ToolPresence;
use super::name_index::NameIndex;
use super::pack::ListSource;

const CACHE_TIME: Duration = Duration::from_secs(30);
// Failures are cached too, so that a broken tool is not called for every sentence.
const FAILURE_CACHE_TIME: Duration = Duration::from_secs(5);
// Timeout of a call that reads a list.
pub(crate) const LIST_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Default)]
pub(crate) struct LiveLists {
    cache: Mutex<Option<ListCache>>,
    /// Held while reading, so that a second reader finds the lists of the first in the cache.
    reading: tokio::sync::Mutex<()>,
}

struct ListCache {
    source: Arc<ToolList>,
    tools: Arc<[ToolPresence]>,
    lists: HashMap<usize, (Instant, ListState)>,
}

pub(crate) struct ListSnapshot {
    pub(crate) tools: Arc<[ToolPresence]>,
    pub(crate) lists: HashMap<usize, ListState>,
}

impl LiveLists {
    pub(crate) fn snapshot(&self, engine: &SentenceEngine, list: &Arc<ToolList>) -> ListSnapshot {
        let now = Instant::now();
        let mut cache = self.cache.lock();
        let is_same = cache
            .as_ref()
            .is_some_and(|cache| Arc::ptr_eq(&cache.source, list));
        if !is_same {
            *cache = None;
        }
        let cache = cache.get_or_insert_with(|| ListCache {
            source: Arc::clone(list),
            tools: engine
                .pack
                .intents
                .iter()
                .map(|intent| tool_presence(intent.tool.as_deref(), list))
                .collect(),
            lists: HashMap::new(),
        });
        cache.lists.retain(|_, (until, _)| *until > now);
        let lists = cache
            .lists
            .iter()
            .map(|(slot, (_, state))| (*slot, state.clone()));
        ListSnapshot {
            tools: Arc::clone(&cache.tools),
            lists: HashMap::from_iter(lists),
        }
    }

    pub(crate) async fn read(
        self: &Arc<Self>,
        engine: &Arc<SentenceEngine>,
        slots: BTreeSet<usize>,
        toolbox: &Toolbox,
        list: &Arc<ToolList>,
    ) {
        let (live, engine) = (Arc::clone(self), Arc::clone(engine));
        let (toolbox, list) = (toolbox.clone(), Arc::clone(list));
        // Spawned, so that reading completes even if the caller gives up: the next sentence needs
        // the lists too.
        let reading = tokio::spawn(async move {
            let _turn = live.reading.lock().await;
            let missing = live.missing(slots, &list);
            live.read_missing(&engine, &missing, &toolbox, &list).await;
        });
        // After a panic the lists stay unknown, and the caller's next attempt reports that.
        let _read = reading.await;
    }

    // The lists that no other reader has read in the meantime. Empty if the tools have changed,
    // which invalidates all lists.
    fn missing(&self, mut slots: BTreeSet<usize>, list: &Arc<ToolList>) -> BTreeSet<usize> {
        let cache = self.cache.lock();
        let Some(cache) = cache
            .as_ref()
            .filter(|cache| Arc::ptr_eq(&cache.source, list))
        else {
            return BTreeSet::new();
        };
        let now = Instant::now();
        let is_known = |slot: &usize| {
            let known = cache.lists.get(slot);
            known.is_some_and(|(until, _)| *until > now)
        };
        slots.retain(|slot| !is_known(slot));
        slots
    }

    /// Calls each tool once, even if several slots use its result.
    async fn read_missing(
        &self,
        engine: &SentenceEngine,
        slots: &BTreeSet<usize>,
        toolbox: &Toolbox,
        list: &Arc<ToolList>,
    ) {
        let mut sources: Vec<(&str, &Map<String, Value>)> = Vec::new();
        for slot in slots {
            if let CompiledSlot::List(source) = &engine.slots[*slot] {
                let source = (source.tool.as_str(), &source.arguments);
                if !sources.contains(&source) {
                    sources.push(source);
                }
            }
        }
        let calls = sources
            .iter()
            .map(|(tool, arguments)| call_list_tool(tool, arguments, toolbox, list));
        let results = join_all(calls).await;
        let now = Instant::now();
        let mut cache = self.cache.lock();
        let Some(cache) = cache
            .as_mut()
            .filter(|cache| Arc::ptr_eq(&cache.source, list))
        else {
            return;
        };
        for (slot, filling) in engine.slots.iter().enumerate() {
            let CompiledSlot::List(source) = filling else {
                continue;
            };
            let is_source = |(tool, arguments): &(&str, &Map<String, Value>)| {
                (*tool, *arguments) == (source.tool.as_str(), &source.arguments)
            };
            let Some(index) = sources.iter().position(is_source) else {
                continue;
            };
            let (time, state) = match &results[index] {
                Ok(result) => {
                    let names = Arc::new(index_names(engine, source, result));
                    (CACHE_TIME, ListState::Known(names))
                }
                Err(reason) => (FAILURE_CACHE_TIME, ListState::Unreadable(reason.clone())),
            };
            cache.lists.insert(slot, (now + time, state));
        }
    }
}

fn index_names(engine: &SentenceEngine, source: &ListSource, result: &Value) -> NameIndex {
    let groups = &engine.pack.groups;
    let rules = ItemRules {
        kinds: &groups.kinds,
        everything: source.everything.as_ref(),
        plural: &groups.plural,
    };
    let qualifier = source.qualifier.as_deref();
    let items = collect_items(result, &source.pointer, qualifier, &rules, |item, name| {
        let has_one = |list: &[String]| list.iter().any(|word| name.contains(word));
        let has = |(pointer, wanted): (&String, &Value)| {
            let found = item.pointer(pointer);
            found.is_some_and(|found| match wanted {
                Value::Array(several) => several.contains(found),
                one => one == found,
            })
        };
        if source.or.iter().any(has) {
            return true;
        }
        (source.only.is_empty() || has_one(&source.only)) && !has_one(&source.without)
    });
    NameIndex::from_items(items, rules.kinds, &engine.normalizer())
}

async fn call_list_tool(
    name: &str,
    arguments: &Map<String, Value>,
    toolbox: &Toolbox,
    list: &ToolList,
) -> Result<Value, String> {
    let tool = match tools_named(name, list).as_slice() {
        [] => return Err(format!("the tool {name} does not exist")),
        [only] => Arc::clone(only),
        _ => return Err(format!("there is more than one tool called {name}")),
    };
    let definition = tool.definition();
    // Reading names must never act: a pack can name any tool.
    if definition.annotations().read_only != Some(true) {
        return Err(format!("the tool {name} is not marked as read-only"));
    }
    let call = ToolCall::new(definition.name(), arguments.clone())
        .origin(toolbox.origin())
        .scope(toolbox.scope().clone())
        .timeout(LIST_TIMEOUT);
    let slow = |_| format!("{name} took longer than {} s", LIST_TIMEOUT.as_secs());
    let outcome = tokio::time::timeout(LIST_TIMEOUT, toolbox.executor().execute(call))
        .await
        .map_err(slow)?;
    let output = outcome.result.map_err(|error| error.to_string())?;
    Ok(match output.to_result() {
        Value::String(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        other => other,
    })
}

fn tool_presence(tool: Option<&str>, list: &ToolList) -> ToolPresence {
    let Some(tool) = tool else {
        return ToolPresence::NotNeeded;
    };
    match tools_named(tool, list).as_slice() {
        [] => ToolPresence::Absent,
        [only] => ToolPresence::Ready {
            name: only.definition().name().to_owned(),
            careful: needs_care(only.as_ref()),
        },
        several => {
            let names = several
                .iter()
                .map(|tool| tool.definition().name().to_owned());
            ToolPresence::Ambiguous(names.collect())
        }
    }
}

/// The tool that is listed under a name, or else all tools with that original name. Each home
/// protocol has its own name for the same tool.
pub(super) fn tools_named<'a>(name: &str, list: &'a ToolList) -> Vec<&'a Arc<dyn Tool>> {
    let mut tools = list.tools().iter();
    let listed = tools.find(|tool| tool.definition().name() == name);
    let home_tool = HomeTool::from_name(name);
    let is_same = |tool: &&Arc<dyn Tool>| {
        let original = tool.definition().original_name();
        original == name || (home_tool.is_some() && HomeTool::from_name(original) == home_tool)
    };
    let original = || list.tools().iter().filter(is_same).collect();
    listed.map_or_else(original, |tool| vec![tool])
}

// True if a tool must not be called by mistake. A tool without annotations may do anything, so it
// is included.
fn needs_care(tool: &dyn Tool) -> bool {
    let annotations = tool.definition().annotations();
    let acts = annotations.read_only != Some(true);
    annotations.destructive.unwrap_or(acts)
}
