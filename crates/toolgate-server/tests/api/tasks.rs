//! Tasks of MCP clients over the API: who sees them, and who may stop them.

use http::Method;
use serde_json::{Value, json};
use toolgate_mcp::{ServerConnection, ServerProgram, ServerSettings};
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
            let may_cancel = matches!(name, "mine" | "full");
            assert_eq!(
                (&tasks[0]["may_cancel"], &tasks[0]["caller_waits"]),
                (&json!(may_cancel), &json!(false)),
                "{name}"
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

/// A server whose tool `task` goes on as a task.
fn task_server(name: &str) -> ServerSettings {
    let program = ServerProgram {
        command: fakemcp::program().to_string_lossy().into_owned(),
        args: vec!["tasks".to_owned()],
        ..ServerProgram::default()
    };
    ServerSettings::new(name, ServerConnection::Stdio(program))
}

/// The only task, once it is as wanted.
async fn wait_for_task(gateway: &ApiTestGateway, is_as_wanted: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..200 {
        let tasks = gateway.get("/api/tasks").await.json();
        if is_as_wanted(&tasks[0]) {
            assert_eq!(tasks.as_array().unwrap().len(), 1, "{tasks}");
            return tasks[0].clone();
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("never: {}", gateway.get("/api/tasks").await.text);
}

#[tokio::test]
async fn a_task_of_a_server_is_seen_and_stopped_while_its_caller_waits() {
    let mut settings = ServeSettings::default();
    settings.token = long("full");
    settings.tokens = vec![token("mine", &["*"]), token("other", &["*"])];
    let mut gateway = ApiTestGateway::start_with(TestGatewayOptions {
        settings,
        mcp_servers: vec![task_server("studio")],
        ..TestGatewayOptions::default()
    })
    .await;
    gateway.servers.start_all().await;
    gateway.sign_in("mine");
    let arguments = json!({ "ms": 60_000, "total": 1000 });
    let waiting = gateway.post_as("mine", "/api/tools/task/call", &arguments);
    let stopping = async {
        let has_progress = |task: &Value| task["done"].is_number() && task["total"].is_number();
        let task = wait_for_task(&gateway, has_progress).await;
        assert_eq!(
            (&task["tool"], &task["server"], &task["caller"]),
            (&json!("task"), &json!("studio"), &json!("mine"))
        );
        assert_eq!(
            (&task["status"], &task["caller_waits"], &task["may_cancel"]),
            (&json!("working"), &json!(true), &json!(true))
        );
        assert_eq!(
            (&task["message"], &task["total"]),
            (&json!("it is working"), &json!(1000.0))
        );
        let cancel = format!("/api/tasks/{}/cancel", task["id"].as_str().unwrap());
        let others = gateway.post_as("other", &cancel, &json!({})).await;
        assert_eq!(others.status, 404, "it is not theirs");
        assert_eq!(gateway.ask(Method::POST, &cancel, "").await.status, 204);
        cancel
    };
    let (reply, cancel) = tokio::join!(waiting, stopping);
    assert_eq!(reply.json()["error_kind"], "cancelled", "{}", reply.text);
    assert_eq!(gateway.get("/api/tasks").await.json(), json!([]));
    assert_eq!(gateway.ask(Method::POST, &cancel, "").await.status, 404);
    gateway.servers.stop().await;
}

#[tokio::test]
async fn a_task_of_a_server_says_that_it_waits_for_an_answer() {
    let gateway = ApiTestGateway::start_with(TestGatewayOptions {
        mcp_servers: vec![task_server("studio")],
        ..TestGatewayOptions::default()
    })
    .await;
    gateway.servers.start_all().await;
    let mut events = gateway.events("/api/events?kinds=question").await;
    let arguments = json!({ "ask": 1, "text": "made" });
    let waiting = gateway.post("/api/tools/task/call", &arguments);
    let answering = async {
        let question = events.expect("question").await;
        wait_for_task(&gateway, |task| task["status"] == "input_required").await;
        let path = format!("/api/questions/{}", question["id"].as_str().unwrap());
        let answer = json!({ "action": "accept", "content": { "who": "Ada" } });
        assert_eq!(gateway.post(&path, &answer).await.status, 204);
    };
    let (reply, ()) = tokio::join!(waiting, answering);
    assert_eq!(reply.json()["success"], true, "{}", reply.text);
    gateway.servers.stop().await;
}
