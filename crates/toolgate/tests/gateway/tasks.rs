//! Tasks of MCP clients: `kill -9`, a new gateway, and the results are where they were.

use std::io::Read;

use serde_json::{Value, json};

use crate::support::{HttpConnection, ServeProcess, fake_server, get, header, pause, request};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// One request of a client of 2026-07-28 that supports tasks. `name` is what a header repeats.
fn ask(gateway: &ServeProcess, method: &str, name: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "extensions": { EXTENSION: {} } },
    });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let headers = format!(
        "accept: application/json\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\nmcp-name: {name}\r\n"
    );
    let mut connection = HttpConnection::open(&gateway.address).unwrap();
    let body = message.to_string();
    let head = connection.begin("POST", "/mcp", &headers, &body).unwrap();
    let length = header(&head, "content-length").unwrap().parse().unwrap();
    let mut answer = vec![0; length];
    connection.reader().read_exact(&mut answer).unwrap();
    serde_json::from_slice(&answer).unwrap()
}

fn start(gateway: &ServeProcess, ms: u64) -> String {
    let params = json!({ "name": "sleep", "arguments": { "ms": ms } });
    let answer = ask(gateway, "tools/call", "sleep", params);
    let id = answer["result"]["taskId"].as_str();
    id.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

fn task(gateway: &ServeProcess, id: &str) -> Value {
    ask(gateway, "tasks/get", id, json!({ "taskId": id }))["result"].take()
}

#[test]
fn results_of_tasks_survive_kill_9_and_cut_off_tasks_have_failed() {
    let folder = tempfile::tempdir().unwrap();
    let config = json!({
        "mcpServers": { "house": fake_server(&[]) },
        "serve": { "tasks": { "after": "200ms", "keep": "1h" } },
    });
    let gateway = ServeProcess::start(folder.path(), &config);
    gateway.ready();
    let finished = start(&gateway, 500);
    for _ in 0..200 {
        if task(&gateway, &finished)["status"] == "completed" {
            break;
        }
        pause(50);
    }
    let before = task(&gateway, &finished);
    assert_eq!(before["status"], "completed", "{before}");
    let running = start(&gateway, 20_000);
    gateway.kill();

    let gateway = ServeProcess::start(folder.path(), &config);
    let after = task(&gateway, &finished);
    assert_eq!(after["result"], before["result"]);
    assert_eq!(
        (&after["status"], &after["createdAt"]),
        (&before["status"], &before["createdAt"])
    );
    let lost = task(&gateway, &running);
    assert_eq!(
        (&lost["status"], &lost["error"]["code"]),
        (&json!("failed"), &json!(-32603))
    );
    assert!(
        lost["statusMessage"]
            .as_str()
            .unwrap()
            .contains("restarted"),
        "{lost}"
    );
    let journal = std::fs::read(folder.path().join(".local/state/toolgate/journal.db")).unwrap();
    let journal = String::from_utf8_lossy(&journal);
    assert!(!journal.contains(&running), "the id itself is not kept");
    let unknown = ask(&gateway, "tasks/get", "x", json!({ "taskId": "x" }));
    assert_eq!(unknown["error"]["code"], -32602);
}

#[test]
fn a_running_task_is_seen_and_cancelled_over_the_api() {
    let folder = tempfile::tempdir().unwrap();
    let config = json!({
        "mcpServers": { "house": fake_server(&[]) },
        "serve": { "tasks": { "after": "200ms" } },
    });
    let gateway = ServeProcess::start(folder.path(), &config);
    gateway.ready();
    let id = start(&gateway, 20_000);
    let (_, tasks) = get(&gateway.address, "/api/tasks");
    assert_eq!(
        (&tasks[0]["tool"], &tasks[0]["server"]),
        (&json!("sleep"), &json!("house"))
    );
    assert_eq!(tasks[0]["status"], "working");
    let call = tasks[0]["id"].as_str().unwrap();
    assert!(
        !tasks.to_string().contains(&id),
        "the task's own id is its client's secret"
    );
    let path = format!("/api/tasks/{call}/cancel");
    let mut connection = HttpConnection::open(&gateway.address).unwrap();
    let head = connection.begin("POST", &path, "", "").unwrap();
    assert!(head.starts_with("HTTP/1.1 204"), "{head}");
    assert_eq!(task(&gateway, &id)["status"], "cancelled");
    let (status, _) = request(&gateway.address, "POST", &path, "").unwrap();
    assert_eq!(status, 404);
}
