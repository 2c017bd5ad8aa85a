//! The table of providers: names, variables, addresses and defaults. The rest of each provider is
//! in its own folder.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use reqwest::header::HeaderMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::choose::{address, model_list, probe};
use crate::{
    AnswerSource, AnthropicClient, GeminiClient, ModelClient, ModelError, ModelSettings,
    OllamaClient, OpenAiClient, anthropic, gemini, ollama, openai,
};

/// A service that runs models, or rather its API: other servers may speak it too.
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
    // Environment variables that may hold the key. Messages name only the first.
    pub(crate) key_variables: &'static [&'static str],
    url_variable: &'static str,
    pub(crate) url: &'static str,
    default_model: &'static str,
    pub(crate) needs_key: bool,
    // If no provider is configured, the lowest number is tried first.
    pub(crate) preference: u8,
    // Self-hosted servers speak its API. Such a server is used as soon as its address is set, has
    // models of any name, and reports their context sizes.
    pub(crate) has_own_servers: bool,
    // Whether a model's name looks like one of this provider's.
    pub(crate) owns_model: fn(&str) -> bool,
    pub(crate) normalize_url: fn(&str) -> Result<String, String>,
    pub(crate) headers: fn(&str) -> Result<HeaderMap, ModelError>,
    pub(crate) models_path: &'static str,
    // Returns the names, and whether there are more on another page.
    pub(crate) parse_models: fn(&Value) -> (Vec<String>, bool),
    pub(crate) probe: ModelProbe,
    pub(crate) connect: fn(&ModelSettings) -> ClientResult,
}

pub(crate) type ClientResult = Result<Arc<dyn ModelClient>, ModelError>;

/// Looks for a model within a time limit. Returns its name, and its context size if
/// the server reports it.
pub(crate) type ModelProbe =
    for<'a> fn(&'a ModelSettings, Duration) -> BoxFuture<'a, Option<(String, Option<usize>)>>;

// `Provider` is the index, so the order is that of its variants.
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
        normalize_url: |text| address::strip_api_path(text, &["/v1/messages", "/v1"]),
        headers: anthropic::headers,
        models_path: "/v1/models",
        parse_models: model_list::parse_ids,
        probe: probe::skip_probe,
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
        normalize_url: address::ollama,
        headers: ollama::headers,
        models_path: "/v1/models",
        parse_models: model_list::parse_ids,
        probe: probe::probe_ollama_model,
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
        normalize_url: address::openai,
        headers: openai::headers,
        models_path: "/models",
        parse_models: model_list::parse_ids,
        probe: probe::probe_openai_model,
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
        normalize_url: |text| address::strip_api_path(text, &["/v1beta/models", "/v1beta"]),
        headers: gemini::headers,
        models_path: gemini::MODELS,
        parse_models: gemini::parse_models,
        probe: probe::skip_probe,
        connect: |settings| Ok(Arc::new(GeminiClient::new(settings)?)),
    },
];

impl Provider {
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::Ollama, Self::OpenAi, Self::Gemini];

    pub(crate) fn entry(self) -> &'static ProviderEntry {
        &PROVIDERS[self as usize]
    }

    pub fn as_str(self) -> &'static str {
        self.entry().name
    }

    /// The environment variables for the key and the address.
    pub fn variables(self) -> [&'static str; 2] {
        let entry = self.entry();
        let key = entry.key_variables.first().copied();
        [key.unwrap_or_default(), entry.url_variable]
    }

    pub(crate) fn key_setting(self) -> String {
        let [key, _] = self.variables();
        format!("{key}, or model.key in the configuration")
    }

    pub(crate) fn address_setting(self) -> String {
        let [_, url] = self.variables();
        format!("{url}, or model.url in the configuration")
    }

    pub(crate) fn missing_key_error(self) -> ModelError {
        ModelError::Key {
            provider: self,
            reason: format!("no key is set; set {}", self.key_setting()),
        }
    }

    pub fn default_model(self) -> &'static str {
        self.entry().default_model
    }
}

/// Joins names as in `a, b and c`, where `last` is the word before the last name.
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
            let text = toolgate_core::text::escape(text);
            let names = join_names(&AnswerSource::NAMES, "and");
            format!("'{text}' is not a provider; the providers are {names}")
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
            let usual = (entry.normalize_url)(entry.url);
            assert_eq!(usual.as_deref(), Ok(entry.url));
        }
    }

    #[test]
    fn an_unknown_provider_is_reported_with_the_known_ones() {
        let error = "gpt".parse::<Provider>().unwrap_err();
        let (first, last) = ("anthropic, ollama, openai", "and intents");
        assert!(
            error.starts_with("'gpt' is not a provider; the providers are "),
            "{error}"
        );
        assert!(error.contains(first) && error.ends_with(last), "{error}");
    }
}
