//! Calls that run as tasks on real server processes of both eras.

use std::time::Duration;

use futures::future::join;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;
use toolgate_core::{CallId, CallRecord, Observer, RemoteTask, ToolCall, ToolExecutor};

use crate::asking::PersonClient;
use crate::fault_test::{FAKE, FaultTest, FaultTestBuilder, NEIGHBOR, within};

const ERAS: [&str; 2] = ["version=2025-11-25", "modern"];

async fn start(modes: &[&str]) -> FaultTest {
    let neighbor: Vec<&str> = modes
        .iter()
        .copied()
        .filter(|it| !it.contains('@'))
        .collect();
    FaultTestBuilder::new()
        .server(FAKE, modes)
        .server(NEIGHBOR, &[&neighbor[..], &["tasks"]].concat())
        .limits(|limits| {
            limits.timeout = Duration::from_millis(500);
            limits.max_total = Duration::from_millis(700);
        })
        .start_settled()
        .await
}

/// Everything that the server has kept about its tasks.
fn kept(test: &FaultTest) -> Value {
    let kept = std::fs::read(test.folder.path().join("kept")).unwrap_or_default();
    serde_json::from_slice(&kept).unwrap_or_default()
}

#[tokio::test]
async fn tasks_outlast_the_limits_of_calls_and_end_as_they_say() {
    for era in ERAS {
        let test = start(&[era, "tasks"]).await;
        for (more, expected) in [
            (json!({ "ms": 1500 }), "the end"),
            (json!({ "end": "failed" }), "the task failed"),
            (json!({ "end": "tool_error" }), "the end"),
            (
                json!({ "end": "cancelled" }),
                "The server cancelled the task of 'fake__task': it is cancelled",
            ),
            (
                json!({ "end": "riddle" }),
                "The server of 'fake__task' sent an unreadable response",
            ),
            (
                json!({ "ms": 60_000, "ttl": 900 }),
                "The task of 'fake__task' did not end within the 0.9 s that its server gives it",
            ),
            (json!({ "poll": 0, "ms": 500 }), "the end"),
        ] {
            let mut arguments = more;
            arguments["text"] = json!("the end");
            let envelope = test.call("task", arguments.clone()).await;
            let said = match envelope["success"] == true {
                true => &envelope["result"],
                false => &envelope["error"],
            };
            assert_eq!(said, expected, "{era} {arguments}");
            let failed = arguments.get("end").is_some() || arguments.get("ttl").is_some();
            assert_eq!(envelope["success"], !failed, "{era} {arguments}");
        }
        test.assert_works().await;
        test.finish().await;
    }
}

#[tokio::test]
async fn a_giant_result_of_a_task_is_refused_and_the_server_stays() {
    for era in ERAS {
        let test = start(&[era, "tasks"]).await;
        let call = ToolCall::new("fake__task", json!({ "bytes": 17 << 20, "ms": 300 }));
        let envelope = test.execute(call.timeout(Duration::from_secs(60))).await;
        assert_eq!(envelope["error_kind"], "too_large", "{era}: {envelope}");
        test.assert_works().await;
        test.finish().await;
    }
}

#[tokio::test]
async fn tasks_of_the_same_id_at_two_servers_stay_apart() {
    for era in ERAS {
        let test = start(&[era, "tasks"]).await;
        let calls = (0..8).map(|n| {
            let test = &test;
            async move {
                let server = if n % 2 == 0 { FAKE } else { NEIGHBOR };
                let arguments = json!({ "text": format!("call {n}"), "ms": 100 * n });
                let envelope = test.call_on(server, "task", arguments).await;
                assert_eq!(envelope["result"], format!("call {n}"), "{envelope}");
            }
        });
        futures::future::join_all(calls).await;
        test.finish().await;
    }
}

#[tokio::test]
async fn questions_of_tasks_reach_clients_in_all_pairs_of_eras() {
    for era in ERAS {
        for is_modern in [false, true] {
            let test = FaultTestBuilder::new()
                .server(FAKE, &[era, "tasks"])
                .server(NEIGHBOR, &[])
                .relays_questions()
                .start_settled()
                .await;
            let mut client = PersonClient::connect(&test, is_modern).await;
            let call =
                json!({ "name": "task", "arguments": { "text": "thanks", "ask": 2, "ms": 300 } });
            let (questions, last) = client.run("tools/call", call).await;
            assert_eq!(questions.len(), 2, "{era} {is_modern}: {questions:?}");
            assert!(!questions[0].to_string().contains("related-task"));
            let answers = &last["result"]["structuredContent"];
            for question in ["question-0", "question-1"] {
                assert_eq!(answers[question]["content"]["who"], "Ada", "{era}: {last}");
            }
            test.finish_after_clients().await;
        }
    }
}

