//! EX5: every path ends in the envelope.

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolgate_core::{
    ErrorKind, HandlerKind, Limits, Policy, ToolCall, ToolContent, ToolError, ToolOutput,
};

use crate::support::{
    answering, builder_of, echo, executor_of, hung, millis, open_definition, outcome_of, scripted,
    secs, with_schema,
};

/// One call for each kind of failure, provoked as in real life where possible.
async fn one_of_each() -> Vec<(ErrorKind, Value)> {
    let stopped = || ToolError::ServerStopped {
        server: "s".to_owned(),
        status: "exit status 3".to_owned(),
        details: None,
    };
    let handler = || ToolError::HandlerNotFound {
        kind: HandlerKind::Builtin,
        name: "nope".to_owned(),
    };
    let interrupted = || ToolError::Interrupted {
        tool: "t".to_owned(),
    };
    let gone = CancellationToken::new();
    gone.cancel();
    let ask: Policy = serde_json::from_value(json!({ "ask": ["asked"] })).unwrap();
    let mut limits = Limits::default();
    limits.max_result = 10;
    limits.concurrency = 1;
    let executor = builder_of([
        echo(open_definition("asked")),
        echo(with_schema("typed", json!({ "required": ["x"] }))),
        echo(open_definition("echo")),
        hung(open_definition("hung")),
        answering(open_definition("stopped"), Err(stopped())),
        answering(open_definition("handler"), Err(handler())),
        answering(open_definition("failed"), Err(ToolError::failed("no"))),
        answering(open_definition("interrupted"), Err(interrupted())),
        answering(open_definition("big"), Ok(ToolOutput::text("x".repeat(11)))),
        scripted(open_definition("panics"), |_, _| async { panic!("oh") }),
    ])
    .policy(ask)
    .limits(limits)
    .build();
    let mut envelopes = Vec::new();
    for (kind, call) in [
        (ErrorKind::NotFound, ToolCall::new("nope", json!({}))),
        (
            ErrorKind::InvalidArguments,
            ToolCall::new("typed", json!({})),
        ),
        (
            ErrorKind::InvalidArguments,
            ToolCall::from_json("echo", b"{"),
        ),
        (
            ErrorKind::InvalidArguments,
            ToolCall::new("echo", json!([1])),
        ),
        (ErrorKind::Denied, ToolCall::new("asked", json!({}))),
        (ErrorKind::Unavailable, ToolCall::new("stopped", json!({}))),
        (ErrorKind::Timeout, ToolCall::new("hung", json!({}))),
        (
            ErrorKind::Cancelled,
            ToolCall::new("hung", json!({})).cancellation(gone),
        ),
        (
            ErrorKind::HandlerNotFound,
            ToolCall::new("handler", json!({})),
        ),
        (ErrorKind::ToolError, ToolCall::new("failed", json!({}))),
        (ErrorKind::Panicked, ToolCall::new("panics", json!({}))),
        (ErrorKind::TooLarge, ToolCall::new("big", json!({}))),
        (
            ErrorKind::Interrupted,
            ToolCall::new("interrupted", json!({})),
        ),
    ] {
        let name = call.name().to_owned();
        let envelope = executor.execute(call).await.to_envelope();
        assert_eq!(envelope["tool_name"], *name);
        envelopes.push((kind, envelope));
    }
    let (_, overloaded) = tokio::join!(
        executor.execute(ToolCall::new("hung", json!({})).timeout(secs(9))),
        executor.execute(ToolCall::new("echo", json!({})).timeout(secs(1))),
    );
    envelopes.push((ErrorKind::Overloaded, overloaded.to_envelope()));
    envelopes
}

#[tokio::test(start_paused = true)]
async fn ex5_every_failure_ends_in_the_envelope() {
    let envelopes = one_of_each().await;
    for (kind, envelope) in &envelopes {
        assert_eq!(envelope["error_kind"], kind.as_str(), "{envelope}");
        assert_eq!(envelope["success"], false);
        assert!(!envelope["error"].as_str().unwrap().is_empty());
        assert!(envelope["tool_name"].is_string());
        assert!(envelope["execution_time_ms"].is_number());
        assert_eq!(envelope["call_id"].as_str().unwrap().len(), 32);
    }
    let mut kinds: Vec<&str> = envelopes.iter().map(|(kind, _)| kind.as_str()).collect();
    kinds.dedup();
    assert_eq!(kinds.len(), 12, "every kind was there: {kinds:?}");
}

#[test]
fn ex5_the_kinds_have_these_names() {
    for (kind, name) in [
        (ErrorKind::NotFound, "not_found"),
        (ErrorKind::InvalidArguments, "invalid_arguments"),
        (ErrorKind::Denied, "denied"),
        (ErrorKind::Unavailable, "unavailable"),
        (ErrorKind::Timeout, "timeout"),
        (ErrorKind::Cancelled, "cancelled"),
        (ErrorKind::HandlerNotFound, "handler_not_found"),
        (ErrorKind::ToolError, "tool_error"),
        (ErrorKind::Panicked, "panicked"),
        (ErrorKind::TooLarge, "too_large"),
        (ErrorKind::Overloaded, "overloaded"),
        (ErrorKind::Interrupted, "interrupted"),
    ] {
        assert_eq!(kind.to_string(), name);
    }
}

