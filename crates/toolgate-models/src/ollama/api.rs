//! Requests for what an Ollama server reports about itself and its models.

use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use reqwest::header::HeaderMap;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::errors;
use crate::choose::address;
use crate::http::ProviderHttp;
use crate::wire_format::bearer_header;
use crate::{ModelError, ModelSettings, Provider};

pub(crate) const URL: &str = "http://127.0.0.1:11434";
// How many models of a server are looked at.
const MAX_MODELS: usize = 64;
const MAX_PARALLEL_REQUESTS: usize = 8;

/// A model of an Ollama server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelInfo {
    /// With its tag, as in `qwen3:4b-instruct`.
    pub name: String,
    pub tools: ToolUse,
    pub thinking: bool,
    /// The context size it was trained for, in tokens, if the server reports it.
    pub context: Option<usize>,
}

/// Whether a model can use tools, as far as its server reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolUse {
    Supported,
    Unsupported,
    /// The server is too old to report what its models can do.
    Unreported,
    /// The server didn't report it in time.
    TimedOut,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ModelDetails {
    // `None` if the server is too old to report them.
    pub(super) capabilities: Option<Vec<String>>,
    pub(super) context: Option<usize>,
    // The context window that the model's Modelfile sets.
    pub(super) num_ctx: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TaggedModel {
    pub(super) name: String,
    // Newer servers report these in the list already.
    details: Option<ModelDetails>,
}

// A model in memory, from `/api/ps`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(super) struct RunningModel {
    name: String,
    model: String,
    pub(super) context_length: Option<usize>,
    pub(super) size: u64,
    pub(super) size_vram: u64,
}

pub(super) fn build_http(settings: &ModelSettings) -> Result<ProviderHttp, ModelError> {
    // An invalid address is reported when the HTTP client is built from it.
    let url = address::normalize_url(Provider::Ollama, &settings.url);
    let url = url.unwrap_or_else(|_| settings.url.clone());
    ProviderHttp::new(Provider::Ollama, &url, settings)
}

pub(super) async fn get_version(
    http: &ProviderHttp,
    deadline: Instant,
) -> Result<String, ModelError> {
    let value = get(http, "/api/version", deadline).await?;
    let version = value.get("version").and_then(Value::as_str);
    version
        .map(|version| http.display_line(version))
        .ok_or_else(|| not_ollama_error(http, "no version"))
}

pub(super) async fn list_models(
    http: &ProviderHttp,
    deadline: Instant,
) -> Result<Vec<TaggedModel>, ModelError> {
    let value = get(http, "/api/tags", deadline).await?;
    let models = value.get("models").and_then(Value::as_array);
    let models = models.ok_or_else(|| not_ollama_error(http, "no list of models"))?;
    let models = models.iter().filter_map(TaggedModel::parse);
    Ok(models.take(MAX_MODELS).collect())
}

pub(super) async fn show_model(
    http: &ProviderHttp,
    model: &str,
    deadline: Instant,
) -> Result<ModelDetails, ModelError> {
    let body = json!({ "model": model }).to_string().into_bytes();
    let to_model_error = |failure| errors::to_model_error(model, failure);
    let lines = http
        .post("/api/show", body, deadline, to_model_error)
        .await?;
    Ok(ModelDetails::parse(&lines.json().await?))
}

pub(super) async fn find_running(
    http: &ProviderHttp,
    model: &str,
    deadline: Instant,
) -> Result<Option<RunningModel>, ModelError> {
    let mut value = get(http, "/api/ps", deadline).await?;
    let models = value.get_mut("models").map(Value::take).unwrap_or_default();
    let models: Vec<RunningModel> = serde_json::from_value(models).unwrap_or_default();
    let mut models = models.into_iter();
    Ok(models.find(|loaded| is_same(&loaded.name, model) || is_same(&loaded.model, model)))
}

pub(super) async fn describe_models(
    http: &ProviderHttp,
    models: Vec<TaggedModel>,
    deadline: Instant,
) -> Vec<ModelInfo> {
    let infos = stream::iter(models).map(|TaggedModel { name, details }| async move {
        let details = match details {
            Some(details) => Ok(details),
            None => show_model(http, &name, deadline).await,
        };
        let is_late = matches!(details, Err(ModelError::TimedOut { .. }));
        let details = details.unwrap_or_default();
        ModelInfo {
            tools: match details.capabilities {
                Some(_) if details.can("tools") => ToolUse::Supported,
                Some(_) => ToolUse::Unsupported,
                None if is_late => ToolUse::TimedOut,
                None => ToolUse::Unreported,
            },
            thinking: details.can("thinking"),
            context: details.context,
            name,
        }
    });
    infos.buffered(MAX_PARALLEL_REQUESTS).collect().await
}

async fn get(http: &ProviderHttp, path: &str, deadline: Instant) -> Result<Value, ModelError> {
    http.get_json(path, deadline, |failure| {
        errors::to_model_error("", failure)
    })
    .await
}

fn not_ollama_error(http: &ProviderHttp, reason: &str) -> ModelError {
    ModelError::Malformed {
        provider: Provider::Ollama,
        reason: format!("{reason}; is it an Ollama at {}?", http.display_url()),
    }
}

pub(crate) fn headers(key: &str) -> Result<HeaderMap, ModelError> {
    bearer_header(Provider::Ollama, key)
}

impl ModelDetails {
    // False if the server doesn't report capabilities.
    pub(super) fn can(&self, what: &str) -> bool {
        self.capabilities
            .iter()
            .flatten()
            .any(|capability| capability == what)
    }

    fn parse(value: &Value) -> Self {
        let info = value.get("model_info").and_then(Value::as_object);
        let info = info.into_iter().flatten();
        let context = info.filter(|(key, _)| key.ends_with(".context_length"));
        let parameters = value.get("parameters").and_then(Value::as_str);
        let num_ctx = parameters.unwrap_or_default().lines().find_map(|line| {
            let size = line.trim().strip_prefix("num_ctx")?;
            size.trim().parse().ok()
        });
        Self {
            capabilities: parse_capabilities(value),
            context: context.filter_map(|(_, size)| to_usize(size)).next(),
            num_ctx,
        }
    }
}

impl TaggedModel {
    fn parse(value: &Value) -> Option<Self> {
        let name = value.get("model").or_else(|| value.get("name"))?.as_str()?;
        let details = parse_capabilities(value).map(|capabilities| ModelDetails {
            capabilities: Some(capabilities),
            context: value.pointer("/details/context_length").and_then(to_usize),
            num_ctx: None,
        });
        Some(Self {
            name: name.to_owned(),
            details,
        })
    }
}

fn parse_capabilities(value: &Value) -> Option<Vec<String>> {
    let list = value.get("capabilities")?.as_array()?;
    let texts = list.iter().filter_map(Value::as_str);
    Some(texts.map(str::to_owned).collect())
}

fn to_usize(value: &Value) -> Option<usize> {
    value.as_u64().and_then(|size| usize::try_from(size).ok())
}

/// Compares model names, ignoring case. A name without a tag means the tag `latest`.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    let plain = |name: &str| {
        name.strip_suffix(":latest")
            .unwrap_or(name)
            .to_ascii_lowercase()
    };
    plain(one) == plain(other)
}

pub(super) fn deadline_in(limit: Duration) -> Instant {
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
    fn model_details_are_read_leniently() {
        let shown = ModelDetails::parse(&json!({
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
            assert_eq!(ModelDetails::parse(&odd), ModelDetails::default());
        }
    }
}
