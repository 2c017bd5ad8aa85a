//! Sessions of the legacy era, requests of the modern era, and the transport of 2024-11-05.

use super::server::*;
use crate::ProtocolEra;
use crate::client::message::RpcMessage;
use crate::client::transport::{Transport, TransportError};

const SESSION: &str = "Content-Type: application/json\r\nMcp-Session-Id: s-1\r\n";

/// What a well-behaved legacy server says.
fn legacy(request: &ReceivedRequest) -> Vec<ResponseStep> {
    if request.says("initialize") {
        return reply("200 OK", SESSION, &answer(1));
    }
    if request.line == "GET /mcp" {
        return then_hang(events("data: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\n"));
    }
    reply("202 Accepted", "", "")
}

fn received_notification(method: &str) -> InboxEvent {
    InboxEvent::Message(RpcMessage::Notification {
        method: method.to_owned(),
        params: serde_json::Value::Null,
    })
}

#[tokio::test]
async fn a_legacy_session_goes_from_initialize_to_delete() {
    let server = ScriptedHttpServer::start(|request| {
        if request.says("tools/call") {
            let notice = r#"{"jsonrpc":"2.0","method":"p"}"#;
            return ended_events(&format!(
                "data: {notice}\n\nevent: other\ndata: x\n\ndata: {}\n\n",
                answer(2)
            ));
        }
        legacy(request)
    })
    .await;
    let mut client = TestHttpClient::new(&server.url());
    client.begin().await;
    client
        .send(notification("notifications/initialized"))
        .await
        .unwrap();
    assert_eq!(client.next().await, received_notification("n"));
    client.ask(2, "tools/call").await;
    assert_eq!(client.next().await, received_notification("p"));
    client.answered(2).await;
    client
        .send(notification("notifications/cancelled"))
        .await
        .unwrap();
    client.http.close().await;
    assert_eq!(
        client.next().await,
        InboxEvent::Closed("connection closed".to_owned())
    );
    client.nothing_more().await;

    let shown = |request: &ReceivedRequest| {
        let of = |name| request.header(name).unwrap_or("-").to_owned();
        format!(
            "{} {} {} {}",
            request.line,
            of("mcp-session-id"),
            of("mcp-protocol-version"),
            of("accept")
        )
    };
    let post = "POST /mcp s-1 2025-11-25 application/json, text/event-stream";
    let requests = server.requests();
    assert_eq!(
        requests.iter().map(shown).collect::<Vec<_>>(),
        [
            "POST /mcp - - application/json, text/event-stream",
            post,
            "GET /mcp s-1 2025-11-25 text/event-stream",
            post,
            post,
            "DELETE /mcp s-1 2025-11-25 */*",
        ]
    );
    for request in requests {
        assert_eq!(request.header("authorization"), Some("Bearer tok-123"));
        assert_eq!(request.header("accept-encoding"), None);
    }
}

#[tokio::test]
async fn a_lost_session_is_reported_once_without_a_retry() {
    let by_words = r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}"#;
    let by_status = r#"{"jsonrpc":"2.0","error":{"code":-32001,"message":"?"},"id":null}"#;
    for (status, body) in [
        ("404 Not Found", ""),
        ("404 Not Found", by_status),
        ("400 Bad Request", by_words),
    ] {
        let server = ScriptedHttpServer::start(move |request| match request.says("initialize") {
            true => legacy(request),
            false => reply(status, "", body),
        })
        .await;
        let mut client = TestHttpClient::new(&server.url());
        client.begin().await;
        client.ask(2, "tools/call").await;
        let expired = TransportError::NotSent("session expired".into());
        assert_eq!(client.next().await, InboxEvent::Failed(2, expired));
        assert_eq!(
            client.next().await,
            InboxEvent::Closed("session expired".to_owned())
        );
        client.nothing_more().await;
        client.http.close().await;
        assert_eq!(server.requests().len(), 2, "{status} {body}");
    }
}

