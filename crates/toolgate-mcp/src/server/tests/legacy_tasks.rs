//! Tasks of clients up to 2025-11-25. Time is paused.

use super::asking::accepted;
use super::tasks::task_server;
use super::*;

pub(super) async fn legacy_client(server: McpServer, version: &str) -> (LineClient, Value) {
    let mut client = LineClient::new(server);
    let params = json!({
        "protocolVersion": version, "capabilities": { "elicitation": {} },
        "clientInfo": { "name": "c", "version": "1" },
    });
    let answer = client.ask("initialize", params).await;
    (client, answer["result"]["capabilities"].clone())
}

#[tokio::test(start_paused = true)]
async fn a_client_of_2025_11_25_asks_for_a_task_itself() {
    let (server, _) = task_server();
    let (mut client, offered) = legacy_client(server, "2025-11-25").await;
    let expected = json!({ "cancel": {}, "requests": { "tools": { "call": {} } } });
    assert_eq!(offered["tasks"], expected);
    assert!(offered["extensions"].is_null());
    let listed = client.ask("tools/list", json!({})).await;
    for tool in listed["result"]["tools"].as_array().unwrap() {
        assert_eq!(tool["execution"]["taskSupport"], "optional", "{tool}");
    }
    let began = tokio::time::Instant::now();
    let params = json!({ "name": "slow", "arguments": { "a": 20 }, "task": { "ttl": 60_000 } });
    let created = client.ask("tools/call", params).await;
    let task = &created["result"]["task"];
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(
        (&task["status"], &task["ttl"]),
        (&json!("working"), &json!(60_000))
    );
    let id = json!({ "taskId": task["taskId"] });
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let seen = client.ask("tasks/get", id.clone()).await;
    assert_eq!(seen["result"]["statusMessage"], "2 of 20");
    assert!(seen["result"]["resultType"].is_null() && seen["result"]["_meta"].is_null());
    let result = client.ask("tasks/result", id.clone()).await;
    assert_eq!(began.elapsed().as_secs(), 20, "it waits for the end");
    assert_eq!(result["result"]["content"][0]["text"], "after 20 s");
    let related = &result["result"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(*related, id);
    let late = client.ask("tasks/cancel", id).await;
    assert_eq!(late["error"]["code"], -32602);

    // Without the parameter nothing changes, and a failed tool is a failed task.
    let plain = client.call("slow", json!({ "a": 20 })).await;
    assert_eq!(plain["content"][0]["text"], "after 20 s");
    let params = json!({ "name": "fails", "arguments": {}, "task": {} });
    let created = client.ask("tools/call", params).await;
    let id = json!({ "taskId": created["result"]["task"]["taskId"] });
    let result = client.ask("tasks/result", id.clone()).await;
    assert_eq!(result["result"]["isError"], true);
    let seen = client.ask("tasks/get", id).await;
    assert_eq!(seen["result"]["status"], "failed");
    assert!(
        seen["result"]["statusMessage"]
            .as_str()
            .unwrap()
            .contains("out of paper")
    );
}

#[tokio::test(start_paused = true)]
async fn a_task_of_2025_11_25_outlasts_the_limit_of_calls_too() {
    let (server, endings) = task_server();
    let (mut client, _) = legacy_client(server, "2025-11-25").await;
    let params = json!({ "name": "slow", "arguments": { "a": 4000 }, "task": {} });
    let created = client.ask("tools/call", params).await;
    let id = json!({ "taskId": created["result"]["task"]["taskId"] });
    let result = client.ask("tasks/result", id).await;
    assert_eq!(result["result"]["content"][0]["text"], "after 4000 s");
    assert_eq!(*endings.0.lock(), [None]);
}

#[tokio::test(start_paused = true)]
async fn tasks_result_relays_questions_to_a_client_of_2025_11_25() {
    let (server, _) = task_server();
    let (mut client, _) = legacy_client(server, "2025-11-25").await;
    let params = json!({ "name": "asks", "arguments": {}, "task": {} });
    let created = client.ask("tools/call", params).await;
    let id = json!({ "taskId": created["result"]["task"]["taskId"] });
    tokio::time::sleep(Duration::from_secs(20)).await;
    let seen = client.ask("tasks/get", id.clone()).await;
    assert_eq!(seen["result"]["status"], "input_required");
    assert!(seen["result"]["inputRequests"].is_null());
    client
        .send(json!({ "jsonrpc": "2.0", "id": 9, "method": "tasks/result", "params": id }))
        .await;
    let mut asked = Vec::new();
    let done = loop {
        let message = client.next().await;
        if message["method"].is_null() {
            break message;
        }
        let related = &message["params"]["_meta"]["io.modelcontextprotocol/related-task"];
        assert_eq!(*related, id);
        asked.push(message["params"]["message"].as_str().unwrap().to_owned());
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": accepted() });
        client.send(answer).await;
    };
    assert_eq!(asked, ["one", "two", "three"]);
    let text = done["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(
        text,
        json!([[accepted(), accepted()], [accepted()]]).to_string()
    );
}

#[tokio::test(start_paused = true)]
async fn older_clients_know_no_tasks() {
    let (server, _) = task_server();
    let (mut client, offered) = legacy_client(server, "2025-06-18").await;
    assert!(offered["tasks"].is_null());
    let listed = client.ask("tools/list", json!({})).await;
    assert!(listed["result"]["tools"][0]["execution"].is_null());
    let params = json!({ "name": "slow", "arguments": { "a": 20 }, "task": {} });
    let result = client.ask("tools/call", params).await;
    assert_eq!(result["result"]["content"][0]["text"], "after 20 s");
    let refused = client.ask("tasks/get", json!({ "taskId": "a" })).await;
    assert_eq!(refused["error"]["code"], -32601);
}
