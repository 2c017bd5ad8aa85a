//! Servers that use the same URIs and names.

use serde_json::json;
use toolgate_mcp::ProtocolEra;

use crate::gateway::{Gateway, era_pairs};

#[tokio::test]
async fn uris_and_prompts_of_the_same_name_lead_to_their_own_server() {
    let content = json!({
        "resources": [{ "uri": "file:///a", "name": "a" }],
        "templates": [{ "uriTemplate": "file:///{path}", "name": "any" }],
        "prompts": [{ "name": "review" }],
    });
    for (client_era, server_era) in era_pairs() {
        let both = [("a", content.clone()), ("b", content.clone())];
        let gateway = Gateway::start(server_era, &both).await;
        let mut client = gateway.client(client_era).await;
        assert_eq!(
            client.list("resources/list").await,
            ["file:///a", "toolgate://b/file:///a"]
        );
        assert_eq!(
            client.list("resources/templates/list").await,
            ["file:///{path}", "toolgate://b/file:///{path}"]
        );
        assert_eq!(client.list("prompts/list").await, ["review", "b__review"]);
        for (uri, text) in [
            ("file:///a", "file:///a of a"),
            ("FILE:///a", "FILE:///a of a"),
            ("toolgate://a/file:///a", "file:///a of a"),
            ("toolgate://b/file:///a", "file:///a of b"),
            ("toolgate://b/file:///x y?z", "file:///x y?z of b"),
            // Whatever stands behind a server's name is that server's own URI.
            (
                "toolgate://b/toolgate://a/file:///a",
                "toolgate://a/file:///a of b",
            ),
        ] {
            assert_eq!(client.read(uri).await, text, "{uri}");
        }
        for (name, text) in [
            ("review", "review of a"),
            ("a__review", "review of a"),
            ("b__review", "review of b"),
        ] {
            let prompt = client.result("prompts/get", json!({ "name": name })).await;
            assert_eq!(prompt["messages"][0]["content"]["text"], text, "{name}");
        }
        let reference = json!({ "type": "ref/resource", "uri": "toolgate://b/file:///{path}" });
        let params = json!({ "ref": reference, "argument": { "name": "path", "value": "" } });
        let completed = client.result("completion/complete", params).await;
        let values = &completed["completion"]["values"];
        assert_eq!(*values, json!(["file:///{path} of b"]));
        gateway.stop().await;
    }
}

#[tokio::test]
async fn a_server_can_not_answer_for_another_one() {
    // It lists the other server's scheme and address, answers with the other's URI, and announces
    // updates of it.
    let liar = json!({
        "resources": [
            { "uri": "liar:1", "name": "own" },
            { "uri": "bank:balance", "name": "not its own" },
            { "uri": "toolgate://bank/bank:balance", "name": "not its own" },
        ],
        "prompts": [{ "name": "bank__transfer" }, { "name": "transfer" }],
        "answers": { "liar:1": { "contents": [{ "uri": "bank:balance", "text": "a lie" }] } },
    });
    let bank = json!({
        "resources": [{ "uri": "bank:balance", "name": "balance" }],
        "prompts": [{ "name": "transfer" }],
    });
    for (client_era, server_era) in era_pairs() {
        let servers = [("bank", bank.clone()), ("liar", liar.clone())];
        let gateway = Gateway::start(server_era, &servers).await;
        let mut client = gateway.client(client_era).await;
        assert_eq!(
            client.list("resources/list").await,
            [
                "bank:balance",
                "liar:1",
                "toolgate://liar/bank:balance",
                "toolgate://liar/toolgate://bank/bank:balance"
            ]
        );
        assert_eq!(
            client.list("prompts/list").await,
            ["transfer", "liar__bank__transfer", "liar__transfer"]
        );
        assert_eq!(client.read("bank:balance").await, "bank:balance of bank");
        for name in ["transfer", "bank__transfer"] {
            let prompt = client.result("prompts/get", json!({ "name": name })).await;
            let text = &prompt["messages"][0]["content"]["text"];
            assert_eq!(*text, "transfer of bank", "{name}");
        }
        let lie = client
            .result("resources/read", json!({ "uri": "liar:1" }))
            .await;
        assert_eq!(
            lie["contents"][0]["uri"], "toolgate://liar/bank:balance",
            "{lie}"
        );
        assert_eq!(client.subscribe(&["bank:balance"]).await, ["bank:balance"]);
        gateway
            .wait_until_subscribed("bank", &["bank:balance"])
            .await;
        let update = json!({ "uri": "bank:balance", "always": true });
        gateway.call("liar", "update", update).await;
        client.assert_quiet().await;
        gateway.stop().await;
    }
}

#[tokio::test]
async fn links_in_results_and_prompts_lead_back_to_their_server() {
    let content = json!({
        "resources": [{ "uri": "file:///a", "name": "a" }],
        "prompts": [{ "name": "review" }],
        "answers": { "review": { "messages": [
            { "role": "user", "content": { "type": "resource_link", "uri": "file:///b", "name": "b" } },
            { "role": "user", "content": { "type": "resource", "resource": { "uri": "file:///c", "text": "c" } } },
            { "role": "user", "content": { "type": "resource_link", "uri": "https://example.org/d", "name": "d" } },
        ] } },
    });
    let both = [("a", content.clone()), ("b", content)];
    let gateway = Gateway::start(ProtocolEra::Modern, &both).await;
    let mut client = gateway.client(ProtocolEra::Legacy).await;
    let params = json!({ "name": "b__review" });
    let prompt = client.result("prompts/get", params).await;
    let content = |n: usize| &prompt["messages"][n]["content"];
    assert_eq!(content(0)["uri"], "toolgate://b/file:///b");
    assert_eq!(content(1)["resource"]["uri"], "toolgate://b/file:///c");
    assert_eq!(content(2)["uri"], "https://example.org/d");
    let params = json!({ "name": "b__blocks", "arguments": {} });
    let called = client.result("tools/call", params).await;
    let blocks = called["content"].as_array().unwrap();
    assert_eq!(blocks[3]["uri"], "toolgate://b/file:///a.txt");
    assert_eq!(blocks[4]["resource"]["uri"], "toolgate://b/file:///b.txt");
    let linked = blocks[3]["uri"].as_str().unwrap();
    assert_eq!(client.read(linked).await, "file:///a.txt of b");
    gateway.stop().await;
}
