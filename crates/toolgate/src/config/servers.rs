//! `mcpServers` and `servers`: entries become settings, one by one, so that a bad one costs only itself.

use std::collections::HashSet;
use std::path::Path;

use serde_json::{Map, Value};
use toolgate_mcp::{Places, ServerSettings};

use super::variables::{self, Lookup, LookupError, Unresolved};
use super::{ConfigError, Document, Environment};

pub(crate) const KEYS: [&str; 2] = ["mcpServers", "servers"];

#[derive(Debug, Clone)]
pub(crate) struct ConfiguredServer {
    pub(crate) settings: ServerSettings,
    /// As it stands in the file, variables and all: what a person agrees to.
    pub(crate) entry: Value,
}

#[derive(Debug, Clone)]
pub(crate) struct ServerProblem {
    pub(crate) error: ConfigError,
    /// True if the server is not there because of it.
    pub(crate) left_out: bool,
}

#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) servers: Vec<ConfiguredServer>,
    names: HashSet<String>,
    pub(super) problems: Vec<ServerProblem>,
    /// A key that holds no entries at all.
    pub(super) errors: Vec<ConfigError>,
}

pub(super) fn read(document: &Document, lookup: Lookup<'_>) -> Read {
    let inside = document.folder().join("file");
    let inside = std::path::absolute(&inside).unwrap_or(inside);
    let home = (lookup.environment)("HOME");
    let places = Places {
        folder: inside.parent().unwrap_or(Path::new("/")),
        home: home.as_deref().map(Path::new),
    };
    let context = EntryContext {
        document,
        environment: lookup.environment,
        places,
    };
    let mut read = Read::default();
    for key in KEYS {
        let entries = entries(document, key).unwrap_or_else(|error| {
            read.errors.push(error);
            None
        });
        for (name, entry) in entries.into_iter().flatten() {
            let place = [key, name.as_str()];
            if read.names.contains(name) {
                let text =
                    format!("server '{name}' is left out: 'mcpServers' has one of this name");
                read.leave_out(document.error_at(&place, text));
                continue;
            }
            let mut expanded = entry.clone();
            let obstacles = expand(&mut expanded, lookup);
            for (way, text) in &obstacles {
                let inside = way.iter().map(String::as_str);
                let path: Vec<&str> = place.iter().copied().chain(inside).collect();
                let text = format!("server '{name}' is left out: {}: {text}", way.join("."));
                read.leave_out(document.error_at(&path, text));
            }
            let blocked = obstacles.into_iter().next().map(|(_, text)| text);
            read.entry(&context, &place, entry, &expanded, blocked.as_deref());
        }
    }
    read
}

struct EntryContext<'a> {
    document: &'a Document,
    environment: Environment<'a>,
    places: Places<'a>,
}

impl Read {
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
        // What is missing may be what else is wrong with it, and was told.
        let problems = problems.into_iter().filter(|_| blocked.is_none());
        self.problems.extend(problems.map(|problem| {
            let inside = problem.path.iter().map(String::as_str);
            let way: Vec<&str> = place.iter().copied().chain(inside).collect();
            let written = problem.path.iter().try_fold(entry, step_into);
            let text = variables::unexpand(&problem.text, written.unwrap_or(entry), environment);
            ServerProblem {
                error: document.error_at(&way, text),
                left_out: problem.left_out,
            }
        }));
        self.names
            .extend(settings.as_ref().map(|settings| settings.name.clone()));
        self.servers
            .extend(settings.map(|settings| ConfiguredServer {
                settings: settings.identified(entry, places.folder),
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
    document: &'a Document,
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

/// Replaces the variables of an entry. What keeps it from being started comes back, with the way to it; an entry that is
/// disabled may keep variables that aren't set.
fn expand(entry: &mut Value, lookup: Lookup<'_>) -> Vec<(Vec<String>, String)> {
    let is_disabled = ServerSettings::is_disabled(entry);
    let lookup = Lookup {
        // What isn't started needs none.
        secrets: lookup.secrets.filter(|_| !is_disabled),
        ..lookup
    };
    let unresolved = variables::expand(entry, lookup);
    if is_disabled {
        return Vec::new();
    }
    let unresolved = unresolved.into_iter().map(|Unresolved { error, way }| {
        let text = match error {
            LookupError::Unset(name) => unset(&name),
            LookupError::Secret(secret, problem) => format!("{secret}: {problem}"),
            LookupError::NotFetched => "its secrets are not fetched by this command".to_owned(),
        };
        (way, text)
    });
    let asked = variables::find(entry, INPUT).map(|way| (way, ASKS.to_owned()));
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

/// How VS Code has a person asked for a value.
const INPUT: &str = "${input:";
const ASKS: &str = "${input:…} is a question that VS Code asks; write ${VAR} and set the variable";

/// Says where an entry waits for an answer that only VS Code asks for.
pub(crate) fn asks_for_input(entry: &Value) -> Option<String> {
    let way = variables::find(entry, INPUT)?;
    Some(format!("{}: {ASKS}", way.join(".")))
}
