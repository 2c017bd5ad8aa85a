use super::*;

fn steps() -> Value {
    let params = json!({ "name": "steps", "_meta": { "progressToken": 7 } });
    request_message("tools/call", params)
}

fn kind(event: &TestEvent) -> String {
    match (&event.data["method"], &event.data["params"]["progress"]) {
        (Value::String(_), progress) => format!("progress {progress}"),
        _ if event.data.is_null() => "nothing".to_owned(),
        _ => event.data["result"]["content"][0]["text"].to_string(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_returning_client_gets_the_rest_of_its_answer() {
    let mcp = http(&manager());
    let caller = HttpCaller::with_session(&mcp, "2025-11-25").await;
    let mut events = TestEvents::new(caller.post(steps()).await);
    let primed = events.raw().await.unwrap();
    assert_eq!(primed, "id: 2-0\nretry: 1000\ndata: \n\n");
    assert_eq!(kind(&events.next().await.unwrap()), "progress 1.0");
    let last = events.next().await.unwrap().id.unwrap();
    drop(events);

    let expected = ["progress 3.0", "progress 4.0", "\"done\""];
    // While the call runs, and again when it has long ended.
    for _ in 0..2 {
        let back = caller.with("last-event-id", &last).get().await;
        let mut events = TestEvents::new(back);
        for expected in expected {
            assert_eq!(kind(&events.next().await.unwrap()), expected);
        }
        assert_eq!(events.next().await, None);
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    // From its beginning, if that is all that the client saw.
    let mut events = TestEvents::new(caller.with("last-event-id", "2-0").get().await);
    assert_eq!(kind(&events.next().await.unwrap()), "progress 1.0");
    // Another session can't resume it.
    let other = HttpCaller::with_session(&mcp, "2025-11-25").await;
    assert_eq!(other.with("last-event-id", &last).get().await.status(), 400);
}

#[tokio::test(start_paused = true)]
async fn a_reconnecting_client_replaces_its_broken_connection() {
    let mcp = http(&manager());
    let caller = HttpCaller::with_session(&mcp, "2025-11-25").await;
    let mut broken = TestEvents::new(caller.post(steps()).await);
    let primed = broken.next().await.unwrap();
    let mut events = TestEvents::new(
        caller
            .with("last-event-id", &primed.id.unwrap())
            .get()
            .await,
    );
    assert_eq!(kind(&events.next().await.unwrap()), "progress 1.0");
    assert_eq!(broken.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn older_clients_get_no_event_without_a_message() {
    let mcp = http(&manager());
    let caller = HttpCaller::with_session(&mcp, "2025-06-18").await;
    let mut events = TestEvents::new(caller.post(steps()).await);
    assert_eq!(kind(&events.next().await.unwrap()), "progress 1.0");
    let mut events = TestEvents::new(caller.get().await);
    assert_eq!(events.raw().await.as_deref(), Some(": \n\n"));
}

#[tokio::test(start_paused = true)]
async fn of_many_reports_the_oldest_go_and_the_answer_stays() {
    let manager = manager();
    manager.add(tool("chatter", |_, context| {
        Box::pin(async move {
            for done in 0..2000 {
                let message = Some("x".repeat(1000));
                context.report(&Progress {
                    done: f64::from(done),
                    message,
                    ..Progress::default()
                });
                tokio::task::yield_now().await;
            }
            Ok(ToolOutput::text("done"))
        })
    }));
    let mcp = http(&manager);
    let caller = HttpCaller::with_session(&mcp, "2025-11-25").await;
    let params = json!({ "name": "chatter", "_meta": { "progressToken": 7 } });
    let mut events = TestEvents::new(caller.post(request_message("tools/call", params)).await);
    let primed = events.next().await.unwrap().id.unwrap();
    // A client that does not read for a while.
    tokio::time::sleep(Duration::from_secs(10)).await;
    let text = text_of(caller.with("last-event-id", &primed).get().await).await;
    assert!((100_000..300_000).contains(&text.len()), "{}", text.len());
    assert!(text.trim_end().ends_with(r#""isError":false}}"#));
}

#[tokio::test(start_paused = true)]
async fn a_session_keeps_a_few_answers_only() {
    let mcp = http(&manager());
    let caller = HttpCaller::with_session(&mcp, "2025-11-25").await;
    let mut firsts = Vec::new();
    for _ in 0..20 {
        let mut events = TestEvents::new(caller.post(steps()).await);
        firsts.push(events.next().await.unwrap().id.unwrap());
        while events.next().await.is_some() {}
    }
    let mut kept = 0;
    for first in &firsts {
        kept += usize::from(caller.with("last-event-id", first).get().await.status() == 200);
    }
    assert_eq!(kept, 16);
    let last = caller.with("last-event-id", firsts.last().unwrap());
    assert_eq!(last.get().await.status(), 200);
}