#[tokio::test]
async fn a_caller_that_leaves_cancels_its_task() {
    for era in ERAS {
        let test = start(&[era, "tasks=@/kept"]).await;
        let call = test.call("task", json!({ "ms": 60_000 }));
        assert!(
            tokio::time::timeout(Duration::from_millis(800), call)
                .await
                .is_err()
        );
        let is_cancelled = |test: &FaultTest| kept(test)["task-1"]["cancelled"] == true;
        test.wait_until("the task is cancelled", is_cancelled).await;
        test.assert_works().await;
        test.finish().await;
    }
}

#[tokio::test]
async fn a_shutdown_cancels_tasks_unless_they_are_to_be_continued() {
    for era in ERAS {
        for leaves_running in [false, true] {
            let test = start(&[era, "tasks=@/kept"]).await;
            let stop = async {
                test.wait_until("the task runs", |test| kept(test)["task-1"].is_object())
                    .await;
                tokio::time::sleep(Duration::from_millis(300)).await;
                if leaves_running {
                    test.executor.leave_tasks();
                }
                let stopping = tokio::time::Instant::now();
                test.servers.stop().await;
                // A task that is left alone doesn't hold up its server.
                assert!(!leaves_running || stopping.elapsed() < Duration::from_millis(1500));
            };
            let (envelope, ()) = join(test.call("task", json!({ "ms": 60_000 })), stop).await;
            assert_eq!(envelope["error_kind"], "unavailable", "{envelope}");
            let text = envelope["error"].as_str().unwrap();
            assert_eq!(text.contains("continued"), leaves_running, "{text}");
            let cancelled = kept(&test)["task-1"]["cancelled"] == true;
            assert_eq!(cancelled, !leaves_running, "{era}");
        }
    }
}

#[tokio::test]
async fn a_server_that_dies_is_asked_for_its_task_when_it_is_back() {
    for era in ERAS {
        for (mode, is_kept) in [("tasks=@/kept", true), ("tasks", false)] {
            let test = start(&[era, mode]).await;
            let arguments = json!({ "text": "the end", "ms": 1500, "poll": 300 });
            let dying = async {
                tokio::time::sleep(Duration::from_millis(700)).await;
                test.call("die", json!({ "signal": 9 })).await
            };
            let call = test.call("task", arguments);
            let (envelope, _) = within(Duration::from_secs(60), join(call, dying)).await;
            match is_kept {
                true => assert_eq!(envelope["result"], "the end", "{era}: {envelope}"),
                false => assert_eq!(
                    envelope["error"], "MCP server 'fake' does not know the task of 'fake__task'",
                    "{era}"
                ),
            }
            test.assert_works().await;
            test.finish().await;
        }
    }
}

/// Keeps what a journal would keep.
#[derive(Clone, Default)]
struct TaskKeeper(Arc<Mutex<Option<RemoteTask>>>);

impl Observer for TaskKeeper {
    fn became_task(&self, _call: CallId, task: &RemoteTask) {
        *self.0.lock() = Some(task.clone());
    }

    fn finished<'a>(
        &'a self,
        _record: &'a CallRecord,
    ) -> Option<futures::future::BoxFuture<'a, ()>> {
        None
    }
}

#[tokio::test]
async fn a_second_gateway_continues_the_task_of_the_first() {
    let folder = tempfile::tempdir().unwrap();
    for era in ERAS {
        let mode = format!("tasks={}/{era}", folder.path().display());
        let first = start(&[era, &mode]).await;
        let keeper = TaskKeeper::default();
        let executor = ToolExecutor::builder(Arc::clone(&first.manager)).observer(keeper.clone());
        let executor = executor.build();
        let arguments = json!({ "text": "the end", "ms": 3000 });
        let call = executor.execute(ToolCall::new("fake__task", arguments.clone()));
        let stop = async {
            first
                .wait_until("the task runs", |_| keeper.0.lock().is_some())
                .await;
            executor.leave_tasks();
            first.servers.stop().await;
        };
        let (outcome, ()) = join(call, stop).await;
        assert!(!outcome.is_success());
        // As a journal has it.
        let kept = serde_json::to_string(&keeper.0.lock().take()).unwrap();

        let second = start(&[era, &mode]).await;
        let task: RemoteTask = serde_json::from_str(&kept).unwrap();
        let call = ToolCall::new("fake__task", arguments).resume(task);
        assert_eq!(second.execute(call).await["result"], "the end", "{era}");
        let methods = second.received_methods().await;
        let calls = methods
            .iter()
            .filter(|method| *method == "tools/call")
            .count();
        assert_eq!(calls, 1, "none but 'received': {methods:?}");
        second.finish().await;
    }
}
