//! The tools of the reference server behind the gateway: everything that a tool can return, report
//! or ask. Its resources and prompts are in `real_servers`.

use serde_json::{Value, json};

use crate::client::TestClient;
use crate::gateway::ERAS;
use crate::real_servers::{everything, start};

async fn call(client: &mut TestClient, tool: &str, arguments: Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    let result = client.result("tools/call", params).await;
    assert_ne!(result["isError"], true, "{tool}: {result}");
    result
}

async fn text(client: &mut TestClient, tool: &str, arguments: Value) -> String {
    let result = call(client, tool, arguments).await;
    let blocks = result["content"].as_array().unwrap().iter();
    let texts: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}

#[tokio::test]
async fn every_tool_of_the_reference_server_works_in_both_eras() {
    let Some(folder) = fakemcp::real_servers() else {
        return;
    };
    let gateway = start(vec![everything(&folder)]).await;
    for era in ERAS {
        let form = json!({ "name": "Ada" });
        let mut client = gateway.client_answering(era, &["*"], &[], form).await;
        check_results(&mut client).await;
        check_links(&mut client).await;
        check_questions(&mut client).await;
        check_questions_as_tasks(&mut client).await;
        check_required_page(&mut client).await;
        check_reports(&mut client).await;
    }
    gateway.stop().await;
}

async fn check_results(client: &mut TestClient) {
    let said = text(client, "echo", json!({ "message": "häl\nlo" })).await;
    assert_eq!(said, "Echo: häl\nlo");
    let sum = text(client, "get-sum", json!({ "a": 2, "b": 3 })).await;
    assert_eq!(sum, "The sum of 2 and 3 is 5.");
    let refused = json!({ "name": "get-sum", "arguments": { "a": "two", "b": 3 } });
    let refused = client.result("tools/call", refused).await;
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(text(client, "get-env", json!({})).await.contains("PATH"));
    let image = call(client, "get-tiny-image", json!({})).await;
    assert_eq!(image["content"][1]["mimeType"], "image/png", "{image}");
    let arguments = json!({ "messageType": "error", "includeImage": true });
    let annotated = call(client, "get-annotated-message", arguments).await;
    let expected = json!({ "priority": 1, "audience": ["user", "assistant"] });
    assert_eq!(annotated["content"][0]["annotations"], expected);
    let expected = json!({ "priority": 0.5, "audience": ["user"] });
    assert_eq!(annotated["content"][1]["annotations"], expected);
    let weather = json!({ "location": "Chicago" });
    let weather = call(client, "get-structured-content", weather).await;
    assert_eq!(weather["structuredContent"]["humidity"], 82, "{weather}");
}

/// Links in results can be read, even those to resources that a call has just made.
async fn check_links(client: &mut TestClient) {
    let links = call(client, "get-resource-links", json!({ "count": 4 })).await;
    for (number, link) in links["content"]
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
        .skip(1)
    {
        assert_eq!(link["type"], "resource_link");
        let read = client
            .result("resources/read", json!({ "uri": link["uri"] }))
            .await;
        let kind = if number % 2 == 0 { "text" } else { "blob" };
        assert!(read["contents"][0][kind].is_string(), "{link}: {read}");
    }
    let arguments = json!({ "resourceType": "Text", "resourceId": 7 });
    let embedded = call(client, "get-resource-reference", arguments).await;
    let resource = &embedded["content"][1]["resource"];
    assert!(
        resource["text"]
            .as_str()
            .unwrap()
            .starts_with("Resource 7: ")
    );
    let arguments = json!({ "name": "a.gz", "data": "data:text/plain,hello" });
    let made = call(client, "gzip-file-as-resource", arguments).await;
    let uri = json!({ "uri": made["content"][0]["uri"] });
    let read = client.result("resources/read", uri).await;
    let blob = read["contents"][0]["blob"].as_str().unwrap();
    assert!(blob.starts_with("H4sI"), "{read}");
}

async fn check_questions(client: &mut TestClient) {
    client.received_questions.lock().clear();
    let form = text(client, "trigger-elicitation-request", json!({})).await;
    assert!(form.contains("- Name: Ada"), "{form}");
    let url = json!({ "url": "https://example.org/", "message": "Open it" });
    let page = text(client, "trigger-url-elicitation", url).await;
    assert!(page.contains("accept"), "{page}");
    let sampled = text(
        client,
        "trigger-sampling-request",
        json!({ "prompt": "Hi" }),
    )
    .await;
    assert!(sampled.contains("the model says so"), "{sampled}");
    let questions = [
        "Please provide inputs for the following fields:",
        "Open it",
        "sampling/createMessage",
    ];
    assert_eq!(take_questions(client), questions);
    // It asks for roots once, shortly after it starts: on behalf of a call, or of none.
    let roots = text(client, "get-roots-list", json!({})).await;
    let is_known = roots.contains("file:///home/ada");
    assert!(
        is_known || roots.contains("no roots are currently configured"),
        "{roots}"
    );
}

/// The server polls for the answers to its questions.
async fn check_questions_as_tasks(client: &mut TestClient) {
    client.received_questions.lock().clear();
    let form = text(client, "trigger-elicitation-request-async", json!({})).await;
    assert!(form.contains("[COMPLETED]"), "{form}");
    assert!(form.contains("- Name: Ada"), "{form}");
    let prompt = json!({ "prompt": "Hi" });
    let sampled = text(client, "trigger-sampling-request-async", prompt).await;
    assert!(sampled.contains("[COMPLETED]"), "{sampled}");
    assert!(sampled.contains("the model says so"), "{sampled}");
    let form = "Please provide inputs for the following fields (async task demo):";
    assert_eq!(take_questions(client), [form, "sampling/createMessage"]);
}

/// The questions since the last call of this function, except those for roots.
fn take_questions(client: &TestClient) -> Vec<String> {
    let mut received = std::mem::take(&mut *client.received_questions.lock());
    received.retain(|question| question != "roots/list");
    received
}

/// A client that must open a page first gets the error -32042.
async fn check_required_page(client: &mut TestClient) {
    let id = format!("{:?}", client.era);
    let url = "https://example.org/";
    let arguments = json!({ "url": url, "errorPath": true, "elicitationId": id });
    let params = json!({ "name": "trigger-url-elicitation", "arguments": arguments });
    let error = client.expect_error("tools/call", params).await;
    assert_eq!(error["code"], -32042, "{error}");
    let page = &error["data"]["elicitations"][0]["url"];
    assert_eq!(page, "https://modelcontextprotocol.io");
}

async fn check_reports(client: &mut TestClient) {
    client.drain().await;
    let params = json!({
        "name": "trigger-long-running-operation", "arguments": { "duration": 0.3, "steps": 3 },
        "_meta": { "progressToken": "token" },
    });
    client.result("tools/call", params).await;
    let mut notifications = client.drain().await;
    notifications.retain(|next| next["method"] == "notifications/progress");
    let progress: Vec<&Value> = notifications
        .iter()
        .map(|next| &next["params"]["progress"])
        .collect();
    assert_eq!(progress.len(), 3, "{notifications:?}");
    assert!(
        notifications
            .iter()
            .all(|next| next["params"]["progressToken"] == "token")
    );
}
