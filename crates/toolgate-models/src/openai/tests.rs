use std::sync::Arc;

use serde_json::json;
use tokio::time::Instant;
use toolgate_core::Tool;

use super::*;
use crate::tests::loopback::{HANG, LoopbackServer, LoopbackStep, answer, chunked, dribbled};
use crate::tests::samples::{call, tool};
use crate::{
    Catalog, Message, ModelClient, ModelEvent, ModelReply, OfferedTools, StopReason, ToolList,
};

const KEY: &str = "sk-proj-very-secret";
const SSE: &str = "text/event-stream; charset=utf-8";
const CALL: &str = concat!(
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Grüße 😀. \"},\"finish_reason\":null}]}\n\n",
    ": keep-alive\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"call_1\",\"type\":\"function\",\"function\":{\"name\":\"time\",\"arguments\":\"\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"zone\\\":\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"\\\"Oslo\\\"}\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4}}\n\n",
    "data: [DONE]\n\n",
);
const HELLO: &str = concat!(
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hello\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    "data: [DONE]\n\n",
);

pub(super) fn offer(tools: &[Arc<dyn Tool>]) -> OfferedTools {
    OfferedTools::all(Arc::new(Catalog::build(tools, &tools::DIALECT)))
}

fn settings(url: &str) -> ModelSettings {
    ModelSettings {
        url: format!("{url}/v1"),
        key: KEY.to_owned(),
        name: "qwen".to_owned(),
        first_byte: HANG,
        ..ModelSettings::default()
    }
}

fn client(url: &str) -> OpenAiClient {
    OpenAiClient::new(&settings(url)).unwrap()
}

/// Asks once, with a tool, and returns the events.
async fn ask(client: &OpenAiClient) -> (Result<ModelReply, ModelError>, Vec<String>) {
    let parameters = json!({ "type": "object", "properties": { "zone": { "type": "string" } } });
    let time = tool("time", "Tells the time", parameters);
    let tools = OfferedTools::all(client.catalog(&Arc::new(ToolList::new(vec![time]))));
    let messages = [Message::User {
        text: "What time is it?".to_owned(),
    }];
    let request = ModelRequest::new("", &messages, &tools, Instant::now() + HANG);
    let mut reported = Vec::new();
    let mut listener = |event: ModelEvent<'_>| match event {
        ModelEvent::Text(text) => reported.push(text.to_owned()),
        ModelEvent::Void => reported.push("(void)".to_owned()),
        ModelEvent::Retrying { error, .. } => reported.push(format!("({error})")),
        other => panic!("{other:?}"),
    };
    let reply = client.reply(request, &mut listener).await;
    (reply, reported)
}

fn body(request: &str) -> Value {
    let (_, body) = request.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap()
}

fn stream(body: &str) -> Vec<LoopbackStep> {
    chunked(SSE, &[body.as_bytes()])
}

fn refusal(status: u16, body: &Value) -> Vec<LoopbackStep> {
    let json = "Content-Type: application/json\r\n";
    vec![LoopbackStep::Send(
        answer(status, json, &body.to_string()).into_bytes(),
    )]
}

