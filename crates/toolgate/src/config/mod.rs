//! The configuration file: found, read, checked, and turned into settings. Nothing here opens a connection.

mod document;
mod find;
mod mqtt;
#[cfg(test)]
mod schema;
pub(crate) mod servers;
mod strange;
mod uses;
mod variables;
mod voice;

use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;
use toolgate_core::{Limits, Policy, escape, nearest};
use toolgate_journal::JournalSettings;
use toolgate_mcp::RetryPolicy;
use toolgate_models::ModelSettings;
use toolgate_server::{ServeSettings, TelemetrySettings};
use toolgate_tools::Problem;
use toolgate_tools::builtin::SearchSettings;
use toolgate_tools::internal::DocumentsSettings;
use toolgate_voice::VoiceSettings;

pub(crate) use document::Document;
pub(crate) use find::{Place, cache_folder, find, named, state_folder, user_file};
pub(crate) use mqtt::MqttSettings;
pub(crate) use servers::{ConfiguredServer, ServerProblem};
pub(crate) use voice::{is_installed, is_wav, offers, only_serves};

/// How a variable is looked up.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What the file says, with defaults for the rest.
#[derive(Debug, Default)]
pub(crate) struct Config {
    document: Option<Document>,
    /// How the file was found.
    pub(crate) place: Place,
    pub(crate) limits: Limits,
    pub(crate) policy: Policy,
    pub(crate) retry: RetryPolicy,
    pub(crate) search: SearchSettings,
    pub(crate) documents: DocumentsSettings,
    pub(crate) model: ModelSettings,
    pub(crate) serve: ServeSettings,
    pub(crate) telemetry: TelemetrySettings,
    pub(crate) journal: JournalSettings,
    pub(crate) voice: VoiceSettings,
    pub(crate) mqtt: MqttSettings,
    /// Definitions as they stand in the file; `toolgate-tools` reads them.
    pub(crate) tools: Vec<Value>,
    /// In the order of the file, disabled ones too.
    pub(crate) servers: Vec<ConfiguredServer>,
    /// What is wrong with servers: for commands that use them.
    pub(crate) server_problems: Vec<ServerProblem>,
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
        // Names and values come from the file: none may forge a line or drive a terminal.
        let file = escape(&self.file.to_string_lossy());
        let text = escape(&self.text);
        match self.line {
            Some(line) => write!(f, "{file}:{line}: {text}"),
            None => write!(f, "{file}: {text}"),
        }
    }
}

/// Every key at the root.
const ROOT_KEYS: [&str; 15] = [
    "$schema",
    "documents",
    "journal",
    "limits",
    "mcpServers",
    "model",
    "mqtt",
    "policy",
    "retry",
    "search",
    "serve",
    "servers",
    "telemetry",
    "tools",
    "voice",
];

impl Config {
    /// Reads and checks a file.
    pub(crate) fn read(path: &Path, environment: Environment<'_>) -> Result<Self, ConfigError> {
        Self::resolve(Document::read(path)?, environment)
    }

    fn resolve(document: Document, environment: Environment<'_>) -> Result<Self, ConfigError> {
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
        config.limits = sections.needed("limits")?;
        config.policy = sections.needed("policy")?;
        config.retry = sections.needed("retry")?;
        config.search = sections.read("search")?;
        config.documents = sections.read("documents")?;
        config.model = sections.read("model")?;
        config.serve = sections.read("serve")?;
        config.telemetry = sections.read("telemetry")?;
        config.journal = sections.read("journal")?;
        config.voice = sections.read("voice")?;
        config.mqtt = sections.read("mqtt")?;
        config.unset = sections.unset;
        let read = servers::read(&document, environment)?;
        config.servers = read.servers;
        config.server_problems = read.problems;
        let folder = document.path().parent().unwrap_or(Path::new(""));
        let paths = config.documents.folders.iter_mut();
        let paths = paths.chain(&mut config.model.intents);
        for path in paths.chain(&mut config.journal.file) {
            *path = resolved(path, folder, environment);
        }
        if voice::is_wav(&config.voice.output) {
            let file = resolved(Path::new(&config.voice.output), folder, environment);
            config.voice.output = voice::quoted(&file.to_string_lossy());
        }
        config.document = Some(document);
        Ok(config)
    }

