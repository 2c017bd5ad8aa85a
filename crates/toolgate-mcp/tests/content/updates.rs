//! Subscriptions to resources, and changes of lists.

use serde_json::{Value, json};
use toolgate_mcp::ProtocolEra;

use crate::gateway::{ERAS, Gateway, era_pairs};

fn two_resources_and_a_prompt() -> Value {
    json!({ "resources": [{ "uri": "x:1" }, { "uri": "x:2" }], "prompts": [{ "name": "p" }] })
}

#[tokio::test]
async fn updates_come_between_subscribing_and_unsubscribing() {
    for (client_era, server_era) in era_pairs() {
        let gateway = Gateway::start(
            server_era,
            &[
                ("a", two_resources_and_a_prompt()),
                ("b", two_resources_and_a_prompt()),
            ],
        )
        .await;
        let mut client = gateway.client(client_era).await;
        let mut other = gateway.client(client_era).await;
        assert!(!gateway.update("a", "x:1").await, "no subscription yet");
        let wanted = ["x:1", "toolgate://b/x:1"];
        assert_eq!(client.subscribe(&wanted).await, wanted);
        for server in ["a", "b"] {
            gateway.wait_until_subscribed(server, &["x:1"]).await;
        }
        for (server, expected) in [("a", "x:1"), ("b", "toolgate://b/x:1"), ("a", "x:1")] {
            assert!(gateway.update(server, "x:1").await);
            assert_eq!(client.next_updated_uri().await, expected);
        }
        // The client didn't subscribe to this one, so it isn't notified even if the server
        // announces it.
        let unsubscribed = json!({ "uri": "x:2", "always": true });
        gateway.call("a", "update", unsubscribed).await;
        client.unsubscribe(&wanted).await;
        for server in ["a", "b"] {
            gateway.wait_until_subscribed(server, &[]).await;
        }
        let late = json!({ "uri": "x:1", "always": true });
        gateway.call("a", "update", late).await;
        client.assert_quiet().await;
        other.assert_quiet().await;
        gateway.stop().await;
    }
}

#[tokio::test]
async fn several_clients_share_one_subscription_at_the_server() {
    for server_era in ERAS {
        let gateway = Gateway::start(server_era, &[("a", two_resources_and_a_prompt())]).await;
        let mut legacy = gateway.client(ProtocolEra::Legacy).await;
        let mut modern = gateway.client(ProtocolEra::Modern).await;
        for client in [&mut legacy, &mut modern] {
            client.subscribe(&["x:1"]).await;
        }
        gateway.wait_until_subscribed("a", &["x:1"]).await;
        gateway.update("a", "x:1").await;
        for client in [&mut legacy, &mut modern] {
            assert_eq!(client.next_updated_uri().await, "x:1");
        }
        legacy.unsubscribe(&["x:1"]).await;
        gateway.wait_until_subscribed("a", &["x:1"]).await;
        gateway.update("a", "x:1").await;
        assert_eq!(modern.next_updated_uri().await, "x:1");
        legacy.assert_quiet().await;
        // A client that is gone has no subscriptions.
        drop(modern);
        gateway.wait_until_subscribed("a", &[]).await;
        gateway.stop().await;
    }
}

#[tokio::test]
async fn updates_of_sub_resources_reach_their_subscriber() {
    let content = json!({ "resources": [{ "uri": "file:///a" }] });
    for (client_era, server_era) in era_pairs() {
        let servers = [("a", content.clone()), ("b", content.clone())];
        let gateway = Gateway::start(server_era, &servers).await;
        let mut client = gateway.client(client_era).await;
        let folder = "toolgate://b/file:///a";
        client.subscribe(&[folder]).await;
        gateway.wait_until_subscribed("b", &["file:///a"]).await;
        for server in ["a", "b"] {
            for uri in ["file:///a/x y", "file:///ab", "file:///"] {
                let update = json!({ "uri": uri, "always": true });
                gateway.call(server, "update", update).await;
            }
        }
        let changed = client.next_updated_uri().await;
        assert_eq!(changed, "toolgate://b/file:///a/x y");
        assert_eq!(client.read(&changed).await, "file:///a/x y of b");
        client.assert_quiet().await;
        client.unsubscribe(&[folder]).await;
        gateway.wait_until_subscribed("b", &[]).await;
        gateway.stop().await;
    }
}

