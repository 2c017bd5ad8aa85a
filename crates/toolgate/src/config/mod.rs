//! The configuration file: found, read, checked, and turned into settings. Nothing here opens a connection.

mod document;
mod error;
mod find;
#[cfg(feature = "voice")]
mod mqtt;
mod ownership;
mod reading;
// It describes every section, and so needs the parts that read them.
#[cfg(all(test, feature = "otlp", feature = "voice"))]
mod schema;
mod sections;
pub(crate) mod servers;
mod syntax;
mod uses;
pub(crate) mod variables;
#[cfg(all(test, feature = "voice"))]
mod voice_tests;

use std::path::{Path, PathBuf};

use serde_json::Value;
use toolgate_core::{Limits, Policy, Redactor, nearest};
use toolgate_journal::{Forward, JournalSettings};
use toolgate_mcp::RetryPolicy;
use toolgate_models::ModelSettings;
use toolgate_server::ServeSettings;
#[cfg(feature = "otlp")]
use toolgate_server::TelemetrySettings;
use toolgate_tools::Problem;
use toolgate_tools::builtin::SearchSettings;
use toolgate_tools::internal::DocumentsSettings;
#[cfg(feature = "voice")]
use toolgate_voice::VoiceSettings;

use crate::features;
use crate::folder_file::Waiting;
use crate::secrets::{FetchedSecrets, SecretFetcher, SecretReference};
use sections::Sections;
use variables::Lookup;

pub(crate) use document::Document;
pub(crate) use error::{ConfigError, ConfigErrors};
pub(crate) use find::{Place, in_folder, named, state_folder, user_file};
#[cfg(feature = "voice")]
pub(crate) use mqtt::MqttSettings;
pub(crate) use ownership::check as check_owner;
pub(crate) use reading::{Reading, Uses};
pub(crate) use servers::{ConfiguredServer, ServerProblem};
pub(crate) use variables::References;

pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What the file says, with defaults for the rest.
#[derive(Debug, Default)]
pub(crate) struct Config {
    document: Option<Document>,
    pub(crate) place: Place,
    pub(crate) uses: Uses,
    pub(crate) fetched: FetchedSecrets,
    /// A file in the working folder that isn't in use, since nobody has agreed to it.
    pub(crate) waiting: Option<Waiting>,
    pub(crate) limits: Limits,
    pub(crate) policy: Policy,
    pub(crate) retry: RetryPolicy,
    pub(crate) search: SearchSettings,
    pub(crate) documents: DocumentsSettings,
    pub(crate) model: ModelSettings,
    pub(crate) serve: ServeSettings,
    #[cfg(feature = "otlp")]
    pub(crate) telemetry: TelemetrySettings,
    pub(crate) journal: JournalSettings,
    #[cfg(feature = "voice")]
    pub(crate) voice: VoiceSettings,
    #[cfg(feature = "voice")]
    pub(crate) mqtt: MqttSettings,
    /// Definitions as they stand in the file; `toolgate-tools` reads them.
    pub(crate) tools: Vec<Value>,
    /// In the order of the file, disabled ones too.
    pub(crate) servers: Vec<ConfiguredServer>,
    /// What is wrong with servers: for commands that use them.
    pub(crate) server_problems: Vec<ServerProblem>,
    /// What is odd, but no reason to stop.
    pub(crate) warnings: Vec<ConfigError>,
    /// Variables that are unset, and secrets that can't be had, in a section which only some commands use.
    unset: Vec<(&'static str, ConfigError)>,
}

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

/// Bytes of an unknown key that may be a known one misspelt; to compare a longer one would take long.
const LONGEST_SLIP: usize = 100;

impl Config {
    /// For a demo, where nothing real may be touched: its own tools and servers are all there is, and nobody searches the web.
    pub(crate) fn keep_simulated(&mut self) {
        self.search.simulated = true;
        self.tools.clear();
        self.servers.clear();
        self.server_problems.clear();
    }

    pub(crate) fn read(path: &Path, reading: Reading<'_>) -> Result<Self, ConfigErrors> {
        Self::resolve(Document::read_owned(path)?, reading)
    }

