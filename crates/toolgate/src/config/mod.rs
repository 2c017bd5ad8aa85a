//! Finds, reads and checks the configuration file, and turns it into settings. Nothing
//! here opens a connection.

mod document;
mod error;
mod file_secrets;
mod location;
#[cfg(feature = "voice")]
mod mqtt;
mod ownership;
mod read_options;
// It describes every section, and so needs the parts that read them.
#[cfg(all(test, feature = "otlp", feature = "voice"))]
mod schema_tests;
mod sections;
pub(crate) mod servers;
mod syntax;
mod unknown_keys;
mod unset_variables;
pub(crate) mod variables;
#[cfg(all(test, feature = "voice"))]
mod voice_tests;

use std::path::{Path, PathBuf};

use serde_json::Value;
use toolgate_core::{Limits, Policy, Redactor};
use toolgate_journal::{ForwardTarget, JournalSettings};
use toolgate_mcp::RetryPolicy;
use toolgate_mcp::skills::SkillsSettings;
use toolgate_models::ModelSettings;
#[cfg(feature = "otlp")]
use toolgate_server::TelemetrySettings;
use toolgate_server::{ApprovalSettings, ServeSettings};
use toolgate_tools::DefinitionProblem;
use toolgate_tools::builtin::SearchSettings;
use toolgate_tools::internal::{
    DocumentsSettings, LIST_RESOURCES, READ_RESOURCE, ResourcesSettings,
};
#[cfg(feature = "voice")]
use toolgate_voice::VoiceSettings;

use crate::features;
use crate::folder_file::UnusedFile;
use crate::secrets::{FetchedSecrets, SecretFetcher, SecretReference};
use sections::SectionReader;
use unknown_keys::unknown_root_keys;
use variables::ReferenceLookup;

pub(crate) use document::ConfigDocument;
pub(crate) use error::{ConfigError, ConfigErrors};
pub(crate) use location::{ConfigLocation, files_in_folder, named_file, state_folder, user_file};
#[cfg(feature = "voice")]
pub(crate) use mqtt::MqttSettings;
pub(crate) use ownership::check as check_owner;
pub(crate) use read_options::{ConfigReadOptions, SecretScope};
pub(crate) use servers::{ConfiguredServer, ServerProblem};
pub(crate) use variables::ReferenceSet;

pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

#[derive(Debug, Default)]
pub(crate) struct Config {
    document: Option<ConfigDocument>,
    pub(crate) location: ConfigLocation,
    pub(crate) secret_scope: SecretScope,
    pub(crate) fetched: FetchedSecrets,
    pub(crate) unused_file: Option<UnusedFile>,
    pub(crate) approvals: ApprovalSettings,
    pub(crate) limits: Limits,
    pub(crate) policy: Policy,
    pub(crate) retry: RetryPolicy,
    pub(crate) search: SearchSettings,
    pub(crate) documents: DocumentsSettings,
    pub(crate) resources: ResourcesSettings,
    pub(crate) skills: SkillsSettings,
    pub(crate) model: ModelSettings,
    pub(crate) serve: ServeSettings,
    #[cfg(feature = "otlp")]
    pub(crate) telemetry: TelemetrySettings,
    pub(crate) journal: JournalSettings,
    #[cfg(feature = "voice")]
    pub(crate) voice: VoiceSettings,
    #[cfg(feature = "voice")]
    pub(crate) mqtt: MqttSettings,
    /// Raw definitions, which `toolgate-tools` parses.
    pub(crate) tools: Vec<Value>,
    /// In file order, including disabled ones.
    pub(crate) servers: Vec<ConfiguredServer>,
    pub(crate) server_problems: Vec<ServerProblem>,
    pub(crate) warnings: Vec<ConfigError>,
    /// Unset variables and unavailable secrets, with the section. Only commands that
    /// use the section fail.
    unset: Vec<(&'static str, ConfigError)>,
}

impl Config {
    /// Removes all tools and servers and simulates the web search, for a demo, which
    /// must not touch anything real.
    pub(crate) fn simulate_all(&mut self) {
        self.search.simulated = true;
        self.tools.clear();
        self.resources.tools = false;
        self.skills.folders.clear();
        self.servers.clear();
        self.server_problems.clear();
    }

    pub(crate) fn read(path: &Path, reading: ConfigReadOptions<'_>) -> Result<Self, ConfigErrors> {
        Self::resolve(ConfigDocument::read_owned(path)?, reading)
    }

