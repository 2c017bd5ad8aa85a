//! Errors that are reported instead of an answer.

use super::*;

#[tokio::test]
async fn redirects_are_not_followed() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = elsewhere.local_addr().unwrap();
    for status in [301, 302, 303, 307, 308] {
        let location = format!("Location: http://user:pass@{address}/api/chat?token=x\r\n");
        let mut server = LoopbackServer::answers(&[&answer(status, &location, "")]).await;
        let error = post(&http(&server.url)).await.err().unwrap();
        assert!(server.request().await.contains(KEY));
        let expected = format!(
            "ollama refused the request: {}/api/chat redirects to http://{address}/api/chat, where the key must not go; if you trust that address, set it (OLLAMA_HOST, or model.url in the configuration)",
            server.url
        );
        assert_eq!(error.to_string(), expected);
        assert!(!error.is_retryable());
    }
    let followed = tokio::time::timeout(Duration::from_millis(10), elsewhere.accept()).await;
    assert!(followed.is_err());
}

#[tokio::test]
async fn errors_hide_secrets() {
    let body = format!("{{\"error\":\"bad key {KEY} for me:pa55word\"}}");
    let mut server = LoopbackServer::answers(&[&answer(400, "", &body)]).await;
    let url = server.url.replace("http://", "http://me:pa55word@");
    let error = post(&http(&url)).await.err().unwrap();
    let request = server.request().await;
    assert!(request.contains("authorization: Basic bWU6cGE1NXdvcmQ="));
    let text = format!("{error} {error:?}");
    assert!(
        text.contains("bad key [REDACTED] for me:[REDACTED]"),
        "{text}"
    );
    assert!(!text.contains(KEY) && !text.contains("pa55word"), "{text}");
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://me:pa55word@{}", gone.local_addr().unwrap());
    drop(gone);
    let error = post(&http(&url)).await.err().unwrap();
    assert!(
        !format!("{error} {error:?}").contains("pa55word"),
        "{error}"
    );
}

#[tokio::test]
async fn a_refused_connection_is_explained() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = post(&http(&format!("http://{address}/")))
        .await
        .err()
        .unwrap();
    assert_eq!(
        error.to_string(),
        format!(
            "ollama can't be reached at http://{address}/api/chat: nothing listens there (connection refused); start it with 'ollama serve', or say where it is (OLLAMA_HOST, or model.url in the configuration)"
        )
    );
    assert!(error.is_retryable());
}

#[tokio::test]
async fn a_server_without_tls_is_explained() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let plain = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut socket, b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .await
            .unwrap();
        let mut rest = Vec::new();
        let read = tokio::io::AsyncReadExt::read_to_end(&mut socket, &mut rest).await;
        drop(read);
    });
    let error = post(&http(&url)).await.err().unwrap().to_string();
    assert!(
        error.contains("no secure connection could be made"),
        "{error}"
    );
    plain.await.unwrap();
}

#[tokio::test]
async fn the_reason_is_found_under_any_key() {
    for (body, expected) in [
        (r#"{"error":{"message":"one","type":"t"}}"#, "one"),
        (r#"{"error":"two"}"#, "two"),
        (r#"{"message":"three"}"#, "three"),
        (r#"{"detail":"four"}"#, "four"),
        (r#"{"detail":[{"loc":["body"],"msg":"five"}]}"#, "five"),
        (
            r#"{"message":{"detail":[{"loc":["body","tools",0,"seed"],"msg":"too much"}]}}"#,
            "tools.0.seed: too much",
        ),
        (r#"{"errors":["six"]}"#, "six"),
        (r#"{"errors":[{"message":"seven"}]}"#, "seven"),
        (r#"[{"error":{"message":"eight"}}]"#, "eight"),
        (r#"{"error":"","message":"nine"}"#, "nine"),
        ("ten\nlines", "ten\\nlines"),
        (
            "<html><head><TITLE> eleven </TITLE></head></html>",
            "eleven",
        ),
        ("<p>", "it answered with a page for a browser"),
        ("", "I'm a teapot (status 418)"),
        (r#"{"other":12}"#, r#"{"other":12}"#),
        ("\u{feff}{\"error\":\"thirteen\"}", "thirteen"),
    ] {
        let error = error_of(&answer(418, "", body)).await;
        let expected = format!("ollama refused the request: {expected}");
        assert_eq!(error.to_string(), expected, "{body}");
    }
}

#[tokio::test]
async fn an_endless_error_body_is_cut() {
    let body = "x".repeat(1 << 20);
    let error = error_of(&answer(418, "", &body)).await.to_string();
    assert!(error.len() < 600, "{}", error.len());
}

#[tokio::test]
async fn an_html_page_is_an_error_and_not_retried() {
    for (headers, body) in [
        ("Content-Type: text/html; charset=utf-8\r\n", "Welcome"),
        ("", "\n <!DOCTYPE html><p>"),
        ("Content-Type: text/plain\r\n", "<HTML>"),
    ] {
        let error = error_of(&answer(200, headers, body)).await;
        assert_eq!(
            error.to_string(),
            "ollama sent an unexpected answer: it answered with a page for a browser; check the address \
             (OLLAMA_HOST, or model.url in the configuration)"
        );
        assert!(!error.is_retryable());
    }
}

#[tokio::test]
async fn a_status_is_mentioned_once() {
    for (body, expected) in [
        ("", "ollama failed: Internal Server Error (status 500)"),
        ("oops", "ollama failed: oops (status 500)"),
    ] {
        assert_eq!(error_of(&answer(500, "", body)).await.to_string(), expected);
    }
}

#[tokio::test]
async fn an_unrequested_compression_is_refused() {
    let error = error_of(&answer(200, "Content-Encoding: gzip\r\n", "xx")).await;
    assert!(matches!(error, ModelError::Malformed { .. }), "{error}");
}

#[test]
fn an_invalid_address_is_refused_without_showing_it() {
    for url in [
        "",
        "localhost:11434",
        "ftp://x",
        "http://",
        "me:secret@host",
    ] {
        let error = ProviderHttp::new(Provider::OpenAi, url, &settings(HANG))
            .err()
            .unwrap();
        assert_eq!(
            error.to_string(),
            "openai refused the request: its address is not a URL (OPENAI_BASE_URL, or model.url in the configuration): write https://… or http://…",
            "{url}"
        );
    }
}

#[test]
fn a_key_with_invalid_characters_is_reported() {
    assert!(
        secret_header(Provider::OpenAi, " key\n")
            .unwrap()
            .is_sensitive()
    );
    let error = secret_header(Provider::OpenAi, "a\nb").unwrap_err();
    assert!(matches!(error, ModelError::Key { .. }));
}
