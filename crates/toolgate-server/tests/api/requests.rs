//! Every request has an id that problems and log lines name.

use std::io;
use std::sync::Arc;

use fakellm::{Answer, FakeLlm, Script};
use http::Method;
use parking_lot::Mutex;
use serde_json::{Value, json};
use toolgate_models::{ModelSettings, Provider};

use crate::client::{ApiReply, send, whole};
use crate::test_gateway::{ApiTestGateway, TestGatewayOptions};

/// Captures the log of all tests here. The id of a request finds its lines.
#[derive(Clone, Default)]
struct CapturedLog(Arc<Mutex<Vec<u8>>>);

impl io::Write for CapturedLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl CapturedLog {
    fn listen() -> Self {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::set_global_default(subscriber).unwrap();
        log
    }

    /// How many lines about this request contain the text.
    fn lines(&self, id: &str, text: &str) -> usize {
        let written = String::from_utf8(self.0.lock().clone()).unwrap();
        let request = format!("request{{id=\"{id}\"}}");
        let mut lines = written.lines().filter(|line| line.contains(&request));
        let found = lines.by_ref().filter(|line| line.contains(text)).count();
        assert!(found > 0, "{id}: no {text:?} in\n{written}");
        found
    }
}

async fn post(gateway: &ApiTestGateway, id: &str, path: &str, body: &Value) -> ApiReply {
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("x-request-id", id),
    ];
    whole(
        send(
            gateway.address,
            &Method::POST,
            path,
            &headers,
            body.to_string(),
        )
        .await,
    )
    .await
}

#[tokio::test]
async fn log_lines_of_a_request_carry_its_id() {
    let log = CapturedLog::listen();
    let two = Answer::call("c1", "echo", &json!({ "n": 1 })).and_call("c2", "echo", &json!({}));
    let fake = FakeLlm::start(Script::new([two, Answer::text("Done.")])).await;
    let mut model = ModelSettings::default();
    model.provider = Some(Provider::OpenAi.into());
    model.url = format!("{}/v1", fake.url());
    model.name = "small".to_owned();
    let plan = TestGatewayOptions {
        model,
        ..TestGatewayOptions::default()
    };
    let gateway = ApiTestGateway::start_with(plan).await;

    post(&gateway, "plain-1", "/api/tools/echo/call", &json!({})).await;
    assert_eq!(log.lines("plain-1", "tool call"), 1);
    let streamed = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "echo", "arguments": {}, "_meta": { "progressToken": 1 } } });
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let greeting = post(&gateway, "hello", "/mcp", &hello).await;
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("x-request-id", "mcp-1"),
        ("mcp-session-id", greeting.header("mcp-session-id")),
    ];
    let body = streamed.to_string();
    whole(send(gateway.address, &Method::POST, "/mcp", &headers, body).await).await;
    assert_eq!(log.lines("mcp-1", "tool call"), 1);
    let said = json!({ "message": "twice" });
    post(&gateway, "chat-1", "/api/chat", &said).await;
    assert_eq!(log.lines("chat-1", "tool call"), 2);
}

#[tokio::test]
async fn a_problem_names_its_request() {
    let gateway = ApiTestGateway::start().await;
    for (path, body, status) in [
        ("/api/tools/nope/check", "{}", 404),
        ("/api/chat", "{", 400),
        ("/api/calls", "{}", 405),
        ("/nowhere", "{}", 404),
    ] {
        let reply = gateway.ask(Method::POST, path, body).await;
        assert_eq!(reply.status, status, "{path}");
        reply.problem();
        assert_eq!(reply.json()["request_id"], reply.header("x-request-id"));
    }
    // So does a rejection by the guard itself.
    let foreign = [("origin", "https://evil.test"), ("x-request-id", "mine")];
    let refused =
        whole(send(gateway.address, &Method::GET, "/api/tools", &foreign, "").await).await;
    assert_eq!(refused.status, 403);
    assert_eq!(refused.json()["request_id"], "mine");
}
