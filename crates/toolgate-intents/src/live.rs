//! The names a slot may be filled with, asked of tools and kept for a while.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::time::Instant;
use toolgate_core::{Tool, ToolCall, ToolList, Toolbox};
use toolgate_home::HomeTool;

use super::engine::{Engine, Filling};
use super::items::{Kinds, items};
use super::lists::Names;
use super::matcher::ListState;
use super::meaning::Presence;
use super::pack::ListSource;

/// How long a list is good.
const GOOD_FOR: Duration = Duration::from_secs(30);
/// How long a list that could not be read is not asked for again.
const BAD_FOR: Duration = Duration::from_secs(5);
/// How long a tool may take to tell its list.
pub(crate) const LIMIT: Duration = Duration::from_secs(2);

#[derive(Default)]
pub(crate) struct Live {
    kept: Mutex<Option<Kept>>,
    /// Held by whoever reads: who comes second finds what the first has read.
    reading: tokio::sync::Mutex<()>,
}

struct Kept {
    of: Arc<ToolList>,
    tools: Arc<[Presence]>,
    lists: HashMap<usize, (Instant, ListState)>,
}

pub(crate) struct Snapshot {
    pub(crate) tools: Arc<[Presence]>,
    pub(crate) lists: HashMap<usize, ListState>,
}

impl Live {
    pub(crate) fn snapshot(&self, engine: &Engine, list: &Arc<ToolList>) -> Snapshot {
        let now = Instant::now();
        let mut kept = self.kept.lock();
        let is_same = kept
            .as_ref()
            .is_some_and(|kept| Arc::ptr_eq(&kept.of, list));
        if !is_same {
            *kept = None;
        }
        let kept = kept.get_or_insert_with(|| Kept {
            of: Arc::clone(list),
            tools: engine
                .pack
                .intents
                .iter()
                .map(|intent| presence(intent.tool.as_deref(), list))
                .collect(),
            lists: HashMap::new(),
        });
        kept.lists.retain(|_, (until, _)| *until > now);
        Snapshot {
            tools: Arc::clone(&kept.tools),
            lists: kept
                .lists
                .iter()
                .map(|(slot, (_, state))| (*slot, state.clone()))
                .collect(),
        }
    }

    /// Reads lists, to the end also where nobody waits for them any more: the next sentence needs them too.
    pub(crate) async fn read(
        self: &Arc<Self>,
        engine: &Arc<Engine>,
        slots: BTreeSet<usize>,
        toolbox: &Toolbox,
        list: &Arc<ToolList>,
    ) {
        let (live, engine) = (Arc::clone(self), Arc::clone(engine));
        let (toolbox, list) = (toolbox.clone(), Arc::clone(list));
        let reading = tokio::spawn(async move {
            let _turn = live.reading.lock().await;
            let missing = live.missing(slots, &list);
            live.read_now(&engine, &missing, &toolbox, &list).await;
        });
        // What was not read is not known, and that is how it is answered.
        let _read = reading.await;
    }