    /// Where it came from.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.document.as_ref().map(Document::path)
    }

    /// True if both were made from the same values. Comments do not matter.
    pub(crate) fn is_same_text(&self, other: &Self) -> bool {
        let value = |config: &Self| {
            config
                .document
                .as_ref()
                .map(|document| document.value().clone())
        };
        value(self) == value(other)
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

    /// An error about a key of a section.
    pub(crate) fn error_about(&self, section: &str, key: &str, text: &str) -> Option<ConfigError> {
        let document = self.document.as_ref()?;
        Some(document.error_at(&[section, key], format!("{section}.{key}: {text}")))
    }

    /// A section as it stands in the file.
    pub(crate) fn section(&self, name: &str) -> &Value {
        let document = self.document.as_ref();
        document.map_or(&Value::Null, |document| {
            document.value().get(name).unwrap_or(&Value::Null)
        })
    }

    /// True if the file makes a tool of this name out of a handler.
    pub(crate) fn is_made_of(&self, tool: &str, handler: &str) -> bool {
        let mut entries = self.tools.iter();
        entries.any(|entry| entry["name"] == tool && entry["implementation"]["handler"] == handler)
    }
}

fn unknown_root_keys(
    document: &Document,
    root: &serde_json::Map<String, Value>,
) -> Result<Vec<ConfigError>, ConfigError> {
    let is_servers = |key: &str| servers::KEYS.contains(&key);
    let is_ours = |key: &str| ROOT_KEYS.contains(&key) && !is_servers(key) && key != "$schema";
    // A file that other clients share holds keys of theirs.
    let foreign = root.keys().any(|key| is_servers(key)) && !root.keys().any(|key| is_ours(key));
    let mut warnings = Vec::new();
    for key in root.keys() {
        if !ROOT_KEYS.contains(&key.as_str()) {
            let unknown = unknown_key(key, key, &ROOT_KEYS);
            let error = document.error_at(
                &[key],
                if foreign {
                    format!("'{key}' is not ours and is ignored")
                } else {
                    unknown
                },
            );
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
    environment: Environment<'a>,
    unset: Vec<(&'static str, ConfigError)>,
}

impl Sections<'_> {
    /// A section that every command uses: an unset variable is an error.
    fn needed<T: DeserializeOwned + Default>(
        &mut self,
        section: &'static str,
    ) -> Result<T, ConfigError> {
        let settings = self.read(section)?;
        match self.unset.pop() {
            Some((_, error)) => Err(error),
            None => Ok(settings),
        }
    }

    /// A section that only some commands use: unset variables are kept for them.
    fn read<T: DeserializeOwned + Default>(
        &mut self,
        section: &'static str,
    ) -> Result<T, ConfigError> {
        let Some(value) = self.document.value().get(section) else {
            return Ok(T::default());
        };
        if !value.is_object() {
            return Err(self
                .document
                .error_at(&[section], format!("{section}: must be an object")));
        }
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
        serde_path_to_error::deserialize(value).map_err(|error| self.wrong(section, &error))
    }

    fn wrong(
        &self,
        section: &str,
        error: &serde_path_to_error::Error<serde_json::Error>,
    ) -> ConfigError {
        let inside = error.path().iter().filter_map(|segment| match segment {
            Segment::Seq { index } => Some(index.to_string()),
            Segment::Map { key } => Some(key.clone()),
            _ => None,
        });
        let way: Vec<String> = [section.to_owned()].into_iter().chain(inside).collect();
        let path = way.join(".");
        let problem = error.inner().to_string();
        let text = match problem.rsplit_once(", expected ") {
            // serde tells the known names only inside its text.
            Some((unknown, known)) if unknown.starts_with("unknown field") => {
                let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
                unknown_key(&path, way.last().map_or(section, String::as_str), &known)
            }
            _ => format!("{path}: {}", in_plain_words(&problem)),
        };
        self.document.error_at(&way, text)
    }
}

fn unknown_key(path: &str, key: &str, known: &[&str]) -> String {
    let hint = match nearest(key, known.iter().copied(), 1).pop() {
        Some(name) => format!("did you mean '{name}'?"),
        None => format!("known are: {}", known.join(", ")),
    };
    format!("unknown key '{path}'; {hint}")
}

/// serde speaks of Rust; a person wrote JSON.
fn in_plain_words(problem: &str) -> String {
    let words = [
        ("a sequence", "a list"),
        ("a map", "an object"),
        ("struct ToolLimits", "an object"),
        ("usize", "a whole number"),
        ("u32", "a whole number"),
        ("i64", "a whole number"),
        ("f64", "a number"),
        ("f32", "a number"),
    ];
    // The line of a value read from memory says nothing.
    let problem = problem.split(" at line ").next().unwrap_or(problem);
    words
        .into_iter()
        .fold(problem.to_owned(), |text, (rust, json)| {
            text.replace(&format!("expected {rust}"), &format!("expected {json}"))
        })
}

/// A path in the file is relative to the file; `~/` is the home folder.
pub(crate) fn resolved(path: &Path, folder: &Path, environment: Environment<'_>) -> PathBuf {
    match (path.strip_prefix("~"), environment("HOME")) {
        (Ok(rest), Some(home)) => Path::new(&home).join(rest),
        _ => folder.join(path),
    }
}

#[cfg(test)]
mod tests;
