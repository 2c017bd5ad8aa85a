//! Tasks of MCP clients over the API: who sees them, and who may stop them.

use http::Method;
use serde_json::{Value, json};
use toolgate_server::ServeSettings;

use crate::mcp::ask;
use crate::test_gateway::{ApiTestGateway, TestGatewayOptions, long, token, token_with};

/// A session of the token, and a task in it. Returns the session and the task's own id.
async fn start_task(gateway: &ApiTestGateway, token: &str) -> (String, String) {
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let greeting = ask(gateway, token, None, &hello).await;
    let session = greeting.header("mcp-session-id").to_owned();
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "wait", "arguments": {}, "task": {} } });
    let created = ask(gateway, token, Some(&session), &call).await.json();
    let id = created["result"]["task"]["taskId"].as_str().unwrap();
    (session, id.to_owned())
}

async fn get_task(gateway: &ApiTestGateway, token: &str, session: &str, id: &str) -> Value {
    let params = json!({ "taskId": id });
    let get = json!({ "jsonrpc": "2.0", "id": 3, "method": "tasks/get", "params": params });
    ask(gateway, token, Some(session), &get).await.json()
}

#[tokio::test]
async fn a_task_is_seen_and_stopped_by_its_caller_and_the_operator() {
    let mut settings = ServeSettings::default();
    settings.token = long("full");
    settings.tokens = vec![
        token("mine", &["*"]),
        token("other", &["*"]),
        token_with("auditor", &["*"], &["see_all"]),
        token_with("narrow", &["echo"], &["see_all"]),
    ];
    let mut gateway = ApiTestGateway::start_with(TestGatewayOptions {
        settings,
        ..TestGatewayOptions::default()
    })
    .await;
    let (session, id) = start_task(&gateway, "mine").await;
    let mut call = String::new();
    for (name, seen) in [
        ("mine", 1),
        ("other", 0),
        ("auditor", 1),
        ("narrow", 0),
        ("full", 1),
    ] {
        gateway.sign_in(name);
        let tasks = gateway.get("/api/tasks").await.json();
        assert_eq!(tasks.as_array().unwrap().len(), seen, "{name}");
        if seen == 1 {
            assert_eq!(
                (&tasks[0]["tool"], &tasks[0]["caller"]),
                (&json!("wait"), &json!("mine"))
            );
            assert!(!tasks.to_string().contains(&id), "its own id is a secret");
            call = tasks[0]["id"].as_str().unwrap().to_owned();
        }
    }
    let cancel = format!("/api/tasks/{call}/cancel");
    for (name, status) in [("other", 404), ("narrow", 404), ("auditor", 403)] {
        gateway.sign_in(name);
        let refused = gateway.ask(Method::POST, &cancel, "").await;
        assert_eq!(refused.status, status, "{name}");
    }
    let (others_session, _) = start_task(&gateway, "other").await;
    let stolen = get_task(&gateway, "other", &others_session, &id).await;
    assert_eq!(
        stolen["error"]["code"], -32602,
        "another caller's task is unknown"
    );
    gateway.sign_in("mine");
    assert_eq!(gateway.ask(Method::POST, &cancel, "").await.status, 204);
    let task = get_task(&gateway, "mine", &session, &id).await;
    assert_eq!(task["result"]["status"], "cancelled");
    assert_eq!(gateway.ask(Method::POST, &cancel, "").await.status, 404);
    // The operator stops what is left.
    gateway.sign_in("full");
    let left = gateway.get("/api/tasks").await.json();
    let call = left[0]["id"].as_str().unwrap();
    let cancel = format!("/api/tasks/{call}/cancel");
    assert_eq!(gateway.ask(Method::POST, &cancel, "").await.status, 204);
    assert_eq!(gateway.get("/api/tasks").await.json(), json!([]));
}
