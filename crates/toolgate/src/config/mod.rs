//! The configuration file: found, read, checked, and turned into settings. Nothing here opens a connection.

mod document;
mod find;
#[cfg(test)]
mod schema;
mod variables;

use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;
use toolgate_core::{Limits, Policy, nearest};
use toolgate_tools::Problem;
use toolgate_tools::builtin::SearchSettings;
use toolgate_tools::internal::DocumentsSettings;

use document::Document;
pub(crate) use find::{cache_folder, find};

/// What the file says, with defaults for the rest.
#[derive(Debug, Default)]
pub(crate) struct Config {
    document: Option<Document>,
    pub(crate) limits: Limits,
    pub(crate) policy: Policy,
    pub(crate) search: SearchSettings,
    pub(crate) documents: DocumentsSettings,
    /// Definitions as they stand in the file; `toolgate-tools` reads them.
    pub(crate) tools: Vec<Value>,
    /// What is odd, but no reason to stop.
    pub(crate) warnings: Vec<ConfigError>,
    /// Variables that are unset in a section which only some commands use.
    unset: Vec<(&'static str, ConfigError)>,
}

/// Something wrong with the file, with its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) struct ConfigError {
    file: PathBuf,
    line: Option<usize>,
    text: String,
}

impl ConfigError {
    fn file(file: &Path, text: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: None,
            text: text.into(),
        }
    }

    fn at(file: &Path, line: usize, text: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: Some(line),
            text: text.into(),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        match self.line {
            Some(line) => write!(f, "{file}:{line}: {}", self.text),
            None => write!(f, "{file}: {}", self.text),
        }
    }
}

/// Every key at the root, and whether a section is strict.
const ROOT_KEYS: [&str; 8] = [
    "$schema",
    "documents",
    "limits",
    "mcpServers",
    "policy",
    "search",
    "servers",
    "tools",
];

impl Config {
    /// Reads and checks a file.
    pub(crate) fn read(
        path: &Path,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        Self::resolve(Document::read(path)?, environment)
    }

    fn resolve(
        document: Document,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let Value::Object(root) = document.value() else {
            return Err(document.error_at::<&str>(&[], "must be a JSON object"));
        };
        let mut config = Self {
            warnings: unknown_root_keys(&document, root)?,
            ..Self::default()
        };
        if let Some(tools) = root.get("tools") {
            let Value::Array(tools) = tools else {
                return Err(
                    document.error_at(&["tools"], "tools: must be a list of tool definitions")
                );
            };
            config.tools.clone_from(tools);
        }
        let mut sections = Sections {
            document: &document,
            environment,
            unset: Vec::new(),
        };
        config.limits = sections.read("limits")?;
        config.policy = sections.read("policy")?;
        if let Some((_, error)) = sections.unset.first() {
            return Err(error.clone());
        }
        config.search = sections.read("search")?;
        config.documents = sections.read("documents")?;
        config.unset = sections.unset;
        let folder = document.path().parent().unwrap_or(Path::new(""));
        for path in &mut config.documents.folders {
            *path = resolved(path, folder, environment);
        }
        config.document = Some(document);
        Ok(config)
    }

    /// Where it came from.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.document.as_ref().map(Document::path)
    }

    /// A problem of a tool definition, with its place.
    pub(crate) fn locate(&self, problem: &Problem) -> ConfigError {
        let way: Vec<String> = ["tools".to_owned(), problem.index.to_string()]
            .into_iter()
            .chain(problem.path.iter().cloned())
            .collect();
        match &self.document {
            Some(document) => document.error_at(&way, &*problem.text),
            None => ConfigError::file(Path::new("tools"), &*problem.text),
        }
    }

    /// An unset variable that matters when this tool is called: the tool is made from the section it stands in.
    pub(crate) fn unset_for(&self, tool: &str) -> Option<&ConfigError> {
        let uses = |section: &str| {
            tool == section
                || self.tools.iter().any(|entry| {
                    entry["name"] == tool && entry["implementation"]["handler"] == section
                })
        };
        self.unset
            .iter()
            .find(|(section, _)| uses(section))
            .map(|(_, error)| error)
    }

    /// All unset variables, for a check of everything.
    pub(crate) fn unset(&self) -> impl Iterator<Item = &ConfigError> {
        self.unset.iter().map(|(_, error)| error)
    }

    /// Values that must never be shown.
    pub(crate) fn secrets(&self) -> Vec<String> {
        [&self.search.key]
            .into_iter()
            .filter(|secret| !secret.is_empty())
            .cloned()
            .collect()
    }
}