    /// Nothing that comes back, errors included, shows a secret that was fetched.
    pub(crate) fn resolve(document: Document, reading: Reading<'_>) -> Result<Self, ConfigErrors> {
        let before = reading.before.filter(|before| before.says(&document));
        let fetcher = SecretFetcher::new(
            reading::real_folder(&document),
            reading.environment,
            reading.keyring,
            before.map(|before| &before.fetched),
        );
        let result = Self::resolve_with(document, reading, &fetcher);
        let fetched = fetcher.into_fetched();
        let redactor = Redactor::new(fetched.hidden());
        let mut config = result.map_err(|errors| errors.redacted(&redactor))?;
        config.uses = reading.uses;
        config.fetched = fetched;
        let unset = config.unset.iter_mut().map(|(_, error)| error);
        let problems = config.server_problems.iter_mut();
        let problems = problems.map(|problem| &mut problem.error);
        for error in unset.chain(problems).chain(&mut config.warnings) {
            error.redact(&redactor);
        }
        Ok(config)
    }

    fn resolve_with(
        document: Document,
        reading: Reading<'_>,
        fetcher: &SecretFetcher<'_>,
    ) -> Result<Self, ConfigErrors> {
        let environment = reading.environment;
        let lookup = Lookup {
            environment,
            secrets: Some(fetcher),
        };
        let Value::Object(root) = document.value() else {
            let text = "must be a JSON object, such as { \"mcpServers\": {} }";
            return Err(document.error_at::<&str>(&[], text).into());
        };
        let (warnings, mut errors) = unknown_root_keys(&document, root);
        errors.extend(features::missing_sections(&document, root));
        let mut config = Self {
            warnings,
            ..Self::default()
        };
        match root.get("tools") {
            Some(Value::Array(tools)) => config.tools.clone_from(tools),
            Some(_) => {
                let text = "tools: must be a list of tool definitions";
                errors.push(document.error_at(&["tools"], text));
            }
            None => {}
        }
        errors.extend(config.read_sections(Sections::new(&document, lookup, reading.uses)));
        if let Some(list) = config.policy.flow.missing_list() {
            let text = format!(
                "policy.flow: '{list}' is empty, so nothing is ever asked about; [\"*\"] means every tool"
            );
            errors.push(document.error_at(&["policy", "flow"], text));
        }
        let of_servers = Lookup {
            secrets: lookup.secrets.filter(|_| reading.uses.has_servers()),
            ..lookup
        };
        let read = servers::read(&document, of_servers);
        config.servers = read.servers;
        config.server_problems = read.problems;
        errors.extend(read.errors);
        ConfigErrors::none_of(errors)?;
        config.resolve_paths(document.folder(), environment);
        config.document = Some(document);
        Ok(config)
    }

    /// Returns what is wrong with them.
    fn read_sections(&mut self, mut sections: Sections<'_>) -> Vec<ConfigError> {
        self.limits = sections.needed("limits");
        self.policy = sections.needed("policy");
        self.retry = sections.needed("retry");
        self.search = sections.read("search");
        self.documents = sections.read("documents");
        self.model = sections.read("model");
        self.serve = sections.read("serve");
        self.journal = sections.read("journal");
        #[cfg(feature = "otlp")]
        {
            self.telemetry = sections.read("telemetry");
        }
        #[cfg(feature = "voice")]
        {
            self.voice = sections.read("voice");
            self.mqtt = sections.read("mqtt");
        }
        self.unset = sections.unset;
        sections.errors
    }

    fn resolve_paths(&mut self, folder: &Path, environment: Environment<'_>) {
        let paths = self.documents.folders.iter_mut();
        let paths = paths.chain(&mut self.model.intents);
        let forward = match &mut self.journal.forward {
            Some(Forward::File(file)) => Some(file),
            _ => None,
        };
        for path in paths.chain(&mut self.journal.file).chain(forward) {
            *path = resolved(path, folder, environment);
        }
        #[cfg(feature = "voice")]
        if toolgate_voice::is_wav(&self.voice.output) {
            let file = resolved(Path::new(&self.voice.output), folder, environment);
            self.voice.output = crate::pairs::quoted(&file.to_string_lossy());
        }
    }

    pub(crate) fn file(&self) -> Option<&Path> {
        self.document.as_ref().map(Document::path)
    }

