use std::sync::Arc;

use serde_json::json;
use tokio::time::Instant;
use toolgate_core::Tool;

use super::*;
use crate::tests::loopback::{HANG, LoopbackServer, LoopbackStep, answer, chunked};
use crate::tests::samples::tool;
use crate::{
    Catalog, Message, ModelClient, ModelEvent, ModelList, ModelReply, ModelSelection, OfferedTools,
    StopReason, ToolList,
};

const KEY: &str = "AIza-very-secret";
const HELLO: &str = "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"Hello\"}]},\"finishReason\":\"STOP\",\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":9,\"candidatesTokenCount\":4}}\n\n";

pub(super) fn catalog(tools: &[Arc<dyn Tool>]) -> Arc<Catalog> {
    Arc::new(Catalog::build(tools, &tools::DIALECT))
}

pub(super) fn offer(tools: &[Arc<dyn Tool>]) -> OfferedTools {
    OfferedTools::all(catalog(tools))
}

fn settings(url: &str) -> ModelSettings {
    ModelSettings {
        url: format!("{url}/v1beta"),
        key: KEY.to_owned(),
        name: "models/gemini-x".to_owned(),
        first_byte: HANG,
        ..ModelSettings::default()
    }
}

/// Asks once, with a tool, and returns the events.
async fn ask(settings: &ModelSettings) -> (Result<ModelReply, ModelError>, Vec<String>) {
    let client = GeminiClient::new(settings).unwrap();
    let time = tool("time", "Tells the time", json!({ "type": "object" }));
    let tools = OfferedTools::all(client.catalog(&Arc::new(ToolList::new(vec![time]))));
    let messages = [Message::User {
        text: "What time is it?".to_owned(),
    }];
    let request = ModelRequest::new("", &messages, &tools, Instant::now() + HANG);
    let mut reported = Vec::new();
    let mut listener = |event: ModelEvent<'_>| match event {
        ModelEvent::Text(text) | ModelEvent::Notice(text) => reported.push(text.to_owned()),
        ModelEvent::Void => reported.push("(void)".to_owned()),
        ModelEvent::Retrying { after, .. } => {
            reported.push(format!("(again after {} s)", after.as_secs()));
        }
        other => panic!("{other:?}"),
    };
    let reply = client.reply(request, &mut listener).await;
    (reply, reported)
}

fn stream(body: &str) -> Vec<LoopbackStep> {
    chunked("text/event-stream", &[body.as_bytes()])
}

fn refusal(status: u16, body: &Value) -> Vec<LoopbackStep> {
    let json = "Content-Type: application/json\r\n";
    vec![LoopbackStep::Send(
        answer(status, json, &body.to_string()).into_bytes(),
    )]
}

fn error(code: u16, message: &str, details: &Value) -> Value {
    json!({ "error": { "code": code, "message": message, "status": "X", "details": details } })
}

#[tokio::test]
async fn requests_have_the_model_in_the_path_and_the_key_in_a_header() {
    let mut server = LoopbackServer::start(vec![stream(HELLO)]).await;
    let (reply, reported) = ask(&settings(&server.url)).await;
    let reply = reply.unwrap();
    assert_eq!(
        (reply.stop, reported.concat().as_str()),
        (StopReason::End, "Hello")
    );
    assert_eq!((reply.usage.input, reply.usage.output), (9, 4));
    assert!(reply.first_token.is_some());
    let request = server.request().await;
    let (line, _) = request.split_once("\r\n").unwrap();
    assert_eq!(
        line,
        "POST /v1beta/models/gemini-x:streamGenerateContent?alt=sse HTTP/1.1"
    );
    assert!(
        request.contains(&format!("x-goog-api-key: {KEY}")),
        "{request}"
    );
}

