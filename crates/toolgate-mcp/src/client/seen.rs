//! What a server's tools looked like before: a tool that changes under way may be an attack.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use toolgate_core::{Annotations, Redactor, Tool, ToolDefinition, bounded};
use tracing::warn;

/// How much of each side of a difference is shown.
const SHOWN: usize = 300;
/// How much of what is the same is shown before it.
const BEFORE: usize = 40;
/// Tools remembered of one server; beyond, those it does not offer any more are forgotten.
const MOST: usize = 2000;

/// The tools of one server as they were last seen, also across its restarts and ours.
#[derive(Default)]
pub(crate) struct Seen {
    tools: Mutex<HashMap<String, Arc<dyn Tool>>>,
}

impl Seen {
    /// These are what the server offered in an earlier run; what was seen in this one counts more.
    pub(crate) fn recall(&self, tools: &[Arc<dyn Tool>]) {
        let mut seen = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        for tool in tools {
            let name = tool.definition().original_name().to_owned();
            seen.entry(name).or_insert_with(|| Arc::clone(tool));
        }
    }

    /// Remembers these, with a WARN for each that is another than before.
    pub(crate) fn look(&self, server: &str, tools: &[Arc<dyn Tool>], redactor: &Redactor) {
        let mut seen = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        for tool in tools {
            let new = tool.definition();
            let old = seen.insert(new.original_name().to_owned(), Arc::clone(tool));
            let change = old.and_then(|old| difference(old.definition(), new, redactor));
            if let Some(change) = change {
                let tool = bounded(new.name(), SHOWN);
                warn!(server, tool, %change, "an MCP tool is not what it was: see that you still trust it");
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
    let side_by_side = |what: &str, old: &str, new: &str| {
        let (old, new) = from_difference(old, new);
        let shown = |text| redactor.line(text, SHOWN);
        format!("{what}: {} → {}", shown(old), shown(new))
    };
    let mut changes = Vec::new();
    if old.description() != new.description() {
        let (old, new) = (old.description(), new.description());
        changes.push(side_by_side("description", old, new));
    }
    if old.parameters() != new.parameters() {
        let (old, new) = (old.parameters().to_string(), new.parameters().to_string());
        changes.push(side_by_side("schema", &old, &new));
    }
    if old.annotations() != new.annotations() {
        let (old, new) = (hints(old.annotations()), hints(new.annotations()));
        changes.push(format!("annotations: {old} → {new}"));
    }
    (!changes.is_empty()).then(|| changes.join("; "))
}

/// What a tool says of its effects, as the protocol names it.
fn hints(said: Annotations) -> String {
    let hints = [
        ("readOnlyHint", said.read_only),
        ("destructiveHint", said.destructive),
        ("idempotentHint", said.idempotent),
        ("openWorldHint", said.open_world),
    ];
    let hints = hints
        .into_iter()
        .filter_map(|(name, hint)| Some(format!("{name}={}", hint?)));
    match hints.collect::<Vec<_>>() {
        none if none.is_empty() => "none".to_owned(),
        some => some.join(" "),
    }
}

/// Both texts from shortly before where they part.
fn from_difference<'a>(old: &'a str, new: &'a str) -> (&'a str, &'a str) {
    let same = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b);
    let start = old.floor_char_boundary(same.count().saturating_sub(BEFORE));
    (&old[start..], &new[start..])
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn definition(description: &str, parameters: Value) -> ToolDefinition {
        let builder = ToolDefinition::builder("t", description, parameters);
        builder.build().unwrap()
    }

    /// A tool that only looked and may now destroy something is another one, whatever its description says.
    #[test]
    fn a_change_of_what_a_tool_says_of_its_effects_is_a_difference() {
        let tool = |annotations| {
            let builder = ToolDefinition::builder("t", "Same", json!({ "type": "object" }));
            builder.annotations(annotations).build().unwrap()
        };
        let mut destructive = Annotations::default();
        destructive.destructive = Some(true);
        let told = |old, new| difference(&tool(old), &tool(new), &Redactor::default());
        assert_eq!(told(destructive, destructive), None);
        assert_eq!(
            told(Annotations::READ_ONLY, destructive).unwrap(),
            "annotations: readOnlyHint=true destructiveHint=false idempotentHint=true → destructiveHint=true"
        );
        assert_eq!(
            told(destructive, Annotations::default()).unwrap(),
            "annotations: destructiveHint=true → none"
        );
    }

    #[test]
    fn a_difference_shows_both_sides_bounded_and_escaped() {
        let plain = json!({ "type": "object" });
        let wider = json!({ "type": "object", "properties": { "file": { "type": "string" } } });
        let long = "x".repeat(5000);
        let told = |old: (&str, &Value), new: (&str, &Value)| {
            let (old, new) = [old, new]
                .map(|(text, schema)| definition(text, schema.clone()))
                .into();
            difference(&old, &new, &Redactor::new(["hunter2".to_owned()]))
        };
        assert_eq!(told(("Same", &plain), ("Same", &plain)), None);
        assert_eq!(
            told(("Reads", &plain), ("Reads\nhunter2", &plain)).unwrap(),
            "description: Reads → Reads\\n[REDACTED]"
        );
        assert_eq!(
            told(("Reads", &plain), ("Writes", &wider)).unwrap(),
            r#"description: Reads → Writes; schema: {"type":"object"} → {"type":"object","properties":{"file":{"type":"string"}}}"#
        );
        // What is at the end of a long text is shown all the same, and no more than needed.
        let change = told(
            (&format!("{long}é1"), &plain),
            (&format!("{long}ê2{long}"), &plain),
        )
        .unwrap();
        // Both letters begin with the same byte.
        let same = "x".repeat(BEFORE - 1);
        assert!(
            change.starts_with(&format!("description: {same}é1 → {same}ê2xxx")),
            "{change}"
        );
        assert!(change.len() < 3 * SHOWN, "{change}");
    }
}
