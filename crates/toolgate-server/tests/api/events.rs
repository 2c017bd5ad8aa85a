//! The stream of events at `/api/events`.

use http::Method;
use serde_json::json;
use toolgate_core::ToolCall;
use toolgate_mcp::{SecretHeaders, ServerConnection, ServerSettings};

use crate::client::ApiEvents;
use crate::test_gateway::{ApiTestGateway, COMMAND, SECRET, until};

#[tokio::test]
async fn every_finished_call_is_one_line_with_the_tools_name() {
    let gateway = ApiTestGateway::start().await;
    let mut events = gateway.events("/api/events").await;
    assert_eq!(
        events.expect("tools").await,
        json!({ "tools": gateway.executor.manager().tools().len() })
    );
    gateway.call("tell", &json!({ "q": SECRET })).await;
    gateway.call("nope", &json!({})).await;
    let call = events.expect("call").await;
    assert_eq!(
        (&call["tool"], &call["outcome"]),
        (&json!("tell"), &json!("success"))
    );
    assert_eq!(call["arguments"], json!({ "q": "[REDACTED]" }));
    // `calls --follow --caller` filters by it.
    assert_eq!(call["command"], COMMAND);
    assert_eq!(call, gateway.get("/api/calls?tool=tell").await.json()[0]);
    let (name, id, call) = events.next().await.unwrap();
    assert_eq!(
        (name.as_str(), id.as_str(), &call["tool"]),
        ("call", "3", &json!("nope"))
    );
}

#[tokio::test]
async fn only_requested_kinds_of_events_are_sent() {
    let gateway = ApiTestGateway::start().await;
    let mut started = gateway.events("/api/events?kinds=started").await;
    let mut status = gateway.events("/api/events?kinds=status,%20call").await;
    assert_eq!(status.next().await.unwrap().2["status"], "ok");
    gateway.call("echo", &json!({ "n": 1 })).await;
    let (name, _, call) = started.next().await.unwrap();
    assert_eq!(
        (name.as_str(), &call["outcome"], &call["success"]),
        ("started", &json!("running"), &json!(null))
    );
    assert_eq!(status.expect("call").await["tool"], "echo");
    // Every two seconds.
    assert_eq!(status.expect("status").await["calls_total"], 1);
    for kinds in ["calls", "", "call,,server", "call;server"] {
        let refused = gateway.get(&format!("/api/events?kinds={kinds}")).await;
        assert_eq!(refused.status, 400, "{kinds}");
        refused.problem();
    }
}

#[tokio::test]
async fn changes_of_tools_and_servers_are_sent() {
    let gateway = ApiTestGateway::start().await;
    let mut events = gateway.events("/api/events?kinds=tools,server").await;
    events.expect("tools").await;
    let id = gateway.call("echo", &json!({})).await.json()["call_id"]
        .as_str()
        .unwrap()
        .to_owned();
    gateway
        .post(&format!("/api/calls/{id}/mock"), &json!({ "name": "m" }))
        .await;
    assert_eq!(
        events.expect("tools").await["tools"],
        gateway.executor.manager().tools().len()
    );
    let nowhere = ServerConnection::Http {
        url: "http://127.0.0.1:1/mcp".to_owned(),
        headers: SecretHeaders::default(),
    };
    gateway
        .servers
        .apply(vec![ServerSettings::new("away", nowhere)]);
    let server = events.expect("server").await;
    assert_eq!(
        (&server["name"], &server["transport"]),
        (&json!("away"), &json!("http"))
    );
}

#[tokio::test]
async fn a_slow_reader_learns_what_it_missed_and_delays_nobody() {
    let gateway = ApiTestGateway::start().await;
    let mut slow = gateway.events("/api/events?kinds=call").await;
    gateway.call("echo", &json!({})).await;
    slow.expect("call").await;
    // More than the connection's buffers and the feed hold; the reader does not read meanwhile.
    let text = "x".repeat(1900);
    for _ in 0..5_000 {
        gateway
            .executor
            .execute(ToolCall::new("echo", json!({ "text": text })))
            .await;
    }
    let missed = slow.expect("lagged").await["missed"].as_u64().unwrap();
    assert!(missed > 100, "{missed}");
    slow.expect("call").await;
}

#[tokio::test]
async fn readers_that_come_and_go_leave_nothing_behind() {
    let gateway = ApiTestGateway::start().await;
    for _ in 0..50 {
        drop(
            gateway
                .events("/api/events?kinds=call,approval,status")
                .await,
        );
    }
    // Without a listener, a call that needs approval is denied at once.
    let is_denied = async || {
        let envelope = gateway.call("lock", &json!({})).await.json();
        envelope["error_kind"] == "denied"
    };
    let soon = tokio::time::timeout(crate::client::HANG, is_denied()).await;
    assert!(soon.unwrap());
}

#[tokio::test]
async fn streams_end_with_the_gateway() {
    let gateway = ApiTestGateway::start().await;
    let mut events = ApiEvents::of(gateway.open(Method::GET, "/api/events", "").await);
    let waiting = std::sync::Arc::clone(&gateway.waiting);
    drop(gateway);
    events.rest().await;
    until(|| waiting.load(std::sync::atomic::Ordering::SeqCst) == 0).await;
}
