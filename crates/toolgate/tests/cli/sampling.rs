//! Servers that ask the model of the configuration.

use fakellm::{Answer, Script};
use serde_json::{Value, json};

use crate::llm::{PROVIDERS, ScriptedLlm};
use crate::run::{ProgramRun, RunOutput};

fn call(llm: &ScriptedLlm, provider: &str, server: &Value, arguments: &[&str]) -> RunOutput {
    let config = json!({
        "mcpServers": { "house": server },
        "model": { "provider": provider, "name": "qwen3:0.6b" },
    });
    let run = ProgramRun::new(["call"]).args(arguments);
    llm.known_to(run, provider)
        .config(&config.to_string())
        .done()
}

/// What the server was answered.
fn told(done: &RunOutput) -> Value {
    let result = done.json()["result"].clone();
    serde_json::from_str(result.as_str().unwrap_or_default()).unwrap_or_default()
}

fn fake(modes: &[&str], sampling: &Value) -> Value {
    json!({ "command": fakemcp::program(), "args": modes, "sampling": sampling })
}

#[test]
fn every_provider_answers_in_the_form_of_mcp_in_both_eras() {
    let allowed = json!({ "allow": true, "maxTokens": 77 });
    for (provider, modes) in PROVIDERS
        .into_iter()
        .zip([&["modern"][..], &[], &[], &["modern"]])
    {
        let llm = ScriptedLlm::new([Answer::text("Hello to you")]);
        let request = json!({
            "systemPrompt": "Be brief.",
            "messages": [
                { "role": "user", "content": { "type": "text", "text": "Hi" } },
                { "role": "assistant", "content": { "type": "text", "text": "Yes?" } },
                { "role": "user", "content": [{ "type": "text", "text": "Well?" }] },
            ],
            "maxTokens": 500,
            "stopSequences": [" you"],
        });
        let given = json!({ "request": request }).to_string();
        let done = call(&llm, provider, &fake(modes, &allowed), &["sample", &given]);
        let told = told(&done);
        let expected = json!({
            "role": "assistant",
            "content": { "type": "text", "text": "Hello to" },
            "model": "qwen3:0.6b",
            "stopReason": "stopSequence",
        });
        let told = match modes.is_empty() {
            true => &told["result"],
            false => &told["responses"]["one"],
        };
        assert_eq!(*told, expected, "{provider}: {done:?}");
        let sent = llm.requests();
        let body = sent[0].json().to_string();
        for part in ["Be brief.", "Hi", "Yes?", "Well?", "77"] {
            assert!(body.contains(part), "{provider}, {part}: {body}");
        }
        assert!(
            sent[0].json()["tools"].as_array().is_none_or(Vec::is_empty),
            "{body}"
        );
    }
}

#[test]
fn a_server_without_permission_or_tokens_is_refused() {
    let llm = ScriptedLlm::scripted(Script::always(Answer::text("Hello")));
    for (sampling, reason) in [
        (json!({}), "this server may not use the model"),
        (
            json!({ "allow": false }),
            "this server may not use the model",
        ),
        (
            json!({ "allow": true, "tokensPerDay": 5 }),
            "of 5 per day are left",
        ),
    ] {
        let done = call(&llm, "ollama", &fake(&[], &sampling), &["sample"]);
        let told = told(&done);
        assert_eq!(told["error"]["code"], -1, "{done:?}");
        let message = told["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(reason), "{message}");
    }
    assert_eq!(llm.requests().len(), 0);
}

#[test]
fn the_reference_server_asks_the_model() {
    let Some(folder) = fakemcp::real_servers() else {
        return;
    };
    let script = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
    let server = json!({
        "command": fakemcp::node(&folder),
        "args": [folder.join(script), "stdio"],
        "startTimeout": "100s",
        "sampling": { "allow": true },
    });
    let llm = ScriptedLlm::new([Answer::text("Forty-two.")]);
    let arguments = ["trigger-sampling-request", "prompt=Why?", "maxTokens=20"];
    let done = call(&llm, "openai", &server, &arguments);
    assert!(done.stdout.contains("Forty-two."), "{done:?}");
    let body = llm.requests()[0].json().to_string();
    assert!(body.contains("You are a helpful test server."), "{body}");
}
