//! Asks servers which models they have, before one is selected. These requests cost nothing.

use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::time::Instant;

use crate::http::{ErrorResponse, ProviderHttp};
use crate::ollama::{ModelInfo, OllamaClient, ToolUse, is_same};
use crate::{AnswerSource, ModelError, ModelSettings, Provider};

pub(super) const MAX_NAME_LEN: usize = 256;

#[derive(Debug)]
pub(super) struct OllamaModels(Vec<ModelInfo>);

impl OllamaModels {
    /// The model of this name if it can use tools. Without a name: the default model, else a
    /// Qwen, else the first.
    pub(super) fn usable(&self, name: &str) -> Option<String> {
        let can = |model: &&ModelInfo| model.tools == ToolUse::Supported;
        let mut with_tools = self.0.iter().filter(can);
        let found = match name {
            "" => best_model(with_tools),
            name => with_tools.find(|model| is_same(&model.name, name)),
        };
        found.map(|model| model.name.clone())
    }

    // The best guess for old versions of Ollama, which don't report what their models can do.
    pub(super) fn any_name(&self) -> Option<String> {
        best_model(self.0.iter()).map(|model| model.name.clone())
    }

    pub(super) fn explain_unusable(&self, name: &str) -> String {
        let usual = Provider::Ollama.default_model();
        let shown = toolgate_core::text::escape(name);
        let is_match = |model: &&ModelInfo| name.is_empty() || is_same(&model.name, name);
        let meant: Vec<&ModelInfo> = self.0.iter().filter(is_match).collect();
        let any = |what| meant.iter().any(|model| model.tools == what);
        match self.0.len() {
            _ if any(ToolUse::Unreported) => {
                "it is too old to report which models can use tools; update it, or use one anyway with \
                --provider ollama"
                    .to_owned()
            }
            _ if any(ToolUse::TimedOut) => {
                "it didn't report in time which models can use tools; use one anyway with \
                --provider ollama"
                    .to_owned()
            }
            _ if !name.is_empty() && meant.is_empty() => {
                format!("it has no model '{shown}'; 'ollama pull {shown}' gets it")
            }
            _ if !name.is_empty() => format!("its model '{shown}' can't use tools"),
            0 => format!("it has no model yet; 'ollama pull {usual}' gets one"),
            1 => {
                format!("its only model can't use tools; 'ollama pull {usual}' gets one that can")
            }
            count => format!(
                "none of its {count} models can use tools; 'ollama pull {usual}' gets one that can"
            ),
        }
    }
}

fn best_model<'a>(models: impl Iterator<Item = &'a ModelInfo>) -> Option<&'a ModelInfo> {
    models.min_by_key(|model| match model.name.as_str() {
        name if is_same(name, Provider::Ollama.default_model()) => 0,
        name if name.starts_with("qwen") => 1,
        _ => 2,
    })
}

pub(super) async fn probe_ollama(
    settings: &ModelSettings,
    limit: Duration,
) -> Result<OllamaModels, &'static str> {
    let models = OllamaClient::probe(settings, limit).await;
    models.map(OllamaModels).map_err(|error| match error {
        ModelError::Unreachable { .. } => "it can't be reached",
        ModelError::TimedOut { .. } => "no answer in time",
        ModelError::Key { .. } if settings.key.is_empty() => "it needs a key (OLLAMA_API_KEY)",
        ModelError::Key { .. } => "the key is not accepted",
        ModelError::Failed { .. } => "it answers with an error",
        _ => "another server answers",
    })
}

// For providers that are not contacted before the first question.
pub(crate) fn skip_probe(
    _: &ModelSettings,
    _: Duration,
) -> BoxFuture<'_, Option<(String, Option<usize>)>> {
    Box::pin(std::future::ready(None))
}

pub(crate) fn probe_ollama_model(
    settings: &ModelSettings,
    limit: Duration,
) -> BoxFuture<'_, Option<(String, Option<usize>)>> {
    Box::pin(async move {
        let models = probe_ollama(settings, limit).await.ok()?;
        let name = models.usable("").or_else(|| models.any_name())?;
        Some((name, None))
    })
}

// OpenAI's own list is long and its order means nothing, so only other servers are probed.
pub(crate) fn probe_openai_model(
    settings: &ModelSettings,
    limit: Duration,
) -> BoxFuture<'_, Option<(String, Option<usize>)>> {
    Box::pin(async move {
        if settings.url == Provider::OpenAi.entry().url {
            return None;
        }
        probe_openai(settings, limit).await
    })
}

