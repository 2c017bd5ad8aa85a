//! Who answers: one row of a table for each provider. Everything else about a provider is in its folder.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use reqwest::header::HeaderMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::choose::{address, listed, probe};
use crate::{
    AnswerSource, AnthropicClient, GeminiClient, ModelClient, ModelError, ModelSettings,
    OllamaClient, OpenAiClient, anthropic, gemini, ollama, openai,
};

/// A kind of model client.
///
/// ```
/// use toolgate_models::Provider;
///
/// assert_eq!("ollama".parse(), Ok(Provider::Ollama));
/// assert_eq!(Provider::OpenAi.to_string(), "openai");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(description = "Who answers")]
#[non_exhaustive]
pub enum Provider {
    /// Claude, by the Messages API.
    Anthropic,
    /// Models on the own machine, by Ollama's `/api/chat`.
    Ollama,
    /// OpenAI itself, and the many that speak its chat completions.
    OpenAi,
    /// Google's models, by the Gemini API.
    Gemini,
}

pub(crate) struct ProviderEntry {
    pub(crate) provider: Provider,
    name: &'static str,
    /// The variables that may hold its key. People are told of the first.
    pub(crate) key_variables: &'static [&'static str],
    url_variable: &'static str,
    pub(crate) url: &'static str,
    default_model: &'static str,
    /// Whether it wants a key at its usual address.
    pub(crate) needs_key: bool,
    /// Where nobody names a provider, the lowest is tried first.
    pub(crate) preference: u8,
    /// Servers of one's own speak its language: an address is reason enough to ask one, its models may have any name, and it
    /// says how much they hold.
    pub(crate) has_own_servers: bool,
    /// Whether a name is one of its own models'.
    pub(crate) owns_model: fn(&str) -> bool,
    /// An address as people write it, made into the one that the client builds on.
    pub(crate) tidy_url: fn(&str) -> Result<String, String>,
    pub(crate) headers: fn(&str) -> Result<HeaderMap, ModelError>,
    pub(crate) models_path: &'static str,
    pub(crate) read_models: fn(&Value) -> (Vec<String>, bool),
    pub(crate) probe: ModelProbe,
    pub(crate) connect: fn(&ModelSettings) -> ClientResult,
}

pub(crate) type ClientResult = Result<Arc<dyn ModelClient>, ModelError>;

/// Looks within a time for a model, and how many tokens it holds where that is said.
pub(crate) type ModelProbe =
    for<'a> fn(&'a ModelSettings, Duration) -> BoxFuture<'a, Option<(String, Option<usize>)>>;

/// All providers, in the order of [`Provider`].
pub(crate) static PROVIDERS: [ProviderEntry; Provider::ALL.len()] = [
    ProviderEntry {
        provider: Provider::Anthropic,
        name: "anthropic",
        key_variables: &["ANTHROPIC_API_KEY"],
        url_variable: "ANTHROPIC_BASE_URL",
        url: anthropic::URL,
        default_model: "claude-sonnet-5",
        needs_key: true,
        preference: 1,
        has_own_servers: false,
        owns_model: |name| name.starts_with("claude"),
        tidy_url: |text| address::strip_path(text, &["/v1/messages", "/v1"]),
        headers: anthropic::headers,
        models_path: "/v1/models",
        read_models: listed::read_ids,
        probe: probe::nothing,
        connect: |settings| Ok(Arc::new(AnthropicClient::new(settings)?)),
    },
    ProviderEntry {
        provider: Provider::Ollama,
        name: "ollama",
        key_variables: &["OLLAMA_API_KEY"],
        url_variable: "OLLAMA_HOST",
        url: ollama::URL,
        default_model: "qwen3:4b-instruct",
        needs_key: false,
        preference: 0,
        has_own_servers: false,
        owns_model: |_| false,
        tidy_url: address::ollama,
        headers: ollama::headers,
        models_path: "/v1/models",
        read_models: listed::read_ids,
        probe: probe::ollama_model,
        connect: |settings| Ok(Arc::new(OllamaClient::new(settings)?)),
    },
    ProviderEntry {
        provider: Provider::OpenAi,
        name: "openai",
        key_variables: &["OPENAI_API_KEY"],
        url_variable: "OPENAI_BASE_URL",
        url: openai::URL,
        default_model: "gpt-5-mini",
        needs_key: true,
        preference: 2,
        has_own_servers: true,
        owns_model: openai::owns_model,
        tidy_url: address::openai,
        headers: openai::headers,
        models_path: "/models",
        read_models: listed::read_ids,
        probe: probe::openai_model,
        connect: |settings| Ok(Arc::new(OpenAiClient::new(settings)?)),
    },
    ProviderEntry {
        provider: Provider::Gemini,
        name: "gemini",
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        url_variable: "GEMINI_BASE_URL",
        url: gemini::URL,
        default_model: "gemini-2.5-flash",
        needs_key: true,
        preference: 3,
        has_own_servers: false,
        owns_model: |name| name.starts_with("gemini"),
        tidy_url: |text| address::strip_path(text, &["/v1beta/models", "/v1beta"]),
        headers: gemini::headers,
        models_path: gemini::MODELS,
        read_models: gemini::read_models,
        probe: probe::nothing,
        connect: |settings| Ok(Arc::new(GeminiClient::new(settings)?)),
    },
];

