//! How tasks end: by themselves, by a limit, or because nobody waits any more.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_failed_or_cancelled_task_says_why() {
    let error = json!({ "code": -32603, "message": "API rate limit exceeded", "data": { "a": 1 } });
    let failing =
        json!({ "content": [{ "type": "text", "text": "no such file" }], "isError": true });
    for (end, expected) in [
        (
            task("failed", &json!({ "error": error })),
            "API rate limit exceeded",
        ),
        (
            task("failed", &json!({ "statusMessage": "out of paper" })),
            "The server could not complete the task of 't': out of paper",
        ),
        (
            task("failed", &json!({ "error": 5 })),
            "The server could not complete the task of 't'",
        ),
        (
            task("cancelled", &json!({})),
            "The server cancelled the task of 't'",
        ),
        (
            task("cancelled", &json!({ "statusMessage": "maintenance" })),
            "The server cancelled the task of 't': maintenance",
        ),
        (
            task("completed", &json!({ "result": failing })),
            "no such file",
        ),
    ] {
        let test = TaskTest::modern(polls(vec![end.clone()])).await;
        let envelope = test.call().await;
        assert_eq!(envelope["error"], expected, "{end}");
        assert_eq!(test.count("tasks/cancel"), 0, "it is over");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_over_at_once_is_polled_at_once() {
    let test = TaskTest::modern(|method, _| match method {
        "tools/call" => Answers(task("completed", &json!({}))),
        _ => Answers(done()),
    });
    let test = test.await;
    assert_eq!(test.call().await["result"], "done");
    assert_eq!(test.started.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn nonsense_about_a_task_ends_the_call() {
    let other = json!({ "taskId": "task-2" });
    for (answer, details) in [
        (task("riddle", &json!({})), "a task of an unknown status"),
        (json!({}), "a task without a usable id"),
        (json!("x"), "a task without a usable id"),
        (
            task("working", &json!({ "taskId": 5 })),
            "a task without a usable id",
        ),
        (task("completed", &other), "the state of another task"),
        (task("completed", &json!({})), "the result is not an object"),
        (
            task("completed", &json!({ "result": [] })),
            "the result is not an object",
        ),
        (
            task("completed", &json!({ "result": { "resultType": "task" } })),
            "a result of a task that is not complete",
        ),
        (
            task("input_required", &json!({})),
            "its task needs input, and doesn't say which",
        ),
        (
            task(
                "input_required",
                &json!({ "inputRequests": { "k".repeat(5000): form() } }),
            ),
            "a question of its task has an overlong key",
        ),
    ] {
        let test = TaskTest::modern(polls(vec![answer.clone()])).await;
        let envelope = test.call().await;
        let error = "The server of 't' sent an unreadable response";
        assert_eq!(envelope["error"], error, "{answer}");
        assert_eq!(envelope["details"], details);
    }
    for id in [json!(""), json!("x".repeat(2000)), json!(null)] {
        let test = TaskTest::modern(move |_, _| Answers(task("working", &json!({ "taskId": id }))));
        let envelope = test.await.call().await;
        assert_eq!(envelope["details"], "a task without a usable id");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_begins_with_nonsense_is_cancelled() {
    let test = TaskTest::modern(|_, _| Answers(task("riddle", &json!({})))).await;
    let envelope = test.call().await;
    assert_eq!(envelope["details"], "a task of an unknown status");
    settle().await;
    assert_eq!(test.server.methods(), ["tools/call", "tasks/cancel"]);
}

#[tokio::test(start_paused = true)]
async fn a_task_ends_with_its_lifetime_which_may_be_prolonged() {
    let lives = |ms: u64| task("working", &json!({ "ttlMs": ms }));
    for (answers, seconds) in [
        (vec![lives(12_000)], 12),
        (vec![lives(12_000), lives(12_000), lives(60_000)], 60),
        (vec![lives(0)], 5),
    ] {
        let test = TaskTest::modern(polls(answers)).await;
        let envelope = test.call().await;
        let error = envelope["error"].as_str().unwrap();
        assert!(
            error.starts_with("The task of 't' did not end within the "),
            "{error}"
        );
        assert_eq!(test.seconds(), seconds, "{error}");
        settle().await;
        assert_eq!(test.count("tasks/cancel"), 1);
    }
    // It is polled a last time when it expires.
    let test = TaskTest::modern(polls(vec![lives(7000), done()])).await;
    assert_eq!(test.call().await["result"], "done");
    assert_eq!(test.seconds(), 7);
}

#[tokio::test(start_paused = true)]
async fn the_limit_for_tasks_and_that_of_the_caller_end_a_task() {
    let endless = || modern_session(polls(vec![task("working", &json!({}))]));
    let limited = |limits: &mut Limits| limits.max_task = Duration::from_secs(1000);
    for (timeout, seconds) in [(None, 1000), (Some(100), 100), (Some(5000), 5000)] {
        let test = TaskTest::new(endless(), &json!({}), limited).await;
        let mut call = ToolCall::new("t", json!({}));
        if let Some(timeout) = timeout {
            call = call.timeout(Duration::from_secs(timeout));
        }
        let envelope = test.execute(call).await;
        assert_eq!(
            envelope["error"],
            format!("Tool 't' timed out after {seconds} s")
        );
        assert_eq!(test.seconds(), seconds);
        settle().await;
        assert_eq!(test.count("tasks/cancel"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_or_cancels_cancels_the_task() {
    let test = TaskTest::modern(polls(vec![task("working", &json!({}))])).await;
    let minute = Duration::from_secs(60);
    assert!(tokio::time::timeout(minute, test.call()).await.is_err());
    settle().await;
    assert_eq!(test.count("tasks/cancel"), 1);
    assert_eq!(test.first_sent("tasks/cancel")["params"]["taskId"], ID);
    assert_eq!(test.server.names().last().unwrap().as_deref(), Some(ID));
    let token = tokio_util::sync::CancellationToken::new();
    let call = ToolCall::new("t", json!({})).cancellation(token.clone());
    let cancel = async {
        tokio::time::sleep(minute).await;
        token.cancel();
    };
    let (envelope, ()) = tokio::join!(test.execute(call), cancel);
    assert_eq!(
        envelope["error"],
        "Tool 't' was cancelled before it answered"
    );
    settle().await;
    assert_eq!(test.count("tasks/cancel"), 2);
    // A shutdown waits for these cancellations.
    tokio::time::timeout(minute, test.link.tasks().ended())
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_left_to_its_server_is_not_cancelled() {
    let minute = Duration::from_secs(60);
    for is_dropped in [false, true] {
        let test = TaskTest::modern(polls(vec![task("working", &json!({}))])).await;
        let mut call = Box::pin(test.call());
        assert!(tokio::time::timeout(minute, &mut call).await.is_err());
        test.executor.leave_tasks();
        match is_dropped {
            true => drop(call),
            false => {
                let envelope = call.await;
                assert_eq!(envelope["error_kind"], "unavailable", "{envelope}");
            }
        }
        assert_eq!(test.seconds(), 60, "nothing waits for it");
        tokio::time::timeout(Duration::ZERO, test.link.tasks().ended())
            .await
            .unwrap();
        settle().await;
        assert_eq!(test.count("tasks/cancel"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_begins_after_its_call_was_cancelled_is_cancelled_too() {
    for modern in [true, false] {
        let script = |_: &str, _: &Value| ScriptedReply::Nothing;
        let (session, more, late) = match modern {
            true => (
                modern_session(script),
                json!({}),
                task("working", &json!({})),
            ),
            false => (
                legacy_session(script),
                json!({ "execution": { "taskSupport": "required" } }),
                json!({ "task": { "taskId": ID, "status": "working" } }),
            ),
        };
        let test = TaskTest::new(session, &more, |_| {}).await;
        assert!(
            tokio::time::timeout(Duration::from_secs(1), test.call())
                .await
                .is_err()
        );
        let id = test.first_sent("tools/call")["id"].clone();
        for _ in 0..3 {
            let message = json!({ "jsonrpc": "2.0", "id": id, "result": late });
            test.server.deliver(&message);
        }
        settle().await;
        assert_eq!(test.first_sent("tasks/cancel")["params"]["taskId"], ID);
        assert_eq!(test.count("tasks/cancel"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_stopped_for_good_ends_its_tasks_at_once() {
    let test = TaskTest::modern(polls(vec![task("working", &json!({}))])).await;
    let stop = async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        test.link.close();
    };
    let (envelope, ()) = tokio::join!(test.call(), stop);
    assert_eq!(
        envelope["error"],
        "The t service is currently unavailable: its server 'house' was stopped"
    );
    assert_eq!(test.seconds(), 60);
    test.link.tasks().ended().await;
    assert_eq!(test.count("tasks/cancel"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_gets_a_thousand_tasks_at_most() {
    let test = TaskTest::modern(polls(vec![task("working", &json!({}))])).await;
    let calls: Vec<_> = (0..super::super::MAX_TASKS)
        .map(|_| {
            let executor = test.executor.clone();
            tokio::spawn(async move { executor.execute(ToolCall::new("t", json!({}))).await })
        })
        .collect();
    while test.announced.tasks().len() < super::super::MAX_TASKS {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let envelope = test.call().await;
    assert_eq!(
        envelope["details"], "a task that was not asked for",
        "{envelope}"
    );
    calls[0].abort();
    test.announced.0.lock().clear();
    settle().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(
        tokio::time::timeout(Duration::from_secs(1), test.call())
            .await
            .is_err()
    );
    assert_eq!(test.announced.tasks().len(), 1, "there is room again");
    for call in calls {
        call.abort();
    }
}
