//! Everything that can go wrong with a search, and the resulting message.

use std::time::Duration;

use super::*;

#[test]
fn missing_settings_are_named() {
    for (backend, url, key, expected) in [
        (
            SearchBackend::Searxng,
            "",
            "",
            "no SearXNG instance is configured; set `search.url` to the address of one",
        ),
        (
            SearchBackend::Brave,
            "",
            "",
            "Brave needs a key; set `search.key` to one from https://brave.com/search/api",
        ),
        (
            SearchBackend::Brave,
            "",
            "a\nb",
            "`search.key` contains characters that are invalid in a key; copy it again",
        ),
        (
            SearchBackend::Brave,
            "http://brave.example",
            "k",
            "`search.url` is not https, so the key could be read in transit; change it to https",
        ),
        (
            SearchBackend::Duckduckgo,
            "ftp://x",
            "",
            "`search.url` is not a web address; write it like https://search.example.org",
        ),
        (
            SearchBackend::Searxng,
            "search.example.org",
            "",
            "`search.url` is not a web address; write it like https://search.example.org",
        ),
    ] {
        let settings = SearchSettings {
            backend,
            url: url.to_owned(),
            key: key.to_owned(),
            simulated: false,
        };
        let error = backend
            .build_request(&settings, &asked("x"))
            .unwrap_err()
            .into_tool_error("search");
        assert_eq!(
            error.to_string(),
            format!("The search service is currently unavailable: {expected}")
        );
    }
}

#[tokio::test]
async fn every_refusal_has_a_reason_that_says_what_to_do() {
    use SearchBackend::{Brave, Duckduckgo, Searxng};
    let invalid_key =
        r#"{"type":"ErrorResponse","error":{"code":"SUBSCRIPTION_TOKEN_INVALID","status":422}}"#;
    for (backend, response, expected) in [
        (
            Brave,
            http("401 Unauthorized", ""),
            "Brave does not accept the key; check `search.key`",
        ),
        (
            Brave,
            http("403 Forbidden", ""),
            "Brave does not accept the key; check `search.key`",
        ),
        (
            Brave,
            http("422 Unprocessable", invalid_key),
            "Brave does not accept the key; check `search.key`",
        ),
        (
            Brave,
            http("422 Unprocessable", "{}"),
            "Brave did not understand the request; check `search.url`",
        ),
        (
            Searxng,
            http("403 Forbidden", "<html>"),
            "the SearXNG instance does not return JSON; add `json` to `search.formats` in its settings.yml and restart it",
        ),
        (
            Searxng,
            http("401 Unauthorized", ""),
            "SearXNG refuses to answer; if it requires a login, write `search.url` like https://name:password@host",
        ),
        (
            Brave,
            http("429 Too Many", ""),
            "Brave received too many requests; wait a while and try again",
        ),
        (
            Duckduckgo,
            http("503 Unavailable", ""),
            "DuckDuckGo has an internal problem; try again later",
        ),
        (
            Duckduckgo,
            http("404 Not Found", ""),
            "DuckDuckGo did not understand the request; check `search.url`",
        ),
        (
            Duckduckgo,
            http("200 OK", " <!DOCTYPE html>"),
            "DuckDuckGo answered with a web page instead of JSON; check `search.url`",
        ),
        (
            Duckduckgo,
            http("200 OK", "{\"a\":"),
            "DuckDuckGo answered with something other than JSON; check `search.url`",
        ),
        (
            Duckduckgo,
            http("200 OK", ""),
            "DuckDuckGo answered with something other than JSON; check `search.url`",
        ),
        (
            Duckduckgo,
            http("200 OK", &"[".repeat(100_000)),
            "DuckDuckGo answered with something other than JSON; check `search.url`",
        ),
        (
            Duckduckgo,
            "garbage\r\n\r\n".to_owned(),
            "the connection to DuckDuckGo was lost; try again",
        ),
        (
            Duckduckgo,
            String::new(),
            "the connection to DuckDuckGo was lost; try again",
        ),
        (
            Duckduckgo,
            "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{".to_owned(),
            "the connection to DuckDuckGo was lost; try again",
        ),
    ] {
        let error = ask(backend, canned(response).await).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("The search service is currently unavailable: {expected}")
        );
        assert!(!error.details().unwrap_or_default().contains("s3cret"));
    }
}

#[tokio::test]
async fn an_unreachable_server_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = ask(SearchBackend::Brave, address).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "The search service is currently unavailable: Brave could not be reached; check the network and `search.url`"
    );
    assert!(error.is_transient() && error.details().is_some());
}

#[tokio::test]
async fn the_key_does_not_follow_a_redirect() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let location = elsewhere.local_addr().unwrap();
    let first = serve(async move |head, mut stream| {
        assert!(head.contains("x-subscription-token: s3cret\r\n"));
        let response = format!(
            "HTTP/1.1 302 Found\r\nlocation: http://{location}/\r\ncontent-length: 0\r\n\r\n"
        );
        stream.write_all(response.as_bytes()).await.unwrap();
    })
    .await;
    let error = ask(SearchBackend::Brave, first).await.unwrap_err();
    assert!(error.to_string().ends_with(
        "Brave has moved, and redirects are not followed; set `search.url` to its new address"
    ));
    let visit = tokio::time::timeout(Duration::ZERO, elsewhere.accept()).await;
    assert!(visit.is_err(), "somebody followed the redirect");
}

#[tokio::test]
async fn an_answer_past_a_mebibyte_is_cut_off() {
    let address = serve(async |_, mut stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n[").await.unwrap();
        drop(stream.write_all(&vec![b' '; 1 << 20]).await);
    })
    .await;
    let error = ask(SearchBackend::Duckduckgo, address).await.unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("DuckDuckGo answered with more than 1 MiB"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_dripping_answer_ends_after_ten_seconds() {
    let address = serve(async |_, mut stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        while stream.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    })
    .await;
    let started = tokio::time::Instant::now();
    let error = ask(SearchBackend::Duckduckgo, address).await.unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("DuckDuckGo did not answer within 10 s; try again later"),
        "{error}"
    );
    assert_eq!(started.elapsed().as_secs(), 10);
}
