//! What a server's tools looked like before: a tool that changes under way may be an attack.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use toolgate_core::{Redactor, Tool, ToolDefinition};
use tracing::warn;

/// How much of each side of a difference is shown.
const SHOWN: usize = 300;
/// How much of what is the same is shown before it.
const BEFORE: usize = 40;
/// Tools remembered of one server; beyond, those it does not offer any more are forgotten.
const MOST: usize = 2000;

/// The tools of one server as they were last seen, also across its restarts.
#[derive(Default)]
pub(crate) struct Seen {
    tools: Mutex<HashMap<String, Arc<dyn Tool>>>,
}

impl Seen {
    /// Remembers these, with a WARN for each that is another than before.
    pub(crate) fn look(&self, server: &str, tools: &[Arc<dyn Tool>], redactor: &Redactor) {
        let mut seen = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        for tool in tools {
            let new = tool.definition();
            let old = seen.insert(new.original_name().to_owned(), Arc::clone(tool));
            let change = old.and_then(|old| difference(old.definition(), new, redactor));
            if let Some(change) = change {
                warn!(server, tool = new.original_name(), %change, "an MCP tool is not what it was: see that you still trust it");
            }
        }
        if seen.len() > MOST {
            let offered: Vec<&str> = tools
                .iter()
                .map(|tool| tool.definition().original_name())
                .collect();
            seen.retain(|name, _| offered.contains(&name.as_str()));
        }
    }
}

/// What is different for a model, in one line.
fn difference(old: &ToolDefinition, new: &ToolDefinition, redactor: &Redactor) -> Option<String> {
    let mut changes = Vec::new();
    if old.description() != new.description() {
        let (old, new) = from_difference(old.description(), new.description());
        let shown = |text| redactor.line(text, SHOWN);
        changes.push(format!("description: {} → {}", shown(old), shown(new)));
    }
    if old.parameters() != new.parameters() {
        let shown = |definition: &ToolDefinition| redactor.json(definition.parameters(), 2 * SHOWN);
        changes.push(format!("schema: {} → {}", shown(old), shown(new)));
    }
    (!changes.is_empty()).then(|| changes.join("; "))
}

/// Both texts from shortly before where they part.
fn from_difference<'a>(old: &'a str, new: &'a str) -> (&'a str, &'a str) {
    let same = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b);
    let start = old.floor_char_boundary(same.count().saturating_sub(BEFORE));
    (&old[start..], &new[start..])
}
