//! What is known of a server's content while the server isn't running.

use serde_json::{Value, json};

use crate::gateway::{Gateway, era_pairs};

fn content() -> Value {
    json!({
        "instructions": "hints", "resources": [{ "uri": "x:1", "name": "one" }],
        "templates": [{ "uriTemplate": "x:{n}" }], "prompts": [{ "name": "p", "title": "P" }],
        "extensions": { "com.example/thing": { "on": true }, "io.modelcontextprotocol/skills": {} },
        "skills": [{
            "uri": "skill://a/SKILL.md", "frontmatter": { "name": "a", "description": "d" },
            "resources": "dynamic",
        }],
    })
}

#[tokio::test]
async fn a_restart_lists_without_starting_the_server_and_a_read_starts_it() {
    for (client_era, server_era) in era_pairs() {
        let mut gateway = Gateway::prepare(server_era, &[("s", content())], |_| {});
        gateway.add_argument("s", "failing=0:@/starts");
        gateway.apply().await;
        let starts =
            |gateway: &Gateway| std::fs::metadata(gateway.path("starts")).map_or(0, |it| it.len());
        let before = starts(&gateway);
        gateway.servers.stop().await;
        let gateway = gateway.again(|options| options.on_demand = true);
        let mut client = gateway.client(client_era).await;
        let told = client.hello["instructions"].as_str().unwrap();
        assert!(told.contains("# mcp:s\nhints"), "{told}");
        assert_eq!(client.list("resources/list").await, ["x:1"]);
        assert_eq!(client.list("resources/templates/list").await, ["x:{n}"]);
        let prompts = client.result("prompts/list", json!({})).await;
        assert_eq!(prompts["prompts"][0]["title"], "P");
        let extensions = &client.hello["capabilities"]["extensions"];
        assert_eq!(extensions["com.example/thing"], json!({ "on": true }));
        let skills = client.result("skills/list", json!({})).await;
        assert_eq!(skills["skills"], content()["skills"]);
        // A subscription waits for the server, and doesn't start it.
        assert_eq!(client.subscribe(&["x:1"]).await, ["x:1"]);
        client.assert_quiet().await;
        assert_eq!(starts(&gateway), before, "nothing was started");
        assert_eq!(client.read("x:1").await, "x:1 of s");
        assert_eq!(starts(&gateway), before + 1);
        gateway.wait_until_subscribed("s", &["x:1"]).await;
        client.drain().await;
        assert!(gateway.update("s", "x:1").await);
        assert_eq!(client.next_updated_uri().await, "x:1");
        gateway.stop().await;
    }
}

#[tokio::test]
async fn changed_content_after_a_restart_is_listed() {
    for (client_era, server_era) in era_pairs() {
        let gateway = Gateway::start(server_era, &[("s", content())]).await;
        gateway.servers.stop().await;
        gateway.write(
            "s",
            &json!({ "resources": [{ "uri": "x:2" }], "prompts": [] }),
        );
        let gateway = gateway.again(|options| options.on_demand = true);
        let mut client = gateway.client(client_era).await;
        client.subscribe(&[]).await;
        assert_eq!(client.list("resources/list").await, ["x:1"]);
        client
            .result("resources/read", json!({ "uri": "x:2" }))
            .await;
        client.wait_for("resources/list_changed").await;
        assert_eq!(client.list("resources/list").await, ["x:2"]);
        assert!(client.list("prompts/list").await.is_empty());
        gateway.stop().await;
    }
}
