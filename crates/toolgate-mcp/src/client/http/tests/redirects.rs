//! Redirects: a server can't send us, or our secrets, to another origin.

use super::server::*;
use crate::client::transport::TransportError;

#[tokio::test]
async fn redirects_on_the_same_origin_keep_message_and_headers() {
    for status in ["307 There", "308 There"] {
        let server = ScriptedHttpServer::start(move |request| match request.line.as_str() {
            "POST /mcp" => reply(status, "Location: /new?a=b\r\n", ""),
            _ => json(&answer(7)),
        })
        .await;
        let mut client = TestHttpClient::new(&server.url());
        client.ask(7, "tools/call").await;
        client.answered(7).await;
        let requests = server.requests();
        assert_eq!(requests[1].line, "POST /new?a=b");
        assert_eq!(requests[1].body, requests[0].body);
        assert_eq!(requests[1].header("authorization"), Some("Bearer tok-123"));
    }
}

#[tokio::test]
async fn redirects_to_another_origin_or_method_are_refused() {
    let canary = ScriptedHttpServer::start(|_| json(&answer(7))).await;
    let port = canary.port;
    let elsewhere = [
        format!("http://127.0.0.1:{port}/x?token=1"),
        format!("//127.0.0.1:{port}/x"),
        format!("http://localhost:{port}/x"),
        format!("http://0x7f000001:{port}/x"),
        format!("http://[::ffff:127.0.0.1]:{port}/x"),
    ];
    let cases = elsewhere
        .into_iter()
        .map(|to| ("307 There", to))
        .chain(["301 There", "302 There"].map(|status| (status, "/x".to_owned())));
    for (status, to) in cases {
        let location = format!("Location: {to}\r\n");
        let server = ScriptedHttpServer::start(move |_| reply(status, &location, "")).await;
        let mut client = TestHttpClient::new(&server.url());
        client.ask(7, "tools/call").await;
        let InboxEvent::Failed(7, TransportError::NotSent(reason)) = client.next().await else {
            panic!("{status} {to} was followed");
        };
        let reason = reason.to_string();
        assert!(
            reason.starts_with("the server redirects to http://"),
            "{reason}"
        );
        assert!(
            reason
                .ends_with("/x: if you trust that address, put it into 'url' in the configuration"),
            "{reason}"
        );
        assert_eq!(server.requests().len(), 1, "{status} {to}");
    }
    assert!(canary.requests().is_empty());
}

#[tokio::test]
async fn a_see_other_redirect_leaves_the_outcome_unknown() {
    let server = ScriptedHttpServer::start(|_| reply("303 There", "Location: /x\r\n", "")).await;
    let mut client = TestHttpClient::new(&server.url());
    client.ask(7, "tools/call").await;
    let InboxEvent::Failed(7, TransportError::Interrupted(reason)) = client.next().await else {
        panic!("it was followed, or counts as not sent");
    };
    let reason = reason.to_string();
    assert!(
        reason.starts_with("the server redirects to http://"),
        "{reason}"
    );
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn redirects_in_a_circle_end() {
    let server = ScriptedHttpServer::start(|_| reply("307 There", "Location: /mcp\r\n", "")).await;
    let mut client = TestHttpClient::new(&server.url());
    client.ask(7, "tools/call").await;
    assert!(matches!(
        client.next().await,
        InboxEvent::Failed(7, TransportError::NotSent(_))
    ));
    assert_eq!(server.requests().len(), 6);
}

#[tokio::test]
async fn the_oldest_form_posts_to_its_own_origin_only() {
    let canary = ScriptedHttpServer::start(|_| json("")).await;
    let text = format!(
        "event: endpoint\ndata: http://127.0.0.1:{}/x\n\n",
        canary.port
    );
    let server = ScriptedHttpServer::start(move |_| then_hang(events(&text))).await;
    let Err(TransportError::NotSent(reason)) = TestHttpClient::oldest(&server.url()).await else {
        panic!("was connected");
    };
    let reason = reason.to_string();
    assert!(reason.contains("if you trust that address"), "{reason}");
    assert!(canary.requests().is_empty());
}

#[tokio::test]
async fn servers_without_the_2024_transport_are_explained() {
    let cases: [(ResponseScript, &str); 4] = [
        (
            || reply("404 Not Found", "", ""),
            "there is no MCP server at this address: check its 'url' in the configuration (HTTP 404)",
        ),
        (
            || json("{}"),
            "the server did not respond with an event stream",
        ),
        (
            || ended_events("data: x\n\n"),
            "the stream ended before it sent the address for messages",
        ),
        (
            || reply("200 OK", "Content-Type: text/html\r\n", ""),
            "the server sent text/html instead of MCP: check its 'url' in the configuration",
        ),
    ];
    for (script, expected) in cases {
        let server = ScriptedHttpServer::start(move |_| script()).await;
        let error = TestHttpClient::oldest(&server.url())
            .await
            .err()
            .map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some(expected));
    }
}

#[tokio::test]
async fn a_login_in_the_address_is_sent_as_one_and_never_shown() {
    let server = ScriptedHttpServer::start(|_| json(&answer(7))).await;
    let url = format!("http://me:p%40ss@127.0.0.1:{}/mcp", server.port);
    let mut client = TestHttpClient::without_headers(&url);
    client.ask(7, "tools/call").await;
    client.answered(7).await;
    // me:p@ss
    assert_eq!(
        server.requests()[0].header("authorization"),
        Some("Basic bWU6cEBzcw==")
    );
    server.stop().await;
    client.ask(8, "tools/call").await;
    let InboxEvent::Failed(8, TransportError::NotSent(reason)) = client.next().await else {
        panic!("not failed");
    };
    let reason = reason.to_string();
    assert!(
        !reason.contains("p%40ss") && !reason.contains("p@ss"),
        "{reason}"
    );
}
