//! The client against a scripted server on a real socket.

mod reading;
pub(super) mod samples;
mod unread;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_core::{Tool, ToolExecutor, ToolManager};

use self::samples::{OllamaEventLog, offer, offer_of, remote, weather};
use super::*;
use crate::tests::loopback::{HANG, LoopbackServer, LoopbackStep, answer, chunked};
use crate::{Conversation, Message, MessagePart, ModelClient, OfferedTools, StopReason, Toolbox};

const NDJSON: &str = "application/x-ndjson";

/// A model that can use tools and holds 40960 tokens.
fn show() -> Vec<LoopbackStep> {
    let shown = json!({ "capabilities": ["completion", "tools"], "model_info": { "qwen3.context_length": 40_960 } });
    whole(200, &shown.to_string())
}

fn whole(status: u16, body: &str) -> Vec<LoopbackStep> {
    vec![LoopbackStep::Send(answer(status, "", body).into_bytes())]
}

fn lines(lines: &[Value]) -> Vec<LoopbackStep> {
    let lines: Vec<String> = lines.iter().map(|line| format!("{line}\n")).collect();
    let chunks: Vec<&[u8]> = lines.iter().map(String::as_bytes).collect();
    chunked(NDJSON, &chunks)
}

fn says(text: &str) -> Value {
    json!({ "message": { "role": "assistant", "content": text }, "done": false })
}

fn done() -> Value {
    json!({ "message": { "role": "assistant", "content": "" }, "done": true, "done_reason": "stop",
        "prompt_eval_count": 40, "eval_count": 2 })
}

fn settings(server: &LoopbackServer) -> ModelSettings {
    ModelSettings {
        name: "qwen3".to_owned(),
        url: server.url.clone(),
        ..ModelSettings::default()
    }
}

/// The result of one question.
struct OllamaTestReply {
    reply: Result<ModelReply, ModelError>,
    reported: Vec<String>,
}

async fn ask(settings: &ModelSettings, offer: &OfferedTools) -> OllamaTestReply {
    let client = OllamaClient::new(settings).unwrap();
    ask_client(&client, offer).await
}

async fn ask_client(client: &OllamaClient, offer: &OfferedTools) -> OllamaTestReply {
    let mut reported = OllamaEventLog::default();
    let messages = [Message::User {
        text: "Is it cold in Oslo?".to_owned(),
    }];
    let request = ModelRequest::new("", &messages, offer, Instant::now() + HANG);
    let reply = tokio::time::timeout(HANG, client.reply(request, &mut reported));
    let reply = reply.await.unwrap();
    OllamaTestReply {
        reply,
        reported: reported.0,
    }
}

/// The path and the JSON body of a request.
fn read(request: &str) -> (&str, Value) {
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let path = head.split(' ').nth(1).unwrap();
    (path, serde_json::from_str(body).unwrap_or_default())
}

#[tokio::test]
async fn model_details_are_fetched_before_the_first_question() {
    let mut server =
        LoopbackServer::start(vec![show(), lines(&[says("Ye"), says("s."), done()])]).await;
    let OllamaTestReply { reply, reported } = ask(&settings(&server), &offer()).await;
    let reply = reply.unwrap();
    assert_eq!(reported, ["text Ye", "text s."]);
    assert_eq!(
        (reply.message.to_text().as_str(), reply.stop),
        ("Yes.", StopReason::End)
    );
    assert_eq!((reply.usage.input, reply.usage.output), (40, 2));
    assert!(reply.first_token.is_some());
    let shown = server.request().await;
    assert_eq!(read(&shown), ("/api/show", json!({ "model": "qwen3" })));
    let asked = server.request().await;
    let (path, body) = read(&asked);
    assert_eq!(
        (path, &body["model"], &body["options"]["num_ctx"]),
        ("/api/chat", &json!("qwen3"), &json!(8192))
    );
}

#[tokio::test]
async fn a_model_without_tool_use_is_reported_once() {
    let shown = json!({ "capabilities": ["completion"] });
    let answers = || lines(&[says("No idea."), done()]);
    let scripts = vec![whole(200, &shown.to_string()), answers(), answers()];
    let server = LoopbackServer::start(scripts).await;
    let client = OllamaClient::new(&settings(&server)).unwrap();
    let reported = ask_client(&client, &offer()).await.reported;
    assert!(
        reported[0].starts_with("notice the model 'qwen3' can't use tools"),
        "{reported:?}"
    );
    let reported = ask_client(&client, &offer()).await.reported;
    assert_eq!(reported, ["text No idea."]);
}

