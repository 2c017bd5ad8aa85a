//! Streams that break off, and how they are resumed.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::server::*;
use crate::ProtocolEra;
use crate::client::transport::{Transport, TransportError, UnreadableAnswer};

fn interrupted(id: u64, reason: &str) -> InboxEvent {
    InboxEvent::Failed(id, TransportError::Interrupted(reason.into()))
}

fn session(request: &ReceivedRequest) -> Option<Vec<ResponseStep>> {
    let headers = "Content-Type: application/json\r\nMcp-Session-Id: s-1\r\n";
    request
        .says("initialize")
        .then(|| reply("200 OK", headers, &answer(1)))
}

#[tokio::test]
async fn a_stream_resumes_after_its_last_event() {
    let server = ScriptedHttpServer::start(|request| {
        session(request).unwrap_or_else(|| match request.header("last-event-id") {
            None => ended_events("id: e-1\nretry: 500\ndata:\n\n"),
            Some("e-1") => events("id: e-2\ndata: \n\ndata: half"),
            Some(_) => ended_events(&format!("data: {}\n\n", answer(2))),
        })
    })
    .await;
    let mut client = TestHttpClient::new(&server.url());
    client.begin().await;
    let since = Instant::now();
    client.ask(2, "tools/call").await;
    client.answered(2).await;
    assert!(since.elapsed() >= Duration::from_millis(1000), "too early");
    let requests = server.requests();
    assert_eq!(requests.len(), 4);
    for (request, last) in requests[2..].iter().zip(["e-1", "e-2"]) {
        assert_eq!(request.line, "GET /mcp");
        assert_eq!(request.header("last-event-id"), Some(last));
        assert_eq!(request.header("mcp-session-id"), Some("s-1"));
    }
}

