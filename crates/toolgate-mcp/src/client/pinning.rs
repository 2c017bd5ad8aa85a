//! Pinning: a server's tools are compared with what a person agreed to, and what differs is told or withheld.
//!
//! The first list a server ever gives is agreed to as it is (trust on first use). The agreement is kept by the
//! [`Catalogue`] apart from what was listed last, so that no list can change it; only a person does.

mod change;
mod difference;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use toolgate_core::{Redactor, Withheld, escape, shown_name};
use tracing::warn;

use super::catalogue::{AgreementStamp, Catalogue, RememberedTool, hash};
use super::tool;
use crate::{PinPolicy, ServerSettings};
pub use change::{AgreeError, ToolChange, ToolChangeKind, ToolChanges};
pub use difference::Difference;
use difference::differences;

/// What of a tool's definition is agreed to; the rest, such as `_meta` and icons, may change at will. What a tool says of its
/// effects comes first where differences are shown, so that a long schema can't push it out of sight.
const PINNED: [&str; 6] = [
    "name",
    "annotations",
    "description",
    "title",
    "inputSchema",
    "outputSchema",
];
/// Changes of one list that are logged one by one.
const MOST_LOGGED: usize = 10;
/// Definitions that were logged are remembered so as not to log them again; more than this are forgotten.
const MOST_TOLD: usize = 4000;
/// Bytes of differences that are kept of one server.
const MOST_SHOWN: usize = 256 << 10;

/// Compares the tools of one server with what was agreed to. Survives its restarts, and ours with the catalogue.
pub(crate) struct ToolPins {
    settings: ServerSettings,
    catalogue: Catalogue,
    redactor: Redactor,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By the name on the server. `None` until the server has listed a tool for the first time.
    agreed: Option<BTreeMap<String, RememberedTool>>,
    /// Of the file that the agreement was read from.
    stamp: Option<AgreementStamp>,
    /// What is listed now, reduced to what is pinned, without what the settings leave out.
    listed: Vec<(String, RememberedTool)>,
    told: HashSet<String>,
    changes: Option<ToolChanges>,
}

pub(crate) struct PinVerdict {
    /// Why tools aren't offered, by their name on the server.
    pub(crate) withheld: HashMap<String, Withheld>,
    pub(crate) changes: Option<ToolChanges>,
}

impl ToolPins {
    /// Continues what `before`, the same server under other settings, has agreed to where no file remembers it.
    pub(crate) fn new(
        settings: &ServerSettings,
        catalogue: &Catalogue,
        redactor: &Redactor,
        before: Option<&Self>,
    ) -> Self {
        let mut state = State::default();
        let is_same = |before: &&Self| before.settings.connection == settings.connection;
        if let Some(before) = before.filter(is_same) {
            let before = before.state();
            state.agreed = before.agreed.clone();
            state.told = before.told.clone();
        }
        Self {
            settings: settings.clone(),
            catalogue: catalogue.clone(),
            redactor: redactor.clone(),
            state: Mutex::new(state),
        }
    }

    /// Takes what the server listed in an earlier run, when its changes were logged.
    pub(crate) fn recall(&self, remembered: &[RememberedTool]) -> PinVerdict {
        let mut state = self.state();
        self.read_agreement(&mut state);
        self.set_listed(&mut state, remembered.iter().map(|tool| &tool.definition));
        let hashes: Vec<String> = state.hashes().collect();
        state.told.extend(hashes);
        self.judge(&mut state)
    }

    /// Takes what the server has just listed; the first list is agreed to. What differs is logged once.
    pub(crate) fn compare(&self, listed: &[Value]) -> PinVerdict {
        let mut state = self.state();
        if self.catalogue.agreement_stamp(&self.settings) != state.stamp {
            self.read_agreement(&mut state);
        }
        self.set_listed(&mut state, listed);
        if state.agreed.is_none() && !listed.is_empty() {
            state.agreed = Some(listed.iter().filter_map(pinned_tool).collect());
        }
        let verdict = self.judge(&mut state);
        self.tell(&mut state);
        verdict
    }

    /// Looks whether another process has written an agreement; none if that changes nothing.
    pub(crate) fn refresh(&self) -> Option<PinVerdict> {
        let mut state = self.state();
        if self.catalogue.agreement_stamp(&self.settings) == state.stamp {
            return None;
        }
        self.read_agreement(&mut state);
        let before = state.changes.clone();
        let verdict = self.judge(&mut state);
        (verdict.changes != before).then_some(verdict)
    }