    /// Those of these lists that nobody has read meanwhile; none if the tools have changed, and with them all lists.
    fn missing(&self, mut slots: BTreeSet<usize>, list: &Arc<ToolList>) -> BTreeSet<usize> {
        let kept = self.kept.lock();
        let Some(kept) = kept.as_ref().filter(|kept| Arc::ptr_eq(&kept.of, list)) else {
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

    /// Each tool is asked once, also if several slots are filled from what it tells.
    async fn read_now(
        &self,
        engine: &Engine,
        slots: &BTreeSet<usize>,
        toolbox: &Toolbox,
        list: &Arc<ToolList>,
    ) {
        let mut sources: Vec<(&str, &Map<String, Value>)> = Vec::new();
        for slot in slots {
            if let Filling::List(source) = &engine.slots[*slot] {
                let source = (source.tool.as_str(), &source.arguments);
                if !sources.contains(&source) {
                    sources.push(source);
                }
            }
        }
        let asked = sources
            .iter()
            .map(|(tool, arguments)| ask(tool, arguments, toolbox, list));
        let told = join_all(asked).await;
        let now = Instant::now();
        let mut kept = self.kept.lock();
        let Some(kept) = kept.as_mut().filter(|kept| Arc::ptr_eq(&kept.of, list)) else {
            return;
        };
        for (slot, filling) in engine.slots.iter().enumerate() {
            let Filling::List(source) = filling else {
                continue;
            };
            let is_its = |(tool, arguments): &(&str, &Map<String, Value>)| {
                (*tool, *arguments) == (source.tool.as_str(), &source.arguments)
            };
            let Some(index) = sources.iter().position(is_its) else {
                continue;
            };
            let known = match &told[index] {
                Ok(result) => (
                    now + GOOD_FOR,
                    ListState::Known(Arc::new(names(engine, source, result))),
                ),
                Err(reason) => (now + BAD_FOR, ListState::Unreadable(reason.clone())),
            };
            kept.lists.insert(slot, known);
        }
    }
}

fn names(engine: &Engine, source: &ListSource, result: &Value) -> Names {
    let groups = &engine.pack.groups;
    let kinds = Kinds {
        all: &groups.kinds,
        everything: source.everything.as_ref(),
        plural: &groups.plural,
    };
    let qualifier = source.qualifier.as_deref();
    let items = items(result, &source.pointer, qualifier, &kinds, |item, name| {
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
    Names::live(items, kinds.all, &engine.spoken())
}

async fn ask(
    name: &str,
    arguments: &Map<String, Value>,
    toolbox: &Toolbox,
    list: &ToolList,
) -> Result<Value, String> {
    let tool = match with_name(name, list).as_slice() {
        [] => return Err(format!("the tool {name} is not there")),
        [only] => Arc::clone(only),
        _ => return Err(format!("there is more than one tool called {name}")),
    };
    let definition = tool.definition();
    if definition.annotations().read_only != Some(true) {
        return Err(format!("the tool {name} does not say that it only reads"));
    }
    let call = ToolCall::new(definition.name(), arguments.clone())
        .origin(toolbox.origin())
        .scope(toolbox.scope().clone())
        .timeout(LIMIT);
    let slow = |_| format!("{name} took longer than {} s", LIMIT.as_secs());
    let outcome = tokio::time::timeout(LIMIT, toolbox.executor().execute(call))
        .await
        .map_err(slow)?;
    let output = outcome.result.map_err(|error| error.to_string())?;
    Ok(match output.to_result() {
        Value::String(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        other => other,
    })
}

fn presence(tool: Option<&str>, list: &ToolList) -> Presence {
    let Some(tool) = tool else {
        return Presence::Words;
    };
    match with_name(tool, list).as_slice() {
        [] => Presence::Absent,
        [only] => Presence::Ready {
            name: only.definition().name().to_owned(),
            careful: is_careful(only.as_ref()),
        },
        several => Presence::Several(
            several
                .iter()
                .map(|tool| tool.definition().name().to_owned())
                .collect(),
        ),
    }
}

/// Tools that are listed under a name, else those that have it where they come from. Each home
/// protocol has a name of its own for the same tool.
pub(super) fn with_name<'a>(name: &str, list: &'a ToolList) -> Vec<&'a Arc<dyn Tool>> {
    let listed = list
        .tools()
        .iter()
        .find(|tool| tool.definition().name() == name);
    let home_tool = HomeTool::from_name(name);
    let is_same = |tool: &&Arc<dyn Tool>| {
        let original = tool.definition().original_name();
        original == name || (home_tool.is_some() && HomeTool::from_name(original) == home_tool)
    };
    let original = || list.tools().iter().filter(is_same).collect();
    listed.map_or_else(original, |tool| vec![tool])
}

/// True if a tool must not be called by mistake. One that says nothing of itself may do anything.
fn is_careful(tool: &dyn Tool) -> bool {
    let annotations = tool.definition().annotations();
    annotations
        .destructive
        .unwrap_or(annotations.read_only != Some(true))
}
