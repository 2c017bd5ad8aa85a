//! What an Ollama server tells of itself and its models.

use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use reqwest::header::HeaderMap;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::errors;
use crate::choose::address;
use crate::http::Http;
use crate::wire_format::{Endpoint, bearer};
use crate::{ModelError, ModelSettings, Provider};

/// Where Ollama listens unless told otherwise.
pub(crate) const URL: &str = "http://127.0.0.1:11434";
/// Models that are looked at; a server with more is asked for the first ones only.
const MOST_MODELS: usize = 64;
const AT_ONCE: usize = 8;

/// A model that an Ollama server has.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelInfo {
    /// As it is chosen, with its tag: `qwen3:4b-instruct`.
    pub name: String,
    /// Whether it can use tools.
    pub tools: ToolUse,
    /// Whether it can think before it answers.
    pub thinking: bool,
    /// How many tokens it was trained to hold, where that is told.
    pub context: Option<usize>,
}

/// Whether a model can use tools, as far as its server tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolUse {
    /// It can.
    Can,
    /// It can not: its template has no place for them.
    CanNot,
    /// The server does not say what its models can do, as old ones do not.
    NotTold,
    /// The server did not say so in time.
    Late,
}

/// What `/api/show` tells of a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Shown {
    /// `None`: an old server, which does not tell.
    pub(super) capabilities: Option<Vec<String>>,
    pub(super) context: Option<usize>,
    /// The window that the model's own file sets.
    pub(super) num_ctx: Option<usize>,
}

/// A model in `/api/tags`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) name: String,
    /// What newer servers tell in the list already.
    shown: Option<Shown>,
}

/// A model in memory, by `/api/ps`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Loaded {
    #[serde(default)]
    name: String,
    #[serde(default)]
    model: String,
    #[serde(default)]
    pub(super) context_length: Option<usize>,
    #[serde(default)]
    pub(super) size: u64,
    #[serde(default)]
    pub(super) size_vram: u64,
}

pub(super) struct Api {
    pub(super) endpoint: Endpoint,
}

impl Api {
    pub(super) fn new(settings: &ModelSettings) -> Result<Self, ModelError> {
        // What is no address is told apart by the one who reads it last.
        let url = address::tidy(Provider::Ollama, &settings.url);
        let url = url.unwrap_or_else(|_| settings.url.clone());
        let endpoint = Endpoint {
            http: Http::new(Provider::Ollama, &url, settings)?,
            headers: headers(&settings.key)?,
        };
        Ok(Self { endpoint })
    }

    pub(super) fn http(&self) -> &Http {
        &self.endpoint.http
    }

    fn headers(&self) -> HeaderMap {
        self.endpoint.headers.clone()
    }

    pub(super) async fn version(&self, deadline: Instant) -> Result<String, ModelError> {
        let value = self.get("/api/version", deadline).await?;
        let version = value.get("version").and_then(Value::as_str);
        version
            .map(|version| self.http().line(version))
            .ok_or_else(|| self.no_ollama("no version"))
    }

    pub(super) async fn models(&self, deadline: Instant) -> Result<Vec<Listed>, ModelError> {
        let value = self.get("/api/tags", deadline).await?;
        let models = value.get("models").and_then(Value::as_array);
        let models = models.ok_or_else(|| self.no_ollama("no list of models"))?;
        let models = models.iter().filter_map(Listed::read);
        Ok(models.take(MOST_MODELS).collect())
    }

    pub(super) async fn show(&self, model: &str, deadline: Instant) -> Result<Shown, ModelError> {
        let body = json!({ "model": model }).to_string().into_bytes();
        let explain = |failure| errors::explain(model, failure);
        let value = self
            .http()
            .post_json("/api/show", self.headers(), body, deadline, explain);
        Ok(Shown::read(&value.await?))
    }

    pub(super) async fn loaded(
        &self,
        model: &str,
        deadline: Instant,
    ) -> Result<Option<Loaded>, ModelError> {
        let mut value = self.get("/api/ps", deadline).await?;
        let models = value.get_mut("models").map(Value::take).unwrap_or_default();
        let models: Vec<Loaded> = serde_json::from_value(models).unwrap_or_default();
        let mut models = models.into_iter();
        Ok(models.find(|loaded| is_same(&loaded.name, model) || is_same(&loaded.model, model)))
    }