    /// True if both were made from the same values in the same order: that of the servers decides who owns a name. Comments do
    /// not matter.
    pub(crate) fn is_same_text(&self, other: &Self) -> bool {
        match &other.document {
            Some(document) => self.says(document),
            None => self.document.is_none(),
        }
    }

    fn says(&self, document: &Document) -> bool {
        // The equality of JSON values ignores the order of keys; their text doesn't.
        let text = |document: &Document| document.value().to_string();
        self.document.as_ref().map(text) == Some(text(document))
    }

    /// Every value that refers to a secret, with the way to it.
    pub(crate) fn secret_uses(&self) -> Vec<(SecretReference, String)> {
        let mut uses = Vec::new();
        let root = self
            .document
            .as_ref()
            .and_then(|document| document.value().as_object());
        // Tools are content: nothing is expanded in them.
        for (name, value) in root
            .into_iter()
            .flatten()
            .filter(|(name, _)| *name != "tools")
        {
            variables::secret_uses(value, name, &mut uses);
        }
        uses
    }

    pub(crate) fn resolved_part<'c>(
        &'c self,
        value: &'c Value,
    ) -> (&'c Value, Vec<Option<&'c Result<String, String>>>) {
        let mut found = References::default();
        found.collect(value);
        let secrets = found.secrets.iter();
        (
            value,
            secrets.map(|secret| self.fetched.get(secret)).collect(),
        )
    }

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

    pub(crate) fn error_about(&self, section: &str, key: &str, text: &str) -> Option<ConfigError> {
        let document = self.document.as_ref()?;
        Some(document.error_at(&[section, key], format!("{section}.{key}: {text}")))
    }

    /// An error whose text begins with its key, such as `serve.tokens[1] is …`. None if the file doesn't have that key.
    pub(crate) fn error_by_key(&self, text: &str) -> Option<ConfigError> {
        let document = self.document.as_ref()?;
        let key = text.split([' ', ':']).next()?;
        let way: Vec<String> = key
            .split(['.', '['])
            .map(|part| part.trim_end_matches(']').to_owned())
            .collect();
        let is_there = document.value().pointer(&format!("/{}", way.join("/")));
        is_there.map(|_| document.error_at(&way, text))
    }

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

/// What is odd about the keys at the root, and what is wrong.
fn unknown_root_keys(
    document: &Document,
    root: &serde_json::Map<String, Value>,
) -> (Vec<ConfigError>, Vec<ConfigError>) {
    let is_servers = |key: &str| servers::KEYS.contains(&key);
    let is_ours = |key: &str| ROOT_KEYS.contains(&key) && !is_servers(key) && key != "$schema";
    // A file that other clients share holds keys of theirs.
    let foreign = root.keys().any(|key| is_servers(key)) && !root.keys().any(|key| is_ours(key));
    let unknown = root.keys().filter(|key| !ROOT_KEYS.contains(&key.as_str()));
    let told = unknown.map(|key| {
        let text = match foreign {
            true => format!("'{key}' is not ours and is ignored"),
            false => unknown_key(key, key, &ROOT_KEYS),
        };
        document.error_at(&[key], text)
    });
    let told = told.collect();
    match foreign {
        true => (told, Vec::new()),
        false => (Vec::new(), told),
    }
}

fn unknown_key(path: &str, key: &str, known: &[&str]) -> String {
    let nearest = match key.len() <= LONGEST_SLIP {
        true => nearest(key, known.iter().copied(), 1).pop(),
        false => None,
    };
    let hint = match nearest {
        Some(name) => format!("did you mean '{name}'?"),
        None => format!("known are: {}", known.join(", ")),
    };
    format!("unknown key '{path}'; {hint}")
}

/// A path in the file is relative to the file; `~/` is the home folder.
pub(crate) fn resolved(path: &Path, folder: &Path, environment: Environment<'_>) -> PathBuf {
    match (path.strip_prefix("~"), environment("HOME")) {
        (Ok(rest), Some(home)) => Path::new(&home).join(rest),
        _ => folder.join(path),
    }
}

#[cfg(test)]
mod secret_tests;
#[cfg(test)]
mod tests;
