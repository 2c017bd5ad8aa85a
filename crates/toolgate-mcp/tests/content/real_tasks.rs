//! Clients that others wrote fetch results of tasks, answer their questions and cancel them, over
//! HTTP.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use thirdparty::Inspector;
use toolgate_mcp::{HttpOptions, McpServer, ProtocolEra, ServeOptions};

use crate::gateway::Gateway;
use crate::inspector::InspectorClient;
use crate::real_clients::{listen, run};

/// A gateway whose slow calls become tasks, and its URL.
async fn gateway() -> (Gateway, String) {
    let mut gateway = Gateway::prepare(ProtocolEra::Legacy, &[], |options| {
        options.relays_questions = true;
    });
    gateway.add("notes", ProtocolEra::Legacy, &json!({}));
    gateway.add_argument("notes", "tasks");
    gateway.apply().await;
    let mut options = ServeOptions::gateway("1.0.0");
    options.tasks.after = Duration::from_millis(300);
    let server = McpServer::new(gateway.executor.clone(), options);
    let url = listen(server.http(HttpOptions::default())).await;
    (gateway, url)
}

fn expect_results(seen: &Value, who: &str) {
    assert_eq!(seen["slow"], "done", "{who}: {seen}");
    assert_eq!(seen["fast"], "at once", "{who}: {seen}");
    assert_eq!(seen["question"], answers(), "{who}: {seen}");
}

/// What a task answers that has asked one question.
fn answers() -> Value {
    json!({ "question-0": { "action": "accept", "content": { "who": "Ada" } } })
}

fn expect_states(states: &Value, expected: &[&str], who: &str) {
    let mut states: Vec<&str> = (states.as_array().unwrap().iter())
        .map(|state| state.as_str().unwrap())
        .collect();
    states.dedup();
    assert_eq!(states, expected, "{who}");
}

#[tokio::test]
async fn the_first_typescript_sdk_uses_tasks() {
    let Some(clients) = thirdparty::MCP_CLIENTS.folder() else {
        return;
    };
    let (gateway, url) = gateway().await;
    let modules = clients.join("node_modules").display().to_string();
    let seen = run(Path::new("node"), "tasks.mjs", &[&modules, &url]).await;
    assert_eq!(seen["slow"], "done", "{seen}");
    expect_states(&seen["states"], &["working", "completed"], "sdk");
    assert!(seen["question"].as_str().unwrap().contains("Ada"), "{seen}");
    assert_eq!(seen["related"], true, "the question names its task: {seen}");
    assert_eq!(seen["cancelled"], "cancelled", "{seen}");
    gateway.stop().await;
}

#[tokio::test]
async fn the_second_typescript_sdk_uses_tasks_in_both_eras() {
    let Some(clients) = thirdparty::MCP_CLIENTS.folder() else {
        return;
    };
    let modules = clients.join("node_modules").display().to_string();
    for (kind, protocol, fast, delivery) in [
        ("client", "2025-11-25", "task", "peer-request"),
        ("client-modern", "2026-07-28", "immediate", "task-update"),
    ] {
        let (gateway, url) = gateway().await;
        let seen = run(Path::new("node"), "tasks_v2.mjs", &[&modules, kind, &url]).await;
        expect_results(&seen, kind);
        expect_states(&seen["states"], &["working", "completed"], kind);
        assert_eq!(seen["kinds"], json!(["task", fast, "task"]), "{kind}");
        assert_eq!(seen["asked"], json!([["Who?", "task", delivery]]), "{kind}");
        assert_eq!(seen["related"], true, "the question names its task: {seen}");
        assert_eq!(seen["cancelled"], "cancelled", "{kind}");
        assert_eq!(seen["protocol"], protocol);
        gateway.stop().await;
    }
}

#[tokio::test]
async fn the_python_sdk_uses_tasks() {
    let Some(clients) = thirdparty::MCP_CLIENTS.folder() else {
        return;
    };
    let (gateway, url) = gateway().await;
    let seen = run(&clients.join("python/bin/python"), "tasks.py", &[&url]).await;
    expect_results(&seen, "python");
    expect_states(&seen["states"], &["working", "completed"], "python");
    let states = ["working", "input_required", "completed"];
    expect_states(&seen["question_states"], &states, "python");
    assert_eq!(seen["asked"], json!(["Who?"]));
    assert_eq!(seen["protocol"], "2026-07-28");
    gateway.stop().await;
}

#[tokio::test]
async fn fastmcp_uses_tasks() {
    let Some(clients) = thirdparty::MCP_CLIENTS.folder() else {
        return;
    };
    let (gateway, url) = gateway().await;
    let python = clients.join("python/bin/python");
    let seen = run(&python, "fastmcp_client_tasks.py", &[&url]).await;
    expect_results(&seen, "fastmcp");
    assert_eq!(seen["asked"], json!(["Who?"]));
    assert_eq!(seen["states"], json!(["working", "cancelled"]));
    assert_eq!(seen["protocol"], "2026-07-28");
    gateway.stop().await;
}

#[tokio::test]
async fn the_inspector_uses_tasks_in_both_eras() {
    let Some(inspector) = Inspector::find() else {
        return;
    };
    let (gateway, url) = gateway().await;
    let progress = [
        "tools/call",
        "--task",
        "progress",
        "steps:=3",
        "every_ms:=400",
    ];
    let client = InspectorClient::connect(&inspector, &url, "legacy").await;
    let slow = client.ask(&progress).await;
    assert_eq!(slow["content"][0]["text"], "done", "{slow}");
    let id = &slow["_meta"]["io.modelcontextprotocol/related-task"]["taskId"];
    let id = id.as_str().unwrap();
    let task = client.ask(&["tasks/get", id]).await;
    assert_eq!(task["task"]["status"], "completed", "{task}");
    let again = client.ask(&["tasks/result", id]).await;
    assert_eq!(again["content"], slow["content"], "{again}");

    let client = InspectorClient::connect(&inspector, &url, "modern").await;
    let slow = client.ask(&progress).await;
    assert_eq!(slow["content"][0]["text"], "done", "{slow}");
    let task = ["tools/call", "task", "text:=thanks", "ask:=1", "ms:=700"];
    let (question, result) = client.answer(&task, &["who:=Ada"]).await;
    assert_eq!(question["message"], "Who?");
    assert_eq!(question["origin"], "task-input-required", "{question}");
    assert_eq!(result["structuredContent"], answers(), "{result}");
    drop(client);
    gateway.stop().await;
}