    pub(super) async fn infos(&self, models: Vec<Listed>, deadline: Instant) -> Vec<ModelInfo> {
        let infos = stream::iter(models).map(|Listed { name, shown }| async move {
            let shown = match shown {
                Some(shown) => Ok(shown),
                None => self.show(&name, deadline).await,
            };
            let is_late = matches!(shown, Err(ModelError::TimedOut { .. }));
            let shown = shown.unwrap_or_default();
            ModelInfo {
                tools: match shown.capabilities {
                    Some(_) if shown.can("tools") => ToolUse::Can,
                    Some(_) => ToolUse::CanNot,
                    None if is_late => ToolUse::Late,
                    None => ToolUse::NotTold,
                },
                thinking: shown.can("thinking"),
                context: shown.context,
                name,
            }
        });
        infos.buffered(AT_ONCE).collect().await
    }

    async fn get(&self, path: &str, deadline: Instant) -> Result<Value, ModelError> {
        let explain = |failure| errors::explain("", failure);
        self.http()
            .get_json(path, self.headers(), deadline, explain)
            .await
    }

    fn no_ollama(&self, reason: &str) -> ModelError {
        ModelError::Garbled {
            provider: Provider::Ollama,
            reason: format!("{reason}; is it an Ollama at {}?", self.http().shown()),
        }
    }
}

pub(crate) fn headers(key: &str) -> Result<HeaderMap, ModelError> {
    bearer(Provider::Ollama, key)
}

impl Shown {
    /// False also where the server does not tell.
    pub(super) fn can(&self, what: &str) -> bool {
        self.capabilities
            .iter()
            .flatten()
            .any(|capability| capability == what)
    }

    fn read(value: &Value) -> Self {
        let info = value.get("model_info").and_then(Value::as_object);
        let info = info.into_iter().flatten();
        let context = info.filter(|(key, _)| key.ends_with(".context_length"));
        let parameters = value.get("parameters").and_then(Value::as_str);
        let num_ctx = parameters.unwrap_or_default().lines().find_map(|line| {
            let size = line.trim().strip_prefix("num_ctx")?;
            size.trim().parse().ok()
        });
        Self {
            capabilities: capabilities(value),
            context: context.filter_map(|(_, size)| size_of(size)).next(),
            num_ctx,
        }
    }
}

impl Listed {
    fn read(value: &Value) -> Option<Self> {
        let name = value.get("model").or_else(|| value.get("name"))?.as_str()?;
        let shown = capabilities(value).map(|capabilities| Shown {
            capabilities: Some(capabilities),
            context: value.pointer("/details/context_length").and_then(size_of),
            num_ctx: None,
        });
        Some(Self {
            name: name.to_owned(),
            shown,
        })
    }
}

fn capabilities(value: &Value) -> Option<Vec<String>> {
    let list = value.get("capabilities")?.as_array()?;
    let texts = list.iter().filter_map(Value::as_str);
    Some(texts.map(str::to_owned).collect())
}

fn size_of(value: &Value) -> Option<usize> {
    value.as_u64().and_then(|size| usize::try_from(size).ok())
}

/// A name without a tag means the one tagged `latest`.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    let plain = |name: &str| {
        name.strip_suffix(":latest")
            .unwrap_or(name)
            .to_ascii_lowercase()
    };
    plain(one) == plain(other)
}

/// At most this long from now.
pub(super) fn within(limit: Duration) -> Instant {
    Instant::now() + limit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_without_a_tag_is_the_latest() {
        assert!(is_same("qwen3", "qwen3:latest") && is_same("Qwen3:4b", "qwen3:4b"));
        assert!(!is_same("qwen3", "qwen3:4b"));
    }

    #[test]
    fn what_a_server_shows_of_a_model_is_read_with_care() {
        let shown = Shown::read(&json!({
            "capabilities": ["completion", "tools", 7],
            "model_info": { "general.name": "Qwen3", "qwen3.context_length": 262_144, "x.context_length": "no" },
            "parameters": "stop \"<|im_end|>\"\nnum_ctx                        4096\ntemperature 0.6",
        }));
        assert_eq!((shown.can("tools"), shown.can("thinking")), (true, false));
        assert_eq!((shown.context, shown.num_ctx), (Some(262_144), Some(4096)));
        for odd in [
            json!(null),
            json!([]),
            json!({ "capabilities": "tools", "model_info": 3, "parameters": [] }),
        ] {
            assert_eq!(Shown::read(&odd), Shown::default());
        }
    }
}
