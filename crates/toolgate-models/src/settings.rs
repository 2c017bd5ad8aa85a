//! The configuration's `model`.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};
use toolgate_core::{BYTES_PATTERN, DURATION_PATTERN, deserialize_bytes, deserialize_duration};

use crate::AnswerSource;

/// More attempts help nobody: the deadline would end them anyway.
const MOST_ATTEMPTS: u32 = 20;
/// A longer loop of calls is no answer any more.
const MOST_ROUNDS: usize = 1000;
/// Less than this holds no question and no tool.
const SMALLEST_WINDOW: usize = 512;

/// Which model, and how it is used. The defaults are the documented ones of the configuration's `model`.
///
/// ```
/// use toolgate_models::{ModelSettings, Provider};
///
/// let settings: ModelSettings = serde_json::from_str(r#"{ "provider": "ollama", "keepAlive": "5m", "key": "s3cret" }"#).unwrap();
/// assert_eq!((settings.provider, settings.keep_alive, settings.max_tool_rounds), (Some(Provider::Ollama.into()), 300, 10));
/// assert!(!format!("{settings:?}").contains("s3cret"));
/// ```
#[derive(Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(description = "The model that uses the tools")]
#[non_exhaustive]
pub struct ModelSettings {
    /// Who answers; left out: whoever is there.
    #[serde(deserialize_with = "some")]
    #[schemars(with = "AnswerSource")]
    pub provider: Option<AnswerSource>,
    /// Which model; empty: the provider's usual one.
    pub name: String,
    /// Where it is; empty: the variable of the provider, else its usual address.
    pub url: String,
    /// The key; empty: the variable of the provider. Never shown.
    pub key: String,
    /// What the model should know before anything else.
    pub system: String,
    /// How many tokens the model may hold, the answer included; left out: 200,000 with Anthropic, 128,000 with OpenAI,
    /// 32,768 with Ollama or what the model holds if that is less, elsewhere what the server says, else 8192.
    #[serde(deserialize_with = "window")]
    #[schemars(with = "usize", range(min = 512))]
    pub context_tokens: Option<usize>,
    /// The most tokens of one answer.
    #[serde(deserialize_with = "at_least_one")]
    #[schemars(range(min = 1))]
    pub max_tokens: usize,
    /// Whether the model should think before it answers; left out: as it likes.
    #[serde(deserialize_with = "some")]
    #[schemars(with = "bool")]
    pub think: Option<bool>,
    /// Whether its thinking is shown and kept in history.
    pub keep_thinking: bool,
    /// How long Ollama keeps the model loaded: seconds, or a duration such as `5m`; -1: for ever.
    #[serde(deserialize_with = "keep_alive")]
    #[schemars(schema_with = "keep_alive_schema")]
    pub keep_alive: i64,
    /// Sampling temperature; left out: not sent, as new models refuse it.
    #[serde(deserialize_with = "temperature")]
    #[schemars(with = "f64", range(min = 0.0, max = 2.0))]
    pub temperature: Option<f64>,
    /// The same seed, the same answer, where a provider can do that.
    #[serde(deserialize_with = "some")]
    #[schemars(with = "i64")]
    pub seed: Option<i64>,
    /// Rounds of calls in one turn; then the model has to answer in words.
    #[serde(deserialize_with = "rounds")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_tool_rounds: usize,
    /// The same call with the same arguments, how often in one turn.
    #[serde(deserialize_with = "at_least_one")]
    #[schemars(range(min = 1))]
    pub max_same_calls: usize,
    /// Offer only the best tools for a request, at most this many; 0: all.
    pub max_tools: usize,
    /// Offer tools of at most this many tokens; 0: as many as fit half the window.
    pub max_tool_tokens: usize,
    /// How the schemas of tools are sent.
    pub schemas: SchemaForm,
    /// Tools that are always offered.
    pub pinned_tools: Vec<String>,
    /// How much of a tool's result a model is given; the rest is cut, visibly.
    #[serde(deserialize_with = "deserialize_bytes")]
    #[schemars(with = "String", regex(pattern = BYTES_PATTERN))]
    pub max_result: usize,
    /// Whether a call that a model wrote as text is understood.
    pub rescue: bool,
    /// Whether sentences that `intents` understands are answered without the model.
    pub intents_first: bool,
    /// Files with sentences of your own for `intents`.
    pub intents: Vec<PathBuf>,
    /// Attempts of one question to the model.
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
///
/// ```
/// use toolgate_models::{ModelSettings, SchemaForm};
///
/// let settings: ModelSettings = serde_json::from_str(r#"{ "schemas": "original" }"#).unwrap();
/// assert_eq!(settings.schemas, SchemaForm::Original);
/// ```
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
    /// What must never be shown: the key, and a login inside the address.
    pub fn secrets(&self) -> Vec<String> {
        let login = login(&self.url).map(|login| {
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

/// `name:password` of an address.
fn login(url: &str) -> Option<&str> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next()?;
    authority.rsplit_once('@').map(|(login, _)| login)
}

/// An address as it may be shown: bounded, and without a login or a query, as both may hold secrets.
pub(crate) fn shown(url: &str) -> String {
    const LONGEST: usize = 500;
    let url = match login(url) {
        Some(login) => url.replacen(&format!("{login}@"), "", 1),
        None => url.to_owned(),
    };
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let shown: String = url[..end]
        .trim_end_matches('/')
        .chars()
        .take(LONGEST)
        .collect();
    toolgate_core::escape(&shown)
}

impl fmt::Debug for ModelSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = if self.key.is_empty() { "" } else { "…" };
        f.debug_struct("ModelSettings")
            .field("provider", &self.provider)
            .field("name", &self.name)
            .field("url", &shown(&self.url))
            .field("key", &key)
            .field("context_tokens", &self.context_tokens)
            .field("think", &self.think)
            .field("max_tool_rounds", &self.max_tool_rounds)
            .field("max_tools", &self.max_tools)
            .field("intents_first", &self.intents_first)
            .finish_non_exhaustive()
    }
}

/// A key that is there has a value: `null` is no way to leave it out.
fn some<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

fn at_least_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    match usize::deserialize(deserializer)? {
        0 => Err(de::Error::custom("must be at least 1")),
        number => Ok(number),
    }
}

