//! Who answers.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
}

impl Provider {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Anthropic, Self::Ollama, Self::OpenAi];

    /// As it is written in the configuration and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Ollama => "ollama",
            Self::OpenAi => "openai",
        }
    }

    /// The variables that hold its key and its address.
    pub fn variables(self) -> [&'static str; 2] {
        match self {
            Self::Anthropic => ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"],
            Self::OpenAi => ["OPENAI_API_KEY", "OPENAI_BASE_URL"],
            Self::Ollama => ["OLLAMA_API_KEY", "OLLAMA_HOST"],
        }
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

    /// The model that is used where none is named; empty where the provider has to be asked.
    pub fn default_model(self) -> &'static str {
        match self {
            Self::Anthropic => "claude-sonnet-5",
            Self::Ollama => "qwen3:4b-instruct",
            Self::OpenAi => "gpt-5-mini",
        }
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
            format!("'{text}' is no provider: there are anthropic, ollama, openai and intents")
        })
    }
}
