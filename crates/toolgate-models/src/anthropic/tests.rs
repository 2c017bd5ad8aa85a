use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::Instant;
use toolgate_core::Tool;

use super::*;
use crate::tests::loopback::{HANG, LoopbackServer, LoopbackStep, answer, chunked, dribbled};
use crate::tests::samples::{call, tool};
use crate::{
    Catalog, Message, ModelClient, ModelEvent, ModelReply, OfferedTools, StopReason, ToolList,
};

const KEY: &str = "sk-ant-very-secret";
const SSE: &str = "text/event-stream; charset=utf-8";

pub(super) fn catalog(tools: &[Arc<dyn Tool>]) -> Arc<Catalog> {
    Arc::new(Catalog::build(tools, &tools::DIALECT))
}

pub(super) fn offer(tools: &[Arc<dyn Tool>]) -> OfferedTools {
    OfferedTools::all(catalog(tools))
}

fn settings(url: &str) -> ModelSettings {
    ModelSettings {
        url: url.to_owned(),
        key: KEY.to_owned(),
        first_byte: HANG,
        ..ModelSettings::default()
    }
}

/// Asks once, with a tool, and returns the events.
async fn ask(client: &AnthropicClient) -> (Result<ModelReply, ModelError>, Vec<String>) {
    let parameters = json!({ "type": "object", "properties": { "zone": { "type": "string" } } });
    let list = Arc::new(ToolList::new(vec![tool(
        "time",
        "Tells the time",
        parameters,
    )]));
    let tools = OfferedTools::all(client.catalog(&list));
    let messages = [Message::User {
        text: "What time is it?".to_owned(),
    }];
    let request = ModelRequest::new("", &messages, &tools, Instant::now() + HANG);
    let mut reported = Vec::new();
    let mut listener = |event: ModelEvent<'_>| match event {
        ModelEvent::Text(text) => reported.push(text.to_owned()),
        ModelEvent::Void => reported.push("(void)".to_owned()),
        ModelEvent::Retrying { error, after } => reported.push(format!("({error}; {after:?})")),
        other => panic!("{other:?}"),
    };
    let reply = client.reply(request, &mut listener).await;
    (reply, reported)
}

async fn ask_at(server: &LoopbackServer) -> (Result<ModelReply, ModelError>, Vec<String>) {
    ask(&AnthropicClient::new(&settings(&server.url)).unwrap()).await
}

fn events(data: &[Value]) -> String {
    let event = |data: &Value| {
        let name = data["type"].as_str().unwrap();
        format!("event: {name}\ndata: {data}\n\n")
    };
    data.iter().map(event).collect()
}

