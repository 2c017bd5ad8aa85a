//! A provider, a model or an address that the user named.

use std::sync::Arc;

use super::*;

#[tokio::test]
async fn a_configured_provider_is_selected() {
    let variables = [
        NOBODY,
        ("ANTHROPIC_API_KEY", "k"),
        ("OPENAI_API_KEY", "o"),
        ("GOOGLE_API_KEY", "g"),
    ];
    for provider in AnswerSource::NAMES {
        let provider: AnswerSource = provider.parse().unwrap();
        let mut settings = settings(None, "");
        settings.provider = Some(provider);
        let choice = chosen(&settings, &variables).await.unwrap();
        assert_eq!(choice.provider, provider);
        let usual = provider.provider().map_or("en", Provider::default_model);
        assert_eq!(choice.settings.name, usual);
        assert_eq!(choice.why, "the configuration says so");
        assert!(!choice.is_automatic);
    }
    for (name, is_unasked) in [("", true), ("claude-x", false)] {
        let choice = chosen(&settings(None, name), &variables).await.unwrap();
        assert_eq!(choice.is_automatic, is_unasked, "{name}");
    }
}

#[tokio::test]
async fn a_named_model_is_looked_for_at_matching_providers() {
    let server = ollama(&[("qwen3:latest", true)]).await;
    let variables = [
        ("OLLAMA_HOST", server.url.as_str()),
        ("ANTHROPIC_API_KEY", "k"),
    ];
    let choice = chosen(&settings(None, "qwen3"), &variables).await.unwrap();
    assert_eq!(
        (choice.provider, choice.settings.name.as_str()),
        (Provider::Ollama.into(), "qwen3:latest")
    );

    let variables = [NOBODY, ("ANTHROPIC_API_KEY", "k"), ("OPENAI_API_KEY", "o")];
    for (name, expected) in [
        ("claude-x", Provider::Anthropic),
        ("gpt-9", Provider::OpenAi),
    ] {
        let choice = chosen(&settings(None, name), &variables).await.unwrap();
        assert_eq!(
            (choice.provider, choice.settings.name.as_str()),
            (expected.into(), name)
        );
    }
    let error = chosen(&settings(None, "gpt-9"), &[NOBODY])
        .await
        .unwrap_err();
    assert!(
        error.starts_with("no provider here has the model 'gpt-9'")
            && error.ends_with("--provider"),
        "{error}"
    );
}

#[tokio::test]
async fn the_first_model_of_a_self_hosted_server_is_selected() {
    let mut server = LoopbackServer::answers(&[&answered(
        r#"{"object":"list","data":[{"id":"smol"},{"id":"b"}]}"#,
    )])
    .await;
    let variables = [
        ("OPENAI_BASE_URL", server.url.as_str()),
        ("OPENAI_API_KEY", "k-o"),
    ];
    let choice = chosen(&settings(Some(Provider::OpenAi), ""), &variables)
        .await
        .unwrap();
    assert_eq!(choice.settings.name, "smol");
    let request = server.request().await;
    assert!(request.starts_with("GET /v1/models "), "{request}");
    assert!(
        request.to_lowercase().contains("authorization: bearer k-o"),
        "{request}"
    );
}

