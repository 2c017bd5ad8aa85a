use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use toolgate_core::{
    ToolCall, ToolExecutor, ToolManager, ToolOutcome, ToolPattern, ToolRank, ToolSource,
};

use super::definition::MAX_DESCRIPTION_LEN;
use super::*;
use crate::client::server_request::MAX_QUESTION_ROUNDS;
use crate::client::session::SessionError;
use crate::client::tests::scripted_server::{ScriptedReply, ScriptedServer};
use crate::client::transport::{SessionEnd, TransportError, UnreadableAnswer};
use crate::{ServerConnection, ServerProgram};

/// `tools_from_listing` without any secrets.
async fn take(listed: Vec<Value>, settings: &ServerSettings, link: &ServerLink) -> ToolOffer {
    super::tools_from_listing(listed, settings, link, &Redactor::default()).await
}

fn settings() -> ServerSettings {
    ServerSettings::new("house", ServerConnection::Stdio(ServerProgram::default()))
}

fn entry(name: &str, more: &Value) -> Value {
    let mut entry =
        json!({ "name": name, "description": "…", "inputSchema": { "type": "object" } });
    entry
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    entry
}

#[tokio::test]
async fn the_last_of_duplicate_tools_is_remembered() {
    let twice = |text: &str| entry("twice", &json!({ "description": text }));
    let listed = vec![twice("one"), entry("once", &json!({})), twice("two")];
    let taken = take(listed.clone(), &settings(), &ServerLink::new()).await;
    assert_eq!(taken.listed, [listed[2].clone(), listed[1].clone()]);
    assert_eq!(taken.tools.len(), 2);
    assert_eq!(taken.tools[0].definition().description(), "two");
}

/// Calls the tool `t` of a server that answers by `script`.
async fn call(
    more: &Value,
    arguments: Value,
    script: impl Fn(&Value) -> ScriptedReply + Send + Sync + 'static,
) -> (ToolOutcome, Vec<Value>) {
    made(ToolCall::new("t", arguments), more, script).await
}

async fn made(
    call: ToolCall,
    more: &Value,
    script: impl Fn(&Value) -> ScriptedReply + Send + Sync + 'static,
) -> (ToolOutcome, Vec<Value>) {
    let (session, server) = ScriptedServer::session(move |_, params| script(params));
    let link = ServerLink::new();
    link.set_up(session);
    let manager = Arc::new(ToolManager::new());
    let tools = take(vec![entry("t", more)], &settings(), &link).await.tools;
    manager.replace(
        &ToolSource::Mcp("house".to_owned()),
        ToolRank::Server(0),
        tools,
    );
    let outcome = ToolExecutor::new(manager).execute(call).await;
    (outcome, server.sent())
}

#[tokio::test]
async fn calls_carry_the_callers_trace() {
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let call = || ToolCall::new("t", json!({}));
    for (call, trace, state) in [
        (call(), Value::Null, Value::Null),
        (
            call().trace_parent(parent),
            json!(parent[..36]),
            Value::Null,
        ),
        (
            call().trace_parent(parent).trace_state("a=1,b=2"),
            json!(parent[..36]),
            json!("a=1,b=2"),
        ),
        (call().trace_state("a=1"), Value::Null, Value::Null),
    ] {
        let (_, sent) = made(call, &json!({}), |_| {
            ScriptedReply::Answers(json!({ "content": [] }))
        })
        .await;
        let meta = &sent.last().unwrap()["params"]["_meta"];
        let told = meta["traceparent"].as_str().map(|told| &told[..36]);
        assert_eq!(
            (json!(told), &meta["tracestate"]),
            (trace, &state),
            "{meta}"
        );
    }
}

#[tokio::test]
async fn ex5_mcp_results_prefer_structured_content_then_text_then_blocks() {
    let text = |text: &str| json!({ "type": "text", "text": text });
    let odd = json!({ "type": "hologram", "depth": 3 });
    for (answer, expected) in [
        (json!({ "content": [text("4")] }), json!("4")),
        (
            json!({ "content": [text("4")], "structuredContent": { "sum": 4 } }),
            json!({ "sum": 4 }),
        ),
        (
            json!({ "content": [text("a"), text("b")] }),
            json!([text("a"), text("b")]),
        ),
        (json!({ "content": [odd] }), json!([odd])),
        (
            json!({ "resultType": "complete", "content": [text("4")] }),
            json!("4"),
        ),
        (
            json!({ "content": [], "structuredContent": null }),
            json!(null),
        ),
        (json!({ "content": [] }), json!([])),
    ] {
        let given = answer.clone();
        let (outcome, _) = call(&json!({}), json!({}), move |_| {
            ScriptedReply::Answers(given.clone())
        })
        .await;
        assert_eq!(outcome.to_envelope()["result"], expected, "{answer}");
    }
}