#[tokio::test]
async fn calls_do_not_depend_on_chunks() {
    for script in [
        stream(CALL),
        dribbled(SSE, CALL),
        stream(&CALL.replace('\n', "\r\n")),
    ] {
        let mut server = LoopbackServer::start(vec![script]).await;
        let client = client(&server.url);
        let (reply, reported) = ask(&client).await;
        let reply = reply.unwrap();
        assert_eq!(reported.concat(), "Grüße 😀. ");
        assert_eq!(
            (reply.stop, reply.usage.input, reply.usage.output),
            (StopReason::Calls, 9, 4)
        );
        assert!(reply.first_token.is_some());
        assert_eq!(
            reply.message.parts[1],
            call("call_1", "time", r#"{"zone":"Oslo"}"#)
        );
        let request = server.request().await;
        assert!(
            request.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"),
            "{request}"
        );
        assert!(
            request.contains(&format!("authorization: Bearer {KEY}\r\n")),
            "{request}"
        );
        assert_eq!(body(&request)["tools"][0]["function"]["name"], "time");
    }
}

#[tokio::test]
async fn servers_without_keys_or_streaming_work() {
    let whole = json!({ "choices": [{ "message": { "role": "assistant", "content": "Hello" }, "finish_reason": "stop" }] });
    let mut server = LoopbackServer::start(vec![refusal(200, &whole)]).await;
    let client = OpenAiClient::new(&ModelSettings {
        key: String::new(),
        url: format!("{}/v1/chat/completions/", server.url),
        ..settings("")
    });
    let (reply, reported) = ask(&client.unwrap()).await;
    assert_eq!(
        (reply.unwrap().stop, reported),
        (StopReason::End, vec!["Hello".to_owned()])
    );
    let request = server.request().await;
    assert!(
        request.starts_with("POST /v1/chat/completions HTTP"),
        "{request}"
    );
    assert!(!request.contains("authorization"), "{request}");
}

#[tokio::test]
async fn refused_fields_are_omitted_from_then_on() {
    let error = |message: &str| {
        refusal(
            400,
            &json!({ "error": { "message": message, "type": "invalid_request_error" } }),
        )
    };
    let mut server = LoopbackServer::start(vec![
        error("Unrecognized request argument supplied: stream_options"),
        error("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."),
        stream(HELLO),
        stream(HELLO),
    ])
    .await;
    let client = client(&server.url);
    for _ in 0..2 {
        let (reply, reported) = ask(&client).await;
        assert_eq!(
            (reply.unwrap().stop, reported),
            (StopReason::End, vec!["Hello".to_owned()])
        );
    }
    let mut sent = Vec::new();
    for _ in 0..4 {
        let body = body(&server.request().await);
        let has = |key: &str| body.get(key).is_some();
        sent.push((
            has("stream_options"),
            has("max_tokens"),
            has("max_completion_tokens"),
        ));
    }
    assert_eq!(
        sent,
        [
            (true, true, false),
            (false, true, false),
            (false, false, true),
            (false, false, true)
        ]
    );
}

#[tokio::test]
async fn refusing_both_limit_names_ends_the_attempts() {
    let error = |name: &str| refusal(400, &json!({ "error": format!("unknown field {name}") }));
    let mut server =
        LoopbackServer::start(vec![error("max_tokens"), error("max_completion_tokens")]).await;
    let (reply, _) = ask(&client(&server.url)).await;
    assert!(
        matches!(reply, Err(ModelError::Refused { .. })),
        "{reply:?}"
    );
    server.request().await;
    server.request().await;
    assert_eq!(server.waiting(), 0);
}

#[tokio::test]
async fn every_failure_has_its_own_message_without_the_key() {
    let message = format!("Incorrect API key provided: {KEY}");
    for (status, error, expected) in [
        (
            401,
            json!({ "message": message, "code": "invalid_api_key" }),
            "openai does not accept the key: Incorrect API key provided: ",
        ),
        (
            429,
            json!({ "message": "You exceeded your current quota", "type": "insufficient_quota", "code": "insufficient_quota" }),
            "openai asks to slow down: You exceeded your current quota; waiting does not help",
        ),
        (
            400,
            json!({ "message": "This model's maximum context length is 8192 tokens", "code": "context_length_exceeded" }),
            "the conversation is too long for qwen: This model's maximum context length is 8192 tokens",
        ),
        (
            400,
            json!({ "code": 400, "message": "the request exceeds the available context size", "type": "exceed_context_size_error" }),
            "the conversation is too long for qwen: the request exceeds the available context size",
        ),
        (
            404,
            json!({ "message": "The model `qwen` does not exist", "code": "model_not_found" }),
            "openai has no model 'qwen' (The model `qwen` does not exist",
        ),
        (
            404,
            json!({ "message": "File Not Found" }),
            "openai refused the request: nothing was found at http://127.0.0.1:",
        ),
        (
            400,
            json!({ "message": "Invalid schema", "code": "invalid_function_parameters" }),
            "openai refused the request: Invalid schema",
        ),
    ] {
        let mut server =
            LoopbackServer::start(vec![refusal(status, &json!({ "error": error }))]).await;
        let (reply, reported) = ask(&client(&server.url)).await;
        let text = reply.unwrap_err().to_string();
        assert!(text.starts_with(expected), "{text}");
        assert!(!text.contains(KEY), "{text}");
        assert!(reported.is_empty(), "{reported:?}");
        server.request().await;
        assert_eq!(server.waiting(), 0, "{status} is asked once");
    }
}

#[tokio::test]
async fn an_address_without_its_path_is_reported() {
    let server =
        LoopbackServer::start(vec![refusal(404, &json!({ "error": "nothing here" }))]).await;
    let client = OpenAiClient::new(&ModelSettings {
        url: format!("{}/api", server.url),
        ..settings("")
    });
    let text = ask(&client.unwrap()).await.0.unwrap_err().to_string();
    assert!(text.contains("the address usually ends in /v1"), "{text}");
}

#[tokio::test]
async fn e1_an_error_in_a_stream_is_treated_like_one_before_it() {
    let begun = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"}}]}\n\n";
    let failed = format!(
        "{begun}data: {{\"error\":{{\"message\":\"overloaded\",\"type\":\"server_error\",\"code\":503}}}}\n\n"
    );
    let server = LoopbackServer::start(vec![stream(&failed), stream(HELLO)]).await;
    let (reply, reported) = ask(&client(&server.url)).await;
    assert_eq!(reply.unwrap().message.to_text(), "Hello");
    assert_eq!(
        reported,
        [
            "Hel",
            "(void)",
            "(openai failed: overloaded (status 503))",
            "Hello"
        ]
    );
    let long =
        "data: {\"error\":{\"message\":\"too long\",\"code\":\"context_length_exceeded\"}}\n\n";
    let server = LoopbackServer::start(vec![stream(long)]).await;
    let (reply, _) = ask(&client(&server.url)).await;
    assert!(
        matches!(reply, Err(ModelError::TooLong { .. })),
        "{reply:?}"
    );
}

#[tokio::test]
async fn e2_a_cut_call_is_requested_again_and_never_run() {
    let (half, _) = CALL.split_at(CALL.find("\\\"Oslo").unwrap());
    let mut reset = stream(half);
    reset.pop();
    reset.push(LoopbackStep::Reset);
    let server = LoopbackServer::start(vec![stream(half), reset, stream(CALL)]).await;
    let (reply, reported) = ask(&client(&server.url)).await;
    let reply = reply.unwrap();
    assert_eq!(
        reply.message.parts[1],
        call("call_1", "time", r#"{"zone":"Oslo"}"#)
    );
    assert_eq!(
        reported.iter().filter(|event| *event == "(void)").count(),
        2,
        "{reported:?}"
    );
}

#[tokio::test]
async fn a_connection_may_break_after_the_answer() {
    let (answered, _) = HELLO.split_at(HELLO.find("data: [DONE]").unwrap());
    let mut steps = stream(answered);
    steps.pop();
    steps.push(LoopbackStep::Reset);
    let server = LoopbackServer::start(vec![steps]).await;
    let (reply, reported) = ask(&client(&server.url)).await;
    assert_eq!(
        (reply.unwrap().stop, reported.concat()),
        (StopReason::End, "Hello".to_owned())
    );
}

#[tokio::test]
async fn e5_dropping_a_reply_closes_the_connection() {
    let mut steps =
        stream("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"}}]}\n\n");
    steps.pop();
    steps.push(LoopbackStep::Hang);
    let mut server = LoopbackServer::start(vec![steps]).await;
    let client = client(&server.url);
    let tools = offer(&[]);
    let request = ModelRequest::new("", &[], &tools, Instant::now() + HANG);
    let event = tokio::sync::Notify::new();
    let mut listener = |_: ModelEvent<'_>| event.notify_one();
    tokio::select! {
        _ = client.reply(request, &mut listener) => panic!("it never answers"),
        () = event.notified() => {}
    }
    server.gone().await;
}

