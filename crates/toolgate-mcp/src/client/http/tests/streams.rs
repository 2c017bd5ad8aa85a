//! Streams that break off.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::server::*;
use crate::Era;
use crate::client::transport::{Lost, Transport, TransportError};

fn interrupted(id: u64, reason: &str) -> Got {
    Got::Failed(id, TransportError::Interrupted(reason.into()))
}

fn session(request: &Request) -> Option<Vec<Step>> {
    let headers = "Content-Type: application/json\r\nMcp-Session-Id: s-1\r\n";
    request
        .says("initialize")
        .then(|| reply("200 OK", headers, &answer(1)))
}

#[tokio::test]
async fn a_stream_is_taken_up_again_when_the_server_wants_it_and_behind_its_last_event() {
    let server = Server::start(|request| {
        session(request).unwrap_or_else(|| match request.header("last-event-id") {
            None => ended_events("id: e-1\nretry: 500\ndata:\n\n"),
            Some("e-1") => events("id: e-2\ndata: \n\ndata: half"),
            Some(_) => ended_events(&format!("data: {}\n\n", answer(2))),
        })
    })
    .await;
    let mut client = Client::new(&server.url());
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
async fn a_stream_without_a_place_to_come_back_to_fails_its_request_at_once() {
    for (modern, text, reason) in [
        (
            false,
            ": nothing\n\n",
            "the stream broke off before the answer",
        ),
        (
            true,
            "id: e-1\ndata: \n\n",
            "the stream broke off before the answer",
        ),
    ] {
        let server = Server::start(move |_| events(text)).await;
        let mut client = Client::new(&server.url());
        if modern {
            client.http.agreed(Era::Modern, "2026-07-28");
        }
        client.ask(2, "tools/call").await;
        assert_eq!(client.next().await, interrupted(2, reason));
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn coming_back_has_an_end() {
    let cases: [(&str, Script, &str, usize); 4] = [
        (
            "silent",
            || ended_events(""),
            "the stream ended before the answer, and can not be taken up again (tried 5 times)",
            6,
        ),
        (
            "busy",
            || reply("503 Busy", "", ""),
            "the stream ended before the answer, and can not be taken up again (tried 5 times)",
            6,
        ),
        (
            "unwilling",
            || reply("405 No", "", ""),
            "the stream ended before the answer, and can not be taken up again (HTTP 405)",
            2,
        ),
        (
            "other",
            || json("{}"),
            "the stream ended before the answer, and can not be taken up again (the server answered with no stream)",
            2,
        ),
    ];
    for (name, again, reason, asked) in cases {
        let server = Server::start(move |request| match request.line.as_str() {
            "POST /mcp" => ended_events("id: e-1\nretry: 1\ndata:\n\n"),
            _ => again(),
        })
        .await;
        let mut client = Client::new(&server.url());
        client.ask(2, "tools/call").await;
        assert_eq!(client.next().await, interrupted(2, reason), "{name}");
        assert_eq!(server.requests().len(), asked, "{name}");
    }
}

#[tokio::test]
async fn a_server_that_dies_in_mid_stream_fails_its_request_and_ends_the_connection() {
    let notice = "id: e-1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\n";
    let server = Server::start(move |_| then_hang(events(notice))).await;
    let url = server.url();
    let mut client = Client::new(&url);
    client.ask(2, "tools/call").await;
    assert!(matches!(client.next().await, Got::Message(_)));
    let since = Instant::now();
    server.stop().await;
    assert_eq!(
        client.next().await,
        interrupted(2, "the stream broke off before the answer")
    );
    assert!(since.elapsed() < Duration::from_secs(10));
    let Got::Closed(status) = client.next().await else {
        panic!("not closed");
    };
    assert!(
        status.starts_with(&format!("the server can not be reached [cause: {url}: ")),
        "{status}"
    );
    client.nothing_more().await;
}

#[tokio::test]
async fn an_unreadable_event_does_not_end_the_stream_and_stands_for_a_missing_answer() {
    for (text, expected) in [
        (format!("data: junk\n\ndata: {}\n\n", answer(2)), None),
        ("id: e-1\ndata: junk\n\n".to_owned(), Some(2)),
    ] {
        let server = Server::start(move |_| ended_events(&text)).await;
        let mut client = Client::new(&server.url());
        client.ask(2, "tools/call").await;
        let lost = |got, id| matches!(got, Got::Lost(of, Lost::Broken(_)) if of == id);
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
    let server = Server::start(|request| {
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
    let mut client = Client::new(&server.url());
    client.begin().await;
    client
        .send(notification("notifications/initialized"))
        .await
        .unwrap();
    assert!(matches!(client.next().await, Got::Message(_)));
    assert_eq!(
        client.next().await,
        Got::Closed("session expired".to_owned())
    );
    client.nothing_more().await;
}

#[tokio::test]
async fn a_server_without_a_stream_of_its_own_is_not_asked_again() {
    for status in ["404 Not Found", "405 Method Not Allowed"] {
        let server = Server::start(move |request| {
            session(request).unwrap_or_else(|| match request.line.as_str() {
                "GET /mcp" => reply(status, "", ""),
                _ if request.says("tools/call") => json(&answer(2)),
                _ => reply("202 Accepted", "", ""),
            })
        })
        .await;
        let mut client = Client::new(&server.url());
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

/// A session whose own stream is answered like this; the call is answered at once.
async fn streaming(stream: impl Fn() -> Vec<Step> + Send + Sync + 'static) -> (Server, Client) {
    let server = Server::start(move |request| {
        session(request).unwrap_or_else(|| match request.line.as_str() {
            "GET /mcp" => stream(),
            _ if request.says("tools/call") => json(&answer(2)),
            _ => reply("202 Accepted", "", ""),
        })
    })
    .await;
    let mut client = Client::new(&server.url());
    client.begin().await;
    let ready = notification("notifications/initialized");
    client.send(ready).await.unwrap();
    (server, client)
}

#[tokio::test(start_paused = true)]
async fn a_call_goes_out_when_the_servers_own_stream_stands() {
    let _still = clock_stands_still();
    let stands = Arc::new(Notify::new());
    let until = Arc::clone(&stands);
    let stream = move || {
        let mut steps = vec![Step::Wait(Arc::clone(&until))];
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
async fn a_server_that_never_answers_for_its_own_stream_is_called_all_the_same() {
    let (_server, mut client) = streaming(|| vec![Step::Hang]).await;
    client.ask(2, "tools/call").await;
    client.answered(2).await;
}

#[tokio::test]
async fn whoever_has_no_stream_of_its_own_says_so_and_nobody_waits() {
    for status in ["404 Not Found", "405 Method Not Allowed", "503 Busy"] {
        let (_server, client) = streaming(move || reply(status, "", "")).await;
        let opened = tokio::time::timeout(HANG, client.http.wire.gate.opened());
        opened.await.expect(status);
    }
}
