//! Lists what a configuration would do, for a person to judge, and compares two such lists. Every
//! value of the file is on one of the lines, because a person can't agree to what isn't shown.

use std::collections::HashSet;
use std::path::Path;

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_core::Redactor;
use toolgate_core::text::escape;
use toolgate_mcp::ServerSettings;

use crate::config::{ConfigDocument, Environment, ReferenceSet, resolve_path, servers};
use crate::secrets::SecretReference;

// Characters shown of one value. Ordinary values are shorter.
const MAX_VALUE_CHARS: usize = 4000;
// Levels of nested objects that get lines of their own. Deeper ones are shown as JSON.
const MAX_DEPTH: usize = 8;
// Bytes of a key, which is repeated on the line of every value below it.
const MAX_KEY_LEN: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct ConfigEffect {
    pub(crate) text: String,
    // A hash of the value, so that a change in a part that `text` leaves out is noticed.
    digest: String,
}

impl ConfigEffect {
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

// What a key means. `{}` stands for its value.
const ACCESS_TEXTS: [(&str, &str); 11] = [
    ("search.url", "sends searches to {}"),
    (
        "model.url",
        "sends what you say to a model, and its key, to {}",
    ),
    ("telemetry.otlp", "sends traces of calls to {}"),
    (
        "approvals.notify.webhook",
        "sends what waits for approval, with its arguments, to {}",
    ),
    (
        "approvals.notify.mqtt",
        "publishes what waits for approval, with its arguments, to the MQTT topic {}",
    ),
    ("mqtt.url", "connects to the MQTT broker {}"),
    ("documents.folders", "lets a tool read the folder {}"),
    (
        "skills.folders",
        "serves skills, which tell models what to do, from the folder {}",
    ),
    ("journal.file", "records calls in the file {}"),
    ("model.intents", "takes sentences from the file {}"),
    ("model.system", "tells the model: {}"),
];
const PATHS: [&str; 4] = [
    "documents.folders",
    "journal.file",
    "model.intents",
    "skills.folders",
];

/// Everything that a document does: what runs or is contacted comes first, then what is read and
/// written, variables, rules, tools, and the remaining values.
pub(crate) fn list_effects(
    document: &ConfigDocument,
    environment: Environment<'_>,
) -> Vec<ConfigEffect> {
    let mut found = EffectCollector {
        folder: document.folder(),
        environment,
        effects: Vec::new(),
    };
    // In the order of the file, because the first server with a name keeps it.
    for key in servers::KEYS {
        let entries = document.value()[key].as_object().into_iter().flatten();
        entries.for_each(|(name, entry)| found.server(name, entry));
    }
    for (name, value) in document.value().as_object().into_iter().flatten() {
        match (name.as_str(), value) {
            ("$schema", _) => {}
            (key, Value::Object(_)) if servers::KEYS.contains(&key) => {}
            ("tools", Value::Array(tools)) => tools.iter().for_each(|tool| found.tool(tool)),
            (key, value) => found.value(key, value, MAX_DEPTH),
        }
    }
    found.variables(document.value());
    found.effects.sort_by_key(|(rank, _)| *rank);
    found
        .effects
        .into_iter()
        .map(|(_, effect)| effect)
        .collect()
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EffectRank {
    Server,
    Access,
    Variable,
    Policy,
    Tool,
    Rest,
}

struct EffectCollector<'a> {
    folder: &'a Path,
    environment: Environment<'a>,
    effects: Vec<(EffectRank, ConfigEffect)>,
}

impl EffectCollector<'_> {
    fn add(&mut self, rank: EffectRank, text: &str, value: &Value) {
        self.effects.push((rank, ConfigEffect::new(text, value)));
    }