#[tokio::test]
async fn an_unresumable_stream_fails_its_request_at_once() {
    for (modern, text, reason) in [
        (
            false,
            ": nothing\n\n",
            "the stream was interrupted before the response",
        ),
        (
            true,
            "id: e-1\ndata: \n\n",
            "the stream was interrupted before the response",
        ),
    ] {
        let server = ScriptedHttpServer::start(move |_| events(text)).await;
        let mut client = TestHttpClient::new(&server.url());
        if modern {
            client.http.set_protocol(ProtocolEra::Modern, "2026-07-28");
        }
        client.ask(2, "tools/call").await;
        assert_eq!(client.next().await, interrupted(2, reason));
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn resuming_is_bounded() {
    let cases: [(&str, ResponseScript, &str, usize); 4] = [
        (
            "silent",
            || ended_events(""),
            "the stream ended before the response, and can't be resumed (tried 5 times)",
            6,
        ),
        (
            "busy",
            || reply("503 Busy", "", ""),
            "the stream ended before the response, and can't be resumed (tried 5 times)",
            6,
        ),
        (
            "unwilling",
            || reply("405 No", "", ""),
            "the stream ended before the response, and can't be resumed (HTTP 405)",
            2,
        ),
        (
            "other",
            || json("{}"),
            "the stream ended before the response, and can't be resumed (the server did not respond with a stream)",
            2,
        ),
    ];
    for (name, again, reason, asked) in cases {
        let server = ScriptedHttpServer::start(move |request| match request.line.as_str() {
            "POST /mcp" => ended_events("id: e-1\nretry: 1\ndata:\n\n"),
            _ => again(),
        })
        .await;
        let mut client = TestHttpClient::new(&server.url());
        client.ask(2, "tools/call").await;
        assert_eq!(client.next().await, interrupted(2, reason), "{name}");
        assert_eq!(server.requests().len(), asked, "{name}");
    }
}

#[tokio::test]
async fn a_server_that_dies_in_mid_stream_fails_its_request_and_ends_the_connection() {
    let notice = "id: e-1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\n";
    let server = ScriptedHttpServer::start(move |_| then_hang(events(notice))).await;
    let url = server.url();
    let mut client = TestHttpClient::new(&url);
    client.ask(2, "tools/call").await;
    assert!(matches!(client.next().await, InboxEvent::Message(_)));
    let since = Instant::now();
    server.stop().await;
    assert_eq!(
        client.next().await,
        interrupted(2, "the stream was interrupted before the response")
    );
    assert!(since.elapsed() < Duration::from_secs(10));
    let InboxEvent::Closed(status) = client.next().await else {
        panic!("not closed");
    };
    assert!(
        status.starts_with(&format!("can't connect to the server [cause: {url}: ")),
        "{status}"
    );
    client.nothing_more().await;
}

#[tokio::test]
async fn an_unreadable_event_stands_in_for_a_missing_response() {
    for (text, expected) in [
        (format!("data: junk\n\ndata: {}\n\n", answer(2)), None),
        ("id: e-1\ndata: junk\n\n".to_owned(), Some(2)),
    ] {
        let server = ScriptedHttpServer::start(move |_| ended_events(&text)).await;
        let mut client = TestHttpClient::new(&server.url());
        client.ask(2, "tools/call").await;
        let lost =
            |got, id| matches!(got, InboxEvent::Lost(of, UnreadableAnswer::Broken(_)) if of == id);
        assert!(lost(client.next().await, None));
        match expected {
            None => client.answered(2).await,
            id => assert!(lost(client.next().await, id)),
        }
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn the_servers_own_stream_comes_back_and_ends_with_the_session() {
    let server = ScriptedHttpServer::start(|request| {
        session(request).unwrap_or_else(|| {
            match (request.line.as_str(), request.header("last-event-id")) {
                ("GET /mcp", None) => ended_events(
                    "retry: 1\nid: e-1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\n",
                ),
                ("GET /mcp", Some("e-1")) => reply("404 Not Found", "", ""),
                _ => reply("202 Accepted", "", ""),
            }
        })
    })
    .await;
    let mut client = TestHttpClient::new(&server.url());
    client.begin().await;
    client
        .send(notification("notifications/initialized"))
        .await
        .unwrap();
    assert!(matches!(client.next().await, InboxEvent::Message(_)));
    assert_eq!(
        client.next().await,
        InboxEvent::Closed("session expired".to_owned())
    );
    client.nothing_more().await;
}

#[tokio::test]
async fn a_server_without_a_stream_of_its_own_is_not_asked_again() {
    for status in ["404 Not Found", "405 Method Not Allowed"] {
        let server = ScriptedHttpServer::start(move |request| {
            session(request).unwrap_or_else(|| match request.line.as_str() {
                "GET /mcp" => reply(status, "", ""),
                _ if request.says("tools/call") => json(&answer(2)),
                _ => reply("202 Accepted", "", ""),
            })
        })
        .await;
        let mut client = TestHttpClient::new(&server.url());
        client.begin().await;
        client
            .send(notification("notifications/initialized"))
            .await
            .unwrap();
        while server.requests().len() < 3 {
            tokio::task::yield_now().await;
        }
        client.ask(2, "tools/call").await;
        client.answered(2).await;
        assert_eq!(server.requests().len(), 4, "{status}");
    }
}

/// A session whose own stream answers with these steps; calls are answered at once.
async fn streaming(
    stream: impl Fn() -> Vec<ResponseStep> + Send + Sync + 'static,
) -> (ScriptedHttpServer, TestHttpClient) {
    let server = ScriptedHttpServer::start(move |request| {
        session(request).unwrap_or_else(|| match request.line.as_str() {
            "GET /mcp" => stream(),
            _ if request.says("tools/call") => json(&answer(2)),
            _ => reply("202 Accepted", "", ""),
        })
    })
    .await;
    let mut client = TestHttpClient::new(&server.url());
    client.begin().await;
    let ready = notification("notifications/initialized");
    client.send(ready).await.unwrap();
    (server, client)
}

#[tokio::test(start_paused = true)]
async fn calls_wait_for_the_servers_own_stream() {
    let _still = clock_stands_still();
    let stands = Arc::new(Notify::new());
    let until = Arc::clone(&stands);
    let stream = move || {
        let mut steps = vec![ResponseStep::Wait(Arc::clone(&until))];
        steps.extend(then_hang(events(": here\n\n")));
        steps
    };
    let (server, mut client) = streaming(stream).await;
    {
        let mut call = std::pin::pin!(client.ask(2, "tools/call"));
        let gone = (&mut call).now_or_never();
        assert!(gone.is_none(), "a question would be lost");
        stands.notify_one();
        call.await;
    }
    client.answered(2).await;
    let requests = server.requests();
    let order = requests.iter().map(|request| request.line.as_str());
    let order: Vec<&str> = order.collect();
    assert_eq!(order, ["POST /mcp", "POST /mcp", "GET /mcp", "POST /mcp"]);
    assert!(requests[3].says("tools/call"));
}

#[tokio::test]
async fn a_silent_stream_does_not_block_calls() {
    let (_server, mut client) = streaming(|| vec![ResponseStep::Hang]).await;
    client.ask(2, "tools/call").await;
    client.answered(2).await;
}

#[tokio::test]
async fn calls_do_not_wait_without_a_stream() {
    for status in ["404 Not Found", "405 Method Not Allowed", "503 Busy"] {
        let (_server, client) = streaming(move || reply(status, "", "")).await;
        let opened = tokio::time::timeout(HANG, client.http.wire.gate.opened());
        opened.await.expect(status);
    }
}
