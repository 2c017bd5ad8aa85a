//! Any input to `/mcp` and the event streams is answered in order, and so is the next valid call.
//! `PROPTEST_CASES` asks for more.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Method;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::client::{ApiReply, send, whole};
use crate::odd_requests::{JSON, OddRequest, SESSION, odd};
use crate::test_gateway::ApiTestGateway;

/// How long a stream is read that may never end.
const MOMENT: Duration = Duration::from_millis(30);

/// Counts panics in this process, except those of the tool that panics on purpose.
static PANICS: AtomicUsize = AtomicUsize::new(0);

fn count_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.payload_as_str() != Some("a bug") {
            PANICS.fetch_add(1, Ordering::SeqCst);
        }
        usual(panic);
    }));
}

async fn post(gateway: &ApiTestGateway, headers: &[(&str, &str)], message: &Value) -> ApiReply {
    let headers = [&JSON, headers].concat();
    let sent = send(
        gateway.address,
        &Method::POST,
        "/mcp",
        &headers,
        message.to_string(),
    );
    whole(sent.await).await
}

/// A session that is ready to use.
async fn begun(gateway: &ApiTestGateway) -> String {
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let greeting = post(gateway, &[], &hello).await;
    let session = greeting.header(SESSION).to_owned();
    let told = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(
        post(gateway, &[(SESSION, &session)], &told).await.status,
        202
    );
    session
}

/// A call as it should be, in each era.
async fn expect_good_calls(gateway: &ApiTestGateway, session: &str) {
    let version = "2026-07-28";
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": {} });
    let alone = [
        ("mcp-protocol-version", version),
        ("mcp-method", "tools/call"),
        ("mcp-name", "echo"),
    ];
    for (headers, meta) in [(&[(SESSION, session)][..], json!({})), (&alone, meta)] {
        let params = json!({ "name": "echo", "arguments": { "a": 1 }, "_meta": meta });
        let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
        let reply = post(gateway, headers, &call).await;
        let answer = reply.json();
        let echoed = &answer["result"]["structuredContent"]["echo"];
        assert_eq!(
            (&answer["id"], echoed),
            (&json!(7), &json!({ "a": 1 })),
            "{answer}"
        );
    }
}

/// An answer; of a stream, which may never end, the events that come in a moment.
async fn read(response: http::Response<Incoming>) -> ApiReply {
    let kind = response.headers().get("content-type");
    if kind.is_none_or(|kind| kind != "text/event-stream") {
        return whole(response).await;
    }
    let (parts, mut body) = response.into_parts();
    let mut bytes = Vec::new();
    let reading = async {
        while let Some(frame) = body.frame().await {
            bytes.extend(frame.unwrap().into_data().unwrap_or_default());
        }
    };
    drop(tokio::time::timeout(MOMENT, reading).await);
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    text.truncate(text.rfind("\n\n").unwrap_or(0));
    ApiReply {
        status: parts.status,
        headers: parts.headers,
        text,
    }
}

/// An answer or an error of JSON-RPC. An id that couldn't be read is left out: MCP knows no `null`.
fn is_message(message: &Value) -> bool {
    let answers = message.get("result").is_some() != message.get("error").is_some();
    let names_its_request = match message.get("id") {
        Some(id) => !id.is_null(),
        None => message.get("error").is_some(),
    };
    message["jsonrpc"] == "2.0" && names_its_request && answers
}

/// The first fault found in an answer.
fn fault(odd: &OddRequest, reply: &ApiReply) -> Option<&'static str> {
    let is_mcp = odd.path.starts_with("/mcp");
    let is_refused = reply.status.as_u16() >= 400;
    if reply.status.is_server_error() && reply.status != 503 {
        return Some("a server must not fail");
    }
    let json = |text: &str| serde_json::from_str::<Value>(text).ok();
    match reply.header("content-type") {
        "" if is_refused => Some("nobody says why"),
        "" => (!reply.text.is_empty()).then_some("a body of no kind"),
        "application/problem+json" => {
            let problem = json(&reply.text).unwrap_or_default();
            let is_sound = is_refused && problem["status"] == reply.status.as_u16();
            (!is_sound).then_some("no sound problem")
        }
        "application/json" if is_mcp => {
            let message = json(&reply.text).unwrap_or_default();
            let is_sound = is_message(&message) && (message.get("error").is_some() || !is_refused);
            (!is_sound).then_some("no sound message")
        }
        "text/event-stream" => {
            let mut data = reply
                .text
                .lines()
                .filter_map(|line| line.strip_prefix("data: "));
            let is_sound = |text: &str| text.is_empty() || json(text).is_some();
            (is_refused || !data.all(is_sound)).then_some("no sound stream")
        }
        _ => Some("an answer of another kind"),
    }
}

#[test]
fn any_requests_are_answered_in_order_and_harm_nobody() {
    let usual = ProptestConfig::default();
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    let config = ProptestConfig {
        cases: if asked { usual.cases } else { 200 },
        failure_persistence: None,
        ..usual
    };
    count_panics();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (gateway, session) = runtime.block_on(async {
        let gateway = ApiTestGateway::start().await;
        let session = begun(&gateway).await;
        (gateway, session)
    });
    let tried = TestRunner::new(config).run(&odd(), |odd| {
        let reply = runtime.block_on(async {
            let its = if odd.has_session {
                Some(begun(&gateway).await)
            } else {
                None
            };
            let mut headers: Vec<(&str, &str)> = Vec::new();
            headers.extend(its.iter().map(|its| (SESSION, its.as_str())));
            headers.extend(
                odd.headers
                    .iter()
                    .map(|(name, value)| (*name, value.as_str())),
            );
            let sent = send(
                gateway.address,
                &odd.method,
                odd.path,
                &headers,
                odd.body.clone(),
            );
            let reply = read(sent.await).await;
            expect_good_calls(&gateway, &session).await;
            reply
        });
        let beginning: String = reply.text.chars().take(500).collect();
        prop_assert_eq!(fault(&odd, &reply), None, "{} {}", reply.status, beginning);
        prop_assert_eq!(PANICS.load(Ordering::SeqCst), 0);
        Ok(())
    });
    assert!(tried.is_ok(), "{}", tried.unwrap_err());
}
