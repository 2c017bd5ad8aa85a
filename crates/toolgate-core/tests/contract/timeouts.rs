//! EX6 and EX8: how long a call may take.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use toolgate_core::{Limits, Progress, ToolCall, ToolLimits, ToolOutput};

use crate::support::{
    Recorder, builder_of, executor_of, hung, millis, open_definition, scripted, secs, sleeping,
};

fn progress() -> Progress {
    Progress {
        done: 1.0,
        ..Progress::default()
    }
}

#[tokio::test(start_paused = true)]
async fn ex6_the_default_timeout_is_thirty_seconds() {
    let executor = executor_of([hung(open_definition("hung"))]);
    let begin = Instant::now();
    let outcome = executor.execute(ToolCall::new("hung", json!({}))).await;
    assert_eq!(outcome.error().unwrap(), "Tool 'hung' timed out after 30 s");
    assert_eq!(begin.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn ex6_a_tool_and_the_configuration_can_override_the_timeout() {
    let mut limits = Limits::default();
    limits.timeout = secs(7);
    let configured = ToolLimits::timeout(millis(1_500));
    limits.per_tool.insert("configured".to_owned(), configured);
    let executor = builder_of([
        hung(open_definition("usual")),
        hung(open_definition("own").timeout(secs(3))),
        hung(open_definition("configured").timeout(secs(3))),
    ])
    .limits(limits)
    .build();
    for (name, text) in [("usual", "7"), ("own", "3"), ("configured", "1.5")] {
        let outcome = executor.execute(ToolCall::new(name, json!({}))).await;
        assert_eq!(
            outcome.error().unwrap(),
            format!("Tool '{name}' timed out after {text} s")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn ex6_a_call_can_override_the_timeout() {
    let executor = executor_of([
        hung(open_definition("t").timeout(secs(3))),
        sleeping(open_definition("s"), secs(60)),
    ]);
    let short = executor
        .execute(ToolCall::new("t", json!({})).timeout(secs(1)))
        .await;
    assert_eq!(short.error().unwrap(), "Tool 't' timed out after 1 s");
    let long = executor
        .execute(ToolCall::new("s", json!({})).timeout(secs(90)))
        .await;
    assert!(long.is_success());
}

#[tokio::test(start_paused = true)]
async fn ex6_on_timeout_the_future_is_dropped_and_the_context_cancelled() {
    struct DropFlag(Arc<AtomicBool>);
    impl Drop for DropFlag {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let dropped = Arc::new(AtomicBool::new(false));
    let stopped = Arc::new(AtomicBool::new(false));
    let (drops, stops) = (Arc::clone(&dropped), Arc::clone(&stopped));
    let executor = executor_of([scripted(open_definition("t"), move |_, context| {
        let guard = DropFlag(Arc::clone(&drops));
        let stops = Arc::clone(&stops);
        tokio::spawn(async move {
            context.cancellation().cancelled().await;
            stops.store(true, Ordering::SeqCst);
        });
        async move {
            let _guard = guard;
            std::future::pending().await
        }
    })]);
    executor.execute(ToolCall::new("t", json!({}))).await;
    assert!(
        dropped.load(Ordering::SeqCst),
        "before the outcome is there"
    );
    tokio::task::yield_now().await;
    assert!(stopped.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn ex6_the_text_does_not_claim_that_nothing_happened() {
    let executor = executor_of([hung(open_definition("unlock"))]);
    let outcome = executor.execute(ToolCall::new("unlock", json!({}))).await;
    for text in [
        outcome.error().unwrap(),
        outcome.to_model_text(),
        outcome.to_speech(),
    ] {
        assert_eq!(text, "Tool 'unlock' timed out after 30 s");
    }
}

#[tokio::test(start_paused = true)]
async fn ex6_progress_extends_the_limit_up_to_the_maximum() {
    let reporting = |name: &str, times: u32| {
        scripted(open_definition(name), move |_, context| async move {
            for _ in 0..times {
                tokio::time::sleep(secs(20)).await;
                context.report(&progress());
            }
            Ok(ToolOutput::text("done"))
        })
    };
    let executor = executor_of([reporting("five", 5), reporting("endless", 1_000)]);
    let outcome = executor.execute(ToolCall::new("five", json!({}))).await;
    assert_eq!(outcome.execution_time_ms(), 100_000.0);
    assert!(outcome.is_success());

    let begin = Instant::now();
    let outcome = executor.execute(ToolCall::new("endless", json!({}))).await;
    assert_eq!(
        outcome.error().unwrap(),
        "Tool 'endless' timed out after 150 s"
    );
    assert_eq!(begin.elapsed().as_secs(), 150);
}

#[tokio::test(start_paused = true)]
async fn ex6_silence_after_progress_still_ends_the_call() {
    let executor = executor_of([scripted(open_definition("t"), |_, context| async move {
        tokio::time::sleep(secs(10)).await;
        context.report(&progress());
        std::future::pending().await
    })]);
    let begin = Instant::now();
    let outcome = executor.execute(ToolCall::new("t", json!({}))).await;
    assert_eq!(outcome.error().unwrap(), "Tool 't' timed out after 30 s");
    assert_eq!(begin.elapsed().as_secs(), 40);
}

#[tokio::test(start_paused = true)]
async fn ex6_the_limit_of_a_call_is_absolute() {
    let executor = executor_of([scripted(open_definition("t"), |_, context| async move {
        loop {
            tokio::time::sleep(millis(100)).await;
            context.report(&progress());
        }
    })]);
    let begin = Instant::now();
    let outcome = executor
        .execute(ToolCall::new("t", json!({})).timeout(secs(2)))
        .await;
    assert_eq!(outcome.error().unwrap(), "Tool 't' timed out after 2 s");
    assert_eq!(begin.elapsed().as_secs(), 2);
}

#[tokio::test(start_paused = true)]
async fn ex6_the_caller_receives_progress() {
    let received = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let receiver = Arc::clone(&received);
    let executor = executor_of([scripted(open_definition("t"), |_, context| async move {
        for done in [1.0, 2.0] {
            context.report(&Progress {
                done,
                total: Some(2.0),
                message: Some("walking".to_owned()),
                meta: None,
            });
        }
        Ok(ToolOutput::json(1))
    })]);
    let call = ToolCall::new("t", json!({}))
        .on_progress(move |progress| receiver.lock().push(progress.done));
    executor.execute(call).await;
    assert_eq!(*received.lock(), [1.0, 2.0]);
}

#[tokio::test(start_paused = true)]
async fn ex6_zero_and_huge_limits_work() {
    let executor = executor_of([
        scripted(open_definition("reporting"), |_, context| async move {
            tokio::time::sleep(secs(1)).await;
            context.report(&progress());
            Ok(ToolOutput::text("done"))
        }),
        hung(open_definition("hung")),
    ]);
    let for_ever = ToolCall::new("reporting", json!({})).timeout(Duration::MAX);
    assert!(executor.execute(for_ever).await.is_success());
    let at_once = ToolCall::new("hung", json!({})).timeout(Duration::ZERO);
    let outcome = executor.execute(at_once).await;
    assert_eq!(outcome.error().unwrap(), "Tool 'hung' timed out after 0 s");
}

#[tokio::test(start_paused = true)]
async fn ex8_the_limit_is_given_in_seconds_with_its_fraction() {
    let executor = executor_of([hung(open_definition("t"))]);
    for (limit, text) in [
        (1_500, "1.5"),
        (250, "0.25"),
        (2_000, "2"),
        (120_000, "120"),
    ] {
        let call = ToolCall::new("t", json!({})).timeout(millis(limit));
        assert_eq!(
            executor.execute(call).await.error().unwrap(),
            format!("Tool 't' timed out after {text} s")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn ex7_the_time_is_measured_for_failures_too() {
    let recorder = Recorder::default();
    let executor = builder_of([
        hung(open_definition("hung")),
        scripted(open_definition("fails"), |_, _| async {
            tokio::time::sleep(millis(400)).await;
            Err(toolgate_core::ToolError::failed("no"))
        }),
    ])
    .observer(recorder.clone())
    .build();
    for (name, expected) in [("hung", 30_000.0), ("fails", 400.0)] {
        let envelope = executor
            .execute(ToolCall::new(name, json!({})))
            .await
            .to_envelope();
        assert_eq!(envelope["execution_time_ms"], expected);
    }
    let times: Vec<u128> = recorder
        .records()
        .iter()
        .map(|r| r.outcome.elapsed.as_millis())
        .collect();
    assert_eq!(times, [30_000, 400]);
}
