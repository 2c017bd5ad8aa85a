//! A look at what a provider has, where asking costs nothing.

use std::time::Duration;

use futures::future::BoxFuture;
use reqwest::header::HeaderMap;
use serde_json::Value;
use tokio::time::Instant;

use crate::http::Http;
use crate::ollama::{ModelInfo, OllamaClient, ToolUse, is_same};
use crate::{AnswerSource, ModelError, ModelSettings, Provider};

/// A longer name is none.
pub(super) const LONGEST_NAME: usize = 256;

#[derive(Debug)]
pub(super) struct Models(Vec<ModelInfo>);

impl Models {
    /// The one of this name if it can use tools; with an empty name the table's own, else a Qwen, else the first.
    pub(super) fn usable(&self, name: &str) -> Option<String> {
        let can = |model: &&ModelInfo| model.tools == ToolUse::Can;
        let mut with_tools = self.0.iter().filter(can);
        let found = match name {
            "" => best(with_tools),
            name => with_tools.find(|model| is_same(&model.name, name)),
        };
        found.map(|model| model.name.clone())
    }

    /// One that is there at least: an old Ollama does not tell what its models can do.
    pub(super) fn any(&self) -> Option<String> {
        best(self.0.iter()).map(|model| model.name.clone())
    }

    pub(super) fn none_usable(&self, name: &str) -> String {
        let usual = Provider::Ollama.default_model();
        let shown = toolgate_core::escape(name);
        let is_meant = |model: &&ModelInfo| name.is_empty() || is_same(&model.name, name);
        let meant: Vec<&ModelInfo> = self.0.iter().filter(is_meant).collect();
        let any = |what| meant.iter().any(|model| model.tools == what);
        match self.0.len() {
            _ if any(ToolUse::NotTold) => {
                "it does not tell which models can use tools, as an old Ollama does not: update \
                it, or take one all the same with --provider ollama"
                    .to_owned()
            }
            _ if any(ToolUse::Late) => {
                "it did not tell in time which models can use tools; take one all the same with \
                --provider ollama"
                    .to_owned()
            }
            _ if !name.is_empty() && meant.is_empty() => {
                format!("it has no model '{shown}'; 'ollama pull {shown}' gets it")
            }
            _ if !name.is_empty() => format!("its model '{shown}' can not use tools"),
            0 => format!("it has no model yet; 'ollama pull {usual}' gets one"),
            1 => {
                format!("its only model can not use tools; 'ollama pull {usual}' gets one that can")
            }
            count => format!(
                "none of its {count} models can use tools; 'ollama pull {usual}' gets one that can"
            ),
        }
    }
}

fn best<'a>(models: impl Iterator<Item = &'a ModelInfo>) -> Option<&'a ModelInfo> {
    models.min_by_key(|model| match model.name.as_str() {
        name if is_same(name, Provider::Ollama.default_model()) => 0,
        name if name.starts_with("qwen") => 1,
        _ => 2,
    })
}

/// Looks at an Ollama; the error says what is wrong with it in a few words.
pub(super) async fn ollama(
    settings: &ModelSettings,
    patience: Duration,
) -> Result<Models, &'static str> {
    let models = OllamaClient::probe(settings, patience).await;
    models.map(Models).map_err(|error| match error {
        ModelError::Unreachable { .. } => "nobody answers",
        ModelError::TimedOut { .. } => "nobody answers in time",
        ModelError::Key { .. } if settings.key.is_empty() => "a key is asked for (OLLAMA_API_KEY)",
        ModelError::Key { .. } => "the key is not accepted",
        ModelError::Failed { .. } => "it answers with an error",
        _ => "something else than Ollama answers",
    })
}

/// For a provider that is not asked before it has to be.
pub(crate) fn nothing(
    _: &ModelSettings,
    _: Duration,
) -> BoxFuture<'_, Option<(String, Option<usize>)>> {
    Box::pin(std::future::ready(None))
}

pub(crate) fn ollama_model(
    settings: &ModelSettings,
    patience: Duration,
) -> BoxFuture<'_, Option<(String, Option<usize>)>> {
    Box::pin(async move {
        let models = ollama(settings, patience).await.ok()?;
        let name = models.usable("").or_else(|| models.any())?;
        Some((name, None))
    })
}

/// The model of a server of one's own; OpenAI itself has too many.
pub(crate) fn openai_model(
    settings: &ModelSettings,
    patience: Duration,
) -> BoxFuture<'_, Option<(String, Option<usize>)>> {
    Box::pin(async move {
        let is_usual = settings.url == Provider::OpenAi.entry().url;
        match is_usual {
            true => None,
            false => openai(settings, patience).await,
        }
    })
}

