//! EX5 and EX6: a caller that changes its mind or goes away.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolgate_core::{
    Approval, ApprovalRequest, Approver, CallRecord, ErrorKind, Limits, Observer, Policy, ToolCall,
    ToolError, ToolOutput,
};

use crate::support::{
    Recorder, builder_of, echo, executor_of, hung, millis, open_definition, scripted, secs,
};

struct SilentApprover;

impl Approver for SilentApprover {
    fn ask<'a>(&'a self, _: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(std::future::pending())
    }
}

fn expect_cancelled(record: &CallRecord) {
    let error = record.outcome.result.as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert_eq!(
        error.to_string(),
        format!(
            "Tool '{}' was cancelled before it answered",
            record.outcome.tool_name
        )
    );
}

#[tokio::test(start_paused = true)]
async fn ex5_the_callers_token_cancels_a_running_call() {
    let executor = executor_of([hung(open_definition("t"))]);
    let token = CancellationToken::new();
    let cancelling = async {
        tokio::time::sleep(secs(1)).await;
        token.cancel();
    };
    let call = ToolCall::new("t", json!({})).cancellation(token.clone());
    let (outcome, ()) = tokio::join!(executor.execute(call), cancelling);
    assert_eq!(
        outcome.error().unwrap(),
        "Tool 't' was cancelled before it answered"
    );
    assert_eq!(outcome.execution_time_ms(), 1_000.0);
}

#[tokio::test]
async fn ex6_a_call_that_is_cancelled_before_it_starts_never_reaches_the_tool() {
    let executor = executor_of([scripted(open_definition("t"), |_, _| async {
        panic!("ran")
    })]);
    let token = CancellationToken::new();
    token.cancel();
    let outcome = executor
        .execute(ToolCall::new("t", json!({})).cancellation(token))
        .await;
    assert_eq!(outcome.to_envelope()["error_kind"], "cancelled");
}

#[tokio::test]
async fn ex5_a_cancelled_call_whose_server_stops_with_it_is_cancelled() {
    let token = CancellationToken::new();
    let cancelled = token.clone();
    let executor = executor_of([scripted(open_definition("t"), move |_, _| {
        cancelled.cancel();
        async {
            Err(ToolError::ServerStopped {
                server: "house".to_owned(),
                status: "exit status 0".to_owned(),
                details: None,
            })
        }
    })]);
    let call = ToolCall::new("t", json!({})).cancellation(token);
    let outcome = executor.execute(call).await;
    assert_eq!(outcome.to_envelope()["error_kind"], "cancelled");
}

#[tokio::test(start_paused = true)]
async fn ex6_the_callers_token_cancels_a_call_that_waits_for_approval_or_a_slot() {
    let policy: Policy = serde_json::from_value(json!({ "ask": ["asked"] })).unwrap();
    let mut limits = Limits::default();
    limits.concurrency = 1;
    let executor = builder_of([
        echo(open_definition("asked")),
        hung(open_definition("hung")),
    ])
    .policy(policy)
    .approver(SilentApprover)
    .limits(limits)
    .build();
    let token = CancellationToken::new();
    let cancelling = async {
        tokio::time::sleep(secs(1)).await;
        token.cancel();
    };
    let call = |name| executor.execute(ToolCall::new(name, json!({})).cancellation(token.clone()));
    let (asked, running, queued, ()) =
        tokio::join!(call("asked"), call("hung"), call("hung"), cancelling);
    for outcome in [asked, running, queued] {
        assert_eq!(outcome.to_envelope()["error_kind"], "cancelled");
    }
}

