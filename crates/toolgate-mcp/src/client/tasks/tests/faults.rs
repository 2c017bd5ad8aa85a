//! Tasks of servers that fail.

use super::*;
use crate::client::transport::{SessionEnd, TransportError, UnreadableAnswer};

/// Fails the polls by `fault` until one of them was made so often, then the task is complete.
async fn with_faults(
    times: usize,
    fault: impl Fn() -> ScriptedReply + Send + Sync + 'static,
) -> (TaskTest, Value) {
    let polled = AtomicUsize::new(0);
    let test = TaskTest::modern(move |method, _| match method {
        "tools/call" => Answers(task("working", &json!({}))),
        "tasks/get" if polled.fetch_add(1, Ordering::Relaxed) < times => fault(),
        "tasks/get" => Answers(done()),
        _ => Answers(json!({})),
    });
    let test = test.await;
    let envelope = test.call().await;
    (test, envelope)
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_fails_is_tried_again() {
    let faults: [fn() -> ScriptedReply; 4] = [
        || ScriptedReply::Fails(TransportError::Interrupted("gone".into())),
        || ScriptedReply::Fails(TransportError::NotSent("gone".into())),
        || Refuses(-32603, "busy"),
        || ScriptedReply::Nothing,
    ];
    for fault in faults {
        let (test, envelope) = with_faults(10, fault).await;
        assert_eq!(envelope["result"], "done", "{envelope}");
        assert_eq!(test.count("tools/call"), 1);
        assert_eq!(test.count("tasks/get"), 11);
        let (test, envelope) = with_faults(usize::MAX, fault).await;
        assert_eq!(envelope["success"], false);
        assert_eq!(test.count("tasks/get"), 11);
        assert!((200..700).contains(&test.seconds()), "{}", test.seconds());
        settle().await;
        assert_eq!(test.count("tasks/cancel"), 1);
        // A server that is busy with its task isn't taken for one that is stuck.
        assert_eq!(test.count("ping"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_to_a_poll_does_not_cancel_the_task() {
    let polled = AtomicUsize::new(0);
    let test = TaskTest::modern(move |method, _| match method {
        "tasks/get" if polled.fetch_add(1, Ordering::Relaxed) == 0 => ScriptedReply::Nothing,
        "tasks/get" => Answers(done()),
        _ => Answers(task("working", &json!({}))),
    });
    let test = test.await;
    let late = async {
        tokio::time::sleep(Duration::from_millis(35_500)).await;
        let id = test.first_sent("tasks/get")["id"].clone();
        // Its kind of result is that of a new task.
        let result = task("working", &json!({}));
        test.server
            .deliver(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    };
    let (envelope, ()) = tokio::join!(test.call(), late);
    assert_eq!(envelope["result"], "done", "{envelope}");
    settle().await;
    assert_eq!(test.count("tasks/cancel"), 0);
}

#[tokio::test(start_paused = true)]
async fn what_will_not_get_better_ends_the_call_at_once() {
    let giant = || {
        ScriptedReply::Unreadable(UnreadableAnswer::TooLarge {
            bytes: 20,
            limit: 10,
        })
    };
    let (_, envelope) = with_faults(1, giant).await;
    assert_eq!(
        envelope["error"],
        "The result of 't' takes at least 20 bytes; the limit is 10"
    );
    let garbage = || ScriptedReply::Unreadable(UnreadableAnswer::Broken("no JSON".to_owned()));
    let (_, envelope) = with_faults(1, garbage).await;
    assert_eq!(
        envelope["error"],
        "The server of 't' sent an unreadable response"
    );
    let (_, envelope) = with_faults(1, || Refuses(-32601, "no method tasks/get")).await;
    assert_eq!(envelope["error"], "no method tasks/get");
    let (test, envelope) = with_faults(1, || Refuses(-32602, "Task not found")).await;
    assert_eq!(
        envelope["error"],
        "MCP server 'house' does not know the task of 't'"
    );
    assert_eq!(envelope["details"], "JSON-RPC error -32602: Task not found");
    settle().await;
    assert_eq!(test.count("tasks/cancel"), 0, "there is nothing to cancel");
}

/// A call whose server dies after ten seconds and comes back a minute later.
async fn reconnected(
    next: (Arc<ClientSession>, Arc<ScriptedServer>),
) -> (Value, Arc<ScriptedServer>) {
    let test = TaskTest::modern(polls(vec![task("working", &json!({}))])).await;
    let dying = async {
        tokio::time::sleep(Duration::from_secs(11)).await;
        test.server.die();
        test.link.set_connecting();
        tokio::time::sleep(Duration::from_secs(60)).await;
        test.link.set_up(next.0);
    };
    let (envelope, ()) = tokio::join!(test.call(), dying);
    settle().await;
    (envelope, next.1)
}

#[tokio::test(start_paused = true)]
async fn a_task_is_polled_again_when_its_server_is_back() {
    let (envelope, server) = reconnected(modern_session(polls(vec![done()]))).await;
    assert_eq!(envelope["result"], "done", "{envelope}");
    assert_eq!(server.methods(), ["tasks/get"]);

    let forgetful = modern_session(|_, _| Refuses(-32602, "Task not found"));
    let (envelope, server) = reconnected(forgetful).await;
    assert_eq!(
        envelope["error"],
        "MCP server 'house' does not know the task of 't'"
    );
    assert_eq!(server.methods(), ["tasks/get"]);

    let (envelope, server) = reconnected(legacy_session(polls(vec![done()]))).await;
    assert_eq!(
        envelope["error"],
        "The task of 't' can't be continued: it was created in MCP 2026-07-28, and its server 'house' now uses 2025-11-25"
    );
    assert!(server.methods().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stays_away_loses_the_task_after_a_while() {
    let test = TaskTest::modern(polls(vec![task("working", &json!({}))])).await;
    let dying = async {
        tokio::time::sleep(Duration::from_secs(11)).await;
        test.server.die();
        test.link
            .set_down("its server 'house' is not running", None);
    };
    let (envelope, ()) = tokio::join!(test.call(), dying);
    assert_eq!(
        envelope["error"],
        "The t service is currently unavailable: its server 'house' is not running"
    );
    assert!((200..500).contains(&test.seconds()), "{}", test.seconds());
}

#[tokio::test(start_paused = true)]
async fn a_call_is_cancelled_at_the_next_session_if_its_own_has_ended() {
    let test = TaskTest::modern(polls(vec![task("working", &json!({}))])).await;
    let call = tokio::spawn({
        let executor = test.executor.clone();
        async move { executor.execute(ToolCall::new("t", json!({}))).await }
    });
    tokio::time::sleep(Duration::from_secs(11)).await;
    test.server.die();
    test.link.set_connecting();
    settle().await;
    call.abort();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (session, next) = modern_session(|_, _| Answers(json!({})));
    test.link.set_up(session);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(next.methods(), ["tasks/cancel"]);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_connection_is_not_the_end_of_a_task() {
    let end = SessionEnd::default();
    let error = crate::client::session::SessionError::Stopped(end);
    let error = super::super::poll_error::PollError::new("house", "t", error);
    assert!(matches!(
        error,
        super::super::poll_error::PollError::Transient(_)
    ));
}
