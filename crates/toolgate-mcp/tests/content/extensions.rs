//! What clients and servers declare of extensions reaches the other side, and requests of an
//! extension reach the one server that has it.

use serde_json::{Value, json};
use toolgate_mcp::ProtocolEra;

use crate::client::TestClient;
use crate::gateway::{Gateway, era_pairs};

const THING: &str = "com.example/thing";
const APPS: &str = "io.modelcontextprotocol/ui";
const SKILLS: &str = "io.modelcontextprotocol/skills";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

async fn client_with(gateway: &Gateway, era: ProtocolEra, extensions: Value) -> TestClient {
    let capabilities = json!({ "extensions": extensions });
    TestClient::with_capabilities(gateway.server.clone(), era, capabilities).await
}

/// What servers declare, and what Toolgate itself supports in an era.
fn with_own_extensions(era: ProtocolEra, mut declared: Value) -> Value {
    declared[SKILLS] = json!({});
    if era == ProtocolEra::Modern {
        declared["io.modelcontextprotocol/tasks"] = json!({});
    }
    declared
}

#[tokio::test]
async fn a_client_sees_what_its_servers_declare() {
    let one = json!({ "extensions": {
        THING: { "on": true, "level": 1 }, APPS: {}, "io.modelcontextprotocol/tasks": {},
        "not an id": {}, "com.example/list": [],
    } });
    let two = json!({ "extensions": { THING: { "on": true, "level": 2 }, "com.example/own": { "x": 1 } } });
    for (client_era, server_era) in era_pairs() {
        let servers = [("one", one.clone()), ("two", two.clone())];
        let gateway = Gateway::start(server_era, &servers).await;
        let client = gateway.client(client_era).await;
        let shared = json!({ THING: { "on": true }, APPS: {}, "com.example/own": { "x": 1 } });
        assert_eq!(
            client.hello["capabilities"]["extensions"],
            with_own_extensions(client_era, shared)
        );

        let client = gateway.client_within(client_era, &["one/*"], &[]).await;
        let of_one = json!({ THING: { "on": true, "level": 1 }, APPS: {} });
        assert_eq!(
            client.hello["capabilities"]["extensions"],
            with_own_extensions(client_era, of_one)
        );
        let client = gateway.client_within(client_era, &["none/*"], &[]).await;
        assert_eq!(
            client.hello["capabilities"]["extensions"],
            with_own_extensions(client_era, json!({}))
        );
        gateway.stop().await;
    }
}

#[tokio::test]
async fn a_server_hears_what_the_client_of_a_call_declares() {
    let content = json!({ "resources": [{ "uri": "x:1" }] });
    for (client_era, server_era) in era_pairs() {
        let servers = [("s", content.clone())];
        let gateway = Gateway::prepare(server_era, &servers, |options| {
            options.relays_questions = true;
        });
        gateway.start_all().await;
        let pages = json!({ "mimeTypes": ["text/html;profile=mcp-app"] });
        match server_era {
            // Its session is there before any client.
            ProtocolEra::Legacy => {
                let hello = &gateway.received("s", "initialize").await[0];
                let shared = json!({ SKILLS: {}, APPS: pages });
                assert_eq!(hello["capabilities"]["extensions"], shared);
            }
            ProtocolEra::Modern => {
                let list = &gateway.received("s", "tools/list").await[0];
                let shared = json!({ SKILLS: {}, APPS: pages });
                assert_eq!(list["_meta"][CAPABILITIES]["extensions"], shared);
                for (declared, expected) in [
                    (json!({}), json!({ SKILLS: {} })),
                    (
                        json!({ THING: { "k": [1] }, APPS: { "mimeTypes": [] }, "io.modelcontextprotocol/tasks": { "t": 1 } }),
                        json!({ SKILLS: {}, THING: { "k": [1] }, APPS: { "mimeTypes": [] } }),
                    ),
                ] {
                    let mut client = client_with(&gateway, client_era, declared).await;
                    client.read("x:1").await;
                    let reads = gateway.received("s", "resources/read").await;
                    let capabilities = &reads.last().unwrap()["_meta"][CAPABILITIES];
                    assert_eq!(capabilities["extensions"], expected);
                }
            }
        }
        gateway.stop().await;
    }
}

#[tokio::test]
async fn a_method_of_an_extension_reaches_the_server_that_has_it_and_no_other() {
    let content = |id: &str| {
        let answer = json!({ "hits": [id], "uri": "x:1", "_meta": { "k": 1 } });
        json!({ "extensions": { id: {} }, "methods": { "thing/find": answer, "vendor/x": {} } })
    };
    let answered = json!([THING]);
    for (client_era, server_era) in era_pairs() {
        let servers = [
            ("thing", content(THING)),
            ("own", content("com.example/own")),
        ];
        let gateway = Gateway::start(server_era, &servers).await;
        let both = json!({ THING: {}, "com.example/own": {}, SKILLS: {} });
        let mut client = client_with(&gateway, client_era, both.clone()).await;
        let params = json!({ "q": "x", "_meta": { "example.org/a": 1 } });
        let result = client.result("thing/find", params.clone()).await;
        assert_eq!(result["hits"], answered);
        assert_eq!(
            (&result["uri"], &result["_meta"]["k"]),
            (&json!("x:1"), &json!(1))
        );
        let received = gateway.received("thing", "thing/find").await;
        assert_eq!(
            (&received[0]["q"], &received[0]["_meta"]["example.org/a"]),
            (&json!("x"), &json!(1))
        );
        assert!(gateway.received("own", "thing/find").await.is_empty());

        // The server is ambiguous, the method is not one of an extension, or the client doesn't
        // have the extension.
        for method in ["vendor/x", "resources/x", "tasks/x", "ui/x", "skills/x"] {
            let error = client.expect_error(method, json!({})).await;
            assert_eq!(error["code"], -32601, "{method}: {error}");
        }
        let mut other = client_with(&gateway, client_era, json!({ "com.example/z": {} })).await;
        assert_eq!(
            other.expect_error("thing/find", json!({})).await["code"],
            -32601
        );
        for method in ["vendor/x", "resources/x", "thing/find"] {
            let received = gateway.received("own", method).await;
            assert!(received.is_empty(), "{method}: {received:?}");
        }

        // Scopes know it under its own name.
        let scope =
            gateway
                .server
                .within(toolgate_core::Scope::default().except(vec![
                    toolgate_core::ToolPattern::new("thing/extensions/request"),
                ]));
        let capabilities = json!({ "extensions": both });
        let mut without = TestClient::with_capabilities(scope, client_era, capabilities).await;
        assert_eq!(
            without.expect_error("thing/find", params).await["code"],
            -32601
        );
        assert_eq!(gateway.received("thing", "thing/find").await.len(), 1);
        gateway.stop().await;
    }
}

#[tokio::test]
async fn an_extension_of_hostile_size_is_not_passed_on() {
    let mut extensions = json!({ "x/large": { "text": "x".repeat(5000) } });
    for n in 0..1000 {
        extensions[format!("x/{n}")] = json!({ "n": n });
    }
    for (client_era, server_era) in era_pairs() {
        let content = json!({ "extensions": extensions });
        let gateway = Gateway::start(server_era, &[("s", content)]).await;
        let client = client_with(&gateway, client_era, extensions.clone()).await;
        let declared = client.hello["capabilities"]["extensions"]
            .as_object()
            .unwrap();
        let own = with_own_extensions(client_era, json!({}));
        assert_eq!(declared.len(), 32 + own.as_object().unwrap().len());
        assert!(!declared.contains_key("x/large"));
        gateway.stop().await;
    }
}
