//! Messages of extensions that nobody here knows pass in both directions, between sides that both
//! declare the extension, and reach nobody else.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use toolgate_core::{Scope, ToolPattern};
use toolgate_mcp::{McpServer, ProtocolEra};

use crate::client::{PATIENCE, TestClient};
use crate::gateway::{Gateway, era_pairs};

const THING: &str = "com.example/thing";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const CHANGED: &str = "notifications/thing/changed";

async fn start(era: ProtocolEra) -> Gateway {
    let content = json!({ "extensions": { THING: {} }, "resources": [{ "uri": "x:1" }] });
    let other = json!({ "extensions": { "com.example/other": {} } });
    let servers = [("s", content), ("other", other)];
    let gateway = Gateway::prepare(era, &servers, |options| options.relays_questions = true);
    gateway.start_all().await;
    gateway
}

async fn client(gateway: &Gateway, era: ProtocolEra) -> TestClient {
    TestClient::with_extensions(
        gateway.server.clone(),
        era,
        json!({ THING: { "on": true } }),
    )
    .await
}

fn without_right(gateway: &Gateway) -> McpServer {
    let pattern = ToolPattern::new("s/extensions/request");
    gateway
        .server
        .within(Scope::default().except(vec![pattern]))
}

/// What the fake server writes for the messages: `$ID` is the id of the call.
fn lines(messages: &[Value]) -> String {
    let line = |message: &Value| {
        let mut message = message.clone();
        message["jsonrpc"] = json!("2.0");
        message
            .to_string()
            .replace("\"$ID\"", "$ID")
            .replace('\\', "\\\\")
            + "\\n"
    };
    messages.iter().map(line).collect()
}

fn done() -> Value {
    json!({ "id": "$ID", "result": { "content": [], "resultType": "complete" } })
}

fn notification(method: &str, params: &Value) -> Value {
    json!({ "method": method, "params": params })
}

/// Has the server of a call write these messages, one of which is its response.
async fn write(client: &mut TestClient, messages: &[Value]) -> Value {
    let params = json!({ "name": "s__raw", "arguments": { "text": lines(messages) } });
    client.result("tools/call", params).await
}