#[tokio::test(start_paused = true)]
async fn ex6_a_call_dropped_while_running_is_recorded_once_and_cancelled() {
    let recorder = Recorder::default();
    let noticed = CancellationToken::new();
    let notice = noticed.clone();
    let executor = builder_of([scripted(open_definition("t"), move |_, context| {
        let notice = notice.clone();
        tokio::spawn(async move {
            context.cancellation().cancelled().await;
            notice.cancel();
        });
        std::future::pending::<Result<ToolOutput, _>>()
    })])
    .observer(recorder.clone())
    .build();
    let call = executor.execute(ToolCall::new("t", json!({ "a": 1 })));
    assert!(tokio::time::timeout(secs(2), call).await.is_err());
    noticed.cancelled().await;
    let record = recorder.only();
    expect_cancelled(&record);
    assert_eq!(record.outcome.elapsed, secs(2));
    assert_eq!(record.executed.as_deref(), Some(&json!({ "a": 1 })));
    assert_eq!(recorder.started().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn ex6_a_call_dropped_during_approval_is_recorded_once() {
    let recorder = Recorder::default();
    let policy: Policy = serde_json::from_value(json!({ "ask": ["*"] })).unwrap();
    let executor = builder_of([echo(open_definition("t"))])
        .policy(policy)
        .approver(SilentApprover)
        .observer(recorder.clone())
        .build();
    let call = executor.execute(ToolCall::new("t", json!({})));
    assert!(tokio::time::timeout(secs(60), call).await.is_err());
    let record = recorder.only();
    expect_cancelled(&record);
    assert_eq!(record.timings.approval, secs(60));
    assert_eq!(
        record.outcome.elapsed,
        secs(0),
        "a person's time is not the tool's"
    );
    assert!(recorder.started().is_empty());
}

#[tokio::test(start_paused = true)]
async fn ex6_a_call_dropped_while_queued_is_recorded_once() {
    let recorder = Recorder::default();
    let mut limits = Limits::default();
    limits.concurrency = 1;
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let executor = builder_of([scripted(open_definition("t"), move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        std::future::pending::<Result<ToolOutput, _>>()
    })])
    .limits(limits)
    .observer(recorder.clone())
    .build();
    let mut first = Box::pin(executor.execute(ToolCall::new("t", json!({}))));
    assert!(first.as_mut().now_or_never().is_none());
    let second = executor.execute(ToolCall::new("t", json!({})));
    assert!(tokio::time::timeout(millis(10), second).await.is_err());
    expect_cancelled(&recorder.only());
    assert_eq!(runs.load(Ordering::SeqCst), 1, "the second never ran");

    drop(first);
    let third = executor.execute(ToolCall::new("t", json!({})).timeout(millis(10)));
    assert_eq!(
        third.await.error().unwrap(),
        "Tool 't' timed out after 0.01 s",
        "the slots of those who left are free again"
    );
}

/// Takes a second to write each record.
struct SlowObserver(Recorder);

impl Observer for SlowObserver {
    fn finished<'a>(&'a self, record: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        Some(Box::pin(async move {
            tokio::time::sleep(secs(1)).await;
            assert!(self.0.finished(record).is_none());
        }))
    }
}

#[tokio::test(start_paused = true)]
async fn ex6_drop_while_recording_keeps_the_record() {
    let (slow, after) = (Recorder::default(), Recorder::default());
    let executor = builder_of([echo(open_definition("t"))])
        .observer(SlowObserver(slow.clone()))
        .observer(after.clone())
        .build();
    let call = executor.execute(ToolCall::new("t", json!({})));
    assert!(tokio::time::timeout(millis(500), call).await.is_err());
    tokio::time::sleep(secs(2)).await;
    for recorder in [slow, after] {
        assert!(recorder.only().outcome.is_success(), "the tool did answer");
    }
}

#[test]
fn ex6_drop_outside_a_runtime_is_recorded() {
    let (slow, plain) = (Recorder::default(), Recorder::default());
    let executor = builder_of([hung(open_definition("t"))])
        .observer(SlowObserver(slow.clone()))
        .observer(plain.clone())
        .build();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let mut call = Box::pin(executor.execute(ToolCall::new("t", json!({}))));
    runtime.block_on(async { assert!(call.as_mut().now_or_never().is_none()) });
    drop(runtime);
    drop(call);
    expect_cancelled(&plain.only());
}
