//! Tasks of MCP clients and of servers: `kill -9` or SIGTERM, a new gateway, and they go
//! on where they were.

use std::io::Read;
use std::path::Path;

use serde_json::{Value, json};

use crate::ending::in_flight;
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
    start_tool(gateway, "sleep", &json!({ "ms": ms }))
}

fn start_tool(gateway: &ServeProcess, tool: &str, arguments: &Value) -> String {
    let params = json!({ "name": tool, "arguments": arguments });
    let answer = ask(gateway, "tools/call", tool, params);
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
    // The gateway takes over what is left while it already answers.
    let lost = until_ended(&gateway, &running);
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

/// A gateway whose server, of either era, keeps its tasks in a file.
fn keeping_tasks(folder: &Path, era: &str) -> ServeProcess {
    let kept = format!("tasks={}", folder.join("kept").display());
    let config = json!({
        "mcpServers": { "house": fake_server(&[era, &kept]) },
        "serve": { "tasks": { "after": "200ms", "keep": "1h" } },
    });
    let gateway = ServeProcess::start(folder, &config);
    gateway.ready();
    gateway
}

/// The tasks that the server has, all of which go on.
fn uncancelled(folder: &Path) -> usize {
    let kept = std::fs::read(folder.join("kept")).unwrap();
    let kept: Value = serde_json::from_slice(&kept).unwrap();
    let kept = kept.as_object().unwrap();
    assert!(
        kept.values().all(|task| task["cancelled"].is_null()),
        "{kept:?}"
    );
    kept.len()
}

fn until_ended(gateway: &ServeProcess, id: &str) -> Value {
    for _ in 0..400 {
        let now = task(gateway, id);
        if now["status"] != "working" {
            return now;
        }
        pause(50);
    }
    panic!("it does not end:\n{}", gateway.log());
}

#[test]
fn a_task_of_a_server_survives_kill_9() {
    for era in ["version=2025-11-25", "modern"] {
        let folder = tempfile::tempdir().unwrap();
        let gateway = keeping_tasks(folder.path(), era);
        let arguments = json!({ "ms": 4000, "text": "the end" });
        let id = start_tool(&gateway, "task", &arguments);
        assert_eq!(task(&gateway, &id)["status"], "working", "{era}");
        gateway.kill();

        let gateway = keeping_tasks(folder.path(), era);
        assert_eq!(task(&gateway, &id)["status"], "working", "{era}");
        let done = until_ended(&gateway, &id);
        let text = &done["result"]["content"][0]["text"];
        assert_eq!(text, "the end", "{era}: {done}");
        assert_eq!(uncancelled(folder.path()), 1, "the tool ran once: {era}");
        let calls = get(&gateway.address, "/api/calls").1;
        let outcomes: Vec<&Value> = calls
            .as_array()
            .unwrap()
            .iter()
            .map(|call| &call["outcome"])
            .collect();
        assert_eq!(outcomes, ["success"], "{era}: {calls}");
    }
}

#[test]
fn tasks_of_servers_go_on_while_the_gateway_is_stopped_whoever_called() {
    for era in ["version=2025-11-25", "modern"] {
        let folder = tempfile::tempdir().unwrap();
        let mut gateway = keeping_tasks(folder.path(), era);
        let arguments = json!({ "ms": 9000, "text": "the end" });
        let id = start_tool(&gateway, "task", &arguments);
        let address = gateway.address.clone();
        let caller = std::thread::spawn(move || {
            let path = "/api/tools/task/call";
            request(&address, "POST", path, &arguments.to_string())
        });
        in_flight(&gateway, 2);
        // Until the server has made a task of it.
        while uncancelled(folder.path()) < 2 {
            pause(20);
        }
        pause(200);
        let began = std::time::SystemTime::now();
        gateway.terminate();
        assert_eq!(gateway.ended(), Some(0), "{}", gateway.log());
        let took = began.elapsed().unwrap().as_secs();
        assert!(took < 8, "{era}: {took} s");
        let (_, envelope) = caller.join().unwrap().unwrap();
        assert_eq!(envelope["error_kind"], "unavailable", "{era}: {envelope}");
        assert_eq!(uncancelled(folder.path()), 2, "{era}");

        let gateway = keeping_tasks(folder.path(), era);
        let done = until_ended(&gateway, &id);
        let text = &done["result"]["content"][0]["text"];
        assert_eq!(text, "the end", "{era}: {done}");
        // Nobody can fetch this result any more, but it is on record.
        let path = format!("/api/calls/{}", envelope["call_id"].as_str().unwrap());
        let mut call = Value::Null;
        for _ in 0..200 {
            call = get(&gateway.address, &path).1;
            if call["outcome"] == "success" {
                break;
            }
            pause(50);
        }
        assert_eq!(call["outcome"], "success", "{era}: {call}");
        assert_eq!(uncancelled(folder.path()), 2, "each ran once: {era}");
    }
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
