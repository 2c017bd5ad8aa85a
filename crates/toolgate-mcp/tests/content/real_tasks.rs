//! Clients that others wrote fetch results of tasks, answer their questions and cancel them, over
//! HTTP, and calls of the reference server become tasks.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use thirdparty::Inspector;
use toolgate_mcp::{HttpOptions, McpServer, ProtocolEra, ServeOptions};

use crate::client::TestClient;
use crate::gateway::{ERAS, Gateway};
use crate::inspector::InspectorClient;
use crate::real_clients::{listen, run};
use crate::real_servers::{everything, start};

/// A server of the same tools whose calls soon become tasks.
fn server_with_tasks(gateway: &Gateway) -> McpServer {
    let mut options = ServeOptions::gateway("1.0.0");
    options.tasks.after = Duration::from_millis(300);
    McpServer::new(gateway.executor.clone(), options)
}

/// A gateway whose slow calls become tasks, and its URL.
async fn gateway() -> (Gateway, String) {
    let mut gateway = Gateway::prepare(ProtocolEra::Legacy, &[], |options| {
        options.relays_questions = true;
    });
    gateway.add("notes", ProtocolEra::Legacy, &json!({}));
    gateway.add_argument("notes", "tasks");
    gateway.apply().await;
    let server = server_with_tasks(&gateway);
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

#[tokio::test]
async fn everything_researches_in_a_task_for_clients_of_both_eras() {
    let Some(folder) = fakemcp::real_servers() else {
        return;
    };
    let gateway = start(vec![everything(&folder)]).await;
    for era in ERAS {
        let form = json!({ "interpretation": "snake" });
        let mut client = TestClient::with_tasks(server_with_tasks(&gateway), era, form).await;
        let result = match era {
            ProtocolEra::Modern => research_modern(&mut client).await,
            ProtocolEra::Legacy => research_legacy(&mut client).await,
        };
        let report = result["content"][0]["text"].as_str().unwrap();
        assert!(
            report.contains("# Research Report: python (snake)"),
            "{report}"
        );
        let mut questions = client.received_questions.lock().clone();
        // The server asks for them once, shortly after it starts.
        questions.retain(|question| question != "roots/list");
        assert_eq!(questions.len(), 1, "{questions:?}");
        assert!(
            questions[0].contains("multiple interpretations"),
            "{questions:?}"
        );
    }
    gateway.stop().await;
}

fn research() -> Value {
    let arguments = json!({ "topic": "python", "ambiguous": true });
    json!({ "name": "simulate-research-query", "arguments": arguments })
}

/// Toolgate makes a task of the slow call, and asks in its state.
async fn research_modern(client: &mut TestClient) -> Value {
    let created = client.result("tools/call", research()).await;
    assert_eq!(created["resultType"], "task", "{created}");
    let id = json!({ "taskId": created["taskId"] });
    let mut messages = Vec::new();
    loop {
        let mut state = client.result("tasks/get", id.clone()).await;
        messages.extend(state["statusMessage"].as_str().map(str::to_owned));
        match state["status"].as_str().unwrap() {
            "working" => tokio::time::sleep(Duration::from_millis(50)).await,
            "input_required" => client.answer_task(&id, &state).await,
            "completed" => {
                // What the server says about its own task.
                assert!(messages.contains(&"Generating report...".to_owned()));
                return state["result"].take();
            }
            other => panic!("{other}: {state}"),
        }
    }
}

/// The client asks for the task, and is asked while it waits for the result.
async fn research_legacy(client: &mut TestClient) -> Value {
    let mut params = research();
    params["task"] = json!({ "ttl": 60_000 });
    let created = client.result("tools/call", params).await;
    assert_eq!(created["task"]["status"], "working", "{created}");
    let id = json!({ "taskId": created["task"]["taskId"] });
    let result = client.result("tasks/result", id.clone()).await;
    let state = client.result("tasks/get", id).await;
    assert_eq!(state["status"], "completed", "{state}");
    result
}