    fn server(&mut self, name: &str, entry: &Value) {
        // A container entry has no command, and still starts something.
        let verb = match entry["command"].is_null() && entry["container"].is_null() {
            true => "contacts",
            false => "starts",
        };
        let text = format!("{verb} the server '{name}': {}", describe_server(entry));
        self.add(EffectRank::Server, &text, entry);
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
            shorten(&text(&tool["description"]))
        );
        self.add(EffectRank::Tool, &line, tool);
    }

    fn value(&mut self, key: &str, value: &Value, deeper: usize) {
        let fits = |name: &String| key.len() + name.len() < MAX_KEY_LEN;
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
                    // With the index, so that values of one item don't look like those of another.
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
        let sentence = ACCESS_TEXTS.iter().find(|(name, _)| *name == key);
        let text = match (value, PATHS.contains(&key)) {
            (Value::String(path), true) => {
                let path = resolve_path(Path::new(path), self.folder, self.environment);
                path.to_string_lossy().into_owned()
            }
            _ => redacted_text(key, value),
        };
        let rank = match (sentence, key.starts_with("policy.")) {
            (Some(_), _) => EffectRank::Access,
            (None, true) => EffectRank::Policy,
            (None, false) => EffectRank::Rest,
        };
        let text = match sentence {
            Some((_, sentence)) => sentence.replace("{}", &shorten(&text)),
            None => format!("sets {key}: {}", shorten(&text)),
        };
        self.add(rank, &text, value);
    }

    fn variables(&mut self, root: &Value) {
        let mut found = ReferenceSet::default();
        let sections = root.as_object().into_iter().flatten();
        // Nothing is expanded inside tool definitions.
        let expanded = sections.filter(|(name, _)| *name != "tools");
        expanded.for_each(|(_, value)| found.collect(value));
        for secret in &found.secrets {
            let text = secret.effect(self.folder, self.environment);
            let (rank, text) = match secret {
                // A command runs, so it comes first, and is never shortened.
                SecretReference::Command(_) => (EffectRank::Server, text),
                _ => (EffectRank::Variable, shorten(&text)),
            };
            self.add(rank, &text, &Value::String(secret.to_string()));
        }
        for name in found.variables {
            let text = format!("uses the value of ${{{name}}}");
            self.add(EffectRank::Variable, &text, &Value::Null);
        }
    }
}

fn redacted_text(key: &str, value: &Value) -> String {
    let last = key.rsplit('.').next().unwrap_or(key);
    let pair = Value::Object([(last.to_owned(), value.clone())].into_iter().collect());
    match &Redactor::default().value(&pair)[last] {
        Value::String(hidden) if value.as_str() != Some(hidden) => hidden.clone(),
        _ => quote_if_needed(value),
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_VALUE_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => {
            let rest = text[end..].chars().count();
            format!("{}… (and {rest} more characters)", &text[..end])
        }
    }
}

/// Describes an entry as written, with the names of variables rather than their values. The command
/// comes first and is never redacted, so that nothing can hide in it.
pub(crate) fn describe_server(entry: &Value) -> String {
    let mut words = Vec::new();
    for key in ["command", "args"] {
        match &entry[key] {
            Value::Array(list) => words.extend(list.iter().map(quote_if_needed)),
            Value::Null => {}
            one => words.push(quote_if_needed(one)),
        }
    }
    let run = ServerSettings::identity_part(entry);
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
            (key, value) => words.push(format!("({key}: {})", pairs_text(key, value))),
        }
    }
    escape(&words.join(" "))
}

fn quote_if_needed(value: &Value) -> String {
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

fn pairs_text(key: &str, value: &Value) -> String {
    let Value::Object(pairs) = value else {
        return shorten(&redacted_text(key, value));
    };
    let pairs = pairs
        .iter()
        .map(|(key, value)| format!("{key}={}", shorten(&redacted_text(key, value))));
    pairs.collect::<Vec<_>>().join(" ")
}

/// The differences, one per line: `+` is new, `-` is gone, and `~` changed in a
/// part that isn't shown.
pub(crate) fn difference(before: &[ConfigEffect], after: &[ConfigEffect]) -> Vec<String> {
    let texts = |all: &[ConfigEffect]| -> HashSet<String> {
        all.iter().map(|effect| effect.text.clone()).collect()
    };
    let (texts_before, texts_after) = (texts(before), texts(after));
    let known: HashSet<&ConfigEffect> = before.iter().collect();
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

// The order of servers decides which one owns a name that several have.
const REORDERED: &str = "~ has the same settings in another order, which decides which of two servers owns a tool that both list";

#[cfg(test)]
mod tests;