#[tokio::test]
async fn a_self_hosted_server_reports_its_context_size() {
    for (model, own, expected) in [
        (r#"{"id":"m","max_model_len":32768}"#, None, Some(32768)),
        (
            r#"{"id":"m","meta":{"n_ctx":4096,"n_ctx_train":40960}}"#,
            None,
            Some(4096),
        ),
        (
            r#"{"id":"m","max_model_len":32768}"#,
            Some(2048),
            Some(2048),
        ),
        (r#"{"id":"m","max_model_len":-1}"#, None, None),
        (r#"{"id":"m","max_model_len":1}"#, None, None),
        (r#"{"id":"m","meta":{"n_ctx_train":40960}}"#, None, None),
        (r#"{"id":"m"}"#, None, None),
    ] {
        let list = format!(r#"{{"data":[{model},{{"id":"b","max_model_len":999999}}]}}"#);
        let server = LoopbackServer::answers(&[&answered(&list)]).await;
        let variables = [("OPENAI_BASE_URL", server.url.as_str())];
        let mut settings = settings(Some(Provider::OpenAi), "");
        settings.context_tokens = own;
        let choice = chosen(&settings, &variables).await.unwrap();
        assert_eq!(choice.settings.name, "m");
        assert_eq!(choice.settings.context_tokens, expected, "{model}");
    }
}

#[tokio::test]
async fn what_is_missing_is_said() {
    for (provider, name, variables, expected) in [
        (
            Some(Provider::Anthropic),
            "",
            &[NOBODY][..],
            "anthropic needs a key: set ANTHROPIC_API_KEY",
        ),
        (
            Some(Provider::OpenAi),
            "",
            &[NOBODY],
            "openai needs a key: set OPENAI_API_KEY",
        ),
        (
            None,
            "",
            &[("OLLAMA_HOST", "a b")],
            "OLLAMA_HOST: 'http://a b' is not an address",
        ),
        (
            Some(Provider::Anthropic),
            "",
            &[
                ("ANTHROPIC_API_KEY", "k"),
                ("ANTHROPIC_BASE_URL", "localhost:1"),
            ],
            "ANTHROPIC_BASE_URL: 'localhost:1' is not an address; write it like http://host:port",
        ),
        (
            None,
            "ollama:qwen3:4b",
            &[NOBODY],
            "model.name holds a provider too: write ollama as model.provider, and 'qwen3:4b' as model.name",
        ),
    ] {
        let error = chosen(&settings(provider, name), variables)
            .await
            .unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
    let mut lost = settings(None, "");
    lost.url = "http://h".to_owned();
    assert_eq!(
        chosen(&lost, &[NOBODY]).await.unwrap_err(),
        "model.url needs model.provider beside it, which says whose url it is: anthropic, ollama, openai or gemini"
    );
}

#[tokio::test]
async fn an_unknown_model_is_reported_with_advice() {
    for (name, expected) in [
        (
            "claude-x",
            "; for anthropic set ANTHROPIC_API_KEY, or model.key in the configuration, or name its provider with --provider",
        ),
        (
            "gpt-9",
            "; for openai set OPENAI_API_KEY, or model.key in the configuration, or name its provider with --provider",
        ),
        (
            "gemini-9",
            "; for gemini set GEMINI_API_KEY, or model.key in the configuration, or name its provider with --provider",
        ),
        (
            "qwen3:4b",
            "; for ollama start it with 'ollama serve', or name its provider with --provider",
        ),
        ("mine", " is not set); name its provider with --provider"),
    ] {
        let error = chosen(&settings(None, name), &[NOBODY]).await.unwrap_err();
        assert!(error.ends_with(expected), "{error}");
    }
}

#[tokio::test]
async fn settings_win_over_variables_and_other_addresses_need_no_key() {
    let mut ours = settings(Some(Provider::Anthropic), "m");
    ours.url = "http://mine:2/v1".to_owned();
    let variables = [("ANTHROPIC_BASE_URL", "http://other:1")];
    let choice = chosen(&ours, &variables).await.unwrap();
    assert_eq!(
        (choice.settings.url.as_str(), choice.settings.key.as_str()),
        ("http://mine:2", "")
    );
    ours.key = "mine".to_owned();
    let choice = chosen(&ours, &[("ANTHROPIC_API_KEY", "other")])
        .await
        .unwrap();
    assert_eq!(choice.settings.key, "mine");
}

#[tokio::test]
async fn a_name_with_a_tag_means_ollama() {
    let server = ollama(&[("qwen3:0.6b", true)]).await;
    let there = [
        ("OLLAMA_HOST", server.url.as_str()),
        ("OPENAI_API_KEY", "k"),
    ];
    let error = chosen(&settings(None, "qwen3:4b"), &there)
        .await
        .unwrap_err();
    assert!(error.contains("'ollama pull qwen3:4b' gets it"), "{error}");
    for (name, expected) in [
        ("gpt-4o", Some(Provider::OpenAi)),
        ("o4-mini", Some(Provider::OpenAi)),
        ("ft:gpt-4o:me::1", Some(Provider::OpenAi)),
        ("llama3", None),
        ("qwen3", None),
    ] {
        let choice = chosen(&settings(None, name), &there).await;
        assert_eq!(
            choice.ok().map(|choice| choice.provider),
            expected.map(AnswerSource::Model),
            "{name}"
        );
    }
    let own = [NOBODY, ("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")];
    let choice = chosen(&settings(None, "qwen3"), &own).await.unwrap();
    assert_eq!(choice.provider, Provider::OpenAi, "it may have it");
}

#[tokio::test]
async fn an_unusable_sentence_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for (text, expected) in [
        (" ".repeat((4 << 20) + 1), "is larger than 4 MiB"),
        (
            r#"{"intents":[{"sentences":["say {nothing}"],"tool":"echo"}]}"#.to_owned(),
            "nothing",
        ),
    ] {
        let file = folder.path().join("mine.json");
        std::fs::write(&file, text).unwrap();
        let mut ours = settings(None, "");
        ours.provider = Some(AnswerSource::Sentences);
        ours.intents = vec![file];
        let choice = select_model(&ours, "", &|_| None).await.unwrap();
        let manager = Arc::new(toolgate_core::ToolManager::new());
        let toolbox = Toolbox::new(toolgate_core::ToolExecutor::new(manager));
        let error = connect(choice, &toolbox).err().unwrap().to_string();
        assert!(
            error.contains("mine.json: ") && error.contains(expected),
            "{error}"
        );
    }
}
