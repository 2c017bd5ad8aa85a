//! Servers that are changed, removed, disabled, or that die while clients use them.

use serde_json::{Value, json};
use toolgate_core::ToolPattern;

use crate::gateway::{ERAS, Gateway, era_pairs};

fn content() -> Value {
    json!({ "resources": [{ "uri": "x:1" }], "prompts": [{ "name": "p" }] })
}

#[tokio::test]
async fn a_subscription_survives_a_changed_configuration() {
    for (client_era, server_era) in era_pairs() {
        let mut gateway = Gateway::start(server_era, &[("s", content())]).await;
        let mut client = gateway.client(client_era).await;
        client.subscribe(&["x:1"]).await;
        gateway.wait_until_subscribed("s", &["x:1"]).await;
        gateway.add_argument("s", "describe=5");
        gateway.apply().await;
        gateway.wait_until_subscribed("s", &["x:1"]).await;
        // Changes may have been missed in between.
        client.wait_for("resources/updated").await;
        client.drain().await;
        assert!(gateway.update("s", "x:1").await);
        assert_eq!(client.next_updated_uri().await, "x:1");
        assert_eq!(client.read("x:1").await, "x:1 of s");
        gateway.stop().await;
    }
}

#[tokio::test]
async fn a_subscription_survives_the_death_of_its_server() {
    for (client_era, server_era) in era_pairs() {
        let gateway = Gateway::start(server_era, &[("s", content())]).await;
        let mut client = gateway.client(client_era).await;
        client.subscribe(&["x:1"]).await;
        gateway.wait_until_subscribed("s", &["x:1"]).await;
        let die = json!({ "name": "die", "arguments": {} });
        let died = client.result("tools/call", die).await;
        assert_eq!(died["isError"], true);
        assert_eq!(
            client.next_updated_uri().await,
            "x:1",
            "it may have changed"
        );
        gateway.wait_until_subscribed("s", &["x:1"]).await;
        assert!(gateway.update("s", "x:1").await);
        assert_eq!(client.next_updated_uri().await, "x:1");
        gateway.stop().await;
    }
}

#[tokio::test]
async fn content_goes_and_returns_with_its_server() {
    for (client_era, server_era) in era_pairs() {
        let servers = [
            ("keep", json!({ "resources": [{ "uri": "y:1" }] })),
            ("s", content()),
        ];
        let mut gateway = Gateway::start(server_era, &servers).await;
        let mut client = gateway.client(client_era).await;
        client.subscribe(&["x:1", "y:1"]).await;
        gateway.wait_until_subscribed("s", &["x:1"]).await;
        let removed = gateway.settings.pop().unwrap();
        gateway.apply().await;
        client.wait_for("resources/list_changed").await;
        assert_eq!(client.list("resources/list").await, ["y:1"]);
        assert!(client.list("prompts/list").await.is_empty());
        client
            .expect_error("resources/read", json!({ "uri": "x:1" }))
            .await;
        client
            .expect_error("prompts/get", json!({ "name": "p" }))
            .await;
        gateway.settings.push(removed);
        gateway.apply().await;
        assert_eq!(client.read("x:1").await, "x:1 of s");
        gateway.wait_until_subscribed("s", &["x:1"]).await;
        client.drain().await;
        assert!(gateway.update("s", "x:1").await);
        assert_eq!(client.next_updated_uri().await, "x:1");
        gateway.stop().await;
    }
}

#[tokio::test]
async fn a_scheme_passes_to_the_next_server_with_its_subscriptions() {
    for client_era in ERAS {
        let servers = [("a", content()), ("b", content())];
        let mut gateway = Gateway::start(ERAS[0], &servers).await;
        let mut client = gateway.client(client_era).await;
        client.subscribe(&["x:1"]).await;
        gateway.wait_until_subscribed("a", &["x:1"]).await;
        gateway.settings.remove(0);
        gateway.apply().await;
        gateway.wait_until_subscribed("b", &["x:1"]).await;
        client.wait_for("resources/updated").await;
        assert_eq!(client.read("x:1").await, "x:1 of b");
        client.drain().await;
        assert!(gateway.update("b", "x:1").await);
        assert_eq!(client.next_updated_uri().await, "x:1");
        gateway.stop().await;
    }
}

#[tokio::test]
async fn a_disabled_server_offers_nothing() {
    let mut gateway = Gateway::start(ERAS[1], &[("s", content())]).await;
    let mut client = gateway.client(ERAS[1]).await;
    gateway.settings[0].disabled = true;
    gateway.apply().await;
    assert!(client.list("resources/list").await.is_empty());
    assert!(client.list("prompts/list").await.is_empty());
    gateway.stop().await;
}

#[tokio::test]
async fn excluded_methods_are_not_offered() {
    for client_era in ERAS {
        let mut gateway = Gateway::start(ERAS[0], &[("s", content())]).await;
        gateway.settings[0].excluded_tools = vec![ToolPattern::new("resources/read")];
        gateway.apply().await;
        let mut client = gateway.client(client_era).await;
        assert!(client.list("resources/list").await.is_empty());
        assert_eq!(client.list("prompts/list").await, ["p"]);
        client
            .expect_error("resources/read", json!({ "uri": "x:1" }))
            .await;
        gateway.stop().await;
    }
}