fn unknown_root_keys(
    document: &Document,
    root: &serde_json::Map<String, Value>,
) -> Result<Vec<ConfigError>, ConfigError> {
    let is_servers = |key: &str| key == "mcpServers" || key == "servers";
    let is_ours = |key: &str| ROOT_KEYS.contains(&key) && !is_servers(key) && key != "$schema";
    // A file that other clients share holds keys of theirs.
    let foreign = root.keys().any(|key| is_servers(key)) && !root.keys().any(|key| is_ours(key));
    let mut warnings = Vec::new();
    for key in root.keys() {
        if is_servers(key) {
            let text = format!(
                "{key}: MCP servers are not started by this version; their tools are missing"
            );
            warnings.push(document.error_at(&[key], text));
        } else if !ROOT_KEYS.contains(&key.as_str()) {
            let error = document.error_at(&[key], unknown_key(key, key, &ROOT_KEYS));
            if !foreign {
                return Err(error);
            }
            warnings.push(error);
        }
    }
    Ok(warnings)
}

/// Reads sections strictly: an unknown key or a wrong type is an error with its line.
struct Sections<'a> {
    document: &'a Document,
    environment: &'a dyn Fn(&str) -> Option<String>,
    unset: Vec<(&'static str, ConfigError)>,
}

impl Sections<'_> {
    fn read<T: DeserializeOwned + Default>(
        &mut self,
        section: &'static str,
    ) -> Result<T, ConfigError> {
        let Some(value) = self.document.value().get(section) else {
            return Ok(T::default());
        };
        let mut value = value.clone();
        let unset = variables::expand(&mut value, self.environment);
        for variable in &unset {
            let way: Vec<&str> = [section]
                .into_iter()
                .chain(variable.way.iter().map(String::as_str))
                .collect();
            let text = format!(
                "{}: the variable {} is not set",
                way.join("."),
                variable.name
            );
            self.unset
                .push((section, self.document.error_at(&way, text)));
        }
        if !unset.is_empty() {
            return Ok(T::default());
        }
        serde_path_to_error::deserialize(value).map_err(|error| {
            let path = error.path().to_string();
            let way: Vec<&str> = [section]
                .into_iter()
                .chain(
                    path.split('.')
                        .filter(|name| !name.is_empty() && *name != "?"),
                )
                .collect();
            let key = way.join(".");
            let problem = error.inner().to_string();
            let quoted = in_backticks(&problem);
            let text = match quoted.split_first() {
                Some((unknown, known)) if problem.starts_with("unknown field") => {
                    unknown_key(&key, unknown, known)
                }
                _ => format!("{key}: {}", without_position(&problem)),
            };
            self.document.error_at(&way, text)
        })
    }
}

fn unknown_key(path: &str, key: &str, known: &[&str]) -> String {
    let hint = match nearest(key, known.iter().copied(), 1).pop() {
        Some(name) => format!("did you mean '{name}'?"),
        None => format!("known are: {}", known.join(", ")),
    };
    format!("unknown key '{}'; {hint}", toolgate_core::escape(path))
}

/// serde tells names only inside its text: ``unknown field `a`, expected one of `b`, `c` ``.
fn in_backticks(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The line of a value read from memory says nothing.
fn without_position(text: &str) -> &str {
    text.split(" at line ").next().unwrap_or(text)
}

/// A path in the file is relative to the file; `~/` is the home folder.
fn resolved(path: &Path, folder: &Path, environment: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    match (path.strip_prefix("~"), environment("HOME")) {
        (Ok(rest), Some(home)) => Path::new(&home).join(rest),
        _ => folder.join(path),
    }
}

#[cfg(test)]
mod tests;
