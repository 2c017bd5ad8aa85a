//! What a configuration would do, in lines that a person can judge, and how two of them differ.
//! Every value of the file is in one of the lines: what is not shown is not agreed to.

use std::collections::HashSet;
use std::path::Path;

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_core::{Redactor, escape};
use toolgate_mcp::ServerSettings;

use crate::config::{Document, Environment, References, resolved, servers};
use crate::secrets::SecretReference;

/// Characters of one value that are shown: more than an honest one has.
const LONGEST: usize = 4000;
/// Objects in objects that are gone through; what is deeper is shown as JSON.
const DEEPEST: usize = 8;
/// Bytes of a key that is gone into: it stands in the line of every value below it.
const LONGEST_KEY: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Effect {
    pub(crate) text: String,
    /// Of the value it comes from: a change in what the text leaves out is still a change.
    digest: String,
}

impl Effect {
    fn new(text: &str, value: &Value) -> Self {
        let hash = digest(&SHA256, value.to_string().as_bytes());
        Self {
            text: escape(text),
            digest: hash.as_ref()[..8]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect(),
        }
    }
}

/// What a key of a section does; `{}` is its value.
const SENTENCES: [(&str, &str); 8] = [
    ("search.url", "sends searches to {}"),
    (
        "model.url",
        "sends what you say to a model, and its key, to {}",
    ),
    ("telemetry.otlp", "sends traces of calls to {}"),
    ("mqtt.url", "connects to the MQTT broker {}"),
    ("documents.folders", "lets a tool read the folder {}"),
    ("journal.file", "records calls in the file {}"),
    ("model.intents", "takes sentences from the file {}"),
    ("model.system", "tells the model: {}"),
];
const PATHS: [&str; 3] = ["documents.folders", "journal.file", "model.intents"];

/// Everything that a document does: what runs or is contacted first, then what is read and written,
/// variables, rules, tools, and the rest of its values.
pub(crate) fn of(document: &Document, environment: Environment<'_>) -> Vec<Effect> {
    let mut found = Found {
        folder: document.folder(),
        environment,
        ranked: Vec::new(),
    };
    // In the order in which they are read: the first that has a name keeps it.
    for key in servers::KEYS {
        let entries = document.value()[key].as_object().into_iter().flatten();
        entries.for_each(|(name, entry)| found.server(name, entry));
    }
    for (name, value) in document.value().as_object().into_iter().flatten() {
        match (name.as_str(), value) {
            ("$schema", _) => {}
            (key, Value::Object(_)) if servers::KEYS.contains(&key) => {}
            ("tools", Value::Array(tools)) => tools.iter().for_each(|tool| found.tool(tool)),
            (key, value) => found.value(key, value, DEEPEST),
        }
    }
    found.variables(document.value());
    found.ranked.sort_by_key(|(rank, _)| *rank);
    found.ranked.into_iter().map(|(_, effect)| effect).collect()
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Server,
    Sentence,
    Variable,
    Policy,
    Tool,
    Rest,
}

struct Found<'a> {
    folder: &'a Path,
    environment: Environment<'a>,
    ranked: Vec<(Rank, Effect)>,
}

impl Found<'_> {
    fn add(&mut self, rank: Rank, text: &str, value: &Value) {
        self.ranked.push((rank, Effect::new(text, value)));
    }

    fn server(&mut self, name: &str, entry: &Value) {
        // A container starts by itself, without a command.
        let verb = match entry["command"].is_null() && entry["container"].is_null() {
            false => "starts",
            true => "contacts",
        };
        let text = format!("{verb} the server '{name}': {}", described(entry));
        self.add(Rank::Server, &text, entry);
    }

    fn tool(&mut self, tool: &Value) {
        let text = |value: &Value| {
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        };
        let made_of = &tool["implementation"];
        let kind = ["handler", "type"]
            .iter()
            .find_map(|key| made_of[*key].as_str());
        let line = format!(
            "defines the tool '{}' ({}): {}",
            text(&tool["name"]),
            kind.unwrap_or("of an unknown kind"),
            shortened(&text(&tool["description"]))
        );
        self.add(Rank::Tool, &line, tool);
    }

    /// One line for each value in it that holds no other.
    fn value(&mut self, key: &str, value: &Value, deeper: usize) {
        let fits = |name: &String| key.len() + name.len() < LONGEST_KEY;
        match value {
            Value::Object(object)
                if !object.is_empty() && deeper > 0 && object.keys().all(fits) =>
            {
                for (name, value) in object {
                    self.value(&format!("{key}.{name}"), value, deeper - 1);
                }
            }
            Value::Array(list) if !list.is_empty() && deeper > 0 => {
                for (index, value) in list.iter().enumerate() {
                    // What is said of one item must not look as if it were said of another.
                    let key = match value {
                        Value::Object(_) | Value::Array(_) => &format!("{key}.{index}"),
                        _ => key,
                    };
                    self.value(key, value, deeper - 1);
                }
            }
            _ => self.leaf(key, value),
        }
    }

    fn leaf(&mut self, key: &str, value: &Value) {
        let sentence = SENTENCES.iter().find(|(name, _)| *name == key);
        let text = match (value, PATHS.contains(&key)) {
            (Value::String(path), true) => {
                let path = resolved(Path::new(path), self.folder, self.environment);
                path.to_string_lossy().into_owned()
            }
            _ => shown(key, value),
        };
        let rank = match (sentence, key.starts_with("policy.")) {
            (Some(_), _) => Rank::Sentence,
            (None, true) => Rank::Policy,
            (None, false) => Rank::Rest,
        };
        let text = match sentence {
            Some((_, sentence)) => sentence.replace("{}", &shortened(&text)),
            None => format!("sets {key}: {}", shortened(&text)),
        };
        self.add(rank, &text, value);
    }

    fn variables(&mut self, root: &Value) {
        let mut found = References::default();
        let sections = root.as_object().into_iter().flatten();
        // Tools are content: nothing is expanded in them.
        let expanded = sections.filter(|(name, _)| *name != "tools");
        expanded.for_each(|(_, value)| found.collect(value));
        for secret in &found.secrets {
            let text = secret.effect(self.folder, self.environment);
            let (rank, text) = match secret {
                // It runs, so it comes first, and nothing of it may hide behind an ellipsis.
                SecretReference::Command(_) => (Rank::Server, text),
                _ => (Rank::Variable, shortened(&text)),
            };
            self.add(rank, &text, &Value::String(secret.to_string()));
        }
        for name in found.variables {
            let text = format!("uses the value of ${{{name}}}");
            self.add(Rank::Variable, &text, &Value::Null);
        }
    }
}