#[tokio::test]
async fn an_invalid_result_is_a_failure() {
    for answer in [
        json!(null),
        json!("x"),
        json!([]),
        json!({ "content": "x" }),
        json!({ "content": [1, null] }),
        json!({ "resultType": "riddle" }),
    ] {
        let given = answer.clone();
        let (outcome, _) = call(&json!({}), json!({}), move |_| {
            ScriptedReply::Answers(given.clone())
        })
        .await;
        let error = "The server of 't' sent an unreadable response";
        assert_eq!(outcome.error().as_deref(), Some(error), "{answer}");
    }
}

#[tokio::test]
async fn pn8_what_the_server_itself_says_is_returned_unchanged() {
    let words = "  Device 'x' nicht gefunden!\nsecond line ";
    let failing = json!({ "isError": true, "content": [{ "type": "text", "text": words }] });
    let several = json!({ "isError": true, "content": [{ "type": "text", "text": "a" }, { "type": "image", "data": "", "mimeType": "" }, { "type": "text", "text": "b" }] });
    let silent = json!({ "isError": true, "content": [] });
    for (answer, expected) in [
        (failing, words),
        (several, "a\nb"),
        (silent, "The tool failed and did not say why"),
    ] {
        let (outcome, _) = call(&json!({}), json!({}), move |_| {
            ScriptedReply::Answers(answer.clone())
        })
        .await;
        assert_eq!(outcome.error().as_deref(), Some(expected));
        assert_eq!(outcome.to_envelope()["error_kind"], "tool_error");
    }
    let (outcome, _) = call(&json!({}), json!({}), |_| {
        ScriptedReply::Refuses(-32602, "MCP error: bad thing")
    })
    .await;
    assert_eq!(outcome.error().as_deref(), Some("MCP error: bad thing"));
    assert_eq!(outcome.to_envelope()["details"], "JSON-RPC error -32602");
}

#[tokio::test]
async fn pn1_names_reach_the_server_as_it_declares_them() {
    let schema = json!({ "inputSchema": { "type": "object", "properties": { "deviceName": {}, "action": {} } } });
    let link = ServerLink::new();
    let (session, server) =
        ScriptedServer::session(|_, _| ScriptedReply::Answers(json!({ "content": [] })));
    link.set_up(session);
    let manager = Arc::new(ToolManager::new());
    let tools = take(
        vec![entry("control_zwave_device", &schema)],
        &settings(),
        &link,
    )
    .await
    .tools;
    manager.replace(
        &ToolSource::Mcp("house".to_owned()),
        ToolRank::Server(0),
        tools,
    );
    let arguments = json!({ "device_name": "Switch One", "command": "on" });
    ToolExecutor::new(manager)
        .execute(ToolCall::new("control_zwave_device", arguments))
        .await;
    let params = &server.sent()[0]["params"];
    assert_eq!(
        params["arguments"].to_string(),
        r#"{"deviceName":"Switch One","action":"on"}"#
    );
    assert_eq!(params["name"], "control_zwave_device");
}

#[tokio::test]
async fn pn2_maps_of_the_configuration_add_to_those_that_ship() {
    let properties = json!({ "deviceName": {}, "action": {}, "room": {} });
    let schema = json!({ "inputSchema": { "type": "object", "properties": properties } });
    let mut settings = settings();
    let mapped = HashMap::from([("place".to_owned(), "room".to_owned())]);
    settings.parameter_names = HashMap::from([("control_zwave_device".to_owned(), mapped)]);
    let link = ServerLink::new();
    let (session, server) =
        ScriptedServer::session(|_, _| ScriptedReply::Answers(json!({ "content": [] })));
    link.set_up(session);
    let manager = Arc::new(ToolManager::new());
    let listed = vec![entry("control_zwave_device", &schema)];
    let source = ToolSource::Mcp("house".to_owned());
    manager.replace(
        &source,
        ToolRank::Server(0),
        take(listed, &settings, &link).await.tools,
    );
    let arguments = json!({ "device_name": "Lamp", "place": "kitchen", "command": "on" });
    let call = ToolCall::new("control_zwave_device", arguments);
    assert!(ToolExecutor::new(manager).execute(call).await.is_success());
    let expected = r#"{"deviceName":"Lamp","room":"kitchen","action":"on"}"#;
    assert_eq!(
        server.sent()[0]["params"]["arguments"].to_string(),
        expected
    );
}

