//! Servers of 2025-11-25 that want their questions answered as tasks, and what they can do wrong.

use serde_json::{Value, json};

use crate::asking::PersonClient;
use crate::fault_test::{FAKE, FaultTest, FaultTestBuilder, NEIGHBOR};

const SERVER: &[&str] = &["version=2025-11-25"];

async fn house(modes: &[&str]) -> FaultTest {
    let builder = FaultTestBuilder::new().relays_questions();
    let builder = builder.server(FAKE, modes).server(NEIGHBOR, SERVER);
    builder.start_settled().await
}

fn form(more: &Value) -> Value {
    let mut params = json!({
        "message": "Who?", "mode": "form",
        "requestedSchema": { "type": "object", "properties": { "who": { "type": "string" } } },
    });
    let params_of = params.as_object_mut().unwrap();
    params_of.extend(more.as_object().unwrap().clone());
    json!({ "method": "elicitation/create", "params": params })
}

fn about_task(method: &str, id: &str) -> Value {
    json!({ "method": method, "params": { "taskId": id } })
}

fn call(server: &str, requests: &Value) -> Value {
    json!({ "name": format!("{server}__requests"), "arguments": { "requests": requests } })
}

/// The responses that a server got to its requests.
fn responses(done: &Value) -> Vec<Value> {
    let text = done["result"]["content"][0]["text"].as_str();
    serde_json::from_str(text.unwrap_or_else(|| panic!("{done}"))).unwrap()
}

#[tokio::test]
async fn servers_get_answers_as_tasks_from_clients_of_both_eras() {
    let house = house(SERVER).await;
    let sampling = json!({
        "messages": [{ "role": "user", "content": { "type": "text", "text": "Hello" } }],
        "maxTokens": 10, "task": { "ttl": 60_000 },
    });
    let sampling = json!({ "method": "sampling/createMessage", "params": sampling });
    for is_modern in [false, true] {
        for question in [
            form(&json!({ "task": { "ttl": 60_000 } })),
            sampling.clone(),
        ] {
            let mut client = PersonClient::connect(&house, is_modern).await;
            let requests = json!([
                question,
                about_task("tasks/get", "$TASK"),
                about_task("tasks/result", "$TASK"),
                about_task("tasks/get", "$TASK"),
                { "method": "tasks/list", "params": {} },
                about_task("tasks/cancel", "$TASK"),
            ]);
            let (questions, done) = client.run("tools/call", call(FAKE, &requests)).await;
            assert_eq!(questions.len(), 1, "{is_modern}: {questions:?}");
            let asked = &questions[0]["params"];
            assert!(asked["task"].is_null(), "the client knows no task: {asked}");
            let [created, working, result, ended, listed, late] = &responses(&done)[..] else {
                panic!("{done}");
            };
            let task = &created["result"]["task"];
            assert_eq!(task["status"], "working", "{created}");
            assert_eq!(working["result"]["taskId"], task["taskId"]);
            assert!(result["result"].to_string().contains("Ada"), "{result}");
            let related = &result["result"]["_meta"]["io.modelcontextprotocol/related-task"];
            assert_eq!(related["taskId"], task["taskId"], "{result}");
            assert_eq!(ended["result"]["status"], "completed", "{ended}");
            let listed = listed["result"]["tasks"].as_array().unwrap();
            assert!(listed.iter().any(|it| it["taskId"] == task["taskId"]));
            assert_eq!(late["error"]["code"], -32602, "{late}");
        }
    }
    house.finish_after_clients().await;
}

#[tokio::test]
async fn a_question_that_its_server_cancels_is_withdrawn() {
    let house = house(SERVER).await;
    let mut client = PersonClient::connect(&house, false).await;
    let requests = json!([
        form(&json!({ "task": {} })),
        { "pause": 300 },
        about_task("tasks/cancel", "$TASK"),
        about_task("tasks/result", "$TASK"),
    ]);
    client.request("tools/call", call(FAKE, &requests)).await;
    let asked = client.next().await;
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    let withdrawn = client.next().await;
    assert_eq!(
        withdrawn["method"], "notifications/cancelled",
        "{withdrawn}"
    );
    assert_eq!(withdrawn["params"]["requestId"], asked["id"]);
    let responses = responses(&client.next().await);
    assert_eq!(responses[1]["result"]["status"], "cancelled");
    assert_eq!(responses[2]["result"]["action"], "cancel");
    house.finish_after_clients().await;
}

#[tokio::test]
async fn a_server_cannot_use_the_tasks_of_another() {
    let house = house(SERVER).await;
    let mut client = PersonClient::connect(&house, false).await;
    let created = json!([
        form(&json!({ "task": {} })),
        about_task("tasks/result", "$TASK")
    ]);
    let (_, done) = client.run("tools/call", call(FAKE, &created)).await;
    let id = responses(&done)[0]["result"]["task"]["taskId"].clone();
    let id = id.as_str().unwrap();
    let methods = ["tasks/get", "tasks/result", "tasks/cancel"];
    let foreign = json!(methods.map(|method| about_task(method, id)));
    let (_, done) = client.run("tools/call", call(NEIGHBOR, &foreign)).await;
    for refused in responses(&done) {
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    let (_, done) = client.run("tools/call", call(FAKE, &foreign)).await;
    assert_eq!(responses(&done)[0]["result"]["status"], "completed");
    house.finish_after_clients().await;
}

#[tokio::test]
async fn floods_of_tasks_and_of_requests_about_them_harm_nobody() {
    let house = house(SERVER).await;
    let nobody = json!([
        // Nobody is asked by this call, so all of them are declined, and no result is fetched.
        { "method": "elicitation/create", "params": form(&json!({ "task": {} }))["params"], "times": 500 },
        { "method": "tasks/get", "params": { "taskId": "made up" }, "times": 1000 },
        { "method": "tasks/result", "params": { "taskId": 7 }, "times": 100 },
        { "method": "tasks/list", "params": {} },
    ]);
    let flood = json!({ "requests": nobody });
    let call = toolgate_core::ToolCall::new(format!("{FAKE}__requests"), flood);
    let envelope = house
        .execute(call.timeout(std::time::Duration::from_secs(60)))
        .await;
    assert_eq!(envelope["success"], true, "{envelope}");
    let text = envelope["result"].to_string();
    assert!(text.contains("there is no such task"), "{text:.2000}");
    house.assert_works().await;
    house.finish().await;
}
