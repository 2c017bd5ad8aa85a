//! Observers see every call, and their failures affect nothing else.

use futures::future::BoxFuture;
use serde_json::{Value, json};
use toolgate_core::{CallRecord, CallStarted, Observer, Origin, ToolCall, ToolError};

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
    let asked = json!({ "b": null, "a": "x" });
    let call = ToolCall::new("t", asked.clone())
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
    assert_eq!(*record.requested, asked);
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
    assert_eq!(*records[1].requested, Value::from("{broken"), "as it came");
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
    fn behave<'a, T: 'a>(self) -> Option<BoxFuture<'a, T>> {
        match self {
            Self::PanicsAtOnce => panic!("rude"),
            Self::PanicsLater => Some(Box::pin(async { panic!("rude") })),
            Self::Hangs => Some(Box::pin(std::future::pending())),
        }
    }
}

impl Observer for FaultyObserver {
    fn started<'a>(&'a self, _: &'a CallStarted) -> Option<BoxFuture<'a, ()>> {
        self.behave()
    }
    fn finished<'a>(&'a self, _: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        self.behave()
    }
}

#[tokio::test(start_paused = true)]
async fn a_panicking_or_hanging_observer_changes_no_outcome() {
    for rude in [
        FaultyObserver::PanicsAtOnce,
        FaultyObserver::PanicsLater,
        FaultyObserver::Hangs,
    ] {
        let recorder = Recorder::default();
        let executor = builder_of([sleeping(open_definition("t"), millis(500))])
            .observer(rude)
            .observer(recorder.clone())
            .build();
        let begin = tokio::time::Instant::now();
        // Shorter than the observer timeout: an observer's time is not the tool's.
        let call = ToolCall::new("t", json!({})).timeout(secs(1));
        let outcome = executor.execute(call).await;
        assert_eq!(outcome.error(), None);
        assert!(begin.elapsed() <= secs(11), "{:?}", begin.elapsed());
        assert!(
            recorder.only().outcome.is_success(),
            "the others are still notified"
        );
        assert_eq!(recorder.started().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_tool_waits_until_its_start_is_written() {
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

/// Has to see calls before they run.
#[derive(Clone, Copy)]
enum TestWitness {
    Sees,
    Refuses,
    Is(FaultyObserver),
}

impl Observer for TestWitness {
    fn before_start<'a>(
        &'a self,
        _: &'a CallStarted,
    ) -> Option<BoxFuture<'a, Result<(), ToolError>>> {
        match self {
            Self::Sees => Some(Box::pin(async { Ok(()) })),
            Self::Refuses => Some(Box::pin(async { Err(ToolError::failed("not seen")) })),
            Self::Is(rude) => rude.behave(),
        }
    }
    fn finished<'a>(&'a self, _: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
        None
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_required_record_fails_does_not_run() {
    let unseen = "The t service is currently unavailable: the call could not be recorded, so it was not made";
    for (witness, expected) in [
        (TestWitness::Sees, None),
        (TestWitness::Refuses, Some("not seen")),
        (TestWitness::Is(FaultyObserver::PanicsAtOnce), Some(unseen)),
        (TestWitness::Is(FaultyObserver::PanicsLater), Some(unseen)),
        (TestWitness::Is(FaultyObserver::Hangs), Some(unseen)),
    ] {
        let recorder = Recorder::default();
        let executor = builder_of([echo(open_definition("t"))])
            .observer(recorder.clone())
            .observer(witness)
            .build();
        let outcome = executor.execute(ToolCall::new("t", json!({}))).await;
        assert_eq!(outcome.error().as_deref(), expected);
        assert_eq!(recorder.only().started, expected.is_none());
        assert_eq!(recorder.started().len(), usize::from(expected.is_none()));
        assert!(recorder.only().executed.is_some());
    }
}