    pub(crate) fn resolve(
        document: ConfigDocument,
        reading: ConfigReadOptions<'_>,
    ) -> Result<Self, ConfigErrors> {
        let before = reading
            .before
            .filter(|before| before.has_same_values(&document));
        let fetcher = SecretFetcher::new(
            read_options::real_folder(&document),
            reading.environment,
            reading.keyring,
            before.map(|before| &before.fetched),
        );
        let result = Self::resolve_with(document, reading, &fetcher);
        let fetched = fetcher.into_fetched();
        let redactor = Redactor::new(fetched.values_to_redact());
        let mut config = result.map_err(|errors| errors.redacted(&redactor))?;
        config.secret_scope = reading.secret_scope;
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
        document: ConfigDocument,
        reading: ConfigReadOptions<'_>,
        fetcher: &SecretFetcher<'_>,
    ) -> Result<Self, ConfigErrors> {
        let environment = reading.environment;
        let lookup = ReferenceLookup {
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
        errors.extend(config.read_sections(SectionReader::new(
            &document,
            lookup,
            reading.secret_scope,
        )));
        if let Some(list) = config.policy.flow.missing_list() {
            let text = format!(
                "policy.flow: '{list}' is empty, so nothing is ever asked about; [\"*\"] means every tool"
            );
            errors.push(document.error_at(&["policy", "flow"], text));
        }
        let of_servers = ReferenceLookup {
            secrets: lookup
                .secrets
                .filter(|_| reading.secret_scope.has_servers()),
            ..lookup
        };
        let read = servers::read(&document, of_servers);
        config.servers = read.servers;
        config.server_problems = read.problems;
        errors.extend(read.errors);
        ConfigErrors::check(errors)?;
        config.resolve_paths(document.folder(), environment);
        config.document = Some(document);
        Ok(config)
    }

    fn read_sections(&mut self, mut sections: SectionReader<'_>) -> Vec<ConfigError> {
        self.approvals = sections.read("approvals");
        self.limits = sections.read_required("limits");
        self.limits.approval_timeout = self.approvals.timeout;
        self.policy = sections.read_required("policy");
        self.retry = sections.read_required("retry");
        self.search = sections.read("search");
        self.documents = sections.read("documents");
        self.resources = sections.read("resources");
        self.skills = sections.read("skills");
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
        let paths = paths.chain(&mut self.skills.folders);
        let forward = match &mut self.journal.forward {
            Some(ForwardTarget::File(file)) => Some(file),
            _ => None,
        };
        for path in paths.chain(&mut self.journal.file).chain(forward) {
            *path = resolve_path(path, folder, environment);
        }
        #[cfg(feature = "voice")]
        if toolgate_voice::is_wav(&self.voice.output) {
            let file = resolve_path(Path::new(&self.voice.output), folder, environment);
            self.voice.output = crate::command_words::quote_word(&file.to_string_lossy());
        }
    }

    pub(crate) fn file(&self) -> Option<&Path> {
        self.document.as_ref().map(ConfigDocument::path)
    }

    /// True if both files have the same values in the same order, which decides which server owns a
    /// name. Comments don't matter.
    pub(crate) fn is_unchanged_from(&self, other: &Self) -> bool {
        match &other.document {
            Some(document) => self.has_same_values(document),
            None => self.document.is_none(),
        }
    }

    fn has_same_values(&self, document: &ConfigDocument) -> bool {
        // Equality of JSON values ignores the order of keys, so their texts are compared.
        let text = |document: &ConfigDocument| document.value().to_string();
        self.document.as_ref().map(text) == Some(text(document))
    }

    pub(crate) fn secret_uses(&self) -> Vec<(SecretReference, String)> {
        let mut uses = Vec::new();
        let root = self
            .document
            .as_ref()
            .and_then(|document| document.value().as_object());
        // Nothing is expanded inside tool definitions.
        for (name, value) in root
            .into_iter()
            .flatten()
            .filter(|(name, _)| *name != "tools")
        {
            variables::secret_uses(value, name, &mut uses);
        }
        uses
    }

    pub(crate) fn value_with_secrets<'c>(
        &'c self,
        value: &'c Value,
    ) -> (&'c Value, Vec<Option<&'c Result<String, String>>>) {
        let mut found = ReferenceSet::default();
        found.collect(value);
        let secrets = found.secrets.iter();
        (
            value,
            secrets.map(|secret| self.fetched.get(secret)).collect(),
        )
    }

    pub(crate) fn locate(&self, problem: &DefinitionProblem) -> ConfigError {
        let key_path: Vec<String> = ["tools".to_owned(), problem.index.to_string()]
            .into_iter()
            .chain(problem.path.iter().cloned())
            .collect();
        match &self.document {
            Some(document) => document.error_at(&key_path, &*problem.text),
            None => ConfigError::file(Path::new("tools"), &*problem.text),
        }
    }

    pub(crate) fn error_about(&self, section: &str, key: &str, text: &str) -> Option<ConfigError> {
        let document = self.document.as_ref()?;
        Some(document.error_at(&[section, key], format!("{section}.{key}: {text}")))
    }

    /// Locates an error whose text begins with its key, such as `serve.tokens[1] is …`. `None` if
    /// the file doesn't have that key.
    pub(crate) fn error_by_key(&self, text: &str) -> Option<ConfigError> {
        let document = self.document.as_ref()?;
        let key = text.split([' ', ':']).next()?;
        let key_path: Vec<String> = key
            .split(['.', '['])
            .map(|part| part.trim_end_matches(']').to_owned())
            .collect();
        let is_there = document
            .value()
            .pointer(&format!("/{}", key_path.join("/")));
        is_there.map(|_| document.error_at(&key_path, text))
    }

    pub(crate) fn section(&self, name: &str) -> &Value {
        let document = self.document.as_ref();
        document.map_or(&Value::Null, |document| {
            document.value().get(name).unwrap_or(&Value::Null)
        })
    }

    /// True if this is one of our tools for resources, which may need any server.
    pub(crate) fn is_resource_tool(&self, tool: &str) -> bool {
        self.resources.tools && [LIST_RESOURCES, READ_RESOURCE].contains(&tool)
    }

    pub(crate) fn uses_handler(&self, tool: &str, handler: &str) -> bool {
        let mut entries = self.tools.iter();
        entries.any(|entry| entry["name"] == tool && entry["implementation"]["handler"] == handler)
    }
}

/// A path in the file is relative to the file; `~/` is the home folder.
pub(crate) fn resolve_path(path: &Path, folder: &Path, environment: Environment<'_>) -> PathBuf {
    match (path.strip_prefix("~"), environment("HOME")) {
        (Ok(rest), Some(home)) => Path::new(&home).join(rest),
        _ => folder.join(path),
    }
}

#[cfg(test)]
mod secret_tests;
#[cfg(test)]
mod tests;
