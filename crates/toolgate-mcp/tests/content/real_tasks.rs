//! Clients that others wrote fetch results of tasks, over HTTP, and the reference server goes on with
//! calls as tasks.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_mcp::{HttpOptions, McpServer, ProtocolEra, ServeOptions};

use crate::client::TestClient;
use crate::gateway::{ERAS, Gateway};
use crate::real_clients::{listen, run};
use crate::real_servers::{everything, start};

/// A server of the same tools whose calls soon become tasks.
fn server_with_tasks(gateway: &Gateway) -> McpServer {
    let mut options = ServeOptions::gateway("1.0.0");
    options.tasks.after = Duration::from_millis(300);
    McpServer::new(gateway.executor.clone(), options)
}

#[tokio::test]
async fn the_sdks_fetch_results_of_tasks() {
    let Some(clients) = thirdparty::MCP_CLIENTS.folder() else {
        return;
    };
    let gateway = Gateway::start(ProtocolEra::Legacy, &[("notes", json!({}))]).await;
    let server = server_with_tasks(&gateway);
    let url = listen(server.http(HttpOptions::default())).await;

    let modules = clients.join("node_modules").display().to_string();
    let seen = run(Path::new("node"), "tasks.mjs", &[&modules, &url]).await;
    assert_eq!(seen["slow"], "done", "{seen}");
    assert_eq!(
        seen["states"].as_array().unwrap().last().unwrap(),
        "completed"
    );
    assert!(seen["question"].as_str().unwrap().contains("Ada"), "{seen}");
    assert_eq!(seen["related"], true, "the question names its task: {seen}");
    assert_eq!(seen["cancelled"], "cancelled", "{seen}");

    let python = clients.join("python/bin/python");
    let seen = run(&python, "tasks.py", &[&url]).await;
    assert_eq!(
        (&seen["slow"], &seen["fast"]),
        (&json!("done"), &json!("at once")),
        "{seen}"
    );
    let states = seen["states"].as_array().unwrap();
    assert_eq!(states[0], "working", "{seen}");
    assert_eq!(states.last().unwrap(), "completed", "{seen}");
    assert_eq!(seen["protocol"], "2026-07-28");
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
        let mut asked = client.asked.lock().clone();
        // The server asks for them once, shortly after it starts.
        asked.retain(|question| question != "roots/list");
        assert_eq!(asked.len(), 1, "{asked:?}");
        assert!(asked[0].contains("multiple interpretations"), "{asked:?}");
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
