//! Pages that a server sends people to, and its word that they are done there.

use serde_json::{Value, json};
use toolgate_mcp::ProtocolEra;

use crate::client::TestClient;
use crate::gateway::{ERAS, Gateway};

const COMPLETE: &str = "elicitation/complete";

async fn gateway(era: ProtocolEra) -> Gateway {
    let gateway = Gateway::prepare(era, &[("one", json!({})), ("two", json!({}))], |options| {
        options.relays_questions = true;
    });
    gateway.start_all().await;
    gateway
}

async fn client(gateway: &Gateway, era: ProtocolEra) -> TestClient {
    gateway.client_answering(era, &["*"], &[], json!({})).await
}

/// The ids of the pages that a client was told to be done.
async fn done(client: &mut TestClient) -> Vec<Value> {
    let mut heard = client.drain().await;
    heard.retain(|message| message["method"] == format!("notifications/{COMPLETE}"));
    heard
        .iter_mut()
        .map(|message| message["params"]["elicitationId"].take())
        .collect()
}

async fn say_done(gateway: &Gateway, server: &str, id: Value) {
    let method = format!("notifications/{COMPLETE}");
    let params = json!({ "elicitationId": id });
    let arguments = json!({ "method": method, "params": params });
    gateway.call(server, "notify", arguments).await;
}

#[tokio::test]
async fn only_the_client_that_was_sent_to_a_page_hears_that_it_is_done() {
    let gateway = gateway(ProtocolEra::Legacy).await;
    let mut ada = client(&gateway, ProtocolEra::Legacy).await;
    let mut bob = client(&gateway, ProtocolEra::Legacy).await;
    let mut modern = client(&gateway, ProtocolEra::Modern).await;
    let params = json!({ "name": "one__elicit", "arguments": { "url": true } });
    ada.result("tools/call", params.clone()).await;
    // Its id is that of Ada's page, but at another server.
    say_done(&gateway, "two", json!("1")).await;
    for foreign in [
        json!("2"),
        json!(1),
        json!({ "a": 1 }),
        json!("x".repeat(5000)),
    ] {
        say_done(&gateway, "one", foreign).await;
    }
    assert_eq!(done(&mut ada).await, [] as [Value; 0]);
    for _ in 0..2 {
        say_done(&gateway, "one", json!("1")).await;
    }
    assert_eq!(done(&mut ada).await, ["1"], "once");
    modern.result("tools/call", params).await;
    say_done(&gateway, "one", json!("1")).await;
    for client in [&mut ada, &mut bob, &mut modern] {
        assert_eq!(done(client).await, [] as [Value; 0], "{:?}", client.era);
    }
    gateway.stop().await;
}

#[tokio::test]
async fn pages_that_an_error_requires_are_announced_when_done() {
    let gateway = gateway(ProtocolEra::Legacy).await;
    let mut ada = client(&gateway, ProtocolEra::Legacy).await;
    let mut bob = client(&gateway, ProtocolEra::Legacy).await;
    let page = json!({ "mode": "url", "url": "https://example.org", "message": "Open it", "elicitationId": "p" });
    let data = json!({ "elicitations": [page, "nonsense"] });
    let error = json!({ "code": -32042, "message": "Open a page first", "data": data });
    let error = format!(r#"{{"jsonrpc":"2.0","id":$ID,"error":{error}}}"#);
    // In one piece, so that nothing happens in between.
    let complete = r#"{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"p"}}"#;
    let text = format!("{error}\\n{complete}\\n");
    let params = json!({ "name": "one__raw", "arguments": { "text": text } });
    let refused = ada.expect_error("tools/call", params).await;
    assert_eq!(refused["code"], -32042, "{refused}");
    assert_eq!(refused["data"]["elicitations"][0]["elicitationId"], "p");
    assert_eq!(done(&mut ada).await, ["p"]);
    assert_eq!(done(&mut bob).await, [] as [Value; 0]);
    gateway.stop().await;
}

#[tokio::test]
async fn a_flood_of_pages_is_bounded_and_the_latest_are_known() {
    let gateway = gateway(ProtocolEra::Legacy).await;
    let mut ada = client(&gateway, ProtocolEra::Legacy).await;
    let pages = |from: usize| {
        let pages =
            (from..from + 250).map(|n| json!({ "mode": "url", "elicitationId": n.to_string() }));
        let data = json!({ "elicitations": pages.collect::<Vec<_>>() });
        let error = json!({ "code": -32042, "message": "Open pages first", "data": data });
        format!(r#"{{"jsonrpc":"2.0","id":$ID,"error":{error}}}"#) + "\\n"
    };
    for from in [0, 250] {
        let params = json!({ "name": "one__raw", "arguments": { "text": pages(from) } });
        ada.expect_error("tools/call", params).await;
    }
    for id in ["0", "499"] {
        say_done(&gateway, "one", json!(id)).await;
    }
    assert_eq!(done(&mut ada).await, ["499"]);
    gateway.stop().await;
}

#[tokio::test]
async fn a_client_that_insists_on_an_id_gets_one_for_a_page_without() {
    for era in ERAS {
        let gateway = gateway(era).await;
        let mut ada = client(&gateway, ProtocolEra::Legacy).await;
        let page = json!({ "mode": "url", "url": "https://example.org", "message": "Open it" });
        let params = json!({ "name": "one__elicit", "arguments": { "question": page } });
        ada.result("tools/call", params).await;
        let question = ada.question_requests.lock().pop().unwrap();
        let id = question["params"]["elicitationId"].as_str();
        assert!(id.is_some_and(|id| !id.is_empty()), "{era:?}: {question}");
        gateway.stop().await;
    }
}