#[tokio::test]
async fn a_server_without_model_details_is_asked_once() {
    for reply_to_show in [
        whole(404, "404 page not found"),
        whole(500, "{}"),
        whole(200, "[]"),
        whole(200, "no JSON"),
    ] {
        let yes = || lines(&[says("Yes."), done()]);
        let server = LoopbackServer::start(vec![reply_to_show, yes(), yes()]).await;
        let client = OllamaClient::new(&settings(&server)).unwrap();
        for _ in 0..2 {
            let asked = ask_client(&client, &offer()).await;
            assert_eq!(asked.reply.unwrap().message.to_text(), "Yes.");
        }
        assert_eq!(server.waiting(), 3);
    }
}

#[tokio::test]
async fn a_line_that_is_split_inside_a_character_is_whole() {
    let line = format!("{}\n{}\n", says("größer 🔧"), done());
    let bytes: Vec<&[u8]> = line.as_bytes().chunks(1).collect();
    let server = LoopbackServer::start(vec![show(), chunked(NDJSON, &bytes)]).await;
    let asked = ask(&settings(&server), &offer()).await;
    assert_eq!(asked.reply.unwrap().message.to_text(), "größer 🔧");
}

#[tokio::test]
async fn temporary_errors_are_recognized() {
    for broken in [
        whole(
            500,
            r#"{"error":"llama runner process has terminated: exit status 2"}"#,
        ),
        lines(&[says("It is"), json!({ "error": "unexpected EOF" })]),
        lines(&[json!({ "detail": "the proxy lost its upstream" })]),
        lines(&[says("It is")]),
        lines(&[]),
        vec![LoopbackStep::Reset],
    ] {
        let server = LoopbackServer::start(vec![show(), broken]).await;
        let settings = ModelSettings {
            attempts: 1,
            ..settings(&server)
        };
        let error = ask(&settings, &offer()).await.reply.unwrap_err();
        assert!(error.is_retryable(), "{error:?}");
    }
}

#[tokio::test]
async fn a_full_queue_is_asked_again() {
    let said = r#"{"error":"server busy, please try again.  maximum pending requests exceeded"}"#;
    let busy = answer(503, "Retry-After: 0\r\n", said).into_bytes();
    let yes = lines(&[says("Yes."), done()]);
    let server = LoopbackServer::start(vec![show(), vec![LoopbackStep::Send(busy)], yes]).await;
    let asked = ask(&settings(&server), &offer()).await;
    assert_eq!(asked.reply.unwrap().message.to_text(), "Yes.");
    assert!(
        asked.reported[0].starts_with("Retrying"),
        "{:?}",
        asked.reported
    );
}

#[tokio::test]
async fn a_call_before_the_cut_is_never_a_reply() {
    let call = json!({ "message": { "content": "", "tool_calls": [
        { "id": "a", "function": { "name": "weather", "arguments": { "city": "Oslo" } } }] }, "done": false });
    let server = LoopbackServer::start(vec![show(), lines(&[call])]).await;
    let settings = ModelSettings {
        attempts: 1,
        ..settings(&server)
    };
    let error = ask(&settings, &offer()).await.reply.unwrap_err();
    assert!(matches!(error, ModelError::Truncated { .. }), "{error:?}");
}

#[tokio::test]
async fn permanent_errors_are_not_retried_and_have_advice() {
    for (status, said, helps) in [
        (
            400,
            r#"{"error":"registry.ollama.ai/library/qwen3:latest does not support tools"}"#,
            "'ollama pull qwen3:4b-instruct'",
        ),
        (
            404,
            r#"{"error":"model 'qwen3' not found"}"#,
            "'ollama pull qwen3'",
        ),
        (
            401,
            r#"{"error":"unauthorized","signin_url":"https://ollama.com/connect?key=x"}"#,
            "'ollama signin'",
        ),
        (
            500,
            r#"{"error":"no user query found in messages"}"#,
            "model.contextTokens",
        ),
    ] {
        let server = LoopbackServer::start(vec![show(), whole(status, said)]).await;
        let asked = ask(&settings(&server), &offer()).await;
        let error = asked.reply.unwrap_err().to_string();
        assert!(error.contains(helps), "{error}");
        assert_eq!(asked.reported, [""; 0]);
    }
}

