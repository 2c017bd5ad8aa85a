//! What a running call knows, and when it times out.

use super::*;

fn context(idle: u64) -> CallContext {
    context_of(ToolCall::new("ask", serde_json::json!({})), idle)
}

fn context_of(mut call: ToolCall, idle: u64) -> CallContext {
    let trace = TraceContext::for_call(call.id, None);
    let limits = Limits::default();
    CallContext::new(
        &mut call,
        Duration::from_secs(idle),
        &limits,
        (trace, false),
        ToolExecutor::new(Arc::default()),
    )
}

#[tokio::test]
async fn callers_get_the_log_messages_that_they_want() {
    struct FromWarning(Mutex<Vec<LogMessage>>);

    impl LogHandler for FromWarning {
        fn level(&self) -> Option<LogLevel> {
            Some(LogLevel::Warning)
        }

        fn caller(&self) -> u64 {
            1
        }

        fn log(&self, message: LogMessage) {
            self.0.lock().push(message);
        }
    }

    let handler = Arc::new(FromWarning(Mutex::default()));
    let call = ToolCall::new("talk", serde_json::json!({}));
    let context = context_of(call.on_log(Arc::clone(&handler) as _), 1);
    for level in [LogLevel::Debug, LogLevel::Warning, LogLevel::Alert] {
        context.log(level, level.as_str());
    }
    let said = std::mem::take(&mut *handler.0.lock());
    let said: Vec<&Value> = said.iter().map(|message| &message.data).collect();
    assert_eq!(said, ["warning", "alert"]);
}

