//! A request has a name, by which what the gateway says of it can be found.

use std::io;
use std::sync::Arc;

use fakellm::{Answer, FakeLlm, Script};
use http::Method;
use parking_lot::Mutex;
use serde_json::{Value, json};
use toolgate_models::{ModelSettings, Provider};

use crate::client::{Reply, send, whole};
use crate::home::{Home, Plan};

/// What all tests of this binary log: the lines of one are found by the name of its request.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
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

    /// How many lines about this request say this.
    fn lines(&self, id: &str, text: &str) -> usize {
        let written = String::from_utf8(self.0.lock().clone()).unwrap();
        let request = format!("request{{id=\"{id}\"}}");
        let mut lines = written.lines().filter(|line| line.contains(&request));
        let found = lines.by_ref().filter(|line| line.contains(text)).count();
        assert!(found > 0, "{id}: no {text:?} in\n{written}");
        found
    }
}

async fn post(home: &Home, id: &str, path: &str, body: &Value) -> Reply {
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("x-request-id", id),
    ];
    whole(
        send(
            home.address,
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
async fn what_is_logged_of_a_request_names_it_also_where_it_goes_on_by_itself() {
    let log = Log::listen();
    let two = Answer::call("c1", "echo", &json!({ "n": 1 })).and_call("c2", "echo", &json!({}));
    let fake = FakeLlm::start(Script::new([two, Answer::text("Done.")])).await;
    let mut model = ModelSettings::default();
    model.provider = Some(Provider::OpenAi.into());
    model.url = format!("{}/v1", fake.url());
    model.name = "small".to_owned();
    let plan = Plan {
        model,
        ..Plan::default()
    };
    let home = Home::of(plan).await;

    post(&home, "plain-1", "/api/tools/echo/call", &json!({})).await;
    assert_eq!(log.lines("plain-1", "tool call"), 1);
    let streamed = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "echo", "arguments": {}, "_meta": { "progressToken": 1 } } });
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let greeting = post(&home, "hello", "/mcp", &hello).await;
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("x-request-id", "mcp-1"),
        ("mcp-session-id", greeting.header("mcp-session-id")),
    ];
    let body = streamed.to_string();
    whole(send(home.address, &Method::POST, "/mcp", &headers, body).await).await;
    assert_eq!(log.lines("mcp-1", "tool call"), 1);
    let said = json!({ "message": "twice" });
    post(&home, "chat-1", "/api/chat", &said).await;
    assert_eq!(log.lines("chat-1", "tool call"), 2);
}

#[tokio::test]
async fn a_problem_names_its_request() {
    let home = Home::usual().await;
    for (path, body, status) in [
        ("/api/tools/nope/check", "{}", 404),
        ("/api/chat", "{", 400),
        ("/api/calls", "{}", 405),
        ("/nowhere", "{}", 404),
    ] {
        let reply = home.ask(Method::POST, path, body).await;
        assert_eq!(reply.status, status, "{path}");
        reply.problem();
        assert_eq!(reply.json()["request_id"], reply.header("x-request-id"));
    }
    // What the guard itself refuses as well.
    let foreign = [("origin", "https://evil.test"), ("x-request-id", "mine")];
    let refused = whole(send(home.address, &Method::GET, "/api/tools", &foreign, "").await).await;
    assert_eq!(refused.status, 403);
    assert_eq!(refused.json()["request_id"], "mine");
}