#[tokio::test]
async fn faults_of_the_connection_become_sentences() {
    let lost = || {
        ScriptedReply::Fails(TransportError::Interrupted(
            "the connection broke off".into(),
        ))
    };
    let (outcome, _) = call(&json!({}), json!({}), move |_| lost()).await;
    assert_eq!(
        outcome.error().as_deref(),
        Some("The t service is currently unavailable: the connection broke off")
    );
    let failure = SessionError::Unreadable(UnreadableAnswer::TooLarge {
        bytes: 20,
        limit: 10,
    });
    assert_eq!(
        call_result::to_tool_error("house", "t", failure).to_string(),
        "The result of 't' takes at least 20 bytes; the limit is 10"
    );
    let end = SessionEnd {
        status: "exit status 3".into(),
        stderr: vec!["boom".to_owned()],
    };
    let error = call_result::to_tool_error("house", "t", SessionError::Stopped(end));
    assert_eq!(
        error.to_string(),
        "MCP server 'house' stopped during the call (exit status 3)"
    );
    assert_eq!(error.details(), Some("stderr: boom"));
}

/// Fails the first time, answers the second.
fn once(error: fn() -> TransportError) -> impl Fn(&Value) -> ScriptedReply + Send + Sync + 'static {
    let calls = AtomicUsize::new(0);
    move |_| match calls.fetch_add(1, Ordering::Relaxed) {
        0 => ScriptedReply::Fails(error()),
        _ => ScriptedReply::Answers(json!({ "content": [] })),
    }
}

#[tokio::test(start_paused = true)]
async fn mc6_the_end_of_a_server_fails_its_calls_at_that_moment() {
    let (session, server) = ScriptedServer::session(|_, _| ScriptedReply::Nothing);
    let link = ServerLink::new();
    link.set_up(session);
    let manager = Arc::new(ToolManager::new());
    let tools = take(vec![entry("t", &json!({}))], &settings(), &link).await;
    manager.replace(
        &ToolSource::Mcp("house".to_owned()),
        ToolRank::Server(0),
        tools.tools,
    );
    let executor = ToolExecutor::new(manager);
    let started = tokio::time::Instant::now();
    let calls = (0..50).map(|_| executor.execute(ToolCall::new("t", json!({}))));
    let dying = async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        server.die();
    };
    let (outcomes, ()) = tokio::join!(futures::future::join_all(calls), dying);
    // The clock is paused, so any wait of our own would show.
    assert!(
        started.elapsed().as_millis() < 310,
        "{:?}",
        started.elapsed()
    );
    for outcome in outcomes {
        let envelope = outcome.to_envelope();
        assert_eq!(
            envelope["error"],
            "MCP server 'house' stopped during the call (exit status 3)"
        );
        assert_eq!(envelope["error_kind"], "unavailable");
    }
}

#[tokio::test(start_paused = true)]
async fn mc6_a_call_is_repeated_once_and_only_where_that_is_harmless() {
    let interrupted = || TransportError::Interrupted("gone".into());
    let not_sent = || TransportError::NotSent("gone".into());
    for (annotations, error, succeeds) in [
        (json!({}), interrupted as fn() -> TransportError, false),
        (json!({ "destructiveHint": false }), interrupted, false),
        (json!({ "readOnlyHint": true }), interrupted, true),
        (json!({ "idempotentHint": true }), interrupted, true),
        (json!({}), not_sent, true),
    ] {
        let (outcome, sent) = call(
            &json!({ "annotations": annotations }),
            json!({}),
            once(error),
        )
        .await;
        assert_eq!(outcome.is_success(), succeeds, "{annotations}");
        assert_eq!(sent.len(), if succeeds { 2 } else { 1 });
    }
    let always = move |_: &Value| ScriptedReply::Fails(TransportError::NotSent("gone".into()));
    let (outcome, sent) = call(&json!({}), json!({}), always).await;
    assert!(!outcome.is_success());
    assert_eq!(sent.len(), 2, "never more than once again");
}

#[tokio::test]
async fn modern_servers_may_ask_for_input() {
    let script = |params: &Value| match params.get("inputResponses") {
        None => ScriptedReply::Answers(json!({
            "resultType": "input_required",
            "inputRequests": { "q": { "method": "elicitation/create", "params": { "message": "?" } } },
            "requestState": "opaque",
        })),
        Some(responses) => ScriptedReply::Answers(
            json!({ "structuredContent": { "got": responses, "state": params["requestState"] } }),
        ),
    };
    let (outcome, sent) = call(&json!({}), json!({ "a": 1 }), script).await;
    let expected = json!({ "got": { "q": { "action": "decline" } }, "state": "opaque" });
    assert_eq!(outcome.to_envelope()["result"], expected);
    assert_eq!(sent[1]["params"]["arguments"], json!({ "a": 1 }));
    assert_ne!(sent[0]["id"], sent[1]["id"]);

    let endless = |_: &Value| {
        ScriptedReply::Answers(json!({ "resultType": "input_required", "inputRequests": {} }))
    };
    let (outcome, sent) = call(&json!({}), json!({}), endless).await;
    assert!(
        outcome
            .error()
            .unwrap()
            .contains("without completing the call")
    );
    assert_eq!(sent.len(), MAX_QUESTION_ROUNDS);
}