#[tokio::test]
async fn a_refused_connection_says_how_to_start_ollama() {
    let settings = ModelSettings {
        url: "127.0.0.1:1".to_owned(),
        attempts: 1,
        ..ModelSettings::default()
    };
    let error = ask(&settings, &offer()).await.reply.unwrap_err();
    assert!(error.to_string().contains("ollama serve"), "{error}");
}

#[tokio::test]
async fn refused_thinking_is_remembered() {
    let refused = whole(400, r#"{"error":"\"qwen3\" does not support thinking"}"#);
    let yes = || lines(&[says("Yes."), done()]);
    let mut server = LoopbackServer::start(vec![show(), refused, yes(), yes()]).await;
    let settings = ModelSettings {
        think: Some(true),
        ..settings(&server)
    };
    let client = OllamaClient::new(&settings).unwrap();
    let first = ask_client(&client, &offer()).await;
    assert_eq!(first.reply.unwrap().message.to_text(), "Yes.");
    assert_eq!(
        first.reported,
        [
            "notice the model 'qwen3' can't think before it answers and is asked to answer directly",
            "text Yes."
        ]
    );
    let second = ask_client(&client, &offer()).await;
    assert_eq!(second.reported, ["text Yes."]);
    server.request().await;
    let mut sent = Vec::new();
    for _ in 0..3 {
        let request = server.request().await;
        sent.push(read(&request).1["think"].clone());
    }
    assert_eq!(sent, [json!(true), Value::Null, Value::Null]);
}

#[tokio::test]
async fn thinking_is_kept_apart_from_text() {
    let thinks = lines(&[says("<think>Hm.</think>"), says("Yes."), done()]);
    let server = LoopbackServer::start(vec![show(), thinks]).await;
    let asked = ask(&settings(&server), &offer()).await;
    assert_eq!(asked.reported, ["thinking Hm.", "text Yes."]);
    let parts = asked.reply.unwrap().message.parts;
    let thought = MessagePart::Thinking {
        text: "Hm.".to_owned(),
        signature: None,
    };
    let text = MessagePart::Text {
        text: "Yes.".to_owned(),
    };
    assert_eq!(parts, [thought, text]);
}

#[tokio::test]
async fn a_dropped_question_closes_its_connection() {
    let begun = vec![
        LoopbackStep::Send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec()),
        LoopbackStep::Hang,
    ];
    let mut server = LoopbackServer::start(vec![show(), begun]).await;
    let (settings, offer) = (settings(&server), offer());
    let asking = tokio::spawn(async move { ask(&settings, &offer).await.reply.is_ok() });
    server.request().await;
    server.request().await;
    asking.abort();
    server.gone().await;
}

#[tokio::test]
async fn a_key_is_sent_and_never_shown() {
    let refused = whole(401, r#"{"error":"the key sesame-1234 is not valid"}"#);
    let mut server = LoopbackServer::start(vec![show(), refused]).await;
    let settings = ModelSettings {
        key: "sesame-1234".to_owned(),
        ..settings(&server)
    };
    let error = ask(&settings, &offer()).await.reply.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("sesame"), "{error}");
    for _ in 0..2 {
        let request = server.request().await;
        assert!(
            request.contains("authorization: Bearer sesame-1234\r\n"),
            "{request}"
        );
    }
}

#[tokio::test]
async fn the_window_is_configured_or_taken_from_the_model() {
    for (fixed, expected) in [(Some(3000), 3000), (None, 32_768)] {
        let settings = ModelSettings {
            context_tokens: fixed,
            ..ModelSettings::default()
        };
        assert_eq!(OllamaClient::new(&settings).unwrap().window(), expected);
    }
    let small = json!({ "model_info": { "tiny.context_length": 2048 } }).to_string();
    let mut server = LoopbackServer::start(vec![whole(200, &small), lines(&[done()])]).await;
    let client = OllamaClient::new(&settings(&server)).unwrap();
    ask_client(&client, &offer()).await.reply.unwrap();
    assert_eq!(client.window(), 2048);
    server.request().await;
    let asked = server.request().await;
    assert_eq!(
        read(&asked).1["options"],
        json!({ "num_ctx": 2048, "num_predict": 1024 })
    );
}

