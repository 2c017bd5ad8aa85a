use serde_json::{Value, json};

use super::*;
use crate::tests::loopback::{LoopbackServer, LoopbackStep, answer};

/// A server's answers by path, in the order they are requested.
struct DiagnosedServer {
    version: Value,
    tags: Value,
    show: Value,
    ps: Value,
}

impl Default for DiagnosedServer {
    fn default() -> Self {
        Self {
            version: json!({ "version": "0.15.2" }),
            tags: json!({ "models": [{ "name": "qwen3:4b-instruct", "capabilities": ["tools"] }] }),
            show: json!({ "capabilities": ["completion", "tools"], "model_info": { "qwen3.context_length": 40_960 },
                "parameters": "num_ctx 4096" }),
            ps: json!({ "models": [] }),
        }
    }
}

impl DiagnosedServer {
    async fn diagnose(self, settings: ModelSettings, tool_tokens: usize) -> Vec<OllamaFinding> {
        let answers = [self.version, self.tags, self.show, self.ps];
        let script = |value: &Value| {
            vec![LoopbackStep::Send(
                answer(200, "", &value.to_string()).into_bytes(),
            )]
        };
        let server = LoopbackServer::start(answers.iter().map(script).collect()).await;
        let settings = ModelSettings {
            url: server.url.clone(),
            ..settings
        };
        diagnose(&settings, tool_tokens).await
    }
}

fn bad(findings: &[OllamaFinding]) -> (&str, &str) {
    let bad: Vec<&OllamaFinding> = findings.iter().filter(|finding| !finding.ok).collect();
    let [bad] = bad[..] else {
        panic!("{findings:#?}");
    };
    (&bad.text, bad.fix.as_deref().unwrap())
}

