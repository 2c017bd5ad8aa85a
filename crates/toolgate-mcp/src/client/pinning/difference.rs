//! Differences between two definitions of a tool, for a person to judge.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value};
use toolgate_core::Redactor;
use toolgate_core::text::truncate;

use super::{PINNED, ToolChange, ToolChangeKind};

pub(super) const MAX_PATH_LEN: usize = 200;
const MAX_SIDE_LEN: usize = 2000;
const MAX_LOGGED_LEN: usize = 300;
// Bytes of the common start that stay in front of a difference.
const CONTEXT_LEN: usize = 40;
const MAX_SHOWN: usize = 20;
const MAX_LOGGED: usize = 5;

/// One difference between a tool's definition and the one that a person agreed to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DefinitionDifference {
    /// The JSON path, such as `inputSchema.properties.file.type`.
    pub path: String,
    pub before: Option<String>,
    pub after: Option<String>,
}

impl DefinitionDifference {
    fn line(&self, longest: usize) -> String {
        let side = |text: &Option<String>| match text {
            Some(text) => truncate(text, longest),
            None => "(none)".to_owned(),
        };
        let (before, after) = (side(&self.before), side(&self.after));
        format!("{}: {before} → {after}", self.path)
    }

    fn size(&self) -> usize {
        let side = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        self.path.len() + side(&self.before) + side(&self.after)
    }
}

impl std::fmt::Display for DefinitionDifference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.line(usize::MAX))
    }
}

impl ToolChange {
    pub(super) fn log_line(&self) -> String {
        let logged = self.differences.iter().take(MAX_LOGGED);
        let mut parts: Vec<String> = logged.map(|one| one.line(MAX_LOGGED_LEN)).collect();
        if self.kind == ToolChangeKind::New {
            parts.insert(0, "new".to_owned());
        }
        let more = self.differences.len().saturating_sub(MAX_LOGGED) + self.more;
        if more > 0 {
            parts.push(format!("{more} more"));
        }
        parts.join("; ")
    }
}

/// Returns the differences between two definitions, and how many were left out. `budget` is the
/// number of bytes that remain for all tools of a server.
pub(super) fn find_differences(
    old: &Value,
    new: &Value,
    redactor: &Redactor,
    budget: &mut usize,
) -> (Vec<DefinitionDifference>, usize) {
    let mut finder = DifferenceFinder {
        redactor,
        budget,
        shown: Vec::new(),
        more: 0,
    };
    for part in PINNED.into_iter().filter(|part| *part != "name") {
        finder.compare(part, old.get(part), new.get(part));
    }
    (finder.shown, finder.more)
}

struct DifferenceFinder<'a> {
    redactor: &'a Redactor,
    budget: &'a mut usize,
    shown: Vec<DefinitionDifference>,
    more: usize,
}

impl DifferenceFinder<'_> {
    fn compare(&mut self, path: &str, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            _ if old == new => {}
            (Some(Value::Object(old)), Some(Value::Object(new))) => self.descend(path, old, new),
            (Some(Value::String(old)), Some(Value::String(new))) => {
                let (old, new) = cut_common_start(old, new);
                self.add(path, Some(old), Some(new));
            }
            (old, new) => self.add(path, old.map(value_text), new.map(value_text)),
        }
    }

    fn descend(&mut self, path: &str, old: &Map<String, Value>, new: &Map<String, Value>) {
        let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for key in keys {
            self.compare(&format!("{path}.{key}"), old.get(key), new.get(key));
        }
    }

    fn add(&mut self, path: &str, before: Option<String>, after: Option<String>) {
        if self.shown.len() == MAX_SHOWN {
            self.more += 1;
            return;
        }
        let side = |text: Option<String>| text.map(|text| self.redactor.line(&text, MAX_SIDE_LEN));
        let difference = DefinitionDifference {
            path: self.redactor.line(path, MAX_PATH_LEN),
            before: side(before),
            after: side(after),
        };
        match self.budget.checked_sub(difference.size()) {
            Some(left) => {
                *self.budget = left;
                self.shown.push(difference);
            }
            None => self.more += 1,
        }
    }
}

fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

// Cuts both texts shortly before their first difference, so that a change at the end of a
// long text is visible.
fn cut_common_start(old: &str, new: &str) -> (String, String) {
    let same = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b);
    let start = old.floor_char_boundary(same.count().saturating_sub(CONTEXT_LEN));
    let cut = |text: &str| match start {
        0 => text.to_owned(),
        _ => format!("…{}", &text[start..]),
    };
    (cut(old), cut(new))
}