fn rounds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    match usize::deserialize(deserializer)? {
        rounds @ 1..=MOST_ROUNDS => Ok(rounds),
        _ => Err(de::Error::custom(format!(
            "must be from 1 to {MOST_ROUNDS}"
        ))),
    }
}

fn window<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    match usize::deserialize(deserializer)? {
        tokens if tokens < SMALLEST_WINDOW => Err(de::Error::custom(format!(
            "must be at least {SMALLEST_WINDOW}"
        ))),
        tokens => Ok(Some(tokens)),
    }
}

fn temperature<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    match f64::deserialize(deserializer)? {
        degrees if (0.0..=2.0).contains(&degrees) => Ok(Some(degrees)),
        _ => Err(de::Error::custom("must be from 0 to 2")),
    }
}

fn attempts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        attempts @ 1..=MOST_ATTEMPTS => Ok(attempts),
        _ => Err(de::Error::custom(format!(
            "must be from 1 to {MOST_ATTEMPTS}"
        ))),
    }
}

/// Ollama itself takes seconds as a number and anything else as text.
fn keep_alive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let wrong = || {
        de::Error::custom("must be a number of seconds, a duration such as \"5m\", or -1 for ever")
    };
    match serde_json::Value::deserialize(deserializer)? {
        serde_json::Value::Number(number) => {
            number.as_i64().filter(|it| *it >= -1).ok_or_else(wrong)
        }
        serde_json::Value::String(text) => {
            let duration = toolgate_core::parse_duration(&text).map_err(de::Error::custom)?;
            i64::try_from(duration.as_secs()).map_err(|_| wrong())
        }
        _ => Err(wrong()),
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