#[test]
fn openai_requires_a_key_and_has_a_larger_window() {
    let settings = ModelSettings {
        key: KEY.to_owned(),
        ..ModelSettings::default()
    };
    let client = OpenAiClient::new(&settings).unwrap();
    assert_eq!(
        (client.model(), client.window()),
        (Provider::OpenAi.default_model(), 128_000)
    );
    assert!(!client.format.0.rescue);
    assert_eq!(client.tool_limit(), Some(128));
    let error = OpenAiClient::new(&ModelSettings::default()).err().unwrap();
    assert_eq!(
        error.to_string(),
        "openai does not accept the key: no key is set; set OPENAI_API_KEY, or model.key in the configuration"
    );
    let elsewhere = ModelSettings {
        url: "http://localhost:8080/v1".to_owned(),
        context_tokens: Some(32_000),
        ..ModelSettings::default()
    };
    let client = OpenAiClient::new(&elsewhere).unwrap();
    assert_eq!(client.window(), 32_000);
    assert!(client.format.0.rescue);
    assert_eq!(client.tool_limit(), None);
}

#[test]
fn a_status_is_found_in_an_error() {
    for (error, expected) in [
        (json!({ "error": { "code": 429 } }), 429),
        (json!({ "error": { "code": "503" } }), 503),
        (json!({ "error": { "code": "rate_limit_exceeded" } }), 429),
        (
            json!({ "error": { "type": "invalid_request_error", "code": null } }),
            400,
        ),
        (
            json!({ "error": { "type": "server_error", "code": 7 } }),
            500,
        ),
        (json!({ "error": "oops" }), 500),
        (json!({ "message": "oops" }), 500),
    ] {
        assert_eq!(OpenAiFormat::status(&error), expected, "{error}");
    }
}
