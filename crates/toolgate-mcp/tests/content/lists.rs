//! Lists, reads, prompts and completion, in every pair of eras.

use serde_json::{Value, json};
use toolgate_mcp::ProtocolEra;

use crate::gateway::{Gateway, era_pairs};

fn notes() -> Value {
    json!({
        "instructions": "Read notes:rules first.",
        "resources": [{ "uri": "notes:rules", "name": "rules" }, { "uri": "notes:list", "name": "list" }],
        "templates": [{ "uriTemplate": "notes:{day}", "name": "day" }],
        "prompts": [{ "name": "review", "arguments": [{ "name": "what", "required": true }] }],
    })
}

#[tokio::test]
async fn everything_is_listed_read_and_completed() {
    for (client_era, server_era) in era_pairs() {
        let gateway = Gateway::start(server_era, &[("notes", notes())]).await;
        let mut client = gateway.client(client_era).await;
        let capabilities = &client.hello["capabilities"];
        assert_eq!(capabilities["resources"]["subscribe"], true);
        assert!(capabilities["prompts"].is_object() && capabilities["completions"].is_object());
        assert_eq!(
            client.list("resources/list").await,
            ["notes:rules", "notes:list"]
        );
        assert_eq!(
            client.list("resources/templates/list").await,
            ["notes:{day}"]
        );
        assert_eq!(client.list("prompts/list").await, ["review"]);
        // A URI that only a template describes.
        for uri in ["notes:list", "notes:monday"] {
            assert_eq!(client.read(uri).await, format!("{uri} of notes"));
        }
        let arguments = json!({ "name": "review", "arguments": { "what": "häl\nlo" } });
        let prompt = client.result("prompts/get", arguments.clone()).await;
        assert_eq!(prompt["messages"][0]["content"]["text"], "review of notes");
        let received = gateway.received("notes", "prompts/get").await;
        assert_eq!(received[0]["arguments"], arguments["arguments"]);
        for (reference, name) in [
            (json!({ "type": "ref/prompt", "name": "review" }), "review"),
            (
                json!({ "type": "ref/resource", "uri": "notes:{day}" }),
                "notes:{day}",
            ),
        ] {
            let params = json!({
                "ref": reference, "argument": { "name": "what", "value": "c" },
                "context": { "arguments": { "a": "b" } },
            });
            let completed = client.result("completion/complete", params.clone()).await;
            let expected = json!([format!("{name} of notes")]);
            assert_eq!(completed["completion"]["values"], expected);
            let mut received = gateway.received("notes", "completion/complete").await;
            let mut received = received.pop().unwrap();
            received.as_object_mut().unwrap().remove("_meta");
            assert_eq!(received, params);
        }
        let is_modern = client_era == ProtocolEra::Modern;
        let read = client
            .result("resources/read", json!({ "uri": "notes:list" }))
            .await;
        assert_eq!(read["resultType"] == "complete", is_modern, "{read}");
        assert_eq!(read["cacheScope"] == "private", is_modern, "{read}");
        gateway.stop().await;
    }
}

#[tokio::test]
async fn unknown_content_is_not_found_and_reaches_no_server() {
    for (client_era, server_era) in era_pairs() {
        let gateway = Gateway::start(server_era, &[("notes", notes())]).await;
        let mut client = gateway.client(client_era).await;
        let code = match client_era {
            ProtocolEra::Legacy => -32002,
            ProtocolEra::Modern => -32602,
        };
        for uri in ["other:1", "toolgate://unknown/notes:list", "no uri", ""] {
            let error = client
                .expect_error("resources/read", json!({ "uri": uri }))
                .await;
            assert_eq!(error["code"], code, "{error}");
            assert_eq!(error["data"]["uri"], uri);
        }
        let error = client
            .expect_error("prompts/get", json!({ "name": "x" }))
            .await;
        assert_eq!(error["code"], -32602, "{error}");
        let reference = json!({ "type": "ref/prompt", "name": "x" });
        let params = json!({ "ref": reference, "argument": { "name": "a", "value": "" } });
        let error = client.expect_error("completion/complete", params).await;
        assert_eq!(error["code"], -32602, "{error}");
        for method in ["resources/read", "prompts/get", "completion/complete"] {
            for wrong in [json!({}), json!({ "uri": 3, "name": [], "ref": "x" })] {
                let error = client.expect_error(method, wrong).await;
                assert_eq!(error["code"], -32602, "{method}: {error}");
            }
            assert!(gateway.received("notes", method).await.is_empty());
        }
        gateway.stop().await;
    }
}

#[tokio::test]
async fn a_server_that_completes_nothing_has_no_suggestions() {
    let content = json!({
        "capabilities": { "tools": {}, "prompts": {} },
        "prompts": [{ "name": "review" }],
    });
    let gateway = Gateway::start(ProtocolEra::Legacy, &[("notes", content)]).await;
    let mut client = gateway.client(ProtocolEra::Modern).await;
    let reference = json!({ "type": "ref/prompt", "name": "review" });
    let params = json!({ "ref": reference, "argument": { "name": "a", "value": "" } });
    let completed = client.result("completion/complete", params).await;
    assert_eq!(completed["completion"]["values"], json!([]));
    gateway.stop().await;
}

#[tokio::test]
async fn instructions_are_joined_under_the_names_of_their_servers_and_bounded() {
    let long = json!({ "instructions": "x".repeat(10_000), "resources": [] });
    let names: Vec<String> = (0..12).map(|n| format!("long{n}")).collect();
    let mut servers = vec![("notes", notes())];
    servers.extend(names.iter().map(|name| (name.as_str(), long.clone())));
    for (client_era, server_era) in era_pairs() {
        let gateway = Gateway::start(server_era, &servers).await;
        let client = gateway.client(client_era).await;
        let text = client.hello["instructions"].as_str().unwrap();
        assert!(text.contains("\n\n# mcp:notes\nRead notes:rules first.\n\n# mcp:long0\nxxx"));
        assert!(text.contains("xxx […]\n\n# mcp:long1"), "each one is cut");
        assert!(text.ends_with("\n\n[…]") && !text.contains("# mcp:long11"));
        assert!((20_000..36_000).contains(&text.len()), "{}", text.len());
        gateway.stop().await;
    }
}