#[tokio::test]
async fn a_session_lost_with_a_notification_is_lost_too() {
    let server = ScriptedHttpServer::start(|request| match request.says("initialize") {
        true => legacy(request),
        false => reply("404 Not Found", "", ""),
    })
    .await;
    let mut client = TestHttpClient::new(&server.url());
    client.begin().await;
    let sent = client.send(notification("notifications/cancelled")).await;
    assert_eq!(sent, Err(TransportError::NotSent("session expired".into())));
    assert_eq!(
        client.next().await,
        InboxEvent::Closed("session expired".to_owned())
    );
}

#[tokio::test]
async fn without_a_session_not_found_is_not_found() {
    let server = ScriptedHttpServer::start(|_| reply("404 Not Found", "", "")).await;
    let client = TestHttpClient::new(&server.url());
    let sent = client.send(notification("notifications/initialized")).await;
    assert!(
        matches!(sent, Err(TransportError::Refused { .. })),
        "{sent:?}"
    );
}

#[tokio::test]
async fn modern_requests_are_cancelled_by_disconnecting() {
    let mut server = ScriptedHttpServer::start(|request| match request.says("tools/call") {
        true => then_hang(events(
            ": keep-alive\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\n",
        )),
        false => reply("200 OK", SESSION, &answer(1)),
    })
    .await;
    let mut client = TestHttpClient::new(&server.url());
    client.ask(1, "server/discover").await;
    client.answered(1).await;
    client.http.set_protocol(ProtocolEra::Modern, "2026-07-28");
    let mut call = request(2, "tools/call");
    call.name = Some("echo".to_owned());
    call.headers = vec![("mcp-param-region".to_owned(), "Köln".to_owned())];
    client.send(call).await.unwrap();
    assert_eq!(client.next().await, received_notification("n"));
    client
        .send(notification("notifications/cancelled"))
        .await
        .unwrap();
    client.http.drop_request(2);
    assert_eq!(
        tokio::time::timeout(HANG, server.left.recv())
            .await
            .unwrap(),
        Some(())
    );
    client.http.close().await;

    let requests = server.requests();
    assert_eq!(requests.len(), 2, "{requests:?}");
    for (request, method) in requests.iter().zip(["server/discover", "tools/call"]) {
        assert_eq!(request.header("mcp-method"), Some(method));
        assert_eq!(request.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(request.header("mcp-session-id"), None);
    }
    assert_eq!(requests[1].header("mcp-name"), Some("echo"));
    assert_eq!(
        requests[1].header("mcp-param-region"),
        Some("=?base64?S8O2bG4=?=")
    );
}

#[tokio::test]
async fn the_oldest_form_answers_on_its_stream() {
    let server = ScriptedHttpServer::start(|request| match request.line.as_str() {
        "GET /mcp" => then_hang(events(&format!(
            "event: endpoint\ndata: /post?s=1\n\ndata: {}\n\n",
            answer(3)
        ))),
        "POST /post?s=1" if request.says("ping") => reply("400 Bad Request", "", "no"),
        "POST /post?s=1" => reply("202 Accepted", "", "Accepted"),
        _ => reply("404 Not Found", "", ""),
    })
    .await;
    let mut client = TestHttpClient::oldest(&server.url())
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    client.answered(3).await;
    client.ask(1, "initialize").await;
    client
        .send(notification("notifications/initialized"))
        .await
        .unwrap();
    client.ask(2, "ping").await;
    let InboxEvent::Failed(2, TransportError::Refused { body, .. }) = client.next().await else {
        panic!("not refused");
    };
    assert_eq!(body.as_deref(), Some("no"));
    client.http.close().await;
    assert_eq!(
        client.next().await,
        InboxEvent::Closed("connection closed".to_owned())
    );
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn the_end_of_the_oldest_stream_is_the_end() {
    let server = ScriptedHttpServer::start(|_| events("event: endpoint\ndata: /post\n\n")).await;
    let mut client = TestHttpClient::oldest(&server.url())
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        client.next().await,
        InboxEvent::Closed("connection closed".to_owned())
    );
    client.nothing_more().await;
}
