//! Endless lists, floods of notifications, and invalid entries in lists.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use toolgate_mcp::ProtocolEra;

use crate::gateway::{ERAS, Gateway, era_pairs};

#[tokio::test]
async fn endless_lists_are_cut() {
    let content = json!({
        "resources": [{ "uri": "x:1" }], "templates": [{ "uriTemplate": "x:{n}" }],
        "prompts": [{ "name": "p" }],
    });
    for (mode, many) in [
        ("cursor=same", 0),
        ("cursor=endless", 0),
        ("describe=1", 100_000),
    ] {
        for era in ERAS {
            let mut content = content.clone();
            content["many"] = json!(many);
            let started = Instant::now();
            let mut gateway = Gateway::prepare(era, &[("s", content)], |_| {});
            gateway.add_argument("s", mode);
            gateway.apply().await;
            assert!(started.elapsed() < Duration::from_secs(50), "{mode}");
            let mut client = gateway.client(era).await;
            for method in ["resources/list", "resources/templates/list", "prompts/list"] {
                let count = client.list(method).await.len();
                assert!((1..=1000).contains(&count), "{mode} {method}: {count}");
            }
            assert_eq!(client.read("x:1").await, "x:1 of s");
            gateway.stop().await;
        }
    }
}

#[tokio::test]
async fn invalid_entries_in_lists_are_left_out() {
    let invalid = [
        json!(null),
        json!(7),
        json!("x:1"),
        json!([]),
        json!({}),
        json!({ "name": 5 }),
    ];
    let list = |valid: Value| -> Vec<Value> { invalid.iter().cloned().chain([valid]).collect() };
    let content = json!({
        "resources": list(json!({ "uri": "x:1", "title": 3, "icons": "none", "_meta": [] })),
        "templates": list(json!({ "uriTemplate": "x:{n}", "annotations": [] })),
        "prompts": list(json!({ "name": "p", "arguments": [null, { "name": 1 }, { "name": "a" }] })),
    });
    for (client_era, server_era) in era_pairs() {
        let gateway = Gateway::start(server_era, &[("s", content.clone())]).await;
        let mut client = gateway.client(client_era).await;
        let listed = client.result("resources/list", json!({})).await;
        assert_eq!(
            listed["resources"],
            json!([{ "uri": "x:1", "name": "x:1" }])
        );
        let listed = client.result("resources/templates/list", json!({})).await;
        let template = json!([{ "uriTemplate": "x:{n}", "name": "x:{n}" }]);
        assert_eq!(listed["resourceTemplates"], template);
        let listed = client.list("prompts/list").await;
        assert_eq!(listed, ["p"]);
        let listed = client.result("prompts/list", json!({})).await;
        assert_eq!(listed["prompts"][0]["arguments"], json!([{ "name": "a" }]));
        gateway.stop().await;
    }
}

#[tokio::test]
async fn an_invalid_list_affects_nothing_else() {
    for broken in [json!("none"), json!({ "uri": "x:1" }), json!(3)] {
        let content = json!({ "resources": broken, "prompts": [{ "name": "p" }] });
        let mut gateway = Gateway::prepare(ProtocolEra::Legacy, &[("s", content)], |_| {});
        gateway.add_argument("s", "describe=1");
        gateway.apply().await;
        let mut client = gateway.client(ProtocolEra::Legacy).await;
        assert!(client.list("resources/list").await.is_empty());
        assert_eq!(client.list("prompts/list").await, ["p"]);
        assert!(client.list("tools/list").await.contains(&"echo".to_owned()));
        gateway.stop().await;
    }
}

#[tokio::test]
async fn a_flood_of_updates_is_coalesced() {
    let content = json!({ "resources": [{ "uri": "x:1" }, { "uri": "x:2" }] });
    for (client_era, server_era) in era_pairs() {
        let servers = [
            ("s", content.clone()),
            ("neighbour", json!({ "resources": [{ "uri": "y:1" }] })),
        ];
        let gateway = Gateway::start(server_era, &servers).await;
        let mut client = gateway.client(client_era).await;
        client.subscribe(&["x:1"]).await;
        gateway.wait_until_subscribed("s", &["x:1"]).await;
        let subscribed = json!({ "uri": "x:1", "times": 20_000 });
        let unsubscribed = json!({ "uri": "x:2", "times": 20_000, "always": true });
        let both = futures::future::join(
            gateway.call("s", "update", subscribed),
            gateway.call("s", "update", unsubscribed),
        );
        let started = Instant::now();
        let (_, read) = futures::future::join(both, client.read("y:1")).await;
        assert_eq!(read, "y:1 of neighbour");
        assert!(started.elapsed() < Duration::from_secs(50));
        let updates = client.drain().await;
        assert!((1..=20_000).contains(&updates.len()), "{}", updates.len());
        assert!(
            updates
                .iter()
                .all(|update| update["params"]["uri"] == "x:1")
        );
        gateway.stop().await;
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_gets_one_update_of_each_resource() {
    let content = json!({ "resources": [{ "uri": "x:1" }] });
    let gateway = Gateway::start(ProtocolEra::Legacy, &[("s", content)]).await;
    let mut client = gateway.client(ProtocolEra::Legacy).await;
    client.subscribe(&["x:1"]).await;
    gateway.wait_until_subscribed("s", &["x:1"]).await;
    // In one piece, so that they arrive before the client's task runs.
    let update =
        r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x:1"}}\n"#;
    let answer = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}\n"#;
    let text = update.repeat(10_000) + answer;
    gateway.call("s", "raw", json!({ "text": text })).await;
    let updates = client.drain().await.len();
    assert!((1..=1000).contains(&updates), "{updates}");
    gateway.stop().await;
}

#[tokio::test]
async fn invalid_notifications_are_ignored() {
    let gateway = Gateway::start(
        ProtocolEra::Legacy,
        &[("s", json!({ "resources": [{ "uri": "x:1" }] }))],
    )
    .await;
    let mut client = gateway.client(ProtocolEra::Modern).await;
    client.subscribe(&["x:1"]).await;
    gateway.wait_until_subscribed("s", &["x:1"]).await;
    for params in [
        json!({}),
        json!({ "uri": 7 }),
        json!([]),
        json!(null),
        json!({ "uri": "" }),
    ] {
        let arguments = json!({ "method": "notifications/resources/updated", "params": params });
        let call = toolgate_core::ToolCall::new("s__notify", arguments);
        gateway.executor.execute(call).await;
    }
    client.assert_quiet().await;
    assert!(gateway.update("s", "x:1").await);
    assert_eq!(client.next_updated_uri().await, "x:1");
    gateway.stop().await;
}