#[tokio::test]
async fn a_healthy_setup_reports_what_was_checked() {
    let findings = DiagnosedServer::default()
        .diagnose(ModelSettings::default(), 2000)
        .await;
    assert!(findings.iter().all(|finding| finding.ok), "{findings:#?}");
    let texts: Vec<&str> = findings
        .iter()
        .map(|finding| finding.text.as_str())
        .collect();
    for (text, part) in texts.iter().zip([
        "Ollama 0.15.2 answers at http://127.0.0.1:",
        "the model 'qwen3:4b-instruct' is installed, one of 1",
        "'qwen3:4b-instruct' can use tools",
        "the model holds 40960 tokens; the tools take about 2000",
        "is not loaded; it will be, with a window of 8192 tokens (its own file says 4096)",
    ]) {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(texts.len(), 5);
}

#[tokio::test]
async fn an_unreachable_server_hides_all_other_findings() {
    let settings = ModelSettings {
        url: "http://127.0.0.1:1".to_owned(),
        ..ModelSettings::default()
    };
    let findings = diagnose(&settings, 0).await;
    assert_eq!((findings.len(), bad(&findings).1), (1, "ollama serve"));
}

#[tokio::test]
async fn a_server_that_is_not_ollama_is_recognized() {
    let server = DiagnosedServer {
        version: json!({ "service": "something else" }),
        ..DiagnosedServer::default()
    };
    let findings = server.diagnose(ModelSettings::default(), 0).await;
    assert!(
        bad(&findings).0.contains("is it an Ollama at"),
        "{findings:?}"
    );
    assert!(bad(&findings).1.starts_with("set OLLAMA_HOST"));
}

#[tokio::test]
async fn a_missing_model_is_reported_with_alternatives() {
    for (models, text) in [
        (json!([]), "Ollama has no models"),
        (
            json!([{ "name": "gemma:2b", "capabilities": ["completion"] }]),
            "none of the installed models can use tools",
        ),
        (
            json!([{ "name": "gemma:2b" }]),
            "this Ollama doesn't report which of its other models can use tools",
        ),
        (
            json!([{ "name": "gemma:2b", "capabilities": [] }, { "name": "llama3.2:3b", "capabilities": ["tools"] }]),
            "these models can use tools: llama3.2:3b",
        ),
    ] {
        let server = DiagnosedServer {
            tags: json!({ "models": models }),
            show: json!({}),
            ..DiagnosedServer::default()
        };
        let findings = server.diagnose(ModelSettings::default(), 0).await;
        let (found, fix) = bad(&findings);
        assert!(found.contains(text), "{found}");
        assert_eq!(fix, "ollama pull qwen3:4b-instruct");
    }
}

#[tokio::test]
async fn a_model_without_tool_use_is_reported_with_a_better_one() {
    let server = DiagnosedServer {
        tags: json!({ "models": [{ "name": "gemma:2b" }] }),
        show: json!({ "capabilities": ["completion"] }),
        ..DiagnosedServer::default()
    };
    let settings = ModelSettings {
        name: "gemma:2b".to_owned(),
        ..ModelSettings::default()
    };
    let findings = server.diagnose(settings, 0).await;
    let (text, fix) = bad(&findings);
    assert!(text.contains("'gemma:2b' can't use tools"), "{text}");
    assert_eq!(
        fix,
        "ollama pull qwen3:4b-instruct, then set \"name\": \"qwen3:4b-instruct\""
    );
}

#[tokio::test]
async fn an_old_server_should_be_updated() {
    let server = DiagnosedServer {
        show: json!({}),
        ..DiagnosedServer::default()
    };
    let findings = server.diagnose(ModelSettings::default(), 0).await;
    assert!(
        bad(&findings).1.starts_with("update Ollama"),
        "{findings:?}"
    );
}

#[tokio::test]
async fn disabled_rescue_is_reported() {
    for rescue in [true, false] {
        let settings = ModelSettings {
            rescue,
            ..ModelSettings::default()
        };
        let findings = DiagnosedServer::default().diagnose(settings, 2000).await;
        assert!(findings.iter().all(|finding| finding.ok), "{findings:#?}");
        let told = findings.iter().find(|found| found.text.contains("as text"));
        let fix = told.and_then(|found| found.fix.as_deref());
        let expected = (!rescue).then_some("remove \"rescue\" from the model's settings");
        assert_eq!(fix, expected, "{findings:#?}");
    }
}

#[tokio::test]
async fn unsupported_and_slow_thinking_are_reported() {
    let settings = ModelSettings {
        think: Some(true),
        ..ModelSettings::default()
    };
    let findings = DiagnosedServer::default().diagnose(settings, 0).await;
    assert!(
        bad(&findings).1.contains("remove \"think\""),
        "{findings:?}"
    );
    let server = DiagnosedServer {
        show: json!({ "capabilities": ["tools", "thinking"] }),
        ..DiagnosedServer::default()
    };
    let findings = server.diagnose(ModelSettings::default(), 0).await;
    let fixes: Vec<&str> = findings
        .iter()
        .filter_map(|finding| finding.fix.as_deref())
        .collect();
    assert_eq!(fixes, ["set \"think\": false for quick answers"]);
}

#[tokio::test]
async fn tools_that_do_not_fit_are_reported_with_numbers() {
    let server = DiagnosedServer {
        show: json!({ "capabilities": ["tools"], "model_info": { "tiny.context_length": 4096 } }),
        ..DiagnosedServer::default()
    };
    let findings = server.diagnose(ModelSettings::default(), 9000).await;
    let (text, fix) = bad(&findings);
    assert!(
        text.contains("holds 4096 tokens; with about 9000 of tools"),
        "{text}"
    );
    assert!(fix.contains("\"maxTools\""), "{fix}");
    let settings = ModelSettings {
        context_tokens: Some(4096),
        ..ModelSettings::default()
    };
    let findings = DiagnosedServer::default().diagnose(settings, 9000).await;
    assert_eq!(
        bad(&findings).1,
        "set \"contextTokens\": 16384, or remove it"
    );
}

#[tokio::test]
async fn a_small_window_that_fits_is_fine() {
    let small = ModelSettings {
        context_tokens: Some(4096),
        ..ModelSettings::default()
    };
    for (settings, tool_tokens) in [(small, 1008), (ModelSettings::default(), 2048)] {
        let server = DiagnosedServer {
            show: json!({ "capabilities": ["tools"], "model_info": { "tiny.context_length": 4096 } }),
            ..DiagnosedServer::default()
        };
        let findings = server.diagnose(settings, tool_tokens).await;
        assert!(findings.iter().all(|finding| finding.ok), "{findings:#?}");
    }
}

#[tokio::test]
async fn a_loaded_model_is_reported_with_its_window_and_processor() {
    let is_loaded = "'qwen3:4b-instruct' is loaded";
    let small = "loaded with a window of 4096 tokens; it will be loaded again with 8192";
    for (loaded, expected) in [
        (
            json!({ "context_length": 8192, "size": 100, "size_vram": 100 }),
            &[is_loaded][..],
        ),
        (
            json!({ "context_length": 4096, "size": 100, "size_vram": 100 }),
            &[small],
        ),
        (
            json!({ "context_length": 8192, "size": 100, "size_vram": 60 }),
            &["40 % of 'qwen3:4b-instruct' run on the processor"],
        ),
        (
            json!({ "context_length": 4096, "size": 100, "size_vram": 0 }),
            &["100 % of 'qwen3:4b-instruct' run on the processor", small],
        ),
        (json!({ "size": 0 }), &[is_loaded]),
    ] {
        let mut loaded = loaded;
        loaded["name"] = json!("qwen3:4b-instruct");
        let server = DiagnosedServer {
            ps: json!({ "models": [loaded] }),
            ..DiagnosedServer::default()
        };
        let findings = server.diagnose(ModelSettings::default(), 0).await;
        // Findings that every model has come first.
        assert_eq!(findings.len(), 4 + expected.len(), "{findings:#?}");
        for (found, expected) in findings[4..].iter().zip(expected) {
            assert!(found.ok && found.text.contains(expected), "{}", found.text);
        }
        let fix = findings.iter().filter_map(|found| found.fix.as_deref());
        let is_told = fix
            .into_iter()
            .any(|fix| fix.contains("OLLAMA_CONTEXT_LENGTH=8192"));
        assert_eq!(is_told, expected.contains(&small), "{findings:#?}");
    }
}

#[tokio::test]
async fn refusing_and_failing_servers_are_distinguished() {
    for (status, expected) in [
        (401, "set OLLAMA_API_KEY, or model.key"),
        (500, "restart Ollama, and look at its log"),
        (404, "set OLLAMA_HOST, or model.url, to where Ollama is"),
    ] {
        let refused = answer(status, "", "no");
        let server = LoopbackServer::answers(&[&refused]).await;
        let settings = ModelSettings {
            url: server.url.clone(),
            ..ModelSettings::default()
        };
        let findings = diagnose(&settings, 2000).await;
        assert_eq!(bad(&findings).1, expected, "{findings:#?}");
    }
}