#[tokio::test]
async fn every_failure_has_its_own_message_without_the_key() {
    for (status, message, expected) in [
        (
            400,
            "API key not valid. Please pass a valid API key.",
            "gemini does not accept the key: API key not valid",
        ),
        (
            403,
            "Permission denied",
            "gemini does not accept the key: Permission denied",
        ),
        (
            400,
            "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).",
            "the conversation is too long for gemini-x: The input token count",
        ),
        (
            404,
            "models/gemini-x is not found for API version v1beta",
            "gemini has no model 'gemini-x'",
        ),
        (
            429,
            "You exceeded your current quota",
            "gemini asks to slow down: You exceeded your current quota",
        ),
        (
            400,
            "Invalid JSON payload received. Unknown name \"x\"",
            "gemini refused the request: Invalid JSON payload",
        ),
    ] {
        let message = format!("{message} {KEY}");
        let body = error(status, &message, &json!([]));
        let server = LoopbackServer::start(vec![refusal(status, &body)]).await;
        let text = ask(&settings(&server.url)).await.0.unwrap_err().to_string();
        assert!(text.starts_with(expected), "{text}");
        assert!(!text.contains(KEY), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_waits_for_the_delay_in_the_details() {
    let details = json!([
        { "@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [] },
        { "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3s" },
    ]);
    let limited = error(429, "You exceeded your current quota", &details);
    let server = LoopbackServer::start(vec![refusal(429, &limited), stream(HELLO)]).await;
    let (reply, reported) = ask(&settings(&server.url)).await;
    assert_eq!(reply.unwrap().message.to_text(), "Hello");
    assert_eq!(reported, ["(again after 3 s)", "Hello"]);
}

#[tokio::test]
async fn a_model_that_always_thinks_is_asked_without_a_budget() {
    let body = error(
        400,
        "Budget 0 is invalid. This model only works in thinking mode.",
        &json!([]),
    );
    let mut server = LoopbackServer::start(vec![refusal(400, &body), stream(HELLO)]).await;
    let quick = ModelSettings {
        think: Some(false),
        ..settings(&server.url)
    };
    let (reply, reported) = ask(&quick).await;
    assert!(reply.is_ok(), "{reply:?}");
    assert!(
        reported[0].contains("is asked without model.think from now on"),
        "{reported:?}"
    );
    let first = server.request().await;
    assert!(
        first.contains(r#""thinkingConfig":{"thinkingBudget":0}"#),
        "{first}"
    );
    assert!(!server.request().await.contains("thinkingConfig"));
}

#[tokio::test(start_paused = true)]
async fn a_broken_stream_is_retried() {
    let half = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hel\"}]}}]}\n\n";
    let failed = format!("{half}data: {}\n\n", error(503, "overloaded", &json!([])));
    let malformed = "data: {\"candidates\":[{\"finishReason\":\"MALFORMED_FUNCTION_CALL\",\"finishMessage\":\"call(\"}]}\n\n";
    for (broken, is_void) in [(half, true), (failed.as_str(), true), (malformed, false)] {
        let server = LoopbackServer::start(vec![stream(broken), stream(HELLO)]).await;
        let (reply, reported) = ask(&settings(&server.url)).await;
        assert_eq!(reply.unwrap().message.to_text(), "Hello", "{broken}");
        assert_eq!(
            reported.contains(&"(void)".to_owned()),
            is_void,
            "{reported:?}"
        );
    }
}

#[test]
fn google_requires_a_key() {
    let error = GeminiClient::new(&ModelSettings::default()).err().unwrap();
    assert_eq!(
        error.to_string(),
        "gemini does not accept the key: no key is set; set GEMINI_API_KEY, or model.key in the configuration"
    );
    let elsewhere = ModelSettings {
        url: "http://localhost:1/v1beta/".to_owned(),
        ..ModelSettings::default()
    };
    let client = GeminiClient::new(&elsewhere).unwrap();
    assert_eq!(client.format.core.http.display_url(), "http://localhost:1");
    assert!(client.format.core.http.headers.is_empty());
    assert_eq!(client.model(), Provider::Gemini.default_model());
}

#[tokio::test]
async fn its_models_are_listed_with_the_key_in_a_header() {
    let body = r#"{"models":[{"name":"models/gemini-x"},{"name":"models/gemini-y"}]}"#;
    let mut server = LoopbackServer::answers(&[&answer(200, "", body)]).await;
    let settings = ModelSettings {
        provider: Some(PROVIDER.into()),
        url: server.url.clone(),
        ..settings("")
    };
    let choice = ModelSelection {
        provider: PROVIDER.into(),
        settings,
        why: String::new(),
        skipped: Vec::new(),
        is_automatic: false,
    };
    let names = ["gemini-x", "gemini-y"].map(str::to_owned).to_vec();
    let is_all = true;
    assert_eq!(
        crate::list_models(&choice).await,
        Ok(ModelList::Models { names, is_all })
    );
    let request = server.request().await;
    assert!(
        request.starts_with("GET /v1beta/models?pageSize=1000 "),
        "{request}"
    );
    assert!(request.contains("x-goog-api-key"), "{request}");
}

#[test]
fn model_names_are_read_without_their_prefix() {
    let answer = json!({ "models": [{ "name": "models/gemini-2.5-flash" }, { "name": 7 }], "nextPageToken": "x" });
    assert_eq!(
        parse_models(&answer),
        (vec!["gemini-2.5-flash".to_owned()], true)
    );
    assert_eq!(parse_models(&json!({})), (vec![], false));
}