#[tokio::test]
async fn models_are_listed_with_capabilities_by_old_and_new_servers() {
    let new = json!({ "models": [
        { "name": "a", "model": "a:latest", "capabilities": ["completion", "tools", "thinking"], "details": { "context_length": 40_960 } },
        { "name": "b:1b", "capabilities": ["completion"] },
        { "size": 7 },
    ] });
    let server = LoopbackServer::start(vec![whole(200, &new.to_string())]).await;
    let found = OllamaClient::probe(&settings(&server), HANG).await.unwrap();
    let expected = [
        ModelInfo {
            name: "a:latest".to_owned(),
            tools: ToolUse::Supported,
            thinking: true,
            context: Some(40_960),
        },
        ModelInfo {
            name: "b:1b".to_owned(),
            tools: ToolUse::Unsupported,
            thinking: false,
            context: None,
        },
    ];
    assert_eq!(found, expected);
    let old = json!({ "models": [{ "name": "qwen3" }] });
    let mut server = LoopbackServer::start(vec![whole(200, &old.to_string()), show()]).await;
    let found = OllamaClient::probe(&settings(&server), HANG).await.unwrap();
    assert_eq!(
        (found.len(), found[0].tools, found[0].context),
        (1, ToolUse::Supported, Some(40_960))
    );
    assert!(server.request().await.starts_with("GET /api/tags "));
}

#[tokio::test]
async fn a_probe_ends_in_time() {
    let server = LoopbackServer::start(vec![vec![LoopbackStep::Hang]]).await;
    let limit = Duration::from_millis(50);
    let settings = settings(&server);
    let probe = tokio::time::timeout(HANG, OllamaClient::probe(&settings, limit));
    let error = probe.await.unwrap().unwrap_err();
    assert!(matches!(error, ModelError::TimedOut { .. }), "{error:?}");
}

#[tokio::test]
async fn ai2_tools_are_sent_in_qwen_form_and_calls_run_unchanged() {
    let call = json!({ "message": { "role": "assistant", "content": "", "tool_calls": [
        { "id": "call_1", "function": { "index": 0, "name": "weather", "arguments": { "city": " 5 " } } },
        { "id": "call_2", "function": { "index": 1, "name": "lamp", "arguments": { "on": true } } }] },
        "done": true, "done_reason": "stop" });
    let mut server = LoopbackServer::start(vec![
        show(),
        lines(&[call]),
        lines(&[says("Cold, and light."), done()]),
    ])
    .await;
    let manager = Arc::new(ToolManager::new());
    let tools = [weather(), remote("house__lamp", "house", "lamp")];
    manager.add_all(tools.clone());
    let settings = settings(&server);
    let client = Arc::new(OllamaClient::new(&settings).unwrap());
    let mut conversation =
        Conversation::new(client, Toolbox::new(ToolExecutor::new(manager)), settings);

    let turn = conversation
        .turn("Is it cold in Oslo?", &mut OllamaEventLog::default())
        .await
        .unwrap();

    assert_eq!(turn.answer, "Cold, and light.");
    let used = json!(turn.rounds[0].calls);
    assert_eq!(used[0]["result"], json!({ "city": " 5 " }));
    assert_eq!(used[1]["result"], json!({ "on": true }));
    server.request().await;
    let first = server.request().await;
    assert_eq!(read(&first).1["tools"], json!(to_qwen(&tools)));
    let second = server.request().await;
    let sent = read(&second).1["messages"].take();
    let of = |role: &str| -> Vec<&Value> {
        let messages = sent.as_array().unwrap().iter();
        messages.filter(|message| message["role"] == role).collect()
    };
    let calls = &of("assistant")[0]["tool_calls"];
    assert_eq!(calls[0]["function"]["arguments"], json!({ "city": " 5 " }));
    let results = of("tool");
    let expected = json!({ "role": "tool", "content": "{\"city\":\" 5 \"}", "tool_name": "weather",
        "tool_call_id": "call_1" });
    assert_eq!(*results[0], expected);
    assert_eq!(results[1]["tool_name"], "lamp");
}