/// A value as it stands in the file, unless its key says that it is a secret.
fn shown(key: &str, value: &Value) -> String {
    let last = key.rsplit('.').next().unwrap_or(key);
    let pair = Value::Object([(last.to_owned(), value.clone())].into_iter().collect());
    match &Redactor::default().value(&pair)[last] {
        Value::String(hidden) if value.as_str() != Some(hidden) => hidden.clone(),
        _ => word(value),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((end, _)) => {
            let rest = text[end..].chars().count();
            format!("{}… (and {rest} more characters)", &text[..end])
        }
    }
}

/// An entry as it stands in the file: a variable is shown by its name, not its value. The command
/// comes first and is never redacted, so that nothing can hide in it.
pub(crate) fn described(entry: &Value) -> String {
    let mut words = Vec::new();
    for key in ["command", "args"] {
        match &entry[key] {
            Value::Array(list) => words.extend(list.iter().map(word)),
            Value::Null => {}
            one => words.push(word(one)),
        }
    }
    let run = ServerSettings::run_part(entry);
    let keys = |value: &Value| -> Vec<String> {
        let object = value.as_object().into_iter().flatten();
        object.map(|(key, _)| key.clone()).collect()
    };
    let (first, all) = (keys(&run), keys(entry));
    let later = all.iter().filter(|key| !first.contains(key));
    for key in first.iter().chain(later) {
        match (key.as_str(), &entry[key]) {
            ("command" | "args" | "type", _) => {}
            ("url" | "serverUrl" | "httpUrl", Value::String(address)) => {
                words.push(address.clone());
            }
            (_, Value::Object(empty)) if empty.is_empty() => {}
            (key, value) => words.push(format!("({key}: {})", inside(key, value))),
        }
    }
    escape(&words.join(" "))
}

fn word(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => return other.to_string(),
    };
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,*${}[]~?&".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

fn inside(key: &str, value: &Value) -> String {
    let Value::Object(pairs) = value else {
        return shortened(&shown(key, value));
    };
    let pairs = pairs
        .iter()
        .map(|(key, value)| format!("{key}={}", shortened(&shown(key, value))));
    pairs.collect::<Vec<_>>().join(" ")
}

/// What differs, a line each: `+` is new, `-` is gone, and of `~` a part that isn't shown changed.
pub(crate) fn difference(before: &[Effect], after: &[Effect]) -> Vec<String> {
    let texts = |all: &[Effect]| -> HashSet<String> {
        all.iter().map(|effect| effect.text.clone()).collect()
    };
    let (texts_before, texts_after) = (texts(before), texts(after));
    let known: HashSet<&Effect> = before.iter().collect();
    let gone = before
        .iter()
        .filter(|effect| !texts_after.contains(&effect.text));
    let gone = gone.map(|effect| format!("- {}", effect.text));
    let new = after.iter().filter(|effect| !known.contains(effect));
    let new = new.map(|effect| match texts_before.contains(&effect.text) {
        true => format!("~ {} (in a part that is too long to show)", effect.text),
        false => format!("+ {}", effect.text),
    });
    let lines: Vec<String> = gone.chain(new).collect();
    match lines.is_empty() && before != after {
        true => vec![REORDERED.to_owned()],
        false => lines,
    }
}

/// The order of servers decides who owns a name that several have.
const REORDERED: &str = "~ does the same in another order, which decides which of two servers has a tool that both list";

#[cfg(test)]
mod tests;
