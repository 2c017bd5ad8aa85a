//! Asks a provider which models it has.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::probe::{MAX_NAME_LEN, probe_client};
use crate::{AnswerSource, ModelError, ModelSettings, Provider};

/// The models that a provider reports.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelList {
    /// The provider has no list at this URL. It may work anyway, or the address may be wrong.
    Nothing { at: String },
    Models {
        names: Vec<String>,
        /// False if the provider has more.
        is_all: bool,
    },
}

/// True if `name` is one of `models`. A name without a date, or with `-latest`, matches any date.
pub fn is_listed(name: &str, models: &[String]) -> bool {
    let short = name.strip_suffix("-latest").unwrap_or(name);
    models.iter().any(|model| {
        let rest = model.strip_prefix(short);
        model == name || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    })
}

pub(super) async fn fetch_models(
    settings: &ModelSettings,
    limit: Duration,
) -> Result<ModelList, ModelError> {
    let http = probe_client(settings, limit)?;
    let deadline = Instant::now() + limit;
    let provider = settings.provider.and_then(AnswerSource::provider);
    let entry = provider.unwrap_or(Provider::OpenAi).entry();
    let path = entry.models_path;
    let has_list = AtomicBool::new(true);
    let get = http.get_json(path, deadline, |failure| {
        has_list.store(!matches!(failure.status, 404 | 405), Ordering::Relaxed);
        failure.into_model_error("")
    });
    match get.await {
        Err(_) if !has_list.load(Ordering::Relaxed) => Ok(ModelList::Nothing {
            at: format!("{}{path}", http.display_url().trim_end_matches('/')),
        }),
        answer => answer.map(|answer| {
            let (mut names, has_more) = (entry.parse_models)(&answer);
            names.retain(|name| !name.is_empty() && name.len() <= MAX_NAME_LEN);
            ModelList::Models {
                names,
                is_all: !has_more,
            }
        }),
    }
}

pub(crate) fn parse_ids(answer: &Value) -> (Vec<String>, bool) {
    let models = answer["data"].as_array().into_iter().flatten();
    let names = models.filter_map(|model| model["id"].as_str());
    let names = names.map(str::to_owned).collect();
    (names, answer["has_more"] == true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::loopback::{LoopbackServer, answer};

    #[tokio::test]
    async fn a_missing_model_list_reports_where_it_was_looked_for() {
        let models = |name: &str, is_all| {
            let names = vec![name.to_owned()];
            Some(ModelList::Models { names, is_all })
        };
        for (status, body, expected) in [
            (404, r#"{"error":"/v1/models not found"}"#, None),
            (404, "404 page not found", None),
            (405, r#"{"detail":"Method Not Allowed"}"#, None),
            (200, r#"{"data":[{"id":"m"}]}"#, models("m", true)),
            (
                200,
                r#"{"data":[{"id":"m-1"}],"has_more":true}"#,
                models("m-1", false),
            ),
        ] {
            for (provider, path) in [
                (Provider::OpenAi, "/models"),
                (Provider::Anthropic, "/v1/models"),
            ] {
                let server = LoopbackServer::answers(&[&answer(status, "", body)]).await;
                let told = fetch_models(&settings(provider, &server), Duration::from_secs(5)).await;
                let nothing = || ModelList::Nothing {
                    at: format!("{}{path}", server.url),
                };
                let expected = expected.clone().unwrap_or_else(nothing);
                assert_eq!(told, Ok(expected), "{provider} {status} {body}");
            }
        }
    }

    #[tokio::test]
    async fn a_refused_list_is_an_error() {
        for status in [401, 403, 500] {
            for provider in [Provider::OpenAi, Provider::Anthropic] {
                let server = LoopbackServer::answers(&[&answer(status, "", "no")]).await;
                let told = fetch_models(&settings(provider, &server), Duration::from_secs(5)).await;
                assert!(told.is_err(), "{provider} {status}: {told:?}");
            }
        }
    }

    fn settings(provider: Provider, server: &LoopbackServer) -> ModelSettings {
        ModelSettings {
            provider: Some(provider.into()),
            url: server.url.clone(),
            name: "m".to_owned(),
            ..ModelSettings::default()
        }
    }

    #[test]
    fn a_name_without_a_date_matches_any_date() {
        let models = ["claude-sonnet-4-5-20250929", "gpt-4o-mini"].map(str::to_owned);
        for (name, expected) in [
            ("gpt-4o-mini", true),
            ("gpt-4o", true),
            ("claude-sonnet-4-5", true),
            ("claude-sonnet-4-5-latest", true),
            ("claude-sonnet-4", true),
            ("claude-son", false),
            ("gpt-4p", false),
        ] {
            assert_eq!(is_listed(name, &models), expected, "{name}");
        }
        assert!(!is_listed("x", &[]));
    }
}
