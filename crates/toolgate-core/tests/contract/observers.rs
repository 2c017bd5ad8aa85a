//! Observers see every call, and their failures affect nothing else.

use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use toolgate_core::{CallRecord, CallStarted, Limits, Observer, Origin, ToolCall, ToolError};

use crate::support::{
    Recorder, builder_of, echo, millis, open_definition, secs, sleeping, with_schema,
};

#[tokio::test]
async fn every_call_is_recorded_completely() {
    let recorder = Recorder::default();
    let schema = json!({ "properties": { "a": { "type": "string" }, "b": { "type": "string" } } });
    let executor = builder_of([echo(with_schema("t", schema))])
        .observer(recorder.clone())
        .build();
    let arguments = json!({ "b": null, "a": "x" });
    let call = ToolCall::new("t", arguments.clone())
        .origin(Origin::Chat)
        .trace_parent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    let id = call.id();
    executor.execute(call).await;

    let record = recorder.only();
    assert_eq!(record.origin, Origin::Chat);
    assert_eq!(
        record.trace.parent_id().as_deref(),
        Some("b7ad6b7169203331")
    );
    assert!(record.started);
    assert_eq!(record.definition().unwrap().name(), "t");
    assert_eq!(*record.requested, arguments);
    assert_eq!(record.executed.as_deref(), Some(&json!({ "a": "x" })));
    assert_eq!(record.dropped, ["b"]);
    assert_eq!(record.outcome.call_id, id);

    let started = recorder.started();
    assert_eq!(started.len(), 1);
    assert_eq!((started[0].id, started[0].tool_name.as_str()), (id, "t"));
    assert_eq!(*started[0].executed, json!({ "a": "x" }));
    assert_eq!(started[0].started_at, record.started_at);
}

#[tokio::test]
async fn calls_that_never_start_are_recorded_too() {
    let recorder = Recorder::default();
    let executor = builder_of([echo(open_definition("t"))])
        .observer(recorder.clone())
        .build();
    executor
        .execute(ToolCall::new("nope", json!({ "a": 1 })))
        .await;
    executor.execute(ToolCall::from_json("t", b"{broken")).await;
    let records = recorder.records();
    assert_eq!(*records[0].requested, json!({ "a": 1 }));
    assert!(records[0].tool.is_none());
    assert_eq!(
        *records[1].requested,
        Value::from("{broken"),
        "kept verbatim"
    );
    assert!(records.iter().all(|record| record.executed.is_none()));
    assert!(recorder.started().is_empty());
}

/// Misbehaves in every possible way.
#[derive(Clone, Copy)]
enum FaultyObserver {
    PanicsAtOnce,
    PanicsLater,
    Hangs,
}

impl FaultyObserver {
    fn misbehave<'a, T: 'a>(self) -> Option<BoxFuture<'a, T>> {
        match self {
            Self::PanicsAtOnce => panic!("faulty"),
            Self::PanicsLater => Some(Box::pin(async { panic!("faulty") })),
            Self::Hangs => Some(Box::pin(std::future::pending())),
        }
    }
}

impl Observer for FaultyObserver {
    fn started<'a>(&'a self, _: &'a CallStarted) -> Option<BoxFuture<'a, ()>> {
        self.misbehave()
    }
    fn finished<'a>(&'a self, _: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        self.misbehave()
    }
}

#[tokio::test(start_paused = true)]
async fn a_panicking_or_hanging_observer_changes_no_outcome() {
    // A hanging observer is waited for twice: when the call starts, and when it has finished.
    const OBSERVER_TIMEOUT: Duration = Duration::from_secs(5);
    const TOOL_TIME: Duration = Duration::from_millis(500);
    assert_eq!(Limits::default().observer_timeout, OBSERVER_TIMEOUT);
    for faulty in [
        FaultyObserver::PanicsAtOnce,
        FaultyObserver::PanicsLater,
        FaultyObserver::Hangs,
    ] {
        let recorder = Recorder::default();
        let executor = builder_of([sleeping(open_definition("t"), TOOL_TIME)])
            .observer(faulty)
            .observer(recorder.clone())
            .build();
        let started = tokio::time::Instant::now();
        // Shorter than the observer timeout: the time that observers take must not count against
        // the call's timeout.
        let call = ToolCall::new("t", json!({})).timeout(secs(1));
        let outcome = executor.execute(call).await;
        assert_eq!(outcome.error(), None);
        let elapsed = started.elapsed();
        assert!(elapsed <= 2 * OBSERVER_TIMEOUT + TOOL_TIME, "{elapsed:?}");
        assert!(
            recorder.only().outcome.is_success(),
            "the others are still notified"
        );
        assert_eq!(recorder.started().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_tool_waits_for_the_started_observers() {
    struct SlowJournal(Recorder);
    impl Observer for SlowJournal {
        fn started<'a>(&'a self, call: &'a CallStarted) -> Option<BoxFuture<'a, ()>> {
            Some(Box::pin(async move {
                tokio::time::sleep(millis(100)).await;
                assert!(Observer::started(&self.0, call).is_none());
            }))
        }
        fn finished<'a>(&'a self, _: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
            None
        }
    }
    let recorder = Recorder::default();
    let seen = recorder.clone();
    let tool = crate::support::scripted(open_definition("t"), move |_, _| {
        let written = seen.started().len();
        async move { Ok(toolgate_core::ToolOutput::json(written)) }
    });
    let executor = builder_of([tool]).observer(SlowJournal(recorder)).build();
    let outcome = executor.execute(ToolCall::new("t", json!({}))).await;
    assert_eq!(outcome.to_envelope()["result"], 1);
}

/// An observer that must record a call before it runs.
#[derive(Clone, Copy)]
enum RequiredRecorder {
    Succeeds,
    Fails,
    Faulty(FaultyObserver),
}

impl Observer for RequiredRecorder {
    fn before_start<'a>(
        &'a self,
        _: &'a CallStarted,
    ) -> Option<BoxFuture<'a, Result<(), ToolError>>> {
        match self {
            Self::Succeeds => Some(Box::pin(async { Ok(()) })),
            Self::Fails => Some(Box::pin(async {
                Err(ToolError::failed("journal is full"))
            })),
            Self::Faulty(observer) => observer.misbehave(),
        }
    }
    fn finished<'a>(&'a self, _: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        None
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_cannot_be_recorded_does_not_run() {
    let not_recorded = "The t service is currently unavailable: the call could not be recorded, so it was not made";
    for (required, expected) in [
        (RequiredRecorder::Succeeds, None),
        (RequiredRecorder::Fails, Some("journal is full")),
        (
            RequiredRecorder::Faulty(FaultyObserver::PanicsAtOnce),
            Some(not_recorded),
        ),
        (
            RequiredRecorder::Faulty(FaultyObserver::PanicsLater),
            Some(not_recorded),
        ),
        (
            RequiredRecorder::Faulty(FaultyObserver::Hangs),
            Some(not_recorded),
        ),
    ] {
        let recorder = Recorder::default();
        let executor = builder_of([echo(open_definition("t"))])
            .observer(recorder.clone())
            .observer(required)
            .build();
        let outcome = executor.execute(ToolCall::new("t", json!({}))).await;
        assert_eq!(outcome.error().as_deref(), expected);
        assert_eq!(recorder.only().started, expected.is_none());
        assert_eq!(recorder.started().len(), usize::from(expected.is_none()));
        assert!(recorder.only().executed.is_some());
    }
}
