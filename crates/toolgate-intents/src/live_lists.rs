//! Reads the names for slots from tools and caches them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::time::Instant;
use toolgate_core::{Tool, ToolCall, ToolList, Toolbox};
use toolgate_home::HomeTool;

use super::engine::{SentenceEngine, SlotFilling};
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
    /// Held while reading, so that a second reader finds what the first has read.
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
        let mut kept = self.cache.lock();
        let is_same = kept
            .as_ref()
            .is_some_and(|kept| Arc::ptr_eq(&kept.source, list));
        if !is_same {
            *kept = None;
        }
        let kept = kept.get_or_insert_with(|| ListCache {
            source: Arc::clone(list),
            tools: engine
                .pack
                .intents
                .iter()
                .map(|intent| tool_presence(intent.tool.as_deref(), list))
                .collect(),
            lists: HashMap::new(),
        });
        kept.lists.retain(|_, (until, _)| *until > now);
        let lists = kept
            .lists
            .iter()
            .map(|(slot, (_, state))| (*slot, state.clone()));
        ListSnapshot {
            tools: Arc::clone(&kept.tools),
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
        // Spawned, so that the read completes even if the caller gives up: the next sentence needs
        // the lists too.
        let reading = tokio::spawn(async move {
            let _turn = live.reading.lock().await;
            let missing = live.missing(slots, &list);
            live.read_missing(&engine, &missing, &toolbox, &list).await;
        });
        // A panic leaves the lists unknown, and the next look reports that.
        let _read = reading.await;
    }

    // The lists that nobody has read meanwhile; none if the tools have changed, because that
    // invalidates every list.
    fn missing(&self, mut slots: BTreeSet<usize>, list: &Arc<ToolList>) -> BTreeSet<usize> {
        let kept = self.cache.lock();
        let Some(kept) = kept.as_ref().filter(|kept| Arc::ptr_eq(&kept.source, list)) else {
            return BTreeSet::new();
        };
        let now = Instant::now();
        let is_known = |slot: &usize| {
            let known = kept.lists.get(slot);
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
            if let SlotFilling::List(source) = &engine.slots[*slot] {
                let source = (source.tool.as_str(), &source.arguments);
                if !sources.contains(&source) {
                    sources.push(source);
                }
            }
        }
        let asked = sources
            .iter()
            .map(|(tool, arguments)| call_list_tool(tool, arguments, toolbox, list));
        let told = join_all(asked).await;
        let now = Instant::now();
        let mut kept = self.cache.lock();
        let Some(kept) = kept.as_mut().filter(|kept| Arc::ptr_eq(&kept.source, list)) else {
            return;
        };
        for (slot, filling) in engine.slots.iter().enumerate() {
            let SlotFilling::List(source) = filling else {
                continue;
            };
            let is_its = |(tool, arguments): &(&str, &Map<String, Value>)| {
                (*tool, *arguments) == (source.tool.as_str(), &source.arguments)
            };
            let Some(index) = sources.iter().position(is_its) else {
                continue;
            };
            let (time, state) = match &told[index] {
                Ok(result) => {
                    let names = Arc::new(names(engine, source, result));
                    (CACHE_TIME, ListState::Known(names))
                }
                Err(reason) => (FAILURE_CACHE_TIME, ListState::Unreadable(reason.clone())),
            };
            kept.lists.insert(slot, (now + time, state));
        }
    }
}

fn names(engine: &SentenceEngine, source: &ListSource, result: &Value) -> NameIndex {
    let groups = &engine.pack.groups;
    let kinds = ItemRules {
        all: &groups.kinds,
        everything: source.everything.as_ref(),
        plural: &groups.plural,
    };
    let qualifier = source.qualifier.as_deref();
    let items = collect_items(result, &source.pointer, qualifier, &kinds, |item, name| {
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
    NameIndex::from_items(items, kinds.all, &engine.normalizer())
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
        return ToolPresence::Words;
    };
    match tools_named(tool, list).as_slice() {
        [] => ToolPresence::Absent,
        [only] => ToolPresence::Ready {
            name: only.definition().name().to_owned(),
            careful: is_careful(only.as_ref()),
        },
        several => {
            let names = several
                .iter()
                .map(|tool| tool.definition().name().to_owned());
            ToolPresence::Several(names.collect())
        }
    }
}

/// The tools with a listed name, or else with that original name. Each home protocol has its own
/// name for the same tool.
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
// counts.
fn is_careful(tool: &dyn Tool) -> bool {
    let annotations = tool.definition().annotations();
    let acts = annotations.read_only != Some(true);
    annotations.destructive.unwrap_or(acts)
}
