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
/// Keys whose values are paths.
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

/// The order in which effects are shown.
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
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(config: &Value) -> Vec<Effect> {
        let document = Document::parse(Path::new("/f/t.json"), config.to_string().as_bytes());
        of(&document.unwrap(), &|name| {
            (name == "HOME").then(|| "/home/ada".to_owned())
        })
    }

    fn texts(config: &Value) -> Vec<String> {
        lines(config)
            .into_iter()
            .map(|effect| effect.text)
            .collect()
    }

    #[test]
    fn all_that_a_file_does_is_shown_what_runs_first() {
        let config = json!({
            "limits": { "timeout": "5s" },
            "policy": { "ask": ["*_lock"], "deny": ["search", "reset"], "allow": [] },
            "tools": [{ "name": "t", "description": "Does ${HOME}", "implementation": { "type": "internal", "handler": "recent_calls" } }],
            "documents": { "folders": ["~/", "notes"] },
            "journal": { "file": "j.db" },
            "search": { "url": "http://evil.example/${KEY:-x}/", "key": "literal" },
            "model": { "system": "You are evil.", "url": "http://m", "key": "${OTHER}" },
            "telemetry": { "otlp": "http://o" },
            "mqtt": { "url": "mqtt://b" },
            "voice": { "asr": "tcp://v:1" },
            "serve": { "tokens": [{ "name": "kitchen", "token": "0123456789" }] },
            "mcpServers": { "lamp": { "command": "lamp", "override": true } },
        });
        assert_eq!(
            texts(&config),
            [
                "starts the server 'lamp': lamp (override: true)",
                "lets a tool read the folder /home/ada/",
                "lets a tool read the folder /f/notes",
                "records calls in the file /f/j.db",
                "sends searches to http://evil.example/${KEY:-x}/",
                "tells the model: 'You are evil.'",
                "sends what you say to a model, and its key, to http://m",
                "sends traces of calls to http://o",
                "connects to the MQTT broker mqtt://b",
                "uses the value of ${KEY}",
                "uses the value of ${OTHER}",
                "sets policy.ask: *_lock",
                "sets policy.deny: search",
                "sets policy.deny: reset",
                "sets policy.allow: []",
                "defines the tool 't' (recent_calls): Does ${HOME}",
                "sets limits.timeout: 5s",
                "sets search.key: [REDACTED]",
                "sets model.key: [REDACTED]",
                "sets voice.asr: tcp://v:1",
                "sets serve.tokens.0.name: kitchen",
                "sets serve.tokens.0.token: [REDACTED]",
            ]
        );
    }

    #[test]
    fn a_server_is_shown_whole_and_nothing_drives_the_terminal() {
        for (entry, expected) in [
            (
                json!({ "command": "npx", "args": ["-y", "a b", ""], "timeout": "5s" }),
                "npx -y 'a b' '' (timeout: 5s)",
            ),
            (
                json!({ "command": ["sh", "-c", "rm -rf ~"] }),
                "sh -c 'rm -rf ~'",
            ),
            (
                json!({ "command": "sh", "args": ["-c", r#"{"password":"$(evil)"}"#] }),
                r#"sh -c '{"password":"$(evil)"}'"#,
            ),
            (
                json!({ "command": "x", "env": { "LD_PRELOAD": "./evil.so", "API_KEY": "s3cret" }, "cwd": "sub" }),
                "x (env: LD_PRELOAD=./evil.so API_KEY=[REDACTED]) (cwd: sub)",
            ),
            (
                json!({ "type": "http", "url": "https://h/mcp?k=${KEY}", "headers": { "X": "${TOKEN}" } }),
                "https://h/mcp?k=${KEY} (headers: X=${TOKEN})",
            ),
            (json!({ "command": "a\u{1b}[2K\rls" }), "'a\\u{1b}[2K\\rls'"),
        ] {
            assert_eq!(described(&entry), expected, "{entry}");
        }
    }

    #[test]
    fn every_change_of_a_value_is_a_difference() {
        let long = "x".repeat(LONGEST);
        let before = json!({ "policy": { "ask": ["lock"] }, "model": { "system": format!("{long}a") }, "limits": { "timeout": "5s" } });
        let after = json!({ "policy": { "deny": ["lock"] }, "model": { "system": format!("{long}b") }, "limits": { "timeout": "5s" } });
        let found = difference(&lines(&before), &lines(&after));
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(found[0], "- sets policy.ask: lock");
        assert!(found[1].starts_with("~ tells the model: xxx"), "{found:?}");
        assert_eq!(found[2], "+ sets policy.deny: lock");
        assert!(difference(&lines(&after), &lines(&after)).is_empty());
        let tool = |schema: Value| json!({ "tools": [{ "name": "t", "description": "d", "parameters": schema }] });
        let found = difference(
            &lines(&tool(json!({}))),
            &lines(&tool(json!({ "type": "object" }))),
        );
        assert_eq!(found.len(), 1, "{found:?}");
    }
    #[test]
    fn what_moves_from_one_entry_to_another_is_a_difference() {
        let token = |name: &str, allow: Value| json!({ "name": name, "token": format!("0123456789{name}"), "allow": allow });
        let tokens = |first: Value, second: Value| json!({ "serve": { "tokens": [token("a", first), token("b", second)] } });
        let before = tokens(json!(["lock"]), json!(["echo"]));
        let after = tokens(json!(["echo"]), json!(["lock"]));
        assert_eq!(
            difference(&lines(&before), &lines(&after)),
            [
                "- sets serve.tokens.0.allow: lock",
                "- sets serve.tokens.1.allow: echo",
                "+ sets serve.tokens.0.allow: echo",
                "+ sets serve.tokens.1.allow: lock",
            ]
        );
    }

    #[test]
    fn a_container_is_started() {
        let config = json!({ "mcpServers": { "a": { "container": "image" }, "b": { "url": "http://h/", "command": null } } });
        assert_eq!(
            texts(&config),
            [
                "starts the server 'a': (container: image)",
                "contacts the server 'b': http://h/",
            ]
        );
    }

    #[test]
    fn another_order_of_servers_is_a_difference() {
        let (a, b) = (json!({ "command": "a" }), json!({ "command": "b" }));
        let before = lines(&json!({ "mcpServers": { "a": a, "b": b } }));
        for after in [
            json!({ "mcpServers": { "b": b, "a": a } }),
            json!({ "servers": { "a": a }, "mcpServers": { "b": b } }),
        ] {
            assert_eq!(difference(&before, &lines(&after)), [REORDERED], "{after}");
        }
        let same = json!({ "servers": { "b": b }, "mcpServers": { "a": a } });
        assert!(difference(&before, &lines(&same)).is_empty());
    }

    #[test]
    fn a_name_of_endless_length_is_shown_once() {
        let name = "n".repeat(100_000);
        let config = json!({ "limits": { name: [1, 2, 3, 4] } });
        let shown = texts(&config);
        assert_eq!(shown.len(), 1);
        assert!(shown[0].len() < 2 * LONGEST, "{}", shown[0].len());
        let other = json!({ "limits": { format!("{}m", "n".repeat(99_999)): [1, 2, 3, 4] } });
        assert_eq!(difference(&lines(&config), &lines(&other)).len(), 1);
    }
}
