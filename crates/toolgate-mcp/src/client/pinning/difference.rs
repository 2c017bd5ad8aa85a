//! What differs between two definitions of a tool, for a person to judge.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value};
use toolgate_core::{Redactor, bounded};

use super::{PINNED, ToolChange, ToolChangeKind};

/// The longest way to a value that is shown, in bytes.
pub(super) const LONGEST_PATH: usize = 200;
/// How much of each side is shown, in bytes.
const LONGEST_SIDE: usize = 2000;
const LONGEST_LOGGED: usize = 300;
/// How much of what is the same is shown before a difference.
const BEFORE: usize = 40;
/// Differences of one tool that are shown, and logged.
const MOST: usize = 20;
const MOST_LOGGED: usize = 5;

/// One value that isn't what it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Difference {
    /// Where, such as `inputSchema.properties.file.type`.
    pub path: String,
    /// What was agreed to; nothing if it wasn't there.
    pub before: Option<String>,
    /// What it is now; nothing if it is gone.
    pub after: Option<String>,
}

impl Difference {
    fn line(&self, longest: usize) -> String {
        let side = |text: &Option<String>| match text {
            Some(text) => bounded(text, longest),
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

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.line(usize::MAX))
    }
}

impl ToolChange {
    pub(super) fn log_line(&self) -> String {
        let shown = self.differences.iter().take(MOST_LOGGED);
        let mut parts: Vec<String> = shown.map(|one| one.line(LONGEST_LOGGED)).collect();
        if self.kind == ToolChangeKind::New {
            parts.insert(0, "new".to_owned());
        }
        let more = self.differences.len().saturating_sub(MOST_LOGGED) + self.more;
        if more > 0 {
            parts.push(format!("{more} more"));
        }
        parts.join("; ")
    }
}

/// The differences between two definitions, and how many there are besides. `room` is what may still be shown, in bytes.
pub(super) fn differences(
    old: &Value,
    new: &Value,
    redactor: &Redactor,
    room: &mut usize,
) -> (Vec<Difference>, usize) {
    let mut found = Finder {
        redactor,
        room,
        shown: Vec::new(),
        more: 0,
    };
    for part in PINNED.into_iter().filter(|part| *part != "name") {
        found.compare(part, old.get(part), new.get(part));
    }
    (found.shown, found.more)
}

struct Finder<'a> {
    redactor: &'a Redactor,
    room: &'a mut usize,
    shown: Vec<Difference>,
    more: usize,
}

impl Finder<'_> {
    fn compare(&mut self, path: &str, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            _ if old == new => {}
            (Some(Value::Object(old)), Some(Value::Object(new))) => self.descend(path, old, new),
            (Some(Value::String(old)), Some(Value::String(new))) => {
                let (old, new) = from_difference(old, new);
                self.add(path, Some(old), Some(new));
            }
            (old, new) => self.add(path, old.map(text), new.map(text)),
        }
    }

    fn descend(&mut self, path: &str, old: &Map<String, Value>, new: &Map<String, Value>) {
        let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for key in keys {
            self.compare(&format!("{path}.{key}"), old.get(key), new.get(key));
        }
    }

    fn add(&mut self, path: &str, before: Option<String>, after: Option<String>) {
        if self.shown.len() == MOST {
            self.more += 1;
            return;
        }
        let side = |text: Option<String>| text.map(|text| self.redactor.line(&text, LONGEST_SIDE));
        let difference = Difference {
            path: self.redactor.line(path, LONGEST_PATH),
            before: side(before),
            after: side(after),
        };
        match self.room.checked_sub(difference.size()) {
            Some(left) => {
                *self.room = left;
                self.shown.push(difference);
            }
            None => self.more += 1,
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Both texts from shortly before where they part.
fn from_difference(old: &str, new: &str) -> (String, String) {
    let same = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b);
    let start = old.floor_char_boundary(same.count().saturating_sub(BEFORE));
    let cut = |text: &str| match start {
        0 => text.to_owned(),
        _ => format!("…{}", &text[start..]),
    };
    (cut(old), cut(new))
}
