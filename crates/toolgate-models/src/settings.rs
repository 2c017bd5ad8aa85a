//! The `model` section of the configuration.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};
use toolgate_core::text::{
    BYTES_PATTERN, DURATION_PATTERN, deserialize_bytes, deserialize_duration,
};

use crate::AnswerSource;

// More attempts would exceed the deadline anyway.
const MAX_ATTEMPTS: u32 = 20;
// A model that needs more rounds won't reach an answer.
const MAX_ROUNDS: usize = 1000;
// A smaller window has no room for a question and a tool.
const MIN_WINDOW: usize = 512;

/// The `model` section of the configuration. Empty values are
/// filled in by [`select_model`](crate::select_model).
#[derive(Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(description = "The model that uses the tools")]
#[non_exhaustive]
pub struct ModelSettings {
    /// Who answers; left out: the first provider that is available.
    #[serde(deserialize_with = "non_null")]
    #[schemars(with = "AnswerSource")]
    pub provider: Option<AnswerSource>,
    /// The name of the model; empty: the provider's default model.
    pub name: String,
    /// The provider's address; empty: from its environment variable, else its default address.
    pub url: String,
    /// The API key; empty: from the provider's environment variable. Never shown.
    pub key: String,
    /// The system prompt; empty: the built-in one.
    pub system: String,
    /// The size of the context window in tokens, the answer included; left out: 200,000 with
    /// Anthropic, 1,048,576 with Gemini, 128,000 with OpenAI, with Ollama the model's own but at
    /// most 32,768, elsewhere what the server reports, else 8192.
    #[serde(deserialize_with = "deserialize_window")]
    #[schemars(with = "usize", range(min = 512))]
    pub context_tokens: Option<usize>,
    /// The maximum length of one answer, in tokens.
    #[serde(deserialize_with = "at_least_one")]
    #[schemars(range(min = 1))]
    pub max_tokens: usize,
    /// Whether the model should think before it answers; left out: the model decides.
    #[serde(deserialize_with = "non_null")]
    #[schemars(with = "bool")]
    pub think: Option<bool>,
    /// Whether its thinking is shown and kept in history.
    pub keep_thinking: bool,
    /// How long Ollama keeps the model loaded: seconds, or a duration such as `5m`; -1: forever.
    #[serde(deserialize_with = "keep_alive")]
    #[schemars(schema_with = "keep_alive_schema")]
    pub keep_alive: i64,
    /// Sampling temperature; left out: not sent, because newer models refuse it.
    #[serde(deserialize_with = "temperature")]
    #[schemars(with = "f64", range(min = 0.0, max = 2.0))]
    pub temperature: Option<f64>,
    /// The same seed gives the same answer, if the provider supports that.
    #[serde(deserialize_with = "non_null")]
    #[schemars(with = "i64")]
    pub seed: Option<i64>,
    /// The maximum number of rounds of calls in one turn; then the model has to answer in words.
    #[serde(deserialize_with = "rounds")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_tool_rounds: usize,
    /// How often the same call with the same arguments may be made in one turn.
    #[serde(deserialize_with = "at_least_one")]
    #[schemars(range(min = 1))]
    pub max_same_calls: usize,
    /// Offer only the best tools for a request, at most this many; 0: all.
    pub max_tools: usize,
    /// Offer tools of at most this many tokens; 0: as many as fit in half of the context window.
    pub max_tool_tokens: usize,
    /// How the schemas of tools are sent.
    pub schemas: SchemaForm,
    /// Tools that are always offered.
    pub pinned_tools: Vec<String>,
    /// How much of a tool's result the model is given; the rest is cut, with a note.
    #[serde(deserialize_with = "deserialize_bytes")]
    #[schemars(with = "String", regex(pattern = BYTES_PATTERN))]
    pub max_result: usize,
    /// Whether a call that a model wrote as text is run.
    pub rescue: bool,
    /// Whether sentences that `intents` understands are answered without the model.
    pub intents_first: bool,
    /// Files with your own sentences for `intents`.
    pub intents: Vec<PathBuf>,
    /// How often one question is sent to the model before it fails.
    #[serde(deserialize_with = "attempts")]
    #[schemars(range(min = 1, max = 20))]
    pub attempts: u32,
    /// How long to wait for the first byte of an answer; a model may have to be loaded first.
    #[serde(rename = "firstByteTimeout", deserialize_with = "deserialize_duration")]
    #[schemars(with = "String", regex(pattern = DURATION_PATTERN))]
    pub first_byte: Duration,
    /// How long one turn may take, tools included.
    #[serde(deserialize_with = "deserialize_duration")]
    #[schemars(with = "String", regex(pattern = DURATION_PATTERN))]
    pub timeout: Duration,
}