#[tokio::test(start_paused = true)]
async fn ex5_the_unused_one_of_result_and_error_is_absent() {
    for (_, envelope) in one_of_each().await {
        assert_eq!(envelope.get("result"), None);
    }
    let envelope = outcome_of(Ok(ToolOutput::json(1))).await.to_envelope();
    let keys: Vec<&str> = envelope
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        keys,
        [
            "success",
            "result",
            "tool_name",
            "execution_time_ms",
            "call_id"
        ]
    );
}

#[tokio::test]
async fn ex5_a_null_result_is_present() {
    let envelope = outcome_of(Ok(ToolOutput::json(Value::Null)))
        .await
        .to_envelope();
    assert_eq!(envelope["success"], true);
    assert_eq!(envelope.get("result"), Some(&Value::Null));
}

#[tokio::test(start_paused = true)]
async fn ex5_extra_fields_are_only_the_documented_ones() {
    const KNOWN: [&str; 9] = [
        "success",
        "result",
        "error",
        "tool_name",
        "execution_time_ms",
        "error_kind",
        "call_id",
        "hint",
        "details",
    ];
    for (_, envelope) in one_of_each().await {
        for key in envelope.as_object().unwrap().keys() {
            assert!(KNOWN.contains(&key.as_str()), "{key}");
        }
    }
}

#[tokio::test]
async fn ex5_tool_name_is_the_name_that_was_asked_for() {
    let executor = executor_of([echo(open_definition("house__lamp").original_name("lamp"))]);
    for name in ["lamp", "house__lamp", "nope"] {
        let envelope = executor
            .execute(ToolCall::new(name, json!({})))
            .await
            .to_envelope();
        assert_eq!(envelope["tool_name"], name);
    }
}

#[tokio::test(start_paused = true)]
async fn ex5_the_execution_time_keeps_fractions() {
    let time = std::time::Duration::from_micros(1_250_500);
    let executor = executor_of([scripted(open_definition("t"), move |_, _| async move {
        tokio::time::advance(time).await;
        Ok(ToolOutput::json(1))
    })]);
    let envelope = executor
        .execute(ToolCall::new("t", json!({})))
        .await
        .to_envelope();
    assert_eq!(envelope["execution_time_ms"], 1250.5);
}

#[tokio::test]
async fn ex5_the_execution_time_covers_validation_and_execution() {
    // A paused clock can't produce a second of validation, but the parts can be added up.
    let recorder = crate::support::Recorder::default();
    let large = json!({ "a": vec![1; 50_000] });
    let schema = json!({ "properties": { "a": { "items": { "type": "integer" } } } });
    let executor = builder_of([echo(with_schema("t", schema))])
        .observer(recorder.clone())
        .build();
    executor.execute(ToolCall::new("t", large)).await;
    let record = recorder.only();
    assert!(record.timings.check > millis(0));
    assert_eq!(
        record.outcome.elapsed,
        record.timings.check + record.timings.invoke
    );
}

#[tokio::test]
async fn ex5_bad_json_ends_in_the_envelope() {
    let executor = executor_of([echo(open_definition("echo"))]);
    for (json, expected) in [
        (
            &b"{\"a\":"[..],
            "Invalid parameters: 'arguments' must be a JSON object: EOF while parsing a value at line 1 column 5",
        ),
        (
            b"",
            "Invalid parameters: 'arguments' must be a JSON object: EOF while parsing a value at line 1 column 0",
        ),
        (b"[1]", "Invalid parameters: 'arguments' must be object"),
        (b"\"{}\"", "Invalid parameters: 'arguments' must be object"),
        (b"null", "Invalid parameters: 'arguments' must be object"),
        (b"{\"a\":1,\"a\":1}", "Invalid parameters: 'a' given twice"),
    ] {
        let envelope = executor
            .execute(ToolCall::from_json("echo", json))
            .await
            .to_envelope();
        assert_eq!(envelope["error"], expected);
        assert_eq!(envelope["error_kind"], "invalid_arguments");
        assert_eq!(envelope["tool_name"], "echo");
    }
    let envelope = executor
        .execute(ToolCall::from_json("echo", b"\xff\xfe"))
        .await
        .to_envelope();
    assert_eq!(envelope["error_kind"], "invalid_arguments");
}

#[tokio::test]
async fn ex5_a_result_prefers_structured_content_then_text_then_blocks() {
    let text = |text: &str| ToolContent::text(text);
    let mut both = ToolOutput::text("4");
    both.structured = Some(json!({ "sum": 4 }));
    for (output, expected) in [
        (both, json!({ "sum": 4 })),
        (ToolOutput::text("four"), json!("four")),
        (
            ToolOutput::blocks(vec![text("a"), text("b")]),
            json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]),
        ),
        (ToolOutput::blocks(vec![]), json!([])),
    ] {
        assert_eq!(
            outcome_of(Ok(output)).await.to_envelope()["result"],
            expected
        );
    }
}
