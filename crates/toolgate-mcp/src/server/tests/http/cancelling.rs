use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// Counts the calls of `hold` that have begun and ended.
#[derive(Default)]
struct HoldCounts {
    begun: AtomicUsize,
    ended: AtomicUsize,
}

struct HoldTool(ToolDefinition, Arc<HoldCounts>);

impl Tool for HoldTool {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn invoke<'a>(&'a self, _: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
        struct EndCounter<'a>(&'a HoldCounts);
        impl Drop for EndCounter<'_> {
            fn drop(&mut self) {
                self.0.ended.fetch_add(1, Ordering::Relaxed);
            }
        }
        Box::pin(async {
            self.1.begun.fetch_add(1, Ordering::Relaxed);
            let _ended = EndCounter(&self.1);
            let progress = Progress {
                done: 1.0,
                ..Progress::default()
            };
            context.report(&progress);
            std::future::pending().await
        })
    }
}

fn holding() -> (McpHttp, Arc<HoldCounts>) {
    let (manager, held) = (manager(), Arc::new(HoldCounts::default()));
    let definition = ToolDefinition::builder("hold", "…", json!({ "type": "object" }));
    manager.add(HoldTool(definition.build().unwrap(), Arc::clone(&held)));
    (http(&manager), held)
}

impl HoldCounts {
    async fn has_begun(&self) {
        while self.begun.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
    }

    /// Shorter than any limit of the call itself.
    async fn has_ended(&self) -> bool {
        tokio::time::sleep(Duration::from_secs(5)).await;
        self.ended.load(Ordering::Relaxed) == 1
    }
}

fn hold(token: Option<&str>) -> Value {
    json!({ "name": "hold", "_meta": { "progressToken": token } })
}

fn cancelled() -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } })
}

#[tokio::test(start_paused = true)]
async fn a_notification_stops_the_call_it_names_in_its_own_session_only() {
    let (mcp, held) = holding();
    let caller = HttpCaller::with_session(&mcp, "2025-11-25").await;
    let asking = caller.clone();
    let message = request_message("tools/call", json!({ "name": "hold" }));
    let answer = tokio::spawn(async move { text_of(asking.post(message).await).await });
    held.has_begun().await;
    // Another client has a request of the same number.
    let other = HttpCaller::with_session(&mcp, "2025-11-25").await;
    assert_eq!(other.post(cancelled()).await.status(), 202);
    assert!(!held.has_ended().await);
    assert_eq!(caller.post(cancelled()).await.status(), 202);
    assert!(held.has_ended().await);
    assert_eq!(
        answer.await.unwrap(),
        "",
        "what is cancelled is not answered"
    );
}

#[tokio::test(start_paused = true)]
async fn disconnecting_before_the_answer_cancels_the_call() {
    for modern in [false, true] {
        let (mcp, held) = holding();
        let (caller, message) = if modern {
            let message = modern_request_message("tools/call", json!({ "name": "hold" }));
            (HttpCaller::modern(&mcp, "tools/call", "hold"), message)
        } else {
            let message = request_message("tools/call", json!({ "name": "hold" }));
            (HttpCaller::with_session(&mcp, "2025-11-25").await, message)
        };
        let asking = tokio::spawn(async move { caller.post(message).await.status() });
        held.has_begun().await;
        asking.abort();
        assert!(held.has_ended().await, "modern: {modern}");
    }
}

#[tokio::test(start_paused = true)]
async fn in_the_newer_era_closing_the_stream_cancels_the_call() {
    let (mcp, held) = holding();
    let caller = HttpCaller::modern(&mcp, "tools/call", "hold");
    let answer = caller
        .post(modern_request_message("tools/call", hold(Some("t"))))
        .await;
    // It runs whether or not the client reads.
    held.has_begun().await;
    let mut events = TestEvents::new(answer);
    assert_eq!(events.message().await["method"], "notifications/progress");
    assert_eq!(held.ended.load(Ordering::Relaxed), 0);
    drop(events);
    assert!(held.has_ended().await);
}

#[tokio::test(start_paused = true)]
async fn in_the_older_era_a_lost_connection_does_not_cancel_a_call_that_can_be_resumed() {
    let (mcp, held) = holding();
    let caller = HttpCaller::with_session(&mcp, "2025-11-25").await;
    let answer = caller
        .post(request_message("tools/call", hold(Some("t"))))
        .await;
    let mut events = TestEvents::new(answer);
    assert_eq!(events.message().await["method"], "notifications/progress");
    drop(events);
    assert!(!held.has_ended().await);
    // The client says that it is no longer interested.
    caller.post(cancelled()).await;
    assert!(held.has_ended().await);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_saw_no_event_cannot_resume() {
    let (mcp, held) = holding();
    let caller = HttpCaller::with_session(&mcp, "2025-06-18").await;
    let answer = caller
        .post(request_message("tools/call", hold(Some("t"))))
        .await;
    held.has_begun().await;
    drop(answer);
    assert!(held.has_ended().await);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_session_stops_its_calls() {
    for token in [None, Some("t")] {
        let (mcp, held) = holding();
        let caller = HttpCaller::with_session(&mcp, "2025-11-25").await;
        let asking = caller.clone();
        let asking = tokio::spawn(async move {
            let answer = asking
                .post(request_message("tools/call", hold(token)))
                .await;
            text_of(answer).await
        });
        held.has_begun().await;
        assert_eq!(caller.send("DELETE", "").await.status(), 204);
        assert!(held.has_ended().await);
        let text = asking.await.unwrap();
        assert!(text.contains(r#""isError":true"#), "{text}");
        assert_eq!(caller.send("DELETE", "").await.status(), 404);
    }
}