fn words(text: &str) -> Vec<Value> {
    vec![
        json!({ "type": "message_start", "message": { "usage": { "input_tokens": 5, "output_tokens": 1 } } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
        json!({ "type": "ping" }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": text } }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 7 } }),
        json!({ "type": "message_stop" }),
    ]
}

fn streamed(data: &[Value]) -> Vec<LoopbackStep> {
    chunked(SSE, &[events(data).as_bytes()])
}

fn refused(status: u16, headers: &str, kind: &str, message: &str) -> Vec<LoopbackStep> {
    let body = json!({ "type": "error", "error": { "type": kind, "message": message }, "request_id": "req_1" });
    vec![LoopbackStep::Send(
        answer(status, headers, &body.to_string()).into_bytes(),
    )]
}

#[tokio::test]
async fn an_exchange_matches_byte_for_byte() {
    let steps = dribbled(SSE, &events(&words("Grüße, 10 o'clock")));
    let mut server = LoopbackServer::start(vec![steps]).await;
    let (reply, reported) = ask_at(&server).await;
    let reply = reply.unwrap();
    assert_eq!(reported, ["Grüße, 10 o'clock"]);
    assert_eq!(reply.message.to_text(), "Grüße, 10 o'clock");
    assert_eq!((reply.stop, reply.usage.output), (StopReason::End, 7));
    assert!(reply.first_token.is_some());
    let request = server.request().await;
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let mut lines: Vec<&str> = head.lines().collect();
    assert_eq!(lines.remove(0), "POST /v1/messages HTTP/1.1");
    let host = server.url.replace("http://", "host: ");
    let length = format!("content-length: {}", body.len());
    let agent = concat!("user-agent: toolgate/", env!("CARGO_PKG_VERSION"));
    let mut expected = [
        "accept: */*",
        "accept-encoding: identity",
        "anthropic-version: 2023-06-01",
        &length,
        "content-type: application/json",
        &host,
        agent,
        "x-api-key: sk-ant-very-secret",
    ];
    lines.sort_unstable();
    expected.sort_unstable();
    assert_eq!(lines, expected);
    assert_eq!(
        body,
        concat!(
            r#"{"model":"claude-sonnet-5","max_tokens":4096,"stream":true,"tools":["#,
            r#"{"name":"time","description":"Tells the time","input_schema":{"type":"object","properties":{"zone":{"type":"string"}}},"cache_control":{"type":"ephemeral"}}],"#,
            r#""messages":[{"role":"user","content":[{"type":"text","text":"What time is it?","cache_control":{"type":"ephemeral"}}]}]}"#,
        )
    );
}

#[tokio::test]
async fn a_call_has_its_arguments() {
    let data = [
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "tool_use", "id": "toolu_1", "name": "time", "input": {} } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "input_json_delta", "partial_json": "{\"zone\":" } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "input_json_delta", "partial_json": "\"Asia/Tōkyō\"}" } }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } }),
        json!({ "type": "message_stop" }),
    ];
    let server = LoopbackServer::start(vec![dribbled(SSE, &events(&data))]).await;
    let (reply, _) = ask_at(&server).await;
    let reply = reply.unwrap();
    assert_eq!(reply.stop, StopReason::Calls);
    assert_eq!(
        reply.message.parts,
        [call("toolu_1", "time", r#"{"zone":"Asia/Tōkyō"}"#)]
    );
}

#[tokio::test]
async fn a_reply_in_one_piece_is_read() {
    let body = json!({ "type": "message", "content": [{ "type": "text", "text": "Ten" }], "stop_reason": "end_turn", "usage": { "input_tokens": 1, "output_tokens": 1 } });
    let answer = answer(
        200,
        "Content-Type: application/json; charset=utf-8\r\n",
        &body.to_string(),
    );
    let server = LoopbackServer::answers(&[&answer]).await;
    let (reply, reported) = ask_at(&server).await;
    assert_eq!(reply.unwrap().message.to_text(), "Ten");
    assert_eq!(reported, ["Ten"]);
}

#[tokio::test]
async fn temporary_errors_are_retried() {
    let overloaded = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
    let mut half = words("Half");
    half.truncate(4);
    let mut half_then_error = half.clone();
    half_then_error.push(overloaded);
    let cases = [
        (
            refused(429, "retry-after: 0\r\n", "rate_limit_error", "Slow"),
            false,
            "anthropic asks to slow down: Slow; try again in 0 s",
        ),
        (
            refused(529, "retry-after: 0\r\n", "overloaded_error", "Overloaded"),
            false,
            "anthropic failed: Overloaded (status 529)",
        ),
        (
            refused(500, "", "api_error", "Oops"),
            false,
            "anthropic failed: Oops (status 500)",
        ),
        (
            streamed(&half),
            true,
            "the answer of anthropic was cut off: it ended in the middle",
        ),
        (
            streamed(&half_then_error),
            true,
            "anthropic failed: Overloaded (status 529)",
        ),
        (
            vec![LoopbackStep::Reset],
            false,
            "the answer of anthropic was cut off: the connection broke off before an answer",
        ),
    ];
    // At the same time, because each waits for its second attempt.
    let asked = cases.map(|(first, void, why)| is_asked_again(first, void, why));
    futures::future::join_all(asked).await;
}

async fn is_asked_again(first: Vec<LoopbackStep>, void: bool, why: &str) {
    let mut server = LoopbackServer::start(vec![first, streamed(&words("Whole"))]).await;
    let (reply, mut reported) = ask_at(&server).await;
    assert_eq!(reply.unwrap().message.to_text(), "Whole", "{why}");
    assert_eq!(reported.pop().as_deref(), Some("Whole"));
    let retrying = reported.pop().unwrap();
    assert!(retrying.contains(why), "{retrying}");
    let before: &[&str] = if void { &["Half", "(void)"] } else { &[] };
    assert_eq!(reported, before, "{why}");
    let (one, two) = (server.request().await, server.request().await);
    assert_eq!(one, two, "the same question");
}

#[tokio::test]
async fn permanent_errors_are_not_retried_and_hide_the_key() {
    let error_event = |kind: &str, message: &str| {
        streamed(&[json!({ "type": "error", "error": { "type": kind, "message": message } })])
    };
    for (steps, expected) in [
        (
            refused(400, "", "invalid_request_error", "tools.0: no"),
            "anthropic refused the request: tools.0: no",
        ),
        (
            refused(401, "", "authentication_error", "invalid x-api-key"),
            "anthropic does not accept the key: invalid x-api-key; set ANTHROPIC_API_KEY, or model.key in the configuration",
        ),
        (
            refused(403, "", "permission_error", &format!("{KEY} may not")),
            "anthropic does not accept the key: [REDACTED] may not; set ANTHROPIC_API_KEY, or model.key in the configuration",
        ),
        (
            refused(404, "", "not_found_error", "model: claude-sonnet-5"),
            "anthropic has no model 'claude-sonnet-5' (model: claude-sonnet-5); choose another with --model, or as model.name in the configuration",
        ),
        (
            refused(
                429,
                "retry-after: 0\r\n",
                "rate_limit_error",
                "Spend limit reached",
            ),
            "anthropic asks to slow down: Spend limit reached; waiting does not help: look at the plan and the budget of the key's account",
        ),
        (
            refused(
                400,
                "",
                "invalid_request_error",
                "prompt is too long: 3 tokens > 2 maximum",
            ),
            "the conversation is too long for claude-sonnet-5: prompt is too long: 3 tokens > 2 maximum; start a new conversation, or offer fewer tools",
        ),
        (
            error_event("invalid_request_error", "bad"),
            "anthropic refused the request: bad",
        ),
        (
            error_event("authentication_error", "expired"),
            "anthropic does not accept the key: expired; set ANTHROPIC_API_KEY, or model.key in the configuration",
        ),
        (
            chunked(SSE, &[b"data: \x1b[31mnonsense\n\n"]),
            "anthropic sent an unexpected answer: expected value at line 1 column 1: \\u{1b}[31mnonsense",
        ),
    ] {
        let mut server = LoopbackServer::start(vec![steps, streamed(&words("Whole"))]).await;
        let (reply, reported) = ask_at(&server).await;
        let error = reply.unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert!(!format!("{error:?}").contains(KEY));
        assert!(reported.is_empty(), "{reported:?}");
        server.request().await;
        assert_eq!(server.waiting(), 0, "asked once");
    }
}

#[tokio::test]
async fn a_full_window_is_reported() {
    let mut data = words("");
    data[5] = json!({ "type": "message_delta", "delta": { "stop_reason": "model_context_window_exceeded" } });
    let server = LoopbackServer::start(vec![streamed(&data)]).await;
    let (reply, _) = ask_at(&server).await;
    assert_eq!(
        reply.unwrap_err().to_string(),
        "the conversation is too long for claude-sonnet-5: its window is full; start a new conversation, or offer fewer tools"
    );
}

#[tokio::test]
async fn one_connection_serves_many_rounds() {
    let whole = events(&words("Ten"));
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    let stream = format!("{head}{:x}\r\n{whole}\r\n0\r\n\r\n", whole.len());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        for _ in 0..3 {
            crate::tests::loopback::read_request(&mut socket).await;
            tokio::io::AsyncWriteExt::write_all(&mut socket, stream.as_bytes())
                .await
                .unwrap();
        }
    });
    let client = AnthropicClient::new(&settings(&url)).unwrap();
    for _ in 0..3 {
        let asked = tokio::time::timeout(HANG, ask(&client)).await.unwrap();
        assert_eq!(asked.0.unwrap().message.to_text(), "Ten");
        // The connection returns to the pool once a few tasks have run.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }
    serving.await.unwrap();
}