/// The notifications of this method that a server has received, once there are so many.
async fn until_heard(gateway: &Gateway, server: &str, method: &str, count: usize) -> Vec<Value> {
    let started = Instant::now();
    loop {
        let heard = gateway.received(server, method).await;
        if heard.len() >= count {
            return heard;
        }
        assert!(started.elapsed() < PATIENCE, "{heard:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn notifications_of_a_client_reach_the_server_that_has_the_extension() {
    for (client_era, server_era) in era_pairs() {
        let gateway = start(server_era).await;
        let mut client = client(&gateway, client_era).await;
        for n in 0..20 {
            let params = json!({ "n": n, "_meta": { "example.org/a": [1.5] } });
            client.notify(CHANGED, params).await;
        }
        client.notify("thing/poke", json!({})).await;
        let heard = until_heard(&gateway, "s", CHANGED, 20).await;
        for (n, params) in heard.iter().enumerate() {
            assert_eq!(params["n"], n, "{heard:?}");
            assert_eq!(params["_meta"]["example.org/a"].to_string(), "[1.5]");
            if server_era == ProtocolEra::Modern {
                let declared = &params["_meta"][CAPABILITIES]["extensions"];
                assert_eq!(declared[THING], json!({ "on": true }));
            }
        }
        until_heard(&gateway, "s", "thing/poke", 1).await;
        for method in [CHANGED, "thing/poke"] {
            assert!(gateway.received("other", method).await.is_empty());
        }
        gateway.stop().await;
    }
}

#[tokio::test]
async fn notifications_without_a_right_or_an_extension_reach_no_server() {
    let methods = [
        CHANGED,
        "notifications/initialized",
        "notifications/roots/list_changed",
        "notifications/elicitation/complete",
        "notifications/tasks/x",
        "notifications/later",
        "tools/thing",
        "thing/a b",
    ];
    for (client_era, server_era) in era_pairs() {
        let gateway = start(server_era).await;
        let nothing = json!({ "com.example/nothing": {} });
        let undeclared = TestClient::with_extensions(gateway.server.clone(), client_era, nothing);
        let declared = json!({ THING: {} });
        let forbidden =
            TestClient::with_extensions(without_right(&gateway), client_era, declared.clone());
        for mut client in [undeclared.await, forbidden.await] {
            for method in methods {
                client.notify(method, json!({})).await;
            }
            client.read("x:1").await;
        }
        let mut client = client(&gateway, client_era).await;
        for method in &methods[1..] {
            client.notify(method, json!({})).await;
        }
        client.notify("thing/last", json!({})).await;
        until_heard(&gateway, "s", "thing/last", 1).await;
        // The gateway's own handshake has one.
        for method in methods
            .iter()
            .filter(|it| **it != "notifications/initialized")
        {
            let heard = gateway.received("s", method).await;
            assert!(heard.is_empty(), "{method}: {heard:?}");
        }
        gateway.stop().await;
    }
}

#[tokio::test]
async fn notifications_of_a_server_reach_the_client_whose_call_they_are_about() {
    let meta = json!({ "example.org/a": 1, "io.modelcontextprotocol/subscriptionId": 7 });
    let params = json!({ "z": [1.5, null], "a": "ü", "_meta": meta });
    let expected = json!({ "z": [1.5, null], "a": "ü", "_meta": { "example.org/a": 1 } });
    for (client_era, server_era) in era_pairs() {
        let gateway = start(server_era).await;
        let mut client = client(&gateway, client_era).await;
        let mut other = self::client(&gateway, client_era).await;
        for method in [CHANGED, "notifications/thing", "com.example/thing/x"] {
            write(&mut client, &[notification(method, &params), done()]).await;
            let told = client.drain().await;
            assert_eq!(told.len(), 1, "{method}: {told:?}");
            assert_eq!(told[0]["method"], method);
            assert_eq!(told[0]["params"].to_string(), expected.to_string());
        }
        // A server up to 2025-11-25 may go on with what another client has asked for.
        other.read("x:1").await;
        write(&mut client, &[notification(CHANGED, &params), done()]).await;
        let told = client.drain().await.len();
        assert_eq!(told == 1, server_era == ProtocolEra::Modern);
        other.assert_quiet().await;
        gateway.stop().await;
    }
}

#[tokio::test]
async fn notifications_of_a_server_reach_nobody_without_extension_right_or_certainty() {
    for (client_era, server_era) in era_pairs() {
        let gateway = start(server_era).await;
        let nothing = json!({ "com.example/other": {}, "com.example/nothing": {} });
        let undeclared = TestClient::with_extensions(gateway.server.clone(), client_era, nothing);
        let declared = json!({ THING: {} });
        let forbidden = TestClient::with_extensions(without_right(&gateway), client_era, declared);
        for mut client in [undeclared.await, forbidden.await] {
            write(&mut client, &[notification(CHANGED, &json!({})), done()]).await;
            client.assert_quiet().await;
        }
        let mut ada = client(&gateway, client_era).await;
        let methods = [
            "notifications/later",
            "notifications/prompts/x",
            "notifications/initialized",
            "tools/x",
            "notifications/thing/a b",
        ];
        let hostile = methods.map(|method| notification(method, &json!({})));
        let messages = [&hostile[..], &[done()]].concat();
        write(&mut ada, &messages).await;
        ada.assert_quiet().await;

        // Two clients use the server at the same time, and nothing says whom it means.
        let mut bob = client(&gateway, client_era).await;
        let sleep = json!({ "name": "s__sleep", "arguments": { "ms": 1000 } });
        let (_, slept) = bob.start("tools/call", sleep).await;
        let started = Instant::now();
        while gateway
            .received("s", "tools/call")
            .await
            .iter()
            .all(|call| call["name"] != "sleep")
        {
            assert!(started.elapsed() < PATIENCE);
        }
        write(&mut ada, &[notification(CHANGED, &json!({})), done()]).await;
        assert!(!slept.await.unwrap()["result"].is_null());
        ada.assert_quiet().await;
        bob.assert_quiet().await;
        gateway.stop().await;
    }
}

#[tokio::test]
async fn between_calls_only_the_sole_user_of_a_server_is_notified() {
    for (client_era, server_era) in era_pairs() {
        let gateway = start(server_era).await;
        let mut ada = client(&gateway, client_era).await;
        let mut bob = client(&gateway, client_era).await;
        // The response comes first, so the notification is about no call.
        let late = [done(), notification(CHANGED, &json!({ "n": 1 }))];
        write(&mut ada, &late).await;
        match client_era {
            ProtocolEra::Legacy => assert_eq!(ada.notification("thing/changed").await["n"], 1),
            // It has no session, so nothing can come between its requests.
            ProtocolEra::Modern => ada.assert_quiet().await,
        }
        bob.assert_quiet().await;
        write(&mut bob, &late).await;
        ada.assert_quiet().await;
        bob.assert_quiet().await;
        gateway.stop().await;
    }
}

#[tokio::test]
async fn a_policy_ends_notifications_between_calls() {
    let gateway = start(ProtocolEra::Legacy).await;
    let mut client = client(&gateway, ProtocolEra::Legacy).await;
    let late = [done(), notification(CHANGED, &json!({}))];
    write(&mut client, &late).await;
    client.notification("thing/changed").await;
    gateway.deny(&["s/extensions/request"]);
    write(&mut client, &late).await;
    let heard = client.drain().await;
    assert!(heard.iter().all(|it| it["method"] != CHANGED), "{heard:?}");
    gateway.stop().await;
}

#[tokio::test]
async fn a_flood_of_notifications_is_cut_and_harms_nobody() {
    let flood: Vec<Value> = (0..5_000)
        .map(|n| notification(CHANGED, &json!({ "n": n })))
        .collect();
    let giant = notification(CHANGED, &json!({ "text": "g".repeat(500_000) }));
    for (client_era, server_era) in era_pairs() {
        let gateway = start(server_era).await;
        let mut client = client(&gateway, client_era).await;
        let started = Instant::now();
        write(&mut client, &[giant.clone(), done()]).await;
        client.assert_quiet().await;
        write(&mut client, &[&flood[..], &[done()]].concat()).await;
        let heard = client.drain().await;
        assert!(!heard.is_empty() && heard.len() < 5_000, "{}", heard.len());
        write(&mut client, &[&[done()], &flood[..]].concat()).await;
        client.drain().await;
        for n in 0..5_000 {
            client.notify(CHANGED, json!({ "n": n })).await;
        }
        client.read("x:1").await;
        assert!(started.elapsed() < PATIENCE);
        let heard = until_heard(&gateway, "s", CHANGED, 1).await;
        let numbers: Vec<u64> = heard.iter().filter_map(|it| it["n"].as_u64()).collect();
        assert!(numbers.is_sorted(), "{numbers:?}");
        gateway.stop().await;
    }
}

#[tokio::test]
async fn a_server_may_ask_by_a_request_of_an_extension() {
    for (client_era, server_era) in era_pairs() {
        let gateway = start(server_era).await;
        let ask = |method: &str| {
            let question = json!({ "q": [1.5], "_meta": { "example.org/a": 1 } });
            let arguments = json!({ "question": question, "method": method });
            json!({ "name": "s__elicit", "arguments": arguments })
        };
        let mut client = client(&gateway, client_era).await;
        let result = client.result("tools/call", ask("thing/ask")).await;
        let text = result["content"][0]["text"].as_str().unwrap();
        let answer = r#"{"answers":{"q":[1.5],"_meta":{"example.org/a":1}}}"#;
        assert!(text.contains(answer), "{text}");
        assert_eq!(client.received_questions.lock().split_off(0), ["thing/ask"]);

        let nothing = json!({ "com.example/other": {}, "com.example/nothing": {} });
        let undeclared = TestClient::with_extensions(gateway.server.clone(), client_era, nothing);
        let declared = json!({ THING: {} });
        let forbidden = TestClient::with_extensions(without_right(&gateway), client_era, declared);
        for mut client in [undeclared.await, forbidden.await] {
            let refused = client.result("tools/call", ask("thing/ask")).await;
            let text = refused["content"][0]["text"].as_str().unwrap();
            assert!(
                text.contains("nobody behind this call supports 'thing/ask'"),
                "{text}"
            );
            assert!(client.received_questions.lock().is_empty());
        }
        for method in [
            "tools/list",
            "resources/x",
            "tasks/ask",
            "ping/x y",
            "notifications/a/b",
        ] {
            let refused = client.result("tools/call", ask(method)).await;
            let text = refused["content"][0]["text"].as_str().unwrap();
            assert!(text.contains("Method not found"), "{method}: {text}");
            assert!(client.received_questions.lock().is_empty());
        }
        gateway.stop().await;
    }
}

#[tokio::test]
async fn results_of_a_kind_that_an_extension_defines_stay_as_they_are() {
    let info = "io.modelcontextprotocol/serverInfo";
    let forged = json!({ "example.org/a": 1, info: { "name": "toolgate" } });
    let kind = json!({
        "resultType": "thing/partial", "z": [1.5, null], "content": "later", "isError": 7,
        "requestState": "s", "_meta": forged,
    });
    for (client_era, server_era) in era_pairs() {
        let gateway = start(server_era).await;
        let answer = lines(&[json!({ "id": "$ID", "result": kind })]);
        let raw = json!({ "resources/read": answer, "thing/find": answer });
        let content =
            json!({ "extensions": { THING: {} }, "resources": [{ "uri": "x:1" }], "raw": raw });
        gateway.write("s", &content);
        let mut client = client(&gateway, client_era).await;
        let call = json!({ "name": "s__raw", "arguments": { "text": answer } });
        let read = json!({ "uri": "x:1" });
        for (method, params) in [
            ("tools/call", call.clone()),
            ("resources/read", read.clone()),
            ("thing/find", json!({})),
        ] {
            let mut result = client.result(method, params).await;
            let own = result["_meta"].as_object_mut().unwrap().shift_remove(info);
            let is_ours = own.unwrap() != forged[info];
            assert_eq!(is_ours, client_era == ProtocolEra::Modern, "{method}");
            result["_meta"][info] = forged[info].clone();
            assert_eq!(result.to_string(), kind.to_string(), "{method}");
        }

        let nothing = json!({ "com.example/nothing": {} });
        let undeclared = TestClient::with_extensions(gateway.server.clone(), client_era, nothing);
        let mut undeclared = undeclared.await;
        let refused = undeclared.result("tools/call", call.clone()).await;
        assert_eq!(refused["isError"], true, "{refused}");
        undeclared
            .expect_error("resources/read", read.clone())
            .await;
        let mut forbidden =
            TestClient::with_extensions(without_right(&gateway), client_era, json!({ THING: {} }))
                .await;
        let refused = forbidden.result("tools/call", call).await;
        assert_eq!(refused["isError"], true, "{refused}");
        for kind in ["tools/x", "no kind", "task"] {
            let hostile = json!({ "id": "$ID", "result": { "resultType": kind, "content": [] } });
            let refused = write(&mut client, &[hostile]).await;
            assert_eq!(refused["isError"], true, "{kind}: {refused}");
        }
        gateway.stop().await;
    }
}
