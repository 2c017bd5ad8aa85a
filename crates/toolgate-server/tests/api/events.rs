//! What happens, as it happens.

use http::Method;
use serde_json::json;
use toolgate_core::ToolCall;
use toolgate_mcp::{Connection, Headers, ServerSettings};

use crate::client::Events;
use crate::home::{COMMAND, Home, SECRET, until};

#[tokio::test]
async fn every_finished_call_is_one_line_with_the_tools_name() {
    let home = Home::usual().await;
    let mut events = home.events("/api/events").await;
    assert_eq!(
        events.expect("tools").await,
        json!({ "tools": home.executor.manager().tools().len() })
    );
    home.call("tell", &json!({ "q": SECRET })).await;
    home.call("nope", &json!({})).await;
    let call = events.expect("call").await;
    assert_eq!(
        (&call["tool"], &call["outcome"]),
        (&json!("tell"), &json!("success"))
    );
    assert_eq!(call["arguments"], json!({ "q": "[REDACTED]" }));
    // `calls --follow --caller` chooses by it.
    assert_eq!(call["command"], COMMAND);
    assert_eq!(call, home.get("/api/calls?tool=tell").await.json()[0]);
    let (name, id, call) = events.next().await.unwrap();
    assert_eq!(
        (name.as_str(), id.as_str(), &call["tool"]),
        ("call", "3", &json!("nope"))
    );
}

#[tokio::test]
async fn only_the_kinds_that_were_asked_for_are_told() {
    let home = Home::usual().await;
    let mut started = home.events("/api/events?kinds=started").await;
    let mut status = home.events("/api/events?kinds=status,%20call").await;
    assert_eq!(status.next().await.unwrap().2["status"], "ok");
    home.call("echo", &json!({ "n": 1 })).await;
    let (name, _, call) = started.next().await.unwrap();
    assert_eq!(
        (name.as_str(), &call["outcome"], &call["success"]),
        ("started", &json!("running"), &json!(null))
    );
    assert_eq!(status.expect("call").await["tool"], "echo");
    // Every two seconds.
    assert_eq!(status.expect("status").await["calls_total"], 1);
    for kinds in ["calls", "", "call,,server", "call;server"] {
        let refused = home.get(&format!("/api/events?kinds={kinds}")).await;
        assert_eq!(refused.status, 400, "{kinds}");
        refused.problem();
    }
}

#[tokio::test]
async fn changes_of_tools_and_servers_are_told() {
    let home = Home::usual().await;
    let mut events = home.events("/api/events?kinds=tools,server").await;
    events.expect("tools").await;
    let id = home.call("echo", &json!({})).await.json()["call_id"]
        .as_str()
        .unwrap()
        .to_owned();
    home.post(&format!("/api/calls/{id}/mock"), &json!({ "name": "m" }))
        .await;
    assert_eq!(
        events.expect("tools").await["tools"],
        home.executor.manager().tools().len()
    );
    let nowhere = Connection::Http {
        url: "http://127.0.0.1:1/mcp".to_owned(),
        headers: Headers::default(),
    };
    home.servers
        .apply(vec![ServerSettings::new("away", nowhere)]);
    let server = events.expect("server").await;
    assert_eq!(
        (&server["name"], &server["transport"]),
        (&json!("away"), &json!("http"))
    );
}

#[tokio::test]
async fn a_slow_reader_is_told_what_it_missed_and_holds_up_nobody() {
    let home = Home::usual().await;
    let mut slow = home.events("/api/events?kinds=call").await;
    home.call("echo", &json!({})).await;
    slow.expect("call").await;
    // More than the connection's buffers and the feed hold; the reader does not read meanwhile.
    let text = "x".repeat(1900);
    for _ in 0..5_000 {
        home.executor
            .execute(ToolCall::new("echo", json!({ "text": text })))
            .await;
    }
    let missed = slow.expect("lagged").await["missed"].as_u64().unwrap();
    assert!(missed > 100, "{missed}");
    slow.expect("call").await;
}

#[tokio::test]
async fn readers_that_come_and_go_leave_nothing_behind() {
    let home = Home::usual().await;
    for _ in 0..50 {
        drop(home.events("/api/events?kinds=call,approval,status").await);
    }
    // With nobody there, a call that needs approval is denied at once.
    let is_denied = async || {
        let envelope = home.call("lock", &json!({})).await.json();
        envelope["error_kind"] == "denied"
    };
    let soon = tokio::time::timeout(crate::client::HANG, is_denied()).await;
    assert!(soon.unwrap());
}

#[tokio::test]
async fn streams_end_with_the_gateway() {
    let home = Home::usual().await;
    let mut events = Events::of(home.open(Method::GET, "/api/events", "").await);
    let waiting = std::sync::Arc::clone(&home.waiting);
    drop(home);
    events.rest().await;
    until(|| waiting.load(std::sync::atomic::Ordering::SeqCst) == 0).await;
}
