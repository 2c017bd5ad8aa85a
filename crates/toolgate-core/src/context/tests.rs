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
