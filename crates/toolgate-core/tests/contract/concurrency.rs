//! Concurrent calls, and tools that block their thread.

use std::sync::Arc;
use std::sync::mpsc;

use futures::FutureExt;
use futures::future::join_all;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;
use toolgate_core::{
    CallRecord, FunctionTool, Limits, RemoteTask, Timings, Tool, ToolCall, ToolError, ToolExecutor,
    ToolManager, ToolOutput, ToolRank, ToolSource,
};

use crate::support::{
    Recorder, builder_of, echo, executor_of, hung, millis, open_definition, scripted, secs,
    sleeping, tool_of,
};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn with_slots(slots: usize) -> ToolExecutor {
    let mut limits = Limits::default();
    limits.concurrency = slots;
    builder_of([
        sleeping(open_definition("second"), secs(1)),
        hung(open_definition("hung")),
        echo(open_definition("echo")),
    ])
    .limits(limits)
    .build()
}

#[tokio::test(start_paused = true)]
async fn a_hundred_calls_share_the_slots() {
    for (slots, seconds) in [(100, 1), (1_000, 1), (50, 2), (1, 100)] {
        let executor = with_slots(slots);
        let begin = Instant::now();
        let calls = (0..100)
            .map(|_| executor.execute(ToolCall::new("second", json!({})).timeout(secs(200))));
        let outcomes = join_all(calls).await;
        assert!(outcomes.iter().all(toolgate_core::ToolOutcome::is_success));
        assert_eq!(begin.elapsed().as_secs(), seconds, "{slots} slots");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_gets_no_slot_within_its_timeout_is_overloaded() {
    let executor = with_slots(2);
    let hung = || executor.execute(ToolCall::new("hung", json!({})));
    let late = executor.execute(ToolCall::new("echo", json!({})).timeout(secs(5)));
    let begin = Instant::now();
    let (_, _, envelope) = tokio::join!(hung(), hung(), async {
        let envelope = late.await.to_envelope();
        assert_eq!(begin.elapsed().as_secs(), 5);
        envelope
    });
    assert_eq!(
        envelope["error"],
        "Tool 'echo' did not run: 2 calls are running already, which is the limit"
    );
    assert_eq!(envelope["error_kind"], "overloaded");
    assert!(
        executor
            .execute(ToolCall::new("echo", json!({})))
            .await
            .is_success()
    );
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_a_slot_is_not_counted_as_the_tools_time() {
    let recorder = Recorder::default();
    let mut limits = Limits::default();
    limits.concurrency = 1;
    let executor = builder_of([sleeping(open_definition("second"), secs(1))]).limits(limits);
    let executor = executor.observer(recorder.clone()).build();
    let call = || executor.execute(ToolCall::new("second", json!({})).timeout(secs(9)));
    let impatient = async {
        let call = executor.execute(ToolCall::new("second", json!({})));
        assert!(tokio::time::timeout(millis(1500), call).await.is_err());
    };
    let late = executor.execute(ToolCall::new("second", json!({})).timeout(millis(500)));
    let (..) = tokio::join!(call(), call(), impatient, late);
    let timings = |record: CallRecord| {
        let Timings { queue, invoke, .. } = record.timings;
        assert_eq!(record.outcome.elapsed, queue + invoke);
        (queue, invoke)
    };
    let timings: Vec<_> = recorder.records().into_iter().map(timings).collect();
    let expected = [
        (millis(500), secs(0)), // It was overloaded.
        (secs(0), secs(1)),
        (millis(1500), secs(0)), // Its caller is gone.
        (secs(1), secs(1)),
    ];
    assert_eq!(timings, expected);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_became_a_task_leaves_its_slot_to_others() {
    let task = scripted(open_definition("task"), |_, context| async move {
        context.announce_task(&RemoteTask {
            server: "house".to_owned(),
            task_id: "1".to_owned(),
            revision: "2026-07-28".to_owned(),
            expires: None,
        });
        tokio::time::sleep(secs(3600)).await;
        Ok(ToolOutput::text("done"))
    });
    let mut limits = Limits::default();
    limits.concurrency = 1;
    let executor = builder_of([task, echo(open_definition("echo"))]).limits(limits);
    let executor = executor.build();
    let begin = Instant::now();
    let tasks = (0..20).map(|_| executor.execute(ToolCall::new("task", json!({}))));
    let (tasks, quick) = tokio::join!(join_all(tasks), async {
        let outcome = executor.execute(ToolCall::new("echo", json!({}))).await;
        (outcome, begin.elapsed())
    });
    assert!(tasks.iter().all(toolgate_core::ToolOutcome::is_success));
    assert_eq!(begin.elapsed(), secs(3600), "neither limit ended a task");
    assert!(quick.0.is_success());
    assert_eq!(quick.1, secs(0));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_fills_its_own_slots_only() {
    const SLOTS: usize = 4;
    let manager = ToolManager::new();
    manager.add(echo(open_definition("local")));
    let hung_at = |server: &str| {
        let definition = open_definition("hung").source(ToolSource::Mcp(server.to_owned()));
        Arc::new(hung(definition)) as Arc<dyn Tool>
    };
    for (place, server, tools) in [
        (
            0,
            "bad",
            vec![hung_at("bad"), tool_of("bad", open_definition("quick"))],
        ),
        (1, "good", vec![tool_of("good", open_definition("well"))]),
    ] {
        let source = ToolSource::Mcp(server.to_owned());
        manager.replace(&source, ToolRank::Server(place), tools);
    }
    let mut limits = Limits::default();
    limits.concurrency = SLOTS;
    let executor = ToolExecutor::builder(Arc::new(manager)).limits(limits);
    let executor = executor.without_observers().build();
    let mut hanging: Vec<_> = (0..SLOTS)
        .map(|_| Box::pin(executor.execute(ToolCall::new("hung", json!({})))))
        .collect();
    for call in &mut hanging {
        assert!(call.now_or_never().is_none());
    }
    let begin = Instant::now();
    for (tool, expected) in [
        ("local", None),
        ("well", None),
        ("quick", Some("overloaded")),
    ] {
        let call = ToolCall::new(tool, json!({})).timeout(secs(1));
        let envelope = executor.execute(call).await.to_envelope();
        assert_eq!(envelope["error_kind"].as_str(), expected, "{envelope}");
        let waited = expected.map_or(secs(0), |_| secs(1));
        assert_eq!(begin.elapsed(), waited, "{tool}");
    }
    drop(hanging);
    let outcome = executor.execute(ToolCall::new("quick", json!({}))).await;
    assert!(outcome.is_success(), "{:?}", outcome.error());
}

#[tokio::test(start_paused = true)]
async fn ex9_a_hung_tool_delays_no_other_call() {
    let executor = executor_of([hung(open_definition("hung")), echo(open_definition("echo"))]);
    let hung = executor.execute(ToolCall::new("hung", json!({})));
    let others = async {
        let begin = Instant::now();
        for _ in 0..100 {
            assert!(
                executor
                    .execute(ToolCall::new("echo", json!({})))
                    .await
                    .is_success()
            );
        }
        begin.elapsed()
    };
    let (outcome, others) = tokio::join!(hung, others);
    assert!(!outcome.is_success());
    assert_eq!(others.as_secs(), 0);
}

/// A blocking tool that waits until it is released, and an async one.
fn blocking() -> (ToolExecutor, mpsc::Sender<()>) {
    let (release, wait) = mpsc::channel();
    let wait = Arc::new(Mutex::new(wait));
    let blocking = FunctionTool::blocking("blocking", "Waits", move |_: Nothing, _| {
        wait.lock().recv().unwrap();
        Ok::<_, ToolError>("released")
    });
    let manager = ToolManager::new();
    manager.add(blocking.unwrap());
    manager.add(echo(open_definition("echo")));
    let executor = ToolExecutor::builder(Arc::new(manager))
        .without_observers()
        .build();
    (executor, release)
}

#[tokio::test]
async fn ex9_a_tool_that_blocks_its_thread_delays_no_other_call() {
    // Everything runs on one thread: if the tool blocked it, nobody would release the tool.
    let (executor, release) = blocking();
    let others = async {
        for _ in 0..100 {
            assert!(
                executor
                    .execute(ToolCall::new("echo", json!({})))
                    .await
                    .is_success()
            );
        }
        release.send(()).unwrap();
    };
    let (outcome, ()) = tokio::join!(
        executor.execute(ToolCall::new("blocking", json!({}))),
        others
    );
    assert_eq!(outcome.to_model_text(), "released");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ex9_a_tool_that_blocks_inside_invoke_delays_no_other_call() {
    let (started, start) = mpsc::channel();
    let (release, wait) = mpsc::channel::<()>();
    let (started, wait) = (Mutex::new(started), Mutex::new(wait));
    let blocking = scripted(open_definition("blocking"), move |_, _| {
        started.lock().send(()).unwrap();
        wait.lock().recv().unwrap();
        async { Ok(toolgate_core::ToolOutput::text("released")) }
    });
    let executor = executor_of([blocking, echo(open_definition("echo"))]);
    let call = |name: &'static str| {
        let executor = executor.clone();
        tokio::spawn(async move { executor.execute(ToolCall::new(name, json!({}))).await })
    };
    let blocking = call("blocking");
    // From here on, one of the runtime's two threads is blocked until it is released.
    tokio::task::spawn_blocking(move || start.recv().unwrap())
        .await
        .unwrap();
    for _ in 0..100 {
        assert!(call("echo").await.unwrap().is_success());
    }
    assert!(!blocking.is_finished());
    release.send(()).unwrap();
    assert_eq!(blocking.await.unwrap().to_model_text(), "released");
}

#[tokio::test]
async fn ex9_a_tool_that_never_returns_takes_at_most_eight_threads() {
    let (executor, release) = blocking();
    let call = || executor.execute(ToolCall::new("blocking", json!({})));
    let nine = join_all((0..9).map(|_| call()));
    let releasing = async {
        tokio::task::yield_now().await;
        for _ in 0..8 {
            release.send(()).unwrap();
        }
    };
    let (outcomes, ()) = tokio::join!(nine, releasing);
    let refused: Vec<String> = outcomes
        .iter()
        .filter_map(toolgate_core::ToolOutcome::error)
        .collect();
    assert_eq!(
        refused,
        ["Tool 'blocking' did not run: 8 calls are running already, which is the limit"]
    );
    release.send(()).unwrap();
    assert!(call().await.is_success(), "the threads are free again");
}

#[tokio::test]
async fn ex9_a_blocking_tool_that_panics_is_contained_and_gives_its_thread_back() {
    let panics = FunctionTool::blocking(
        "panics",
        "Panics",
        |_: Nothing, _| -> Result<(), ToolError> { panic!("on a thread") },
    );
    let manager = ToolManager::new();
    manager.add(panics.unwrap());
    let executor = ToolExecutor::builder(Arc::new(manager))
        .without_observers()
        .build();
    for _ in 0..20 {
        let envelope = executor
            .execute(ToolCall::new("panics", json!({})))
            .await
            .to_envelope();
        assert_eq!(envelope["error"], "Tool 'panics' failed unexpectedly");
        assert_eq!(envelope["details"], "on a thread");
    }
}

#[tokio::test]
async fn ex6_a_blocking_tool_sees_its_cancellation() {
    let (sender, receiver) = mpsc::channel();
    let tool = FunctionTool::blocking("t", "Waits", move |_: Nothing, context| {
        while !context.cancellation().is_cancelled() {
            std::thread::yield_now();
        }
        sender.send(()).unwrap();
        Ok::<_, ToolError>(())
    });
    let manager = ToolManager::new();
    manager.add(tool.unwrap());
    let executor = ToolExecutor::builder(Arc::new(manager))
        .without_observers()
        .build();
    let call = ToolCall::new("t", json!({})).timeout(std::time::Duration::from_millis(20));
    let outcome = executor.execute(call).await;
    assert_eq!(outcome.error().unwrap(), "Tool 't' timed out after 0.02 s");
    receiver.recv().unwrap();
}