#[tokio::test]
async fn tm6_an_unusable_tool_affects_no_other() {
    let listed = vec![
        json!({ "name": "good", "description": "Good", "inputSchema": { "type": "object" } }),
        json!({ "name": "", "description": "…", "inputSchema": { "type": "object" } }),
        json!({ "name": "no schema", "description": "…" }),
        json!({ "name": "text_schema", "description": "…", "inputSchema": "x" }),
        json!("not even an object"),
        entry(
            "long",
            &json!({ "description": "x".repeat(MAX_DESCRIPTION_LEN + 1) }),
        ),
        entry(
            "bad_header",
            &json!({ "inputSchema": { "type": "object", "properties": { "a": { "x-mcp-header": "no header" } } } }),
        ),
        entry(
            "misplaced_header",
            &json!({ "inputSchema": { "type": "object", "properties": { "a": { "items": { "type": "string", "x-mcp-header": "A" } } } } }),
        ),
        json!({ "name": "titled", "title": "A title", "inputSchema": { "type": "object" } }),
        json!({ "name": "bare", "inputSchema": { "type": "object" } }),
        entry(
            "odd_dialect",
            &json!({ "inputSchema": { "$schema": "https://example.org/x", "type": "object" } }),
        ),
        entry(
            "look_around",
            &json!({ "inputSchema": { "type": "object", "properties": { "a": { "type": "string", "pattern": "(?=a)b" } } } }),
        ),
    ];
    let taken = take(listed, &settings(), &ServerLink::new()).await;
    let found: Vec<_> = taken
        .tools
        .iter()
        .map(|tool| (tool.definition().name(), tool.definition().description()))
        .collect();
    let expected = [
        ("good", "Good"),
        ("titled", "A title"),
        ("bare", "bare"),
        ("odd_dialect", "…"),
        ("look_around", "…"),
    ];
    assert_eq!(found, expected);
    assert_eq!(taken.refused.len(), 7, "{:#?}", taken.refused);
}

#[tokio::test]
async fn only_what_the_settings_allow_is_taken() {
    let listed = || {
        ["read", "write", "delete"]
            .map(|name| entry(name, &json!({})))
            .to_vec()
    };
    for (allowed, excluded, expected) in [
        (&[][..], &[][..], &["read", "write", "delete"][..]),
        (&["read", "w*"], &[], &["read", "write"]),
        (&[], &["house/delete"], &["read", "write"]),
        (&["*"], &["*"], &[]),
    ] {
        let mut settings = settings();
        settings.allowed_tools = allowed.iter().map(|name| ToolPattern::new(name)).collect();
        settings.excluded_tools = excluded.iter().map(|name| ToolPattern::new(name)).collect();
        let taken = take(listed(), &settings, &ServerLink::new()).await;
        let names: Vec<_> = taken
            .tools
            .iter()
            .map(|tool| tool.definition().name())
            .collect();
        assert_eq!(names, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn calls_wait_for_a_connecting_server_but_not_for_one_that_is_down() {
    let (session, _server) =
        ScriptedServer::session(|_, _| ScriptedReply::Answers(json!({ "content": [] })));
    let link = ServerLink::new();
    let manager = Arc::new(ToolManager::new());
    manager.replace(
        &ToolSource::Mcp("house".to_owned()),
        ToolRank::Server(0),
        take(vec![entry("t", &json!({}))], &settings(), &link)
            .await
            .tools,
    );
    let executor = ToolExecutor::new(manager);
    let results = Arc::new(Mutex::new(Vec::new()));
    let waiting = tokio::spawn({
        let (executor, results) = (executor.clone(), Arc::clone(&results));
        async move {
            let outcome = executor.execute(ToolCall::new("t", json!({}))).await;
            results.lock().push(outcome.is_success());
        }
    });
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    assert!(results.lock().is_empty());
    link.set_up(session);
    waiting.await.unwrap();
    assert_eq!(*results.lock(), [true]);
    link.set_down(
        "its server 'house' is not running (exit status 3)",
        Some("stderr: boom".to_owned()),
    );
    let outcome = executor.execute(ToolCall::new("t", json!({}))).await;
    assert_eq!(
        outcome.error().as_deref(),
        Some(
            "The t service is currently unavailable: its server 'house' is not running (exit status 3)"
        )
    );
    assert_eq!(outcome.to_envelope()["details"], "stderr: boom");
}
