mod named;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::tests::loopback::{LoopbackServer, answer};

/// An address where nothing listens.
const NOBODY: (&str, &str) = ("OLLAMA_HOST", "127.0.0.1:1");

fn answered(body: &str) -> String {
    answer(200, "content-type: application/json\r\n", body)
}

/// An Ollama with these models, each with or without tools. Its answers depend on the request,
/// not on the order.
async fn ollama(models: &[(&str, bool)]) -> ScriptedOllama {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let models: Vec<(String, bool)> = models
        .iter()
        .map(|(name, tools)| ((*name).to_owned(), *tools))
        .collect();
    let task = tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            let read = socket.read(&mut request).await.unwrap();
            let request = String::from_utf8_lossy(&request[..read]).into_owned();
            let body = match request.starts_with("GET /api/tags ") {
                true => list(&models),
                false => capabilities(&models, &request),
            };
            socket.write_all(answered(&body).as_bytes()).await.unwrap();
        }
    });
    ScriptedOllama { url, task }
}

struct ScriptedOllama {
    url: String,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for ScriptedOllama {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn list(models: &[(String, bool)]) -> String {
    let entries: Vec<_> = models
        .iter()
        .map(|(name, _)| json!({ "name": name, "model": name }))
        .collect();
    json!({ "models": entries }).to_string()
}

fn capabilities(models: &[(String, bool)], request: &str) -> String {
    let (_, tools) = models
        .iter()
        .find(|(name, _)| request.contains(&format!("\"{name}\"")))
        .unwrap();
    let capabilities: &[&str] = if *tools {
        &["completion", "tools"]
    } else {
        &["completion"]
    };
    json!({ "capabilities": capabilities }).to_string()
}

async fn chosen(
    settings: &ModelSettings,
    variables: &[(&str, &str)],
) -> Result<ModelSelection, String> {
    let environment = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let choice = select_model(settings, "the configuration says so", &environment).await;
    choice.map_err(|error| error.to_string())
}

fn settings(provider: Option<Provider>, name: &str) -> ModelSettings {
    ModelSettings {
        provider: provider.map(Into::into),
        name: name.to_owned(),
        ..ModelSettings::default()
    }
}

#[tokio::test]
async fn sentences_are_selected_last_with_all_reasons() {
    let choice = chosen(&settings(None, ""), &[NOBODY]).await.unwrap();
    assert_eq!(choice.provider, AnswerSource::Sentences);
    assert_eq!(choice.why, "no model is configured or reachable");
    assert_eq!(
        choice.skipped,
        [
            "ollama: it can't be reached at http://127.0.0.1:1",
            "anthropic: ANTHROPIC_API_KEY is not set",
            "openai: neither OPENAI_API_KEY nor OPENAI_BASE_URL is set",
            "gemini: GEMINI_API_KEY is not set",
        ]
    );
}

#[tokio::test]
async fn variables_choose_in_a_fixed_order() {
    let anthropic = ("ANTHROPIC_API_KEY", "k-a");
    let openai = ("OPENAI_API_KEY", "k-o");
    for (variables, expected) in [
        (
            &[NOBODY, anthropic, openai][..],
            (
                Provider::Anthropic,
                "claude-sonnet-5",
                "k-a",
                "https://api.anthropic.com",
                "ANTHROPIC_API_KEY is set",
            ),
        ),
        (
            &[NOBODY, anthropic, ("ANTHROPIC_BASE_URL", "http://h:1/v1/")],
            (
                Provider::Anthropic,
                "claude-sonnet-5",
                "k-a",
                "http://h:1",
                "ANTHROPIC_API_KEY is set",
            ),
        ),
        (
            &[NOBODY, openai],
            (
                Provider::OpenAi,
                "gpt-5-mini",
                "k-o",
                "https://api.openai.com/v1",
                "OPENAI_API_KEY is set",
            ),
        ),
        (
            &[NOBODY, ("OPENAI_BASE_URL", "http://127.0.0.1:1")],
            (
                Provider::OpenAi,
                "gpt-5-mini",
                "",
                "http://127.0.0.1:1/v1",
                "OPENAI_BASE_URL is set",
            ),
        ),
        (
            &[NOBODY, ("ANTHROPIC_API_KEY", " "), openai],
            (
                Provider::OpenAi,
                "gpt-5-mini",
                "k-o",
                "https://api.openai.com/v1",
                "OPENAI_API_KEY is set",
            ),
        ),
    ] {
        let choice = chosen(&settings(None, ""), variables).await.unwrap();
        let ours = &choice.settings;
        let got = (
            choice.provider.provider().unwrap(),
            ours.name.as_str(),
            ours.key.as_str(),
            ours.url.as_str(),
            choice.why.as_str(),
        );
        assert_eq!(got, expected);
    }
}

#[tokio::test]
async fn ollama_is_first_if_a_model_can_use_tools() {
    let server = ollama(&[
        ("gemma:2b", false),
        ("llama3.2:3b", true),
        ("qwen3:0.6b", true),
    ])
    .await;
    let variables = [
        ("OLLAMA_HOST", server.url.as_str()),
        ("ANTHROPIC_API_KEY", "k"),
    ];
    let choice = chosen(&settings(None, ""), &variables).await.unwrap();
    assert_eq!(
        (choice.provider, choice.settings.name.as_str()),
        (Provider::Ollama.into(), "qwen3:0.6b")
    );
    let why = format!(
        "it answers at {} and its qwen3:0.6b can use tools",
        server.url
    );
    assert_eq!(choice.why, why);
    assert!(choice.skipped.is_empty());
}

#[tokio::test]
async fn ollama_without_a_usable_model_is_skipped_with_advice() {
    for (models, expected) in [
        (
            &[][..],
            "ollama: it has no model yet; 'ollama pull qwen3:4b-instruct' gets one",
        ),
        (
            &[("gemma:2b", false)],
            "ollama: its only model can't use tools; 'ollama pull qwen3:4b-instruct' gets one that can",
        ),
    ] {
        let server = ollama(models).await;
        let variables = [
            ("OLLAMA_HOST", server.url.as_str()),
            ("ANTHROPIC_API_KEY", "k"),
        ];
        let choice = chosen(&settings(None, ""), &variables).await.unwrap();
        assert_eq!(
            (choice.provider, choice.skipped),
            (Provider::Anthropic.into(), vec![expected.to_owned()])
        );
    }
}

#[tokio::test]
async fn a_server_that_is_not_ollama_is_skipped() {
    for body in ["{}", "<html>", r#"{"models": 7}"#] {
        let server = LoopbackServer::answers(&[&answered(body)]).await;
        let choice = chosen(&settings(None, ""), &[("OLLAMA_HOST", &server.url)])
            .await
            .unwrap();
        let expected = format!("ollama: another server answers at {}", server.url);
        assert_eq!(choice.skipped[0], expected, "{body}");
    }
}

#[tokio::test]
async fn the_best_model_does_not_depend_on_the_order_of_the_list() {
    for (models, expected) in [
        (
            &[("a", true), ("qwen3:4b-instruct", true), ("qwen2:7b", true)][..],
            "qwen3:4b-instruct",
        ),
        (&[("a", true), ("qwen2:7b", true)], "qwen2:7b"),
        (&[("b", true), ("a", true)], "b"),
        (&[("qwen2:7b", false), ("a", true)], "a"),
    ] {
        let server = ollama(models).await;
        let choice = chosen(
            &settings(Some(Provider::Ollama), ""),
            &[("OLLAMA_HOST", &server.url)],
        )
        .await
        .unwrap();
        assert_eq!(choice.settings.name, expected);
    }
}

#[tokio::test]
async fn listing_models_costs_nothing_and_hides_the_key() {
    let refusal = answer(
        401,
        "content-type: application/json\r\n",
        r#"{"error":{"message":"invalid x-api-key s3cret-key"}}"#,
    );
    let mut server =
        LoopbackServer::answers(&[&answered(r#"{"data":[{"id":"m-1"}]}"#), &refusal]).await;
    let mut ours = settings(Some(Provider::Anthropic), "m");
    ours.url.clone_from(&server.url);
    ours.key = "s3cret-key".to_owned();
    let choice = chosen(&ours, &[]).await.unwrap();
    let (names, is_all) = (vec!["m-1".to_owned()], true);
    assert_eq!(
        list_models(&choice).await,
        Ok(ModelList::Models { names, is_all })
    );
    let request = server.request().await;
    assert!(
        request.starts_with("GET /v1/models ") && request.contains("x-api-key: s3cret-key"),
        "{request}"
    );
    let error = list_models(&choice).await.unwrap_err();
    assert!(
        matches!(error, ModelError::Key { .. }) && !format!("{error} {error:?}").contains("s3cret"),
        "{error}"
    );
}

#[tokio::test]
async fn ollama_gets_its_key() {
    let refusal = answer(401, "", "no");
    let models =
        answered(r#"{"models":[{"name":"qwen3:4b","model":"qwen3:4b","capabilities":["tools"]}]}"#);
    let mut server = LoopbackServer::answers(&[&models, &refusal, &refusal]).await;
    let host = ("OLLAMA_HOST", server.url.clone());
    let host = (host.0, host.1.as_str());
    let key = ("OLLAMA_API_KEY", "k-1");
    let choice = chosen(&settings(None, ""), &[host, key]).await.unwrap();
    assert_eq!(choice.provider, Provider::Ollama);
    assert!(server.request().await.contains("authorization: Bearer k-1"));
    for (variables, expected) in [
        (&[host, key][..], "ollama: the key is not accepted at http"),
        (&[host], "ollama: it needs a key (OLLAMA_API_KEY) at http"),
    ] {
        let choice = chosen(&settings(None, ""), variables).await.unwrap();
        assert!(choice.skipped[0].starts_with(expected), "{choice:?}");
    }
}
