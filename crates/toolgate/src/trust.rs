//! Which servers of files in working folders the person has agreed to.
//!
//! A file that lies in a folder may have come with it, from a stranger: nothing it names is run or contacted before somebody
//! has seen what that is. Remembered is the file's path and, of each server, a hash of what would be run; so another command
//! asks again and another timeout does not.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use toolgate_core::{Redactor, escape};
use toolgate_mcp::ServerSettings;
use tracing::warn;

use crate::config::{ConfiguredServer, Environment, state_folder};
use crate::{file, questions, say, terminal};

/// Hashes of what would be run, by server, by file.
type Agreed = BTreeMap<PathBuf, BTreeMap<String, String>>;

/// What was agreed to so far.
#[derive(Debug, Default)]
pub(crate) struct Trust {
    store: Option<PathBuf>,
    agreed: Agreed,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    files: Agreed,
}

impl Trust {
    /// Reads what is remembered. What can not be read is not agreed to.
    pub(crate) fn read(environment: Environment<'_>) -> Self {
        let Some(store) = store(environment) else {
            return Self::default();
        };
        let agreed = match std::fs::read(&store) {
            Ok(bytes) => match serde_json::from_slice::<Stored>(&bytes) {
                Ok(stored) => stored.files,
                Err(error) => {
                    warn!("{}: counts for nothing: {error}", store.display());
                    Agreed::default()
                }
            },
            Err(_) => Agreed::default(),
        };
        Self {
            store: Some(store),
            agreed,
        }
    }

    /// True if this server of this file was agreed to, as it is.
    pub(crate) fn has(&self, file: &Path, server: &ConfiguredServer) -> bool {
        let agreed = self.agreed.get(&real(file));
        let hash = agreed.and_then(|servers| servers.get(&server.settings.name));
        hash == Some(&fingerprint(&server.settings.name, &server.entry))
    }

    /// Remembers these.
    pub(crate) fn agree<'a>(
        &mut self,
        file: &Path,
        servers: impl IntoIterator<Item = (&'a str, &'a Value)>,
    ) -> anyhow::Result<()> {
        let agreed = self.agreed.entry(real(file)).or_default();
        let hashed = servers
            .into_iter()
            .map(|(name, entry)| (name.to_owned(), fingerprint(name, entry)));
        agreed.extend(hashed);
        self.write()
    }

    /// Forgets a file; false if there was nothing to forget.
    pub(crate) fn revoke(&mut self, file: &Path) -> anyhow::Result<bool> {
        let was_there = self.agreed.remove(&real(file)).is_some();
        if was_there {
            self.write()?;
        }
        Ok(was_there)
    }

    /// Every file and its servers.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Path, Vec<&str>)> {
        self.agreed.iter().map(|(file, servers)| {
            let names = servers.keys().map(String::as_str).collect();
            (file.as_path(), names)
        })
    }

    fn write(&self) -> anyhow::Result<()> {
        let store = self.store.as_deref();
        let store = store.context("cannot remember it: neither HOME nor XDG_STATE_HOME is set")?;
        let text = format!("{:#}\n", json!({ "files": self.agreed }));
        file::make_folder(store)
            .and_then(|()| file::replace(store, &text))
            .with_context(|| format!("cannot write {}", store.display()))
    }
}

/// When the agreements were last written; `None` if there are none.
pub(crate) fn changed_at(environment: Environment<'_>) -> Option<SystemTime> {
    let store = store(environment)?;
    std::fs::metadata(store).ok()?.modified().ok()
}

fn store(environment: Environment<'_>) -> Option<PathBuf> {
    state_folder(environment).map(|folder| folder.join("trusted.json"))
}

/// A path that means the same from everywhere.
fn real(file: &Path) -> PathBuf {
    let absolute = || std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    std::fs::canonicalize(file).unwrap_or_else(|_| absolute())
}

/// A hash of what would be run.
fn fingerprint(name: &str, entry: &Value) -> String {
    let text = json!([name, ServerSettings::run_part(entry)]).to_string();
    let hash = Sha256::digest(text.as_bytes());
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Asks on the terminal whether these may be started; nobody there is a no.
pub(crate) fn ask(file: &Path, servers: &[&ConfiguredServer]) -> bool {
    if !terminal::can_ask() {
        return false;
    }
    questions::forget_typed();
    say::line(&question(file, servers));
    say::line(
        "Agree only if you know where this file comes from. Start them, now and from now on? [y/N]",
    );
    questions::agreed()
}

/// What would be run, for a person to judge.
pub(crate) fn question(file: &Path, servers: &[&ConfiguredServer]) -> String {
    let file = escape(&file.to_string_lossy());
    let mut text = format!("{file} names MCP servers that are not trusted yet:");
    for server in servers {
        let name = escape(&server.settings.name);
        text.push_str(&format!("\n  {name}: {}", described(&server.entry)));
    }
    text
}

/// What an entry runs or contacts, as it stands in the file: a variable is shown by its name, not its value.
pub(crate) fn described(entry: &Value) -> String {
    let part = Redactor::default().value(&ServerSettings::run_part(entry));
    let mut words = Vec::new();
    for key in ["command", "args"] {
        match &part[key] {
            Value::Array(list) => words.extend(list.iter().map(word)),
            Value::Null => {}
            one => words.push(word(one)),
        }
    }
    let rest = part.as_object().into_iter().flatten();
    for (key, value) in rest.filter(|(key, _)| !["command", "args", "type"].contains(&&***key)) {
        match (value, key.as_str()) {
            (Value::String(address), "url" | "serverUrl" | "httpUrl") => {
                words.push(address.clone());
            }
            (Value::Object(empty), _) if empty.is_empty() => {}
            _ => words.push(format!("({key}: {})", inside(value))),
        }
    }
    escape(&words.join(" "))
}

fn word(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,${}[]~?&".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

fn inside(value: &Value) -> String {
    let Value::Object(pairs) = value else {
        return word(value);
    };
    let pairs = pairs
        .iter()
        .map(|(key, value)| format!("{key}={}", word(value)));
    pairs.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_shows_all_that_matters_and_nothing_drives_the_terminal() {
        for (entry, expected) in [
            (
                json!({ "command": "npx", "args": ["-y", "a b", ""], "timeout": "5s" }),
                "npx -y 'a b' ''",
            ),
            (
                json!({ "command": ["sh", "-c", "rm -rf ~"] }),
                "sh -c 'rm -rf ~'",
            ),
            (
                json!({ "command": "x", "env": { "LD_PRELOAD": "./evil.so", "API_KEY": "s3cret" }, "cwd": "sub" }),
                "x (env: API_KEY=[REDACTED] LD_PRELOAD=./evil.so) (cwd: sub)",
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
    fn the_order_of_variables_does_not_matter_and_their_values_do() {
        let hash = |entry: Value| fingerprint("s", &entry);
        let one = hash(json!({ "command": "x", "env": { "A": "1", "B": "2" } }));
        assert_eq!(
            one,
            hash(json!({ "env": { "B": "2", "A": "1" }, "command": "x" }))
        );
        assert_ne!(
            one,
            hash(json!({ "command": "x", "env": { "A": "2", "B": "2" } }))
        );
        assert_ne!(
            one,
            fingerprint(
                "t",
                &json!({ "command": "x", "env": { "A": "1", "B": "2" } })
            )
        );
    }
}
