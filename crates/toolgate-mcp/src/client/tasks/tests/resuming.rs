//! Calls that continue a task of an earlier run.

use std::time::SystemTime;

use super::*;

fn left(server: &str, revision: &str, expires: Option<SystemTime>) -> RemoteTask {
    RemoteTask {
        server: server.to_owned(),
        task_id: ID.to_owned(),
        revision: revision.to_owned(),
        expires,
    }
}

fn resume(task: RemoteTask) -> ToolCall {
    ToolCall::new("t", json!({})).resume(task)
}

#[tokio::test(start_paused = true)]
async fn a_resumed_call_polls_and_never_calls() {
    let modern = TaskTest::modern(polls(vec![task("working", &json!({})), done()])).await;
    let call = resume(left("house", MODERN, None));
    assert_eq!(modern.execute(call).await["result"], "done");
    assert_eq!(modern.server.methods(), ["tasks/get"; 2]);
    // It can be continued once more.
    assert_eq!(modern.announced.tasks(), [left("house", MODERN, None)]);

    let legacy = TaskTest::legacy("required", |method, _| match method {
        "tasks/get" => Answers(json!({ "taskId": ID, "status": "completed" })),
        _ => Answers(text("done")),
    });
    let legacy = legacy.await;
    let call = resume(left("house", LEGACY, None));
    assert_eq!(legacy.execute(call).await["result"], "done");
    assert_eq!(legacy.server.methods(), ["tasks/get", "tasks/result"]);
}

#[tokio::test(start_paused = true)]
async fn a_task_is_only_continued_where_it_was_created() {
    let test = TaskTest::modern(polls(vec![done()])).await;
    for (task, error) in [
        (
            left("garden", MODERN, None),
            "'t' is not a tool of MCP server 'garden', which has the task",
        ),
        (
            left("house", LEGACY, None),
            "The task of 't' can't be continued: it was created in MCP 2025-11-25, and its server 'house' now uses 2026-07-28",
        ),
        (
            left("house", "2024-11-05", None),
            "The task can't be continued: MCP 2024-11-05 has no tasks",
        ),
    ] {
        assert_eq!(test.execute(resume(task)).await["error"], error);
    }
    assert!(test.server.methods().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_expired_task_is_asked_for_once() {
    let expired = || left("house", MODERN, Some(SystemTime::UNIX_EPOCH));
    let test = TaskTest::modern(polls(vec![done()])).await;
    assert_eq!(test.execute(resume(expired())).await["result"], "done");
    let test = TaskTest::modern(|_, _| Refuses(-32602, "Task has expired")).await;
    let envelope = test.execute(resume(expired())).await;
    assert_eq!(
        envelope["error"],
        "MCP server 'house' does not know the task of 't'"
    );
    assert_eq!(test.server.methods(), ["tasks/get"]);
}

#[tokio::test(start_paused = true)]
async fn a_resumed_call_that_is_cancelled_cancels_the_task() {
    let test = TaskTest::modern(polls(vec![task("working", &json!({}))])).await;
    let call = test.execute(resume(left("house", MODERN, None)));
    assert!(
        tokio::time::timeout(Duration::from_secs(60), call)
            .await
            .is_err()
    );
    settle().await;
    assert_eq!(test.count("tasks/cancel"), 1);
}
