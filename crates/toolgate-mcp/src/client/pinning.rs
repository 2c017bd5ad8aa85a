//! Pinning: compares a server's tools with those a person agreed to, and
//! reports or withholds changes.
//!
//! The first list of a server is accepted as it is (trust on first use). The [`ToolCatalog`] stores
//! the agreement apart from the latest list, so that a server can't change it; only a person can.

mod change;
mod difference;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolgate_core::text::escape;
use toolgate_core::{Redactor, WithheldReason, display_name};
use tracing::warn;

use super::catalog::{AgreementStamp, RememberedTool, ToolCatalog, hash};
use super::tool;
use crate::{PinPolicy, ServerSettings};
pub use change::{AgreementError, ToolChange, ToolChangeKind, ToolChanges};
pub use difference::DefinitionDifference;
use difference::find_differences;

// The parts of a definition that are pinned; others, such as `_meta` and icons, may change.
// Annotations come first in a report, so that a long schema can't push them out of sight.
const PINNED: [&str; 6] = [
    "name",
    "annotations",
    "description",
    "title",
    "inputSchema",
    "outputSchema",
];
const MAX_LOGGED_CHANGES: usize = 10;
// Hashes of logged definitions that are remembered to avoid logging them again; beyond this
// they are all forgotten.
const MAX_LOGGED_HASHES: usize = 4000;
const MAX_DIFFERENCE_BYTES: usize = 256 << 10;

/// Compares one server's tools with the agreement. Survives restarts of the server, and restarts of
/// Toolgate if the catalog is persistent.
pub(crate) struct ToolPins {
    settings: ServerSettings,
    catalog: ToolCatalog,
    redactor: Redactor,
    state: Mutex<PinState>,
}

#[derive(Default)]
struct PinState {
    // By original name. `None` until the server has listed a tool for the first time.
    agreed: Option<BTreeMap<String, RememberedTool>>,
    agreement_stamp: Option<AgreementStamp>,
    // The current list, reduced to the pinned parts, without tools that the settings exclude.
    listed: Vec<(String, RememberedTool)>,
    logged_hashes: HashSet<String>,
    changes: Option<ToolChanges>,
}

pub(crate) struct PinVerdict {
    pub(crate) withheld: HashMap<String, WithheldReason>,
    pub(crate) changes: Option<ToolChanges>,
}

impl ToolPins {
    /// `before` belongs to the same server under its former settings. Its agreement applies
    /// if none is stored.
    pub(crate) fn new(
        settings: &ServerSettings,
        catalog: &ToolCatalog,
        redactor: &Redactor,
        before: Option<&Self>,
    ) -> Self {
        let mut state = PinState::default();
        let is_same = |before: &&Self| before.settings.connection == settings.connection;
        if let Some(before) = before.filter(is_same) {
            let before = before.state.lock();
            state.agreed = before.agreed.clone();
            state.logged_hashes = before.logged_hashes.clone();
        }
        Self {
            settings: settings.clone(),
            catalog: catalog.clone(),
            redactor: redactor.clone(),
            state: Mutex::new(state),
        }
    }

    /// Compares the list of an earlier run. Its changes were logged then, so
    /// they aren't logged again.
    pub(crate) fn compare_remembered(&self, remembered: &[RememberedTool]) -> PinVerdict {
        let mut state = self.state.lock();
        self.reload_agreement(&mut state);
        self.set_listed(&mut state, remembered.iter().map(|tool| &tool.definition));
        let hashes: Vec<String> = state.hashes().collect();
        state.logged_hashes.extend(hashes);
        self.evaluate(&mut state)
    }

    /// Compares a new list. The very first one is agreed to. Each change is logged once.
    pub(crate) fn compare(&self, listed: &[Value]) -> PinVerdict {
        let mut state = self.state.lock();
        if self.catalog.agreement_stamp(&self.settings) != state.agreement_stamp {
            self.reload_agreement(&mut state);
        }
        self.set_listed(&mut state, listed);
        if state.agreed.is_none() && !listed.is_empty() {
            state.agreed = Some(listed.iter().filter_map(pinned_tool).collect());
        }
        let verdict = self.evaluate(&mut state);
        self.log_changes(&mut state);
        verdict
    }

    /// Rereads the agreement if another process has written it. `None` if nothing changes.
    pub(crate) fn refresh(&self) -> Option<PinVerdict> {
        let mut state = self.state.lock();
        if self.catalog.agreement_stamp(&self.settings) == state.agreement_stamp {
            return None;
        }
        self.reload_agreement(&mut state);
        let before = state.changes.clone();
        let verdict = self.evaluate(&mut state);
        (verdict.changes != before).then_some(verdict)
    }