/// How the schemas of tools are sent to a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(
    description = "How the schemas of tools are sent: lowered to what the provider takes, with the rest said in words; or original, as the tool has them"
)]
#[non_exhaustive]
pub enum SchemaForm {
    /// In what the provider takes; the rest is said in words.
    #[default]
    Lowered,
    /// As the tool has them. A provider may refuse the request, or lose what it does not know.
    Original,
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self {
            provider: None,
            name: String::new(),
            url: String::new(),
            key: String::new(),
            system: String::new(),
            context_tokens: None,
            max_tokens: 4096,
            think: None,
            keep_thinking: false,
            keep_alive: -1,
            temperature: None,
            seed: None,
            max_tool_rounds: 10,
            max_same_calls: 3,
            max_tools: 0,
            max_tool_tokens: 0,
            schemas: SchemaForm::default(),
            pinned_tools: Vec::new(),
            max_result: 64 * 1024,
            rescue: true,
            intents_first: false,
            intents: Vec::new(),
            attempts: 3,
            first_byte: Duration::from_secs(120),
            timeout: Duration::from_secs(300),
        }
    }
}

impl ModelSettings {
    /// The values that must never be shown: the key, and the password in the address.
    pub fn secrets(&self) -> Vec<String> {
        let login = url_login(&self.url).map(|login| {
            login
                .split_once(':')
                .map_or(login, |(_, password)| password)
        });
        [Some(self.key.as_str()), login]
            .into_iter()
            .flatten()
            .filter(|secret| !secret.is_empty())
            .map(str::to_owned)
            .collect()
    }
}

fn url_login(url: &str) -> Option<&str> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next()?;
    authority.rsplit_once('@').map(|(login, _)| login)
}

/// An address for messages: bounded, and without login and query, because both may contain secrets.
pub(crate) fn display_url(url: &str) -> String {
    const MAX_SHOWN: usize = 500;
    let url = match url_login(url) {
        Some(login) => url.replacen(&format!("{login}@"), "", 1),
        None => url.to_owned(),
    };
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let shown: String = url[..end]
        .trim_end_matches('/')
        .chars()
        .take(MAX_SHOWN)
        .collect();
    toolgate_core::text::escape(&shown)
}

impl fmt::Debug for ModelSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = if self.key.is_empty() { "" } else { "…" };
        f.debug_struct("ModelSettings")
            .field("provider", &self.provider)
            .field("name", &self.name)
            .field("url", &display_url(&self.url))
            .field("key", &key)
            .field("context_tokens", &self.context_tokens)
            .field("think", &self.think)
            .field("max_tool_rounds", &self.max_tool_rounds)
            .field("max_tools", &self.max_tools)
            .field("intents_first", &self.intents_first)
            .finish_non_exhaustive()
    }
}

// Refuses `null`: a key that is present must have a value.
fn non_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

// Reads a number of at least `least`, and at most `most` if there is a limit.
fn bounded<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    least: T,
    most: Option<T>,
) -> Result<T, D::Error>
where
    T: Deserialize<'de> + PartialOrd + fmt::Display + Copy,
{
    let number = T::deserialize(deserializer)?;
    match most {
        _ if number >= least && most.is_none_or(|most| number <= most) => Ok(number),
        Some(most) => Err(de::Error::custom(format!("must be from {least} to {most}"))),
        None => Err(de::Error::custom(format!("must be at least {least}"))),
    }
}

fn at_least_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    bounded(deserializer, 1, None)
}

fn rounds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    bounded(deserializer, 1, Some(MAX_ROUNDS))
}

fn deserialize_window<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<usize>, D::Error> {
    bounded(deserializer, MIN_WINDOW, None).map(Some)
}

fn temperature<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    bounded(deserializer, 0.0, Some(2.0)).map(Some)
}

fn attempts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    bounded(deserializer, 1, Some(MAX_ATTEMPTS))
}

// Ollama itself accepts a number of seconds or a duration as text, so this does too.
fn keep_alive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let error = || {
        de::Error::custom(
            "must be a number of seconds, a duration such as \"5m\", or -1 to keep it loaded forever",
        )
    };
    match serde_json::Value::deserialize(deserializer)? {
        serde_json::Value::Number(number) => number
            .as_i64()
            .filter(|seconds| *seconds >= -1)
            .ok_or_else(error),
        serde_json::Value::String(text) => {
            let duration = toolgate_core::text::parse_duration(&text).map_err(de::Error::custom)?;
            i64::try_from(duration.as_secs()).map_err(|_| error())
        }
        _ => Err(error()),
    }
}

fn keep_alive_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "anyOf": [
            { "type": "integer", "minimum": -1 },
            { "type": "string", "pattern": DURATION_PATTERN },
        ],
    })
}

#[cfg(test)]
mod tests;