/// The configured model of an OpenAI-compatible server, or its first one if none is configured, and
/// its context size if the server reports it.
pub(super) async fn probe_openai(
    settings: &ModelSettings,
    limit: Duration,
) -> Option<(String, Option<usize>)> {
    let http = probe_client(settings, limit).ok()?;
    let to_model_error = |failure: ErrorResponse| failure.into_model_error("");
    let answer = http
        .get_json("/models", Instant::now() + limit, to_model_error)
        .await
        .ok()?;
    let models = answer["data"].as_array()?.iter();
    let mut named = models.filter_map(|model| Some((model["id"].as_str()?, context_size(model))));
    let (name, window) = named.find(|(name, _)| match settings.name.as_str() {
        "" => !name.is_empty() && name.len() <= MAX_NAME_LEN,
        meant => *name == meant,
    })?;
    Some((name.to_owned(), window))
}

// Field names of vLLM and llama.cpp. `n_ctx_train` is ignored: llama.cpp may have been started
// with a smaller context.
fn context_size(model: &Value) -> Option<usize> {
    const SANE: std::ops::RangeInclusive<u64> = 512..=16 << 20;
    let places = ["/max_model_len", "/n_ctx", "/meta/n_ctx"];
    let mut said = places
        .iter()
        .filter_map(|place| model.pointer(place)?.as_u64());
    said.find(|tokens| SANE.contains(tokens))
        .and_then(|tokens| usize::try_from(tokens).ok())
}

// A client that gives up on the first byte after `limit`.
pub(super) fn probe_client(
    settings: &ModelSettings,
    limit: Duration,
) -> Result<ProviderHttp, ModelError> {
    let provider = settings.provider.and_then(AnswerSource::provider);
    let provider = provider.unwrap_or(Provider::Ollama);
    let mut probe_settings = settings.clone();
    probe_settings.first_byte = limit;
    ProviderHttp::new(provider, &settings.url, &probe_settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::loopback::{LoopbackServer, LoopbackStep, answer};

    fn json(body: &str) -> Vec<LoopbackStep> {
        vec![LoopbackStep::Send(answer(200, "", body).into_bytes())]
    }

    #[tokio::test]
    async fn a_named_model_reports_its_context_size() {
        for (meant, expected) in [
            ("b", Some(("b".to_owned(), Some(131_072)))),
            ("", Some(("a".to_owned(), Some(4096)))),
            ("c", None),
        ] {
            let list =
                r#"{"data":[{"id":"a","max_model_len":4096},{"id":"b","max_model_len":131072}]}"#;
            let server = LoopbackServer::start(vec![json(list)]).await;
            let settings = ModelSettings {
                provider: Some(Provider::OpenAi.into()),
                url: server.url.clone(),
                name: meant.to_owned(),
                ..ModelSettings::default()
            };
            let found = probe_openai(&settings, Duration::from_secs(5)).await;
            assert_eq!(found, expected, "{meant}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_hanging_ollama_is_skipped_after_a_second() {
        let server = LoopbackServer::start(vec![vec![LoopbackStep::Hang]]).await;
        let variables = [
            ("OLLAMA_HOST", server.url.as_str()),
            ("ANTHROPIC_API_KEY", "k"),
        ];
        let environment = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let begun = Instant::now();
        let settings = ModelSettings::default();
        let choice = crate::choose::select_model(&settings, "", &environment).await;
        let choice = choice.unwrap();
        assert_eq!(begun.elapsed().as_secs(), 1);
        assert_eq!(choice.provider, Provider::Anthropic);
        assert_eq!(choice.why, "ANTHROPIC_API_KEY is set");
        let expected = format!("ollama: no answer in time at {}", server.url);
        assert_eq!(choice.skipped, [expected]);
    }

    #[tokio::test]
    async fn missing_capabilities_are_not_taken_for_a_no() {
        let silent = "it is too old to report which models can use tools; update it, or use one anyway with --provider ollama";
        let slow = "it didn't report in time which models can use tools; use one anyway with --provider ollama";
        for (show, name, expected) in [
            (json("{}"), "", silent),
            (json("{}"), "a:1b", silent),
            (vec![LoopbackStep::Hang], "", slow),
            (vec![LoopbackStep::Hang], "a:1b", slow),
            (
                vec![LoopbackStep::Hang],
                "b",
                "it has no model 'b'; 'ollama pull b' gets it",
            ),
            (
                json(r#"{"capabilities":["completion"]}"#),
                "a:1b",
                "its model 'a:1b' can't use tools",
            ),
        ] {
            let list = json(r#"{"models":[{"name":"a:1b"}]}"#);
            let server = LoopbackServer::start(vec![list, show]).await;
            let settings = ModelSettings {
                url: server.url.clone(),
                ..ModelSettings::default()
            };
            let models = probe_ollama(&settings, Duration::from_secs(1))
                .await
                .unwrap();
            assert_eq!(models.usable(name), None);
            assert_eq!(models.explain_unusable(name), expected);
        }
    }
}