    /// Agrees to the current changes. Fails unless they have this hash.
    pub(crate) fn agree(&self, hash: &str) -> Result<PinVerdict, AgreementError> {
        let mut state = self.state.lock();
        if state.changes.as_ref().map(|changes| &*changes.hash) != Some(hash) {
            return Err(AgreementError::OtherChanges(escape(&self.settings.name)));
        }
        let mut agreed = state.agreed.clone().unwrap_or_default();
        // Excluded tools weren't shown to the person, so their old agreement stays.
        agreed.retain(|name, _| !tool::may_be_offered(&self.settings, name));
        agreed.extend(state.listed.iter().cloned());
        let tools = agreed.values().cloned().collect();
        self.catalog.agree(&self.settings, tools)?;
        state.agreed = Some(agreed);
        state.agreement_stamp = self.catalog.agreement_stamp(&self.settings);
        Ok(self.evaluate(&mut state))
    }

    pub(crate) fn changes(&self) -> Option<ToolChanges> {
        self.state.lock().changes.clone()
    }

    fn reload_agreement(&self, state: &mut PinState) {
        // Take the stamp first: if the file is replaced in between, it is read again next time.
        state.agreement_stamp = self.catalog.agreement_stamp(&self.settings);
        if let Some(agreed) = self.catalog.agreement(&self.settings) {
            let agreed = agreed
                .iter()
                .filter_map(|tool| pinned_tool(&tool.definition));
            state.agreed = Some(agreed.collect());
        }
    }

    fn set_listed<'a>(&self, state: &mut PinState, listed: impl IntoIterator<Item = &'a Value>) {
        let tools = listed.into_iter().filter_map(pinned_tool);
        let tools = tools.filter(|(name, _)| tool::may_be_offered(&self.settings, name));
        state.listed = tools.collect();
    }

    fn evaluate(&self, state: &mut PinState) -> PinVerdict {
        state.changes = match (&state.agreed, self.settings.pin) {
            (None, _) | (_, PinPolicy::Off) => None,
            (Some(agreed), _) => self.changes_between(agreed, &state.listed),
        };
        let tools = state.changes.iter().flat_map(|changes| &changes.tools);
        let withheld = tools.filter(|tool| tool.withheld);
        PinVerdict {
            withheld: withheld
                .map(|tool| (tool.original_name.clone(), self.withheld_reason(tool.kind)))
                .collect(),
            changes: state.changes.clone(),
        }
    }

    fn withheld_reason(&self, kind: ToolChangeKind) -> WithheldReason {
        let reason = match kind {
            ToolChangeKind::New => "is new since you agreed to its server's tools",
            _ => "changed since you agreed to it",
        };
        let server = escape(&self.settings.name);
        let hint = format!(
            "'toolgate trust {server}' shows the difference and agrees to it, and so does the dashboard of 'toolgate serve'"
        );
        WithheldReason::new(reason, hint)
    }

    fn changes_between(
        &self,
        agreed: &BTreeMap<String, RememberedTool>,
        listed: &[(String, RememberedTool)],
    ) -> Option<ToolChanges> {
        let mut budget = MAX_DIFFERENCE_BYTES;
        let mut tools = Vec::new();
        let mut definitions = Vec::new();
        for (name, new) in listed {
            let old = agreed.get(name);
            if old.is_some_and(|old| old.hash == new.hash) {
                continue;
            }
            definitions.push(json!([name, new.hash]));
            tools.push(self.describe_change(name, old, Some(new), &mut budget));
        }
        // A removed tool does no harm by itself. It is shown beside other changes, because one of
        // them may be the same tool under a new name.
        if tools.is_empty() {
            return None;
        }
        let names: HashSet<&String> = listed.iter().map(|(name, _)| name).collect();
        for (name, old) in agreed {
            if !names.contains(name) && tool::may_be_offered(&self.settings, name) {
                definitions.push(json!([name, null]));
                tools.push(self.describe_change(name, Some(old), None, &mut budget));
            }
        }
        let hash = hash(&Value::Array(definitions));
        Some(ToolChanges { hash, tools })
    }

    fn describe_change(
        &self,
        name: &str,
        old: Option<&RememberedTool>,
        new: Option<&RememberedTool>,
        budget: &mut usize,
    ) -> ToolChange {
        let [old, new] = [old, new].map(|tool| tool.map(|tool| &tool.definition));
        let (kind, (differences, more)) = match (old, new) {
            (_, None) => (ToolChangeKind::Gone, (Vec::new(), 0)),
            (None, Some(new)) => {
                let all = find_differences(&Value::Null, new, &self.redactor, budget);
                (ToolChangeKind::New, all)
            }
            (Some(old), Some(new)) => {
                let all = find_differences(old, new, &self.redactor, budget);
                (ToolChangeKind::Changed, all)
            }
        };
        ToolChange {
            tool: self
                .redactor
                .line(&display_name(name), difference::MAX_PATH_LEN),
            original_name: name.to_owned(),
            kind,
            withheld: new.is_some_and(|new| is_withheld(self.settings.pin, old, new)),
            differences,
            more,
        }
    }

    fn log_changes(&self, state: &mut PinState) {
        let server = self.settings.name.as_str();
        let hashes: HashMap<&String, &String> = state
            .listed
            .iter()
            .map(|(name, tool)| (name, &tool.hash))
            .collect();
        let changes = state.changes.iter().flat_map(|changes| &changes.tools);
        let is_unlogged = |change: &&ToolChange| {
            let hash = hashes.get(&change.original_name);
            hash.is_some_and(|hash| !state.logged_hashes.contains(*hash))
        };
        let unlogged: Vec<&ToolChange> = changes.filter(is_unlogged).collect();
        for changed in unlogged.iter().take(MAX_LOGGED_CHANGES) {
            let (tool, change) = (&changed.tool, changed.log_line());
            match changed.kind {
                _ if changed.withheld => {
                    warn!(server, %tool, %change, "an MCP tool is withheld until you agree to it with 'toolgate trust'");
                }
                ToolChangeKind::New => {
                    warn!(server, %tool, %change, "an MCP server has a new tool: check that you trust it");
                }
                _ => {
                    warn!(server, %tool, %change, "an MCP tool has changed: check that you still trust it");
                }
            }
        }
        let more = unlogged.len().saturating_sub(MAX_LOGGED_CHANGES);
        if more > 0 {
            warn!(
                server,
                tools = more,
                "more MCP tools have changed: 'toolgate trust' shows all of them"
            );
        }
        let hashes: Vec<String> = state.hashes().collect();
        if state.logged_hashes.len() > MAX_LOGGED_HASHES {
            state.logged_hashes.clear();
        }
        state.logged_hashes.extend(hashes);
    }
}