#[tokio::test]
async fn dropping_a_reply_closes_the_connection() {
    let mut data = words("Half");
    data.truncate(4);
    let mut steps = streamed(&data);
    // In place of the end of the body.
    let end = steps.len() - 1;
    steps[end] = LoopbackStep::Hang;
    let mut server = LoopbackServer::start(vec![steps]).await;
    let client = AnthropicClient::new(&settings(&server.url)).unwrap();
    let asking = tokio::spawn(async move { ask(&client).await.0.map(drop) });
    server.request().await;
    asking.abort();
    assert!(asking.await.unwrap_err().is_cancelled());
    server.gone().await;
}

#[test]
fn settings_are_read_once_and_checked() {
    let new = |url: &str, key: &str| {
        AnthropicClient::new(&ModelSettings {
            url: url.to_owned(),
            key: key.to_owned(),
            name: "claude-x".to_owned(),
            context_tokens: Some(9000),
            ..ModelSettings::default()
        })
    };
    let client = new("", KEY).unwrap();
    assert_eq!(
        client.format.0.http.display_url(),
        "https://api.anthropic.com"
    );
    assert_eq!((client.model(), client.window()), ("claude-x", 9000));
    assert_eq!(client.provider(), Provider::Anthropic);
    for url in [
        "http://localhost:1/v1/",
        "http://localhost:1/v1",
        "http://localhost:1/",
    ] {
        let client = new(url, "").unwrap();
        assert_eq!(
            client.format.0.http.display_url(),
            "http://localhost:1",
            "{url}"
        );
        assert!(!client.format.0.http.headers.contains_key("x-api-key"));
    }
    assert_eq!(
        new("", " ").err().unwrap().to_string(),
        "anthropic does not accept the key: no key is set; set ANTHROPIC_API_KEY, or model.key in the configuration"
    );
}
