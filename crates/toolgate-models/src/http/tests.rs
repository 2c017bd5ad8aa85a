mod errors;

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName};
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::*;
use crate::tests::loopback::{HANG, LoopbackServer, LoopbackStep, answer, chunked, dribbled};

const KEY: &str = "sk-very-secret";

fn settings(first_byte: Duration) -> ModelSettings {
    ModelSettings {
        key: KEY.to_owned(),
        first_byte,
        ..ModelSettings::default()
    }
}

fn http(url: &str) -> ProviderHttp {
    let mut http = ProviderHttp::new(Provider::Ollama, url, &settings(HANG)).unwrap();
    let key = secret_header(Provider::Ollama, KEY).unwrap();
    http.headers = HeaderMap::from_iter([(HeaderName::from_static("x-api-key"), key)]);
    http
}

fn usual(failure: ErrorResponse) -> ModelError {
    failure.into_model_error("some-model")
}

async fn post(http: &ProviderHttp) -> Result<ResponseLines, ModelError> {
    let deadline = Instant::now() + HANG;
    http.post("/api/chat", b"{}".to_vec(), deadline, usual)
        .await
}

async fn lines_of(steps: Vec<LoopbackStep>) -> Result<Vec<String>, ModelError> {
    let server = LoopbackServer::start(vec![steps]).await;
    let mut lines = post(&http(&server.url)).await?;
    let mut all = Vec::new();
    while let Some(line) = lines.next().await? {
        all.push(String::from_utf8(line.to_vec()).unwrap());
    }
    Ok(all)
}

async fn events_of(steps: Vec<LoopbackStep>) -> Result<Vec<(String, String)>, ModelError> {
    let server = LoopbackServer::start(vec![steps]).await;
    let mut lines = post(&http(&server.url)).await?;
    let mut all = Vec::new();
    while let Some(event) = lines.next_event().await? {
        all.push((event.name, event.data));
    }
    Ok(all)
}

async fn error_of(answer: &str) -> ModelError {
    let server = LoopbackServer::answers(&[answer]).await;
    post(&http(&server.url)).await.err().unwrap()
}

fn raw(text: impl Into<Vec<u8>>) -> Vec<LoopbackStep> {
    vec![LoopbackStep::Send(text.into())]
}

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n";

#[tokio::test]
async fn lines_do_not_depend_on_chunks() {
    let whole = "\u{feff}{\"a\":\"Grüße\"}\r\n{\"b\":\"漢字\"}\n\r\n[3]\r4";
    let expected = ["{\"a\":\"Grüße\"}", "{\"b\":\"漢字\"}", "", "[3]", "4"];
    let byte_by_byte = dribbled("application/x-ndjson", whole);
    assert_eq!(lines_of(byte_by_byte).await.unwrap(), expected);
    for size in [2, 3, 7, 1000] {
        let chunks: Vec<&[u8]> = whole.as_bytes().chunks(size).collect();
        let lines = lines_of(chunked("application/x-ndjson", &chunks)).await;
        assert_eq!(lines.unwrap(), expected, "{size}");
    }
}

#[tokio::test]
async fn events_do_not_depend_on_chunks_or_line_endings() {
    let whole = "\u{feff}: hello\nevent: one\ndata: {\"text\":\"ü\"}\n\nid: 7\ndata:a\ndata: b\ndata\n\nevent: none\n\n\ndata: [DONE]\n\n";
    let expected = [("one", "{\"text\":\"ü\"}"), ("", "a\nb\n"), ("", "[DONE]")];
    let expected = expected.map(|(name, data)| (name.to_owned(), data.to_owned()));
    for end in ["\n", "\r\n", "\r"] {
        let steps = dribbled("text/event-stream", &whole.replace('\n', end));
        assert_eq!(events_of(steps).await.unwrap(), expected, "{end:?}");
    }
}

#[tokio::test]
async fn a_last_event_without_an_empty_line_counts_if_complete() {
    for (body, expected) in [
        ("data: {\"a\":1}\n", Some("{\"a\":1}")),
        ("data: {\"a\":1}", Some("{\"a\":1}")),
        ("data: [DONE]", Some("[DONE]")),
        ("data: {\"a\":", None),
    ] {
        let events = events_of(raw(answer(200, "", body))).await.unwrap();
        let data = events.first().map(|(_, data)| data.as_str());
        assert_eq!(data, expected, "{body}");
    }
}

#[tokio::test]
async fn a_cut_body_is_an_error() {
    let whole_line = "{\"done\":false}\n";
    for (what, steps) in [
        (
            "less than was announced",
            raw(format!("{HEAD}Content-Length: 100\r\n\r\n{whole_line}")),
        ),
        (
            "chunks without an end",
            raw(format!(
                "{HEAD}Transfer-Encoding: chunked\r\n\r\nf\r\n{whole_line}\r\n"
            )),
        ),
        (
            "half a chunk",
            raw(format!(
                "{HEAD}Transfer-Encoding: chunked\r\n\r\nff\r\n{whole_line}"
            )),
        ),
        (
            "half a line",
            raw(format!(
                "{HEAD}Connection: close\r\n\r\n{whole_line}{{\"done\":"
            )),
        ),
        (
            "a reset",
            vec![
                LoopbackStep::Send(
                    format!("{HEAD}Content-Length: 100\r\n\r\n{whole_line}").into_bytes(),
                ),
                LoopbackStep::Reset,
            ],
        ),
    ] {
        let error = lines_of(steps).await.unwrap_err();
        assert!(
            matches!(error, ModelError::Truncated { .. }),
            "{what}: {error}"
        );
        assert!(error.is_retryable(), "{what}");
    }
}

