//! Tests against loopback servers that send exactly what a case needs.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

mod failures;

const BRAVE_HIT: &str = r#"{"web":{"results":[{"title":"<b>Rust</b>","url":"https://rust-lang.org","description":"A language &amp; more"}]}}"#;

/// A server for one connection. `respond` gets the request's head and the stream.
async fn serve<F>(respond: impl FnOnce(String, TcpStream) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        respond(String::from_utf8(head).unwrap(), stream).await;
    });
    address
}

/// A server that sends these bytes and closes.
async fn canned(bytes: impl Into<Vec<u8>>) -> SocketAddr {
    let bytes = bytes.into();
    serve(async move |_, mut stream| {
        // The client may hang up first, which some cases are about.
        drop(stream.write_all(&bytes).await);
    })
    .await
}

fn http(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn search(backend: SearchBackend, url: impl Into<String>) -> SearchHandler {
    let settings = SearchSettings {
        backend,
        url: url.into(),
        key: "s3cret".to_owned(),
        simulated: false,
    };
    SearchHandler {
        settings,
        http: SearchClient::default(),
    }
}

fn asked(query: &str) -> SearchArguments {
    SearchArguments {
        query: query.to_owned(),
        max_results: default_max_results(),
    }
}

async fn ask(backend: SearchBackend, address: SocketAddr) -> Result<SearchResults, ToolError> {
    search(backend, format!("http://{address}"))
        .search(&asked("rust"))
        .await
        .map_err(|outage| outage.into_tool_error("search"))
}

async fn answer_to(backend: SearchBackend, body: &str) -> Value {
    json!(
        ask(backend, canned(http("200 OK", body)).await)
            .await
            .unwrap()
    )
}

#[tokio::test]
async fn duckduckgo_returns_the_answer_and_topics_even_in_groups() {
    let body = json!({
        "Heading": "Rust", "AbstractText": "Rust is a <i>language</i>.", "AbstractURL": "https://en.wikipedia.org/wiki/Rust",
        "Answer": "", "Results": [],
        "RelatedTopics": [
            { "Text": "Cargo - The package manager", "FirstURL": "https://duckduckgo.com/Cargo" },
            { "Name": "Other", "Topics": [{ "Text": "Rust (fungus)", "FirstURL": "https://duckduckgo.com/Rust_(fungus)" }] },
            { "Text": "no address" }, 7, null
        ]
    });
    assert_eq!(
        answer_to(SearchBackend::Duckduckgo, &body.to_string()).await,
        json!({
            "answer": "Rust is a language.",
            "results": [
                { "title": "Rust", "url": "https://en.wikipedia.org/wiki/Rust", "snippet": "Rust is a language." },
                { "title": "Cargo", "url": "https://duckduckgo.com/Cargo", "snippet": "Cargo - The package manager" },
                { "title": "Rust (fungus)", "url": "https://duckduckgo.com/Rust_(fungus)", "snippet": "Rust (fungus)" },
            ],
        })
    );
}

#[tokio::test]
async fn an_instant_answer_that_knows_nothing_says_so() {
    let found = answer_to(
        SearchBackend::Duckduckgo,
        r#"{"AbstractText":"","RelatedTopics":[],"Answer":{"from":"calculator"}}"#,
    )
    .await;
    assert_eq!(found["results"], json!([]));
    assert!(
        found["note"]
            .as_str()
            .unwrap()
            .starts_with("DuckDuckGo's instant answers know topics")
    );
}

#[tokio::test]
async fn searxng_gives_results_and_answers_of_both_forms() {
    for answers in [json!(["42"]), json!([{ "answer": "42", "url": null }])] {
        let body = json!({
            "answers": answers,
            "results": [
                { "title": "One", "url": "https://one.example/", "content": "first\u{7}" },
                { "title": "Click me", "url": "javascript:alert(1)", "content": "" },
                { "title": "Two", "url": "https://two.example/", "content": null },
            ],
        });
        assert_eq!(
            answer_to(SearchBackend::Searxng, &body.to_string()).await,
            json!({
                "answer": "42",
                "results": [
                    { "title": "One", "url": "https://one.example/", "snippet": "first" },
                    { "title": "Two", "url": "https://two.example/", "snippet": "" },
                ],
            })
        );
    }
}

#[tokio::test]
async fn brave_gives_clean_results() {
    let hit =
        json!({ "title": "Rust", "url": "https://rust-lang.org/", "snippet": "A language & more" });
    assert_eq!(
        answer_to(SearchBackend::Brave, BRAVE_HIT).await,
        json!({ "results": [hit] })
    );
}

#[tokio::test]
async fn a_simulated_search_sends_no_request_and_says_so() {
    // A real request to this address would be refused at once.
    let mut search = search(SearchBackend::Duckduckgo, "http://127.0.0.1:1");
    search.settings.simulated = true;
    let found = json!(search.search(&asked(" rust ")).await.unwrap());
    assert_eq!(
        found["results"][0]["title"],
        "A simulated result for “rust”"
    );
    assert!(found["note"].as_str().unwrap().contains("simulated"));
}

#[tokio::test]
async fn no_more_results_than_asked_for() {
    let results: Vec<Value> = (0..50)
        .map(|n| json!({ "title": n.to_string(), "url": "https://example.org" }))
        .collect();
    let address = canned(http("200 OK", &json!({ "results": results }).to_string())).await;
    let search = search(SearchBackend::Searxng, format!("http://{address}"));
    let found = search
        .search(&SearchArguments {
            query: "x".to_owned(),
            max_results: 3,
        })
        .await
        .unwrap();
    assert_eq!(found.results.len(), 3);
}

#[test]
fn each_backend_builds_its_own_request() {
    for (backend, url, expected) in [
        (
            SearchBackend::Duckduckgo,
            "",
            "https://api.duckduckgo.com/?q=a+%26+b%3D%E2%82%AC&format=json&no_html=1&no_redirect=1&skip_disambig=1",
        ),
        (
            SearchBackend::Searxng,
            "https://s.example",
            "https://s.example/search?q=a+%26+b%3D%E2%82%AC&format=json",
        ),
        (
            SearchBackend::Searxng,
            "https://s.example/x/",
            "https://s.example/x/search?q=a+%26+b%3D%E2%82%AC&format=json",
        ),
        (
            SearchBackend::Searxng,
            "https://s.example/search",
            "https://s.example/search?q=a+%26+b%3D%E2%82%AC&format=json",
        ),
        (
            SearchBackend::Brave,
            "",
            "https://api.search.brave.com/res/v1/web/search?q=a+%26+b%3D%E2%82%AC&count=5&text_decorations=false",
        ),
    ] {
        let search = search(backend, url);
        let request = backend
            .build_request(&search.settings, &asked("a & b=€"))
            .unwrap();
        assert_eq!(request.url().as_str(), expected);
        let sends_key = request.headers().contains_key("x-subscription-token");
        assert_eq!(
            sends_key,
            backend == SearchBackend::Brave,
            "only Brave wants the key"
        );
    }
}

#[tokio::test]
async fn a_login_in_the_address_becomes_a_header() {
    let address = serve(async |head, mut stream| {
        let expected = "authorization: Basic bmFtZTpzM2NyZXQ=\r\n"; // name:s3cret
        let body = if head.contains(expected) {
            r#"{"answers":["in"]}"#
        } else {
            "{}"
        };
        stream
            .write_all(http("200 OK", body).as_bytes())
            .await
            .unwrap();
    })
    .await;
    let search = search(
        SearchBackend::Searxng,
        format!("http://name:s3cret@{address}"),
    );
    assert!(!format!("{:?}", search.settings).contains("s3cret"));
    assert_eq!(
        search
            .search(&asked("rust"))
            .await
            .unwrap()
            .answer
            .as_deref(),
        Some("in")
    );
}

#[test]
fn the_settings_are_strict_and_hide_the_key() {
    let settings = |text: &str| serde_json::from_str::<SearchSettings>(text);
    assert_eq!(settings("{}").unwrap(), SearchSettings::default());
    let full = settings(r#"{ "backend": "brave", "url": "https://x", "key": "s3cret" }"#).unwrap();
    assert_eq!(
        (full.backend, full.key.as_str()),
        (SearchBackend::Brave, "s3cret")
    );
    assert!(!format!("{full:?}").contains("s3cret"));
    for wrong in [
        r#"{ "backend": "google" }"#,
        r#"{ "kee": "" }"#,
        r#"{ "key": 7 }"#,
    ] {
        assert!(settings(wrong).is_err());
    }
}
