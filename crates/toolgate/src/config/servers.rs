//! Reads `mcpServers` and `servers` entry by entry, so that a bad entry affects only itself.

use std::collections::HashSet;
use std::path::Path;

use serde_json::{Map, Value};
use toolgate_mcp::{ConfigPaths, ServerSettings};

use super::variables::{self, LookupError, ReferenceLookup, UnresolvedReference};
use super::{ConfigDocument, ConfigError, Environment};

pub(crate) const KEYS: [&str; 2] = ["mcpServers", "servers"];

#[derive(Debug, Clone)]
pub(crate) struct ConfiguredServer {
    pub(crate) settings: ServerSettings,
    /// As written, with its variables: what a person agrees to.
    pub(crate) entry: Value,
}

#[derive(Debug, Clone)]
pub(crate) struct ServerProblem {
    pub(crate) error: ConfigError,
    /// True if the server is left out because of it.
    pub(crate) left_out: bool,
}

#[derive(Debug, Default)]
pub(super) struct ConfiguredServers {
    pub(super) servers: Vec<ConfiguredServer>,
    names: HashSet<String>,
    pub(super) problems: Vec<ServerProblem>,
    pub(super) errors: Vec<ConfigError>,
}

pub(super) fn read(document: &ConfigDocument, lookup: ReferenceLookup<'_>) -> ConfiguredServers {
    let inside = document.folder().join("file");
    let inside = std::path::absolute(&inside).unwrap_or(inside);
    let home = (lookup.environment)("HOME");
    let places = ConfigPaths {
        folder: inside.parent().unwrap_or(Path::new("/")),
        home: home.as_deref().map(Path::new),
    };
    let context = EntryContext {
        document,
        environment: lookup.environment,
        places,
    };
    let mut read = ConfiguredServers::default();
    for key in KEYS {
        let entries = entries(document, key).unwrap_or_else(|error| {
            read.errors.push(error);
            None
        });
        for (name, entry) in entries.into_iter().flatten() {
            let place = [key, name.as_str()];
            if read.names.contains(name) {
                let text = format!(
                    "server '{name}' is left out: 'mcpServers' already has a server of this name"
                );
                read.leave_out(document.error_at(&place, text));
                continue;
            }
            let mut expanded = entry.clone();
            let obstacles = expand(&mut expanded, lookup);
            for (key_path, text) in &obstacles {
                let inside = key_path.iter().map(String::as_str);
                let path: Vec<&str> = place.iter().copied().chain(inside).collect();
                let text = format!(
                    "server '{name}' is left out: {}: {text}",
                    key_path.join(".")
                );
                read.leave_out(document.error_at(&path, text));
            }
            let blocked = obstacles.into_iter().next().map(|(_, text)| text);
            read.entry(&context, &place, entry, &expanded, blocked.as_deref());
        }
    }
    read
}

struct EntryContext<'a> {
    document: &'a ConfigDocument,
    environment: Environment<'a>,
    places: ConfigPaths<'a>,
}

impl ConfiguredServers {
    fn leave_out(&mut self, error: ConfigError) {
        self.problems.push(ServerProblem {
            error,
            left_out: true,
        });
    }

    fn entry(
        &mut self,
        context: &EntryContext<'_>,
        place: &[&str; 2],
        entry: &Value,
        expanded: &Value,
        blocked: Option<&str>,
    ) {
        let EntryContext {
            document,
            environment,
            places,
        } = *context;
        let (mut settings, problems) = ServerSettings::read(place[1], expanded, places);
        if let Some(settings) = &mut settings {
            settings.blocked = blocked.map(str::to_owned);
        }
        // A missing value may cause further problems, and was already reported.
        let problems = problems.into_iter().filter(|_| blocked.is_none());
        self.problems.extend(problems.map(|problem| {
            let inside = problem.path.iter().map(String::as_str);
            let key_path: Vec<&str> = place.iter().copied().chain(inside).collect();
            let written = problem.path.iter().try_fold(entry, step_into);
            let text = variables::unexpand(&problem.text, written.unwrap_or(entry), environment);
            ServerProblem {
                error: document.error_at(&key_path, text),
                left_out: problem.left_out,
            }
        }));
        self.names
            .extend(settings.as_ref().map(|settings| settings.name.clone()));
        self.servers
            .extend(settings.map(|settings| ConfiguredServer {
                settings: settings.with_identity(entry, places.folder),
                entry: entry.clone(),
            }));
    }
}

fn step_into<'v>(value: &'v Value, name: &String) -> Option<&'v Value> {
    match value {
        Value::Array(list) => list.get(name.parse::<usize>().ok()?),
        value => value.get(name),
    }
}

pub(crate) fn entries<'a>(
    document: &'a ConfigDocument,
    key: &str,
) -> Result<Option<&'a Map<String, Value>>, ConfigError> {
    match document.value().get(key) {
        Some(Value::Object(entries)) => Ok(Some(entries)),
        None | Some(Value::Null) => Ok(None),
        Some(_) => Err(document.error_at(
            &[key],
            format!("{key}: must be an object that has a server under each name, such as {{ \"files\": {{ \"command\": \"npx\" }} }}"),
        )),
    }
}

/// Expands the variables of an entry, and returns what keeps it from starting, with paths. A
/// disabled entry may have unset variables.
fn expand(entry: &mut Value, lookup: ReferenceLookup<'_>) -> Vec<(Vec<String>, String)> {
    let is_disabled = ServerSettings::is_disabled(entry);
    let lookup = ReferenceLookup {
        // A disabled server needs no secrets.
        secrets: lookup.secrets.filter(|_| !is_disabled),
        ..lookup
    };
    let unresolved = variables::expand(entry, lookup);
    if is_disabled {
        return Vec::new();
    }
    let unresolved = unresolved
        .into_iter()
        .map(|UnresolvedReference { error, key_path }| {
            let text = match error {
                LookupError::Unset(name) => unset(&name),
                LookupError::Secret(secret, problem) => format!("{secret}: {problem}"),
                LookupError::NotFetched => "its secrets are not fetched by this command".to_owned(),
            };
            (key_path, text)
        });
    let asked = variables::find(entry, INPUT).map(|key_path| (key_path, ASKS.to_owned()));
    unresolved.chain(asked).collect()
}

fn unset(name: &str) -> String {
    match name {
        "workspaceFolder" | "workspaceFolderBasename" | "userHome" => format!(
            "${{{name}}} is a variable of another client; write a path, relative to this file or with ~/"
        ),
        _ => format!("the variable {name} is not set"),
    }
}

// VS Code's placeholder for a value that it prompts for.
const INPUT: &str = "${input:";
const ASKS: &str = "${input:…} makes VS Code ask for a value; write ${VAR} and set the variable";

pub(crate) fn asks_for_input(entry: &Value) -> Option<String> {
    let key_path = variables::find(entry, INPUT)?;
    Some(format!("{}: {ASKS}", key_path.join(".")))
}