#[tokio::test]
async fn a_connection_that_breaks_before_an_answer_is_cut() {
    for steps in [
        vec![],
        vec![LoopbackStep::Reset],
        raw("HTTP/1.1 200 OK\r\nConte"),
    ] {
        let error = lines_of(steps).await.unwrap_err();
        assert!(matches!(error, ModelError::Truncated { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_line_or_body_beyond_its_limit_is_an_error() {
    let half = vec![b'x'; 5 << 20];
    let error = lines_of(chunked("application/x-ndjson", &[&half, &half])).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "ollama sent an unexpected answer: a line of it is longer than 8 MiB"
    );
    let mut data = b"data: ".to_vec();
    data.extend_from_slice(&half);
    data.push(b'\n');
    let error = events_of(chunked("text/event-stream", &[&data, &data])).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "ollama sent an unexpected answer: an event of it is longer than 8 MiB"
    );
    let mut line = vec![b' '; 7 << 20];
    line.push(b'\n');
    let chunks = vec![line.as_slice(); 10];
    let error = lines_of(chunked("application/x-ndjson", &chunks)).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "ollama sent an unexpected answer: it is longer than 64 MiB"
    );
}

#[tokio::test]
async fn silence_before_and_after_the_first_byte_differ() {
    let short = Duration::from_millis(50);
    let head = format!("{HEAD}Connection: close\r\n\r\n");
    let begun = format!("{head}1\n");
    for (first_byte, total, sent, expected) in [
        (short, HANG, "", "begin to answer"),
        (short, HANG, head.as_str(), "begin to answer"),
        (short, HANG, begun.as_str(), "nothing more came for 0.05 s"),
        (HANG, short, "", "begin to answer"),
        (HANG, short, begun.as_str(), "finish"),
    ] {
        let steps = vec![
            LoopbackStep::Send(sent.as_bytes().to_vec()),
            LoopbackStep::Hang,
        ];
        let server = LoopbackServer::start(vec![steps]).await;
        let http = ProviderHttp::new(Provider::Ollama, &server.url, &settings(first_byte)).unwrap();
        let deadline = Instant::now() + total;
        let asked = async {
            let mut lines = http.post("/", Vec::new(), deadline, usual).await?;
            while lines.next().await?.is_some() {}
            Ok::<(), ModelError>(())
        };
        match asked.await.unwrap_err() {
            ModelError::TimedOut { what, after, .. } => {
                assert_eq!(what, expected);
                assert!(after <= short, "{after:?}");
            }
            ModelError::Truncated { reason, .. } => assert_eq!(reason, expected),
            other => panic!("{other}"),
        }
    }
}

#[tokio::test]
async fn the_socket_is_closed_when_the_answer_is_dropped() {
    for sent in ["", HEAD, &format!("{HEAD}Connection: close\r\n\r\n{{}}\n")] {
        let steps = vec![
            LoopbackStep::Send(sent.as_bytes().to_vec()),
            LoopbackStep::Hang,
        ];
        let mut server = LoopbackServer::start(vec![steps]).await;
        let http = http(&server.url);
        let asking = tokio::spawn(async move {
            let mut lines = post(&http).await?;
            while lines.next().await?.is_some() {}
            Ok::<(), ModelError>(())
        });
        server.request().await;
        asking.abort();
        assert!(asking.await.unwrap_err().is_cancelled());
        server.gone().await;
    }
}

#[tokio::test]
async fn json_answers_are_read_whole() {
    let body = "\u{feff}{\"models\":[]}";
    let mut server = LoopbackServer::answers(&[
        &answer(200, "Content-Type: application/json\r\n", body),
        &answer(200, "", "<p>"),
    ])
    .await;
    let http = http(&format!("{}/under/?api-version=1", server.url));
    let deadline = Instant::now() + HANG;
    let value = http.get_json("/api/tags", deadline, usual).await;
    assert_eq!(value.unwrap(), serde_json::json!({ "models": [] }));
    let request = server.request().await;
    assert!(request.starts_with("GET /under/api/tags?api-version=1 HTTP/1.1\r\n"));
    assert!(
        request.contains("accept-encoding: identity\r\n"),
        "{request}"
    );
    let error = http
        .post("/api/show", b"{}".to_vec(), deadline, usual)
        .await
        .unwrap()
        .json()
        .await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "ollama sent an unexpected answer: not JSON (expected value at line 1 column 1): <p>"
    );
}

#[tokio::test]
async fn a_foreign_body_differs_from_a_cut_event_stream() {
    for (body, is_strange) in [
        (&b"\x1f\x8b\x00\xff garbage"[..], true),
        (b"\x00\x01\n\x02\n", true),
        (b"{\"error\": \"no\"}", true),
        (b"SSH-2.0-OpenSSH_9.6\r\n", true),
        (b"", false),
        (b": ping\n\n", false),
        (b"eve", false),
        (b"id: 7\nretry: 1\n", false),
        (b"data: {\"half", false),
        (b"data: {}\n\nSSH-2.0\n", false),
    ] {
        let events = events_of(chunked("text/event-stream", &[body])).await;
        let body = String::from_utf8_lossy(body);
        match events {
            Err(error) => {
                assert!(error.to_string().contains("not an event stream"), "{error}");
                assert!(is_strange && !error.is_retryable(), "{body}");
            }
            Ok(_) => assert!(!is_strange, "{body}"),
        }
    }
}
