//! Clients that may use only a part: tokens with patterns, and the policy.

use serde_json::{Value, json};
use toolgate_mcp::ProtocolEra;

use crate::client::TestClient;
use crate::gateway::{Gateway, era_pairs};

fn content() -> Value {
    json!({
        "instructions": "hints",
        "resources": [{ "uri": "x:1" }], "templates": [{ "uriTemplate": "x:{n}" }],
        "prompts": [{ "name": "p" }],
    })
}

/// Asserts that the client has no resources, and that none of its attempts reaches the server.
async fn assert_no_resources(gateway: &Gateway, client: &mut TestClient) {
    assert!(client.list("resources/list").await.is_empty());
    assert!(client.list("resources/templates/list").await.is_empty());
    for uri in ["x:1", "toolgate://files/x:1"] {
        let error = client
            .expect_error("resources/read", json!({ "uri": uri }))
            .await;
        let text = error["message"].as_str().unwrap();
        assert!(text.starts_with("Resource not found"), "{error}");
        assert!(client.subscribe(&[uri]).await.is_empty());
        let reference = json!({ "type": "ref/resource", "uri": uri });
        let params = json!({ "ref": reference, "argument": { "name": "n", "value": "" } });
        client.expect_error("completion/complete", params).await;
    }
    for method in [
        "resources/read",
        "resources/subscribe",
        "completion/complete",
    ] {
        assert!(
            gateway.received("files", method).await.is_empty(),
            "{method}"
        );
    }
    gateway.wait_until_subscribed("files", &[]).await;
}

#[tokio::test]
async fn a_token_without_the_right_to_read_sees_prompts_but_no_resources() {
    for (client_era, server_era) in era_pairs() {
        let gateway = Gateway::start(server_era, &[("files", content())]).await;
        for (allow, deny) in [
            (&["*"][..], &["files/resources/read"][..]),
            (&["*"], &["resources/read"]),
            (&["*"], &["*/resources/*"]),
            (&["files/prompts/get", "files/completion/complete"], &[]),
        ] {
            let mut client = gateway.client_within(client_era, allow, deny).await;
            assert_no_resources(&gateway, &mut client).await;
            assert_eq!(client.list("prompts/list").await, ["p"]);
            let prompt = client.result("prompts/get", json!({ "name": "p" })).await;
            assert_eq!(prompt["messages"][0]["content"]["text"], "p of files");
        }
        gateway.stop().await;
    }
}

#[tokio::test]
async fn a_token_without_the_right_to_prompts_sees_resources_only() {
    for (client_era, server_era) in era_pairs() {
        let gateway = Gateway::start(server_era, &[("files", content())]).await;
        let mut client = gateway
            .client_within(client_era, &["files/resources/read"], &[])
            .await;
        assert_eq!(client.list("resources/list").await, ["x:1"]);
        assert!(client.list("prompts/list").await.is_empty());
        assert!(client.list("tools/list").await.is_empty());
        assert_eq!(client.read("x:1").await, "x:1 of files");
        client
            .expect_error("prompts/get", json!({ "name": "p" }))
            .await;
        assert!(gateway.received("files", "prompts/get").await.is_empty());
        let told = client.hello["instructions"].as_str().unwrap();
        assert!(told.contains("# mcp:files\nhints"), "{told}");
        gateway.stop().await;
    }
}

#[tokio::test]
async fn a_token_for_another_server_does_not_learn_that_there_is_one() {
    for client_era in crate::gateway::ERAS {
        let servers = [("files", content()), ("other", json!({ "prompts": [] }))];
        let gateway = Gateway::start(ProtocolEra::Legacy, &servers).await;
        let mut client = gateway.client_within(client_era, &["other/*"], &[]).await;
        assert_no_resources(&gateway, &mut client).await;
        assert!(client.list("prompts/list").await.is_empty());
        let told = client.hello["instructions"].as_str().unwrap();
        assert!(!told.contains("files") && !told.contains("hints"), "{told}");
        gateway.stop().await;
    }
}

#[tokio::test]
async fn a_policy_change_ends_access_and_updates_at_once() {
    for (client_era, server_era) in era_pairs() {
        let gateway = Gateway::start(server_era, &[("files", content())]).await;
        let mut client = gateway.client(client_era).await;
        assert_eq!(client.subscribe(&["x:1"]).await, ["x:1"]);
        gateway.wait_until_subscribed("files", &["x:1"]).await;
        gateway.deny(&["files/resources/read"]);
        client.wait_for("resources/list_changed").await;
        assert!(client.list("resources/list").await.is_empty());
        client
            .expect_error("resources/read", json!({ "uri": "x:1" }))
            .await;
        gateway.wait_until_subscribed("files", &[]).await;
        let update = json!({ "uri": "x:1", "always": true });
        gateway.call("files", "update", update).await;
        client.assert_quiet().await;
        // Allowed again, the subscription is as it was.
        gateway.deny(&[]);
        gateway.wait_until_subscribed("files", &["x:1"]).await;
        client.wait_for("resources/updated").await;
        client.drain().await;
        assert!(gateway.update("files", "x:1").await);
        assert_eq!(client.next_updated_uri().await, "x:1");
        gateway.stop().await;
    }
}