#[tokio::test(start_paused = true)]
async fn a_paused_call_resumes_with_its_remaining_time() {
    let (context, start) = (context(30), Instant::now());
    let expired = tokio::spawn({
        let context = context.clone();
        async move { context.wait_for_timeout().await }
    });
    tokio::time::sleep(Duration::from_secs(20)).await;
    let (first, second) = (context.pause_clock(), context.pause_clock());
    tokio::time::sleep(Duration::from_secs(3600)).await;
    drop(first);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(!expired.is_finished());
    drop(second);
    assert_eq!(expired.await.unwrap(), Duration::from_secs(30));
    assert_eq!(start.elapsed().as_secs(), 7200 + 30);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_became_a_task_ends_at_the_limit_for_tasks_or_at_its_callers() {
    let task = RemoteTask {
        server: "house".to_owned(),
        task_id: "1".to_owned(),
        revision: "2026-07-28".to_owned(),
        expires: None,
    };
    for (own, seconds) in [(None, 86_400), (Some(90), 90)] {
        let mut call = ToolCall::new("ask", serde_json::json!({}));
        call.timeout = own.map(Duration::from_secs);
        let (context, start) = (context_of(call, 30), Instant::now());
        let expired = tokio::spawn({
            let context = context.clone();
            async move { context.wait_for_timeout().await }
        });
        tokio::time::sleep(Duration::from_secs(20)).await;
        context.announce_task(&task);
        assert_eq!(expired.await.unwrap(), Duration::from_secs(seconds));
        assert_eq!(start.elapsed().as_secs(), seconds);
    }
}

fn progress(done: f64) -> Progress {
    Progress {
        done,
        ..Progress::default()
    }
}

/// Reports every 20 s until the call times out. Returns the exceeded limit and the time it took.
async fn report_until_timeout(context: &CallContext) -> (u64, u64) {
    let start = Instant::now();
    let reporting = async {
        loop {
            tokio::time::sleep(Duration::from_secs(20)).await;
            context.report(&progress(1.0));
        }
    };
    let limit = tokio::select! {
        limit = context.wait_for_timeout() => limit,
        never = reporting => never,
    };
    (limit.as_secs(), start.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn a_call_that_became_its_callers_task_ends_at_the_limit_for_tasks() {
    for (own, is_task, seconds) in [
        (None, false, 150),
        (None, true, 86_400),
        (Some(90), true, 90),
    ] {
        let handle = TaskHandle::default();
        let mut call = ToolCall::new("ask", serde_json::json!({})).task_handle(handle.clone());
        call.timeout = own.map(Duration::from_secs);
        if is_task {
            handle.become_task();
        }
        let context = context_of(call, 30);
        let ended = report_until_timeout(&context).await;
        assert_eq!(ended, (seconds, seconds), "{own:?} {is_task}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_may_become_a_task_right_before_its_hard_limit() {
    let handle = TaskHandle::default();
    let call = ToolCall::new("ask", serde_json::json!({})).task_handle(handle.clone());
    let (context, start) = (context_of(call, 30), Instant::now());
    let expired = tokio::spawn({
        let context = context.clone();
        async move { context.wait_for_timeout().await }
    });
    for _ in 0..7 {
        tokio::time::sleep(Duration::from_secs(20)).await;
        context.report(&progress(1.0));
    }
    tokio::time::sleep(Duration::from_secs(9)).await;
    handle.become_task();
    // Without progress its timeout counts, from the last report on.
    assert_eq!(expired.await.unwrap(), Duration::from_secs(30));
    assert_eq!(start.elapsed().as_secs(), 140 + 30);
}

#[tokio::test(start_paused = true)]
async fn calls_that_a_task_makes_have_the_limit_for_tasks_too() {
    let manager = Arc::new(crate::ToolManager::new());
    let schema = || serde_json::json!({ "type": "object", "properties": {} });
    let inner = async |_: Value, context: CallContext| {
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_secs(20)).await;
            context.report(&progress(1.0));
        }
        Ok::<_, crate::ToolError>("done")
    };
    let outer = async |_: Value, context: CallContext| {
        let call = ToolCall::new("inner", serde_json::json!({}));
        Ok::<_, crate::ToolError>(context.execute(call).await.to_envelope())
    };
    let named = |name| crate::ToolDefinition::builder(name, "Does it", schema());
    manager.add(crate::FunctionTool::with_definition(named("inner"), inner).unwrap());
    manager.add(crate::FunctionTool::with_definition(named("outer"), outer).unwrap());
    let executor = ToolExecutor::new(manager);
    for is_task in [false, true] {
        let handle = TaskHandle::default();
        if is_task {
            handle.become_task();
        }
        let call = ToolCall::new("outer", serde_json::json!({})).task_handle(handle);
        let envelope = executor.execute(call).await.to_envelope();
        assert_eq!(envelope["result"]["success"], is_task, "{envelope}");
    }
}

#[tokio::test]
async fn a_call_left_to_its_server_is_not_recorded_as_ended() {
    #[derive(Clone, Default)]
    struct LeftCalls(Arc<Mutex<Vec<bool>>>);

    impl crate::Observer for LeftCalls {
        fn finished<'a>(
            &'a self,
            record: &'a crate::CallRecord,
        ) -> Option<futures::future::BoxFuture<'a, ()>> {
            self.0.lock().push(record.left_to_server);
            None
        }
    }

    let manager = Arc::new(crate::ToolManager::new());
    let schema = serde_json::json!({ "type": "object", "properties": {} });
    let definition = crate::ToolDefinition::builder("far", "Waits for a server", schema);
    let wait = async |_: Value, context: CallContext| {
        context.leave_requested().await;
        context.leave_to_server();
        Err::<&str, _>(crate::ToolError::unavailable("far", "we are stopping"))
    };
    manager.add(crate::FunctionTool::with_definition(definition, wait).unwrap());
    let left = LeftCalls::default();
    let executor = ToolExecutor::builder(manager)
        .observer(left.clone())
        .build();
    let handle = TaskHandle::default();
    let call = || ToolCall::new("far", serde_json::json!({}));
    let stop = CancellationToken::new();
    let both = futures::future::join(
        executor.execute(call().task_handle(handle.clone())),
        executor.execute(call().cancellation(stop.clone())),
    );
    let telling = async {
        tokio::task::yield_now().await;
        handle.request_leave();
        tokio::task::yield_now().await;
        assert_eq!(*left.0.lock(), [true], "only the call of this handle");
        // What is cancelled at the same time is left too.
        executor.leave_tasks();
        stop.cancel();
    };
    let ((one, two), ()) = futures::future::join(both, telling).await;
    for outcome in [one, two] {
        assert_eq!(
            outcome.result.unwrap_err().kind(),
            crate::ErrorKind::Unavailable
        );
    }
    assert_eq!(*left.0.lock(), [true, true]);
}