    /// Agrees to the changes that have this hash, for good.
    pub(crate) fn agree(&self, hash: &str) -> Result<PinVerdict, AgreeError> {
        let mut state = self.state();
        if state.changes.as_ref().map(|changes| &*changes.hash) != Some(hash) {
            return Err(AgreeError::OtherChanges(escape(&self.settings.name)));
        }
        let mut agreed = state.agreed.clone().unwrap_or_default();
        // What the settings leave out wasn't shown, so nothing is agreed to there.
        agreed.retain(|name, _| !tool::may_be_offered(&self.settings, name));
        agreed.extend(state.listed.iter().cloned());
        let tools = agreed.values().cloned().collect();
        self.catalogue.agree(&self.settings, tools)?;
        state.agreed = Some(agreed);
        state.stamp = self.catalogue.agreement_stamp(&self.settings);
        Ok(self.judge(&mut state))
    }

    pub(crate) fn changes(&self) -> Option<ToolChanges> {
        self.state().changes.clone()
    }

    fn read_agreement(&self, state: &mut State) {
        // The stamp first: a file that is written in between is read once more.
        state.stamp = self.catalogue.agreement_stamp(&self.settings);
        if let Some(agreed) = self.catalogue.agreement(&self.settings) {
            let agreed = agreed
                .iter()
                .filter_map(|tool| pinned_tool(&tool.definition));
            state.agreed = Some(agreed.collect());
        }
    }

    fn set_listed<'a>(&self, state: &mut State, listed: impl IntoIterator<Item = &'a Value>) {
        let tools = listed.into_iter().filter_map(pinned_tool);
        let tools = tools.filter(|(name, _)| tool::may_be_offered(&self.settings, name));
        state.listed = tools.collect();
    }

    fn judge(&self, state: &mut State) -> PinVerdict {
        state.changes = match (&state.agreed, self.settings.pin) {
            (None, _) | (_, PinPolicy::Off) => None,
            (Some(agreed), _) => self.changes_between(agreed, &state.listed),
        };
        let tools = state.changes.iter().flat_map(|changes| &changes.tools);
        let withheld = tools.filter(|tool| tool.withheld);
        PinVerdict {
            withheld: withheld
                .map(|tool| (tool.original_name.clone(), self.why_withheld(tool.kind)))
                .collect(),
            changes: state.changes.clone(),
        }
    }

    fn why_withheld(&self, kind: ToolChangeKind) -> Withheld {
        let reason = match kind {
            ToolChangeKind::New => "is new since you agreed to its server's tools",
            _ => "changed since you agreed to it",
        };
        let server = escape(&self.settings.name);
        let hint = format!(
            "'toolgate trust {server}' shows the difference and agrees to it, and so does the dashboard of 'toolgate serve'"
        );
        Withheld::new(reason, hint)
    }

    fn changes_between(
        &self,
        agreed: &BTreeMap<String, RememberedTool>,
        listed: &[(String, RememberedTool)],
    ) -> Option<ToolChanges> {
        let mut room = MOST_SHOWN;
        let mut tools = Vec::new();
        let mut definitions = Vec::new();
        for (name, new) in listed {
            let old = agreed.get(name);
            if old.is_some_and(|old| old.hash == new.hash) {
                continue;
            }
            definitions.push(json!([name, new.hash]));
            tools.push(self.change(name, old, Some(new), &mut room));
        }
        // A tool that is gone harms nobody; beside others it may be what one of them was called before.
        if tools.is_empty() {
            return None;
        }
        let names: HashSet<&String> = listed.iter().map(|(name, _)| name).collect();
        for (name, old) in agreed {
            if !names.contains(name) && tool::may_be_offered(&self.settings, name) {
                definitions.push(json!([name, null]));
                tools.push(self.change(name, Some(old), None, &mut room));
            }
        }
        let hash = hash(&Value::Array(definitions));
        Some(ToolChanges { hash, tools })
    }

    fn change(
        &self,
        name: &str,
        old: Option<&RememberedTool>,
        new: Option<&RememberedTool>,
        room: &mut usize,
    ) -> ToolChange {
        let [old, new] = [old, new].map(|tool| tool.map(|tool| &tool.definition));
        let (kind, (differences, more)) = match (old, new) {
            (_, None) => (ToolChangeKind::Gone, (Vec::new(), 0)),
            (None, Some(new)) => {
                let all = differences(&Value::Null, new, &self.redactor, room);
                (ToolChangeKind::New, all)
            }
            (Some(old), Some(new)) => {
                let all = differences(old, new, &self.redactor, room);
                (ToolChangeKind::Changed, all)
            }
        };
        ToolChange {
            tool: self
                .redactor
                .line(&shown_name(name), difference::LONGEST_PATH),
            original_name: name.to_owned(),
            kind,
            withheld: new.is_some_and(|new| is_withheld(self.settings.pin, old, new)),
            differences,
            more,
        }
    }

    /// One record for each change that was not logged yet, up to a bound.
    fn tell(&self, state: &mut State) {
        let server = self.settings.name.as_str();
        let hashes: HashMap<&String, &String> = state
            .listed
            .iter()
            .map(|(name, tool)| (name, &tool.hash))
            .collect();
        let changes = state.changes.iter().flat_map(|changes| &changes.tools);
        let is_news = |change: &&ToolChange| {
            let hash = hashes.get(&change.original_name);
            hash.is_some_and(|hash| !state.told.contains(*hash))
        };
        let news: Vec<&ToolChange> = changes.filter(is_news).collect();
        for news in news.iter().take(MOST_LOGGED) {
            let (tool, change) = (&news.tool, news.log_line());
            match news.kind {
                _ if news.withheld => {
                    warn!(server, %tool, %change, "an MCP tool is withheld until you agree to it with 'toolgate trust'");
                }
                ToolChangeKind::New => {
                    warn!(server, %tool, %change, "an MCP server has a new tool: see that you trust it");
                }
                _ => {
                    warn!(server, %tool, %change, "an MCP tool is not what it was: see that you still trust it");
                }
            }
        }
        let more = news.len().saturating_sub(MOST_LOGGED);
        if more > 0 {
            warn!(
                server,
                tools = more,
                "more MCP tools are not what they were: 'toolgate trust' shows all of them"
            );
        }
        let hashes: Vec<String> = state.hashes().collect();
        if state.told.len() > MOST_TOLD {
            state.told.clear();
        }
        state.told.extend(hashes);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    fn hashes(&self) -> impl Iterator<Item = String> {
        self.listed.iter().map(|(_, tool)| tool.hash.clone())
    }
}

