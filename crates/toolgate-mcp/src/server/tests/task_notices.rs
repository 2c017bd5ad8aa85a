//! What clients of 2025-11-25 hear of their tasks between their requests. Time is paused.

use super::legacy_tasks::legacy_client;
use super::tasks::task_server;
use super::*;

const RELATED: &str = "io.modelcontextprotocol/related-task";

async fn listening_client(server: McpServer) -> LineClient {
    let (mut client, _) = legacy_client(server, "2025-11-25").await;
    client
        .send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
        .await;
    client
}

async fn start(client: &mut LineClient, seconds: u64, meta: Value) -> String {
    let params =
        json!({ "name": "slow", "arguments": { "a": seconds }, "task": {}, "_meta": meta });
    let created = client.ask("tools/call", params).await;
    let id = created["result"]["task"]["taskId"].as_str();
    id.unwrap_or_else(|| panic!("{created}")).to_owned()
}

/// Everything until nothing has come for a minute.
async fn heard(client: &mut LineClient) -> Vec<Value> {
    let mut heard = Vec::new();
    while let Ok(message) = tokio::time::timeout(Duration::from_secs(60), client.next()).await {
        heard.push(message);
    }
    heard
}

#[tokio::test(start_paused = true)]
async fn a_client_is_told_of_every_state_of_its_own_tasks() {
    let (server, _) = task_server();
    let mut other = listening_client(server.clone()).await;
    let mut client = listening_client(server).await;
    let id = start(&mut client, 3, json!({})).await;
    let heard = heard(&mut client).await;
    let mut seen = Vec::new();
    for update in &heard {
        assert_eq!(update["method"], "notifications/tasks/status");
        let task = &update["params"];
        assert_eq!(task["taskId"], id);
        for key in ["createdAt", "lastUpdatedAt", "ttl", "pollInterval"] {
            assert!(!task[key].is_null(), "{task}");
        }
        assert!(
            task["_meta"].is_null() && task["result"].is_null(),
            "{task}"
        );
        let message = task["statusMessage"].as_str().unwrap_or("-");
        seen.push(format!("{}: {message}", task["status"].as_str().unwrap()));
    }
    let expected = ["working: 1 of 3", "working: 2 of 3", "completed: -"];
    assert_eq!(seen, expected);
    assert!(super::task_notices::heard(&mut other).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_progress_token_is_valid_until_the_task_ends() {
    let (server, _) = task_server();
    let mut client = listening_client(server).await;
    let id = start(&mut client, 3, json!({ "progressToken": "token" })).await;
    let mut heard = heard(&mut client).await;
    let last = heard.pop().unwrap();
    assert_eq!(last["method"], "notifications/tasks/status");
    assert_eq!(last["params"]["status"], "completed");
    let mut done = Vec::new();
    for update in &heard {
        assert_eq!(update["method"], "notifications/progress");
        let params = &update["params"];
        assert_eq!(params["progressToken"], "token");
        assert_eq!(params["_meta"][RELATED]["taskId"], id);
        done.push(params["progress"].as_f64().unwrap());
    }
    assert_eq!(done, [1.0, 2.0], "none comes with the end or after it");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_fast_task_is_told_after_its_id() {
    let (server, _) = task_server();
    let mut client = listening_client(server).await;
    let id = start(&mut client, 0, json!({ "progressToken": 7 })).await;
    let heard = heard(&mut client).await;
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!(heard[0]["params"]["taskId"], id);
    assert_eq!(heard[0]["params"]["status"], "completed");
}

#[tokio::test(start_paused = true)]
async fn questions_and_cancellations_are_told_too() {
    let (server, _) = task_server();
    let mut client = listening_client(server).await;
    let params = json!({ "name": "asks", "arguments": {}, "task": {} });
    let created = client.ask("tools/call", params).await;
    let id = json!({ "taskId": created["result"]["task"]["taskId"] });
    let asks = client.next().await;
    assert_eq!(asks["params"]["status"], "input_required", "{asks}");
    let cancelled = client.ask("tasks/cancel", id).await;
    assert_eq!(cancelled["result"]["status"], "cancelled");
    let told = heard(&mut client).await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["params"]["status"], "cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_client_is_told_of_a_hundred_tasks_at_most() {
    let (server, _) = task_server();
    let mut client = listening_client(server).await;
    let params = json!({ "name": "slow", "arguments": { "a": 5 }, "task": {},
        "_meta": { "progressToken": "token" } });
    for id in 0..120 {
        client
            .send(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }))
            .await;
    }
    let heard = heard(&mut client).await;
    let ends = heard
        .iter()
        .filter(|it| it["params"]["status"] == "completed");
    assert_eq!(ends.count(), 100);
}