impl Provider {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::Ollama, Self::OpenAi, Self::Gemini];

    pub(crate) fn entry(self) -> &'static ProviderEntry {
        &PROVIDERS[self as usize]
    }

    /// As it is written in the configuration and on the command line.
    pub fn as_str(self) -> &'static str {
        self.entry().name
    }

    /// The variables that hold its key and its address.
    pub fn variables(self) -> [&'static str; 2] {
        let entry = self.entry();
        let key = entry.key_variables.first().copied();
        [key.unwrap_or_default(), entry.url_variable]
    }

    /// For a person: where its key is set.
    pub(crate) fn key_setting(self) -> String {
        let [key, _] = self.variables();
        format!("{key}, or model.key in the configuration")
    }

    /// For a person: where its address is set.
    pub(crate) fn address_setting(self) -> String {
        let [_, url] = self.variables();
        format!("{url}, or model.url in the configuration")
    }

    pub(crate) fn no_key(self) -> ModelError {
        ModelError::Key {
            provider: self,
            reason: format!("there is none; set {}", self.key_setting()),
        }
    }

    /// The model that is used where none is named; empty where the provider has to be asked.
    pub fn default_model(self) -> &'static str {
        self.entry().default_model
    }
}

/// `a, b and c`, with another word for *and*.
pub(crate) fn join_names(names: &[&str], last: &str) -> String {
    match names {
        [first @ .., end] if !first.is_empty() => format!("{} {last} {end}", first.join(", ")),
        names => names.concat(),
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Provider {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL
            .into_iter()
            .find(|provider| provider.as_str() == text);
        found.ok_or_else(|| {
            let text = toolgate_core::escape(text);
            let names = join_names(&AnswerSource::NAMES, "and");
            format!("'{text}' is no provider: there are {names}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_provider_has_its_own_row() {
        for (entry, provider) in PROVIDERS.iter().zip(Provider::ALL) {
            assert_eq!(entry.provider, provider);
            assert!(std::ptr::eq(entry.provider.entry().name, entry.name));
            let written = serde_json::to_value(provider).unwrap();
            assert_eq!(written, entry.name, "the configuration says the same");
            let usual = (entry.tidy_url)(entry.url);
            assert_eq!(usual.as_deref(), Ok(entry.url));
        }
    }

    #[test]
    fn a_name_that_is_none_is_told_with_those_there_are() {
        let error = "gpt".parse::<Provider>().unwrap_err();
        let (first, last) = ("anthropic, ollama, openai", "and intents");
        assert!(
            error.starts_with("'gpt' is no provider: there are "),
            "{error}"
        );
        assert!(error.contains(first) && error.ends_with(last), "{error}");
    }
}