/// The model that is named of a server that speaks OpenAI's language, else its first one, and how many tokens it holds,
/// where that is said.
pub(super) async fn openai(
    settings: &ModelSettings,
    patience: Duration,
) -> Option<(String, Option<usize>)> {
    let (http, headers) = hasty(settings, patience).ok()?;
    let deadline = Instant::now() + patience;
    let get = http.get_json("/models", headers, deadline, |failure| failure.usual(""));
    let answer = get.await.ok()?;
    let models = answer["data"].as_array()?.iter();
    let mut named = models.filter_map(|model| Some((model["id"].as_str()?, window(model))));
    let (name, window) = named.find(|(name, _)| match settings.name.as_str() {
        "" => !name.is_empty() && name.len() <= LONGEST_NAME,
        meant => *name == meant,
    })?;
    Some((name.to_owned(), window))
}

/// Under the names of vLLM and llama.cpp. The latter's `n_ctx_train` is no promise: it may have been started with less.
fn window(model: &Value) -> Option<usize> {
    /// No model holds more or less.
    const SANE: std::ops::RangeInclusive<u64> = 512..=16 << 20;
    let places = ["/max_model_len", "/n_ctx", "/meta/n_ctx"];
    let mut said = places
        .iter()
        .filter_map(|place| model.pointer(place)?.as_u64());
    said.find(|tokens| SANE.contains(tokens))
        .and_then(|tokens| usize::try_from(tokens).ok())
}

/// For questions that are answered at once, or not at all.
pub(super) fn hasty(
    settings: &ModelSettings,
    patience: Duration,
) -> Result<(Http, HeaderMap), ModelError> {
    let provider = settings.provider.and_then(AnswerSource::provider);
    let provider = provider.unwrap_or(Provider::Ollama);
    let mut hasty = settings.clone();
    hasty.first_byte = patience;
    let headers = (provider.entry().headers)(&settings.key)?;
    Ok((Http::new(provider, &settings.url, &hasty)?, headers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::loopback::{Loopback, Step, answer};

    fn json(body: &str) -> Vec<Step> {
        vec![Step::Send(answer(200, "", body).into_bytes())]
    }

    #[tokio::test]
    async fn a_model_of_an_own_server_that_is_named_tells_how_much_it_holds() {
        for (meant, expected) in [
            ("b", Some(("b".to_owned(), Some(131_072)))),
            ("", Some(("a".to_owned(), Some(4096)))),
            ("c", None),
        ] {
            let list =
                r#"{"data":[{"id":"a","max_model_len":4096},{"id":"b","max_model_len":131072}]}"#;
            let server = Loopback::start(vec![json(list)]).await;
            let settings = ModelSettings {
                provider: Some(Provider::OpenAi.into()),
                url: server.url.clone(),
                name: meant.to_owned(),
                ..ModelSettings::default()
            };
            let found = openai(&settings, Duration::from_secs(5)).await;
            assert_eq!(found, expected, "{meant}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_ollama_that_hangs_is_passed_over_after_a_second_and_that_is_told() {
        let server = Loopback::start(vec![vec![Step::Hang]]).await;
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
        let choice = crate::choose::choice(&settings, "", &environment).await;
        let choice = choice.unwrap();
        assert_eq!(begun.elapsed().as_secs(), 1);
        assert_eq!(choice.provider, Provider::Anthropic);
        assert_eq!(choice.why, "ANTHROPIC_API_KEY is set");
        let expected = format!("ollama: nobody answers in time at {}", server.url);
        assert_eq!(choice.passed_over, [expected]);
    }

    #[tokio::test]
    async fn what_an_ollama_does_not_tell_is_not_taken_for_a_no() {
        let silent = "it does not tell which models can use tools, as an old Ollama does not: update it, or take one all \
                      the same with --provider ollama";
        let slow = "it did not tell in time which models can use tools; take one all the same with --provider ollama";
        for (show, name, expected) in [
            (json("{}"), "", silent),
            (json("{}"), "a:1b", silent),
            (vec![Step::Hang], "", slow),
            (vec![Step::Hang], "a:1b", slow),
            (
                vec![Step::Hang],
                "b",
                "it has no model 'b'; 'ollama pull b' gets it",
            ),
            (
                json(r#"{"capabilities":["completion"]}"#),
                "a:1b",
                "its model 'a:1b' can not use tools",
            ),
        ] {
            let list = json(r#"{"models":[{"name":"a:1b"}]}"#);
            let server = Loopback::start(vec![list, show]).await;
            let settings = ModelSettings {
                url: server.url.clone(),
                ..ModelSettings::default()
            };
            let models = ollama(&settings, Duration::from_secs(1)).await.unwrap();
            assert_eq!(models.usable(name), None);
            assert_eq!(models.none_usable(name), expected);
        }
    }
}
