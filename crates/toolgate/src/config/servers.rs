//! `mcpServers` and `servers`: entries become settings, one by one, so that a bad one costs only itself.

use std::path::Path;

use serde_json::{Map, Value};
use toolgate_mcp::{Places, ServerSettings};

use super::variables::{self, Unset};
use super::{ConfigError, Document, Environment};

/// The keys at the root that hold servers.
pub(crate) const KEYS: [&str; 2] = ["mcpServers", "servers"];

/// A server of the file.
#[derive(Debug, Clone)]
pub(crate) struct ConfiguredServer {
    pub(crate) settings: ServerSettings,
    /// As it stands in the file, variables and all: what a person agrees to.
    pub(crate) entry: Value,
}

/// Something wrong or odd about one.
#[derive(Debug, Clone)]
pub(crate) struct ServerProblem {
    pub(crate) error: ConfigError,
    /// True if the server is not there because of it.
    pub(crate) left_out: bool,
}

/// What came of all entries.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) servers: Vec<ConfiguredServer>,
    /// In the order of the file.
    pub(super) problems: Vec<ServerProblem>,
}

/// Reads the entries of both keys. Only a key that holds no entries at all is an error.
pub(super) fn read(document: &Document, environment: Environment<'_>) -> Result<Read, ConfigError> {
    let file = std::path::absolute(document.path());
    let file = file.unwrap_or_else(|_| document.path().to_owned());
    let home = environment("HOME");
    let places = Places {
        folder: file.parent().unwrap_or(Path::new("/")),
        home: home.as_deref().map(Path::new),
    };
    let mut read = Read::default();
    for key in KEYS {
        for (name, entry) in entries(document, key)?.into_iter().flatten() {
            let place = [key, name.as_str()];
            let problem = if read.has(name) {
                let text =
                    format!("server '{name}' is left out: 'mcpServers' has one of this name");
                Err(document.error_at(&place, text))
            } else {
                expanded(document, &place, entry, environment)
            };
            match problem {
                Ok(expanded) => read.entry(document, &place, entry, &expanded, places),
                Err(error) => read.problems.push(ServerProblem {
                    error,
                    left_out: true,
                }),
            }
        }
    }
    Ok(read)
}

impl Read {
    fn has(&self, name: &str) -> bool {
        self.servers
            .iter()
            .any(|server| server.settings.name == name)
    }

    fn entry(
        &mut self,
        document: &Document,
        place: &[&str; 2],
        entry: &Value,
        expanded: &Value,
        places: Places<'_>,
    ) {
        let (settings, problems) = ServerSettings::read(place[1], expanded, places);
        self.problems.extend(problems.into_iter().map(|problem| {
            let inside = problem.path.iter().map(String::as_str);
            let way: Vec<&str> = place.iter().copied().chain(inside).collect();
            ServerProblem {
                error: document.error_at(&way, problem.text),
                left_out: problem.left_out,
            }
        }));
        self.servers
            .extend(settings.map(|settings| ConfiguredServer {
                settings,
                entry: entry.clone(),
            }));
    }
}

/// The entries under one key, in the order of the file.
pub(crate) fn entries<'a>(
    document: &'a Document,
    key: &str,
) -> Result<Option<&'a Map<String, Value>>, ConfigError> {
    match document.value().get(key) {
        Some(Value::Object(entries)) => Ok(Some(entries)),
        None | Some(Value::Null) => Ok(None),
        Some(_) => Err(document.error_at(
            &[key],
            format!("{key}: must be an object that has a server under each name"),
        )),
    }
}

/// The entry with its variables replaced. One that is not started may keep those that are not set.
fn expanded(
    document: &Document,
    place: &[&str; 2],
    entry: &Value,
    environment: Environment<'_>,
) -> Result<Value, ConfigError> {
    let mut expanded = entry.clone();
    let unset = variables::expand(&mut expanded, environment);
    if ServerSettings::is_disabled(entry) {
        return Ok(expanded);
    }
    let left_out = |way: &[String], text: &str| {
        let inside = way.iter().map(String::as_str);
        let path: Vec<&str> = place.iter().copied().chain(inside).collect();
        let text = format!(
            "server '{}' is left out: {}: {text}",
            place[1],
            way.join(".")
        );
        document.error_at(&path, text)
    };
    if let Some(Unset { name, way }) = unset.first() {
        let text = match name.as_str() {
            "workspaceFolder" | "workspaceFolderBasename" | "userHome" => format!(
                "${{{name}}} is a variable of another client; write a path, relative to this file or with ~/"
            ),
            _ => format!("the variable {name} is not set"),
        };
        return Err(left_out(way, &text));
    }
    match variables::find(&expanded, INPUT) {
        Some(way) => Err(left_out(&way, ASKS)),
        None => Ok(expanded),
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