impl Catalogue {
    /// What this server listed last and nobody has agreed to; nothing if all was, or if it never listed its tools.
    pub fn changes(&self, settings: &ServerSettings, redactor: &Redactor) -> Option<ToolChanges> {
        self.pins(settings, redactor).changes()
    }

    /// Agrees to the changes with this hash. A process that runs the server notices.
    ///
    /// # Errors
    ///
    /// If the server has listed other tools since, or nothing can be written.
    pub fn agree_to_changes(
        &self,
        settings: &ServerSettings,
        hash: &str,
    ) -> Result<(), AgreeError> {
        let pins = self.pins(settings, &Redactor::default());
        pins.agree(hash).map(|_| ())
    }

    fn pins(&self, settings: &ServerSettings, redactor: &Redactor) -> ToolPins {
        let pins = ToolPins::new(settings, self, redactor, None);
        let remembered = self.recall(settings);
        pins.recall(remembered.as_ref().map_or(&[], |server| &server.tools));
        pins
    }
}

/// By its name on the server, with what is pinned alone. An entry without a name is no tool.
pub(super) fn pinned_tool(definition: &Value) -> Option<(String, RememberedTool)> {
    let name = definition["name"].as_str()?.to_owned();
    let given = |key: &&str| {
        let value = definition.get(*key).filter(|value| !value.is_null())?;
        Some(((*key).to_owned(), value.clone()))
    };
    let mut pinned = Value::Object(PINNED.iter().filter_map(given).collect());
    for schema in ["inputSchema", "outputSchema"] {
        if let Some(schema) = pinned.get_mut(schema) {
            sort_sets(schema);
        }
    }
    Some((name, RememberedTool::new(&pinned)))
}

/// Some servers make these lists of sets, in another order at every start.
fn sort_sets(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            for (key, value) in object {
                match value {
                    Value::Array(list) if matches!(&**key, "required" | "enum" | "type") => {
                        list.sort_by_cached_key(Value::to_string);
                    }
                    other => sort_sets(other),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(sort_sets),
        _ => {}
    }
}

/// Unless told otherwise, what is destructive now or was, and what isn't read-only any more, waits for a person.
fn is_withheld(pin: PinPolicy, old: Option<&Value>, new: &Value) -> bool {
    let says = |tool: &Value, hint: &str| tool["annotations"][hint] == true;
    match pin {
        PinPolicy::Ask => true,
        PinPolicy::Warn | PinPolicy::Off => false,
        PinPolicy::AskIfDestructive => {
            let is_worse = |old: &Value| {
                says(old, "destructiveHint")
                    || (says(old, "readOnlyHint") && !says(new, "readOnlyHint"))
            };
            says(new, "destructiveHint") || old.is_some_and(is_worse)
        }
    }
}
