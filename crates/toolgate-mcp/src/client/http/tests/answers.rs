//! Every request has exactly one outcome.

use super::server::*;
use crate::client::message::{RpcError, RpcMessage};
use crate::client::transport::{HttpStatus, Transport, TransportError, UnreadableAnswer};

fn interrupted(reason: &str) -> InboxEvent {
    InboxEvent::Failed(7, TransportError::Interrupted(reason.into()))
}

fn refused(status: u16, body: Option<&str>) -> InboxEvent {
    InboxEvent::Failed(
        7,
        TransportError::Refused {
            status: HttpStatus(status),
            body: body.map(str::to_owned),
        },
    )
}

fn rpc_error(code: i64) -> InboxEvent {
    let error = RpcError {
        code,
        message: "m".to_owned(),
        data: serde_json::Value::Null,
    };
    InboxEvent::Message(RpcMessage::Response {
        id: 7.into(),
        answer: Err(error),
    })
}

#[tokio::test]
async fn every_result_has_a_clear_outcome() {
    const JSON: &str = "Content-Type: application/json; charset=utf-8\r\n";
    const HTML: &str = "Content-Type: text/html\r\n";
    let error = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"m"}}"#;
    let own_error = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"m"}}"#;
    let fine = InboxEvent::Message(RpcMessage::parse(answer(7).as_bytes()).unwrap());
    let html = "the server sent text/html instead of MCP: check its 'url' in the configuration";
    let nothing = |status| {
        interrupted(&format!(
            "the server sent an empty response (HTTP {status})"
        ))
    };
    let empty = interrupted("the server sent an empty response");
    let cases = [
        ("200 OK", JSON, answer(7), fine.clone()),
        ("200 OK", "", answer(7), fine),
        ("200 OK", HTML, "<html>".to_owned(), interrupted(html)),
        ("200 OK", JSON, String::new(), empty.clone()),
        ("200 OK", "", String::new(), empty),
        ("202 Accepted", "", String::new(), nothing(202)),
        ("204 No Content", "", String::new(), nothing(204)),
        (
            "200 OK",
            "Content-Type: application/json\r\nContent-Encoding: gzip\r\n",
            "x".to_owned(),
            interrupted("the server sent a compressed response (gzip), which we did not accept"),
        ),
        ("200 OK", JSON, error.to_owned(), rpc_error(-32601)),
        ("400 Bad Request", JSON, error.to_owned(), rpc_error(-32601)),
        (
            "404 Not Found",
            JSON,
            own_error.to_owned(),
            rpc_error(-32601),
        ),
        ("500 Oh", JSON, own_error.to_owned(), rpc_error(-32601)),
        (
            "401 Unauthorized",
            JSON,
            error.to_owned(),
            refused(401, Some(error)),
        ),
        (
            "403 Forbidden",
            HTML,
            "<html>no</html>".to_owned(),
            refused(403, None),
        ),
        (
            "404 Not Found",
            "",
            "no such page\nfor Bearer tok-123".to_owned(),
            refused(404, Some("no such page\\nfor [REDACTED]")),
        ),
        (
            "405 Method Not Allowed",
            "",
            String::new(),
            refused(405, None),
        ),
        (
            "429 Slow",
            "Retry-After: 30\r\n",
            "later".to_owned(),
            refused(429, Some("it asks for a retry after 30 s; later")),
        ),
        (
            "503 Busy",
            "Retry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\n",
            String::new(),
            refused(
                503,
                Some("it asks for a retry after Fri, 31 Dec 1999 23:59:59 GMT"),
            ),
        ),
        ("304 Not Modified", "", String::new(), refused(304, None)),
    ];
    for (status, headers, body, expected) in cases {
        let server = ScriptedHttpServer::start(move |_| reply(status, headers, &body)).await;
        let mut client = TestHttpClient::new(&server.url());
        client.ask(7, "tools/call").await;
        assert_eq!(client.next().await, expected, "{status} {headers}");
        client.http.close().await;
        assert_eq!(
            client.next().await,
            InboxEvent::Closed("connection closed".to_owned())
        );
        client.nothing_more().await;
        assert_eq!(server.requests().len(), 1, "{status} was asked again");
    }
}