#[tokio::test]
async fn unsubscribable_resources_are_refused() {
    let silent = json!({
        "capabilities": { "tools": {}, "resources": {} }, "resources": [{ "uri": "silent:1" }],
    });
    for client_era in ERAS {
        let servers = [
            ("a", two_resources_and_a_prompt()),
            ("silent", silent.clone()),
        ];
        let gateway = Gateway::start(ProtocolEra::Legacy, &servers).await;
        let mut client = gateway.client(client_era).await;
        let wanted = ["silent:1", "x:2", "unknown:1", "toolgate://unknown/x:1"];
        assert_eq!(client.subscribe(&wanted).await, ["x:2"]);
        gateway.wait_until_subscribed("a", &["x:2"]).await;
        assert!(
            gateway
                .received("silent", "resources/subscribe")
                .await
                .is_empty()
        );
        gateway.stop().await;
    }
}

#[tokio::test]
async fn changes_of_each_list_are_announced_by_its_own_kind() {
    for (client_era, server_era) in era_pairs() {
        let gateway = Gateway::start(server_era, &[("a", two_resources_and_a_prompt())]).await;
        let mut client = gateway.client(client_era).await;
        client.subscribe(&[]).await;
        let mut content = two_resources_and_a_prompt();
        for (kind, key, entry, method) in [
            (
                "resources",
                "resources",
                json!({ "uri": "x:3" }),
                "resources/list",
            ),
            (
                "resources",
                "templates",
                json!({ "uriTemplate": "x:{n}" }),
                "resources/templates/list",
            ),
            ("prompts", "prompts", json!({ "name": "q" }), "prompts/list"),
        ] {
            let before = client.list(method).await.len();
            let mut entries = content[key].as_array().cloned().unwrap_or_default();
            entries.push(entry);
            content[key] = json!(entries);
            gateway.write("a", &content);
            gateway.announce("a", kind).await;
            client.notification(&format!("{kind}/list_changed")).await;
            assert_eq!(client.list(method).await.len(), before + 1, "{key}");
        }
        // Nothing changed, whatever the server says.
        gateway.announce("a", "resources").await;
        tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
        client.assert_quiet().await;
        gateway.stop().await;
    }
}

#[tokio::test]
async fn no_update_is_lost_while_other_clients_subscribe() {
    for server_era in ERAS {
        let resources: Vec<Value> = (0..30)
            .map(|n| json!({ "uri": format!("x:{n}") }))
            .collect();
        let content = json!({ "resources": resources });
        let gateway = Gateway::start(server_era, &[("a", content)]).await;
        let mut client = gateway.client(ProtocolEra::Legacy).await;
        let mut other = gateway.client(ProtocolEra::Legacy).await;
        client.subscribe(&["x:0"]).await;
        gateway.wait_until_subscribed("a", &["x:0"]).await;
        // A new connection lists once more when its subscription is acknowledged.
        tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
        let listings = gateway.received("a", "tools/list").await.len();
        for n in 1..30 {
            other.subscribe(&[&format!("x:{n}")]).await;
            assert!(
                gateway.update("a", "x:0").await,
                "{n}: the subscription is lost"
            );
            assert_eq!(client.next_updated_uri().await, "x:0");
        }
        tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
        let now = gateway.received("a", "tools/list").await.len();
        assert_eq!(
            now, listings,
            "a subscription must not cause another listing"
        );
        gateway.stop().await;
    }
}

#[tokio::test]
async fn a_modern_client_is_notified_only_of_requested_lists() {
    let gateway = Gateway::start(ProtocolEra::Legacy, &[("a", two_resources_and_a_prompt())]).await;
    let mut client = gateway.client(ProtocolEra::Modern).await;
    let filter = json!({ "promptsListChanged": true });
    let listening = client
        .start("subscriptions/listen", json!({ "notifications": filter }))
        .await;
    client.wait_for("subscriptions/acknowledged").await;
    let mut content = two_resources_and_a_prompt();
    content["resources"] = json!([]);
    content["prompts"] = json!([]);
    gateway.write("a", &content);
    gateway.announce("a", "resources").await;
    client.wait_for("prompts/list_changed").await;
    client.assert_quiet().await;
    drop(listening);
    gateway.stop().await;
}