impl PinState {
    fn hashes(&self) -> impl Iterator<Item = String> {
        self.listed.iter().map(|(_, tool)| tool.hash.clone())
    }
}

impl ToolCatalog {
    /// Changes in the last list that nobody has agreed to; `None` if there are none or the server
    /// never listed its tools.
    pub fn changes(&self, settings: &ServerSettings, redactor: &Redactor) -> Option<ToolChanges> {
        self.pins(settings, redactor).changes()
    }

    /// Agrees to the changes with this hash. Other processes that run the server notice
    /// the agreement. Fails if the server has listed other tools since, or the
    /// agreement can't be written.
    pub fn agree_to_changes(
        &self,
        settings: &ServerSettings,
        hash: &str,
    ) -> Result<(), AgreementError> {
        let pins = self.pins(settings, &Redactor::default());
        pins.agree(hash).map(|_| ())
    }

    fn pins(&self, settings: &ServerSettings, redactor: &Redactor) -> ToolPins {
        let pins = ToolPins::new(settings, self, redactor, None);
        let remembered = self.recall(settings);
        pins.compare_remembered(remembered.as_ref().map_or(&[], |server| &server.tools));
        pins
    }
}

/// The original name and the pinned parts of a definition; `None` for an entry without a name.
pub(super) fn pinned_tool(definition: &Value) -> Option<(String, RememberedTool)> {
    let name = definition["name"].as_str()?.to_owned();
    let present = |key: &&str| {
        let value = definition.get(*key).filter(|value| !value.is_null())?;
        Some(((*key).to_owned(), value.clone()))
    };
    let mut pinned = Value::Object(PINNED.iter().filter_map(present).collect());
    for schema in ["inputSchema", "outputSchema"] {
        if let Some(schema) = pinned.get_mut(schema) {
            sort_sets(schema);
        }
    }
    Some((name, RememberedTool::new(&pinned)))
}

// Some servers build these lists from unordered sets, so the order differs at every start.
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

// By default, a change waits for a person if the tool is or was destructive,
// or stops being read-only.
fn is_withheld(pin: PinPolicy, old: Option<&Value>, new: &Value) -> bool {
    let has_hint = |tool: &Value, hint: &str| tool["annotations"][hint] == true;
    match pin {
        PinPolicy::Ask => true,
        PinPolicy::Warn | PinPolicy::Off => false,
        PinPolicy::AskIfDestructive => {
            let is_worse = |old: &Value| {
                has_hint(old, "destructiveHint")
                    || (has_hint(old, "readOnlyHint") && !has_hint(new, "readOnlyHint"))
            };
            has_hint(new, "destructiveHint") || old.is_some_and(is_worse)
        }
    }
}