#[tokio::test]
async fn unreadable_and_unrelated_responses_fail_the_request() {
    let broken = ScriptedHttpServer::start(|_| json(r#"{"jsonrpc":"2.0","id":7"#)).await;
    let mut client = TestHttpClient::new(&broken.url());
    client.ask(7, "tools/call").await;
    let got = client.next().await;
    assert!(
        matches!(&got, InboxEvent::Lost(Some(7), UnreadableAnswer::Broken(_))),
        "{got:?}"
    );

    let other = ScriptedHttpServer::start(|_| json(&answer(8))).await;
    let mut client = TestHttpClient::new(&other.url());
    client.ask(7, "tools/call").await;
    client.answered(8).await;
    assert_eq!(
        client.next().await,
        interrupted("the server sent an unrelated message instead of a response")
    );
}

#[tokio::test]
async fn a_long_error_is_shown_to_its_limit() {
    let server = ScriptedHttpServer::start(|_| reply("500 Oh", "", &"x".repeat(1 << 20))).await;
    let mut client = TestHttpClient::new(&server.url());
    client.ask(7, "tools/call").await;
    let InboxEvent::Failed(
        7,
        TransportError::Refused {
            body: Some(body), ..
        },
    ) = client.next().await
    else {
        panic!("not refused");
    };
    assert!((4000..4200).contains(&body.len()), "{}", body.len());
}

#[tokio::test]
async fn an_answer_beyond_the_limit_fails_its_request_at_once() {
    let large = "x".repeat(LIMIT + 1);
    let announced = reply("200 OK", "Content-Type: application/json\r\n", &large);
    let as_json = |mut steps: Vec<ResponseStep>| {
        for step in &mut steps {
            if let ResponseStep::Write(bytes) = step {
                *bytes = String::from_utf8(bytes.clone())
                    .unwrap()
                    .replace("text/event-stream", "application/json")
                    .into();
            }
        }
        steps
    };
    let unannounced = as_json(then_hang(events(&large)));
    let event = then_hang(events(&format!("data: {large}")));
    for (name, steps) in [
        ("announced", announced),
        ("unannounced", unannounced),
        ("event", event),
    ] {
        let steps = parking_lot::Mutex::new(Some(steps));
        let server = ScriptedHttpServer::start(move |_| steps.lock().take().unwrap()).await;
        let mut client = TestHttpClient::new(&server.url());
        client.ask(7, "tools/call").await;
        let got = client.next().await;
        let InboxEvent::Lost(Some(7), UnreadableAnswer::TooLarge { bytes, limit }) = got else {
            panic!("{name}: {got:?}");
        };
        assert!(bytes > limit && limit == LIMIT as u64, "{name}");
    }
}

#[tokio::test]
async fn a_silent_server_is_disconnected_when_its_request_is_dropped() {
    let drip = || {
        events("data: {")
            .into_iter()
            .chain([ResponseStep::Hang])
            .collect()
    };
    let silent: [ResponseScript; 2] = [|| vec![ResponseStep::Hang], drip];
    for script in silent {
        let mut server = ScriptedHttpServer::start(move |_| script()).await;
        let client = TestHttpClient::new(&server.url());
        client.ask(7, "tools/call").await;
        while server.requests().is_empty() {
            tokio::task::yield_now().await;
        }
        client.http.drop_request(7);
        let left = tokio::time::timeout(HANG, server.left.recv()).await;
        assert_eq!(left.unwrap(), Some(()));
    }
}

#[tokio::test]
async fn an_unreachable_address_ends_the_connection() {
    let server = ScriptedHttpServer::start(|_| json("")).await;
    let url = server.url();
    server.stop().await;
    let mut client = TestHttpClient::new(&url);
    client.ask(7, "tools/call").await;
    let InboxEvent::Failed(7, TransportError::NotSent(reason)) = client.next().await else {
        panic!("not failed");
    };
    let reason = reason.to_string();
    assert!(
        reason.starts_with(&format!("can't connect to the server [cause: {url}: ")),
        "{reason}"
    );
    assert_eq!(client.next().await, InboxEvent::Closed(reason));
    client.nothing_more().await;
    let refused = client.send(request(8, "tools/call")).await;
    assert!(
        matches!(refused, Err(TransportError::NotSent(_))),
        "{refused:?}"
    );
}

#[tokio::test]
async fn localhost_works_over_ipv4_and_ipv6() {
    for (bound, host) in [
        ("127.0.0.1:0", "localhost"),
        ("[::1]:0", "[::1]"),
        ("[::1]:0", "localhost"),
    ] {
        if tokio::net::TcpListener::bind(bound).await.is_err() {
            thirdparty::skip_optional(&format!("an address {bound} on this machine"));
            continue;
        }
        let server = ScriptedHttpServer::start_at(bound, |_| json(&answer(7))).await;
        let mut client = TestHttpClient::new(&format!("http://{host}:{}/mcp", server.port));
        client.ask(7, "tools/call").await;
        client.answered(7).await;
    }
}
