use super::*;

fn add(manager: &ToolManager, name: &str) {
    manager.add(tool(name, |_, _| {
        Box::pin(async { Ok(ToolOutput::text("")) })
    }));
}

async fn later() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

fn changed() -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" })
}

#[tokio::test(start_paused = true)]
async fn a_session_has_one_stream_of_changes() {
    let manager = manager();
    let mcp = http(&manager);
    let caller = HttpCaller::with_session(&mcp, "2025-11-25").await;
    let mut events = TestEvents::new(caller.get().await);
    let first = events.raw().await.unwrap();
    assert_eq!(first, "id: 0-0\nretry: 1000\ndata: \n\n");
    assert_eq!(caller.get().await.status(), 409);
    let other = HttpCaller::with_session(&mcp, "2025-11-25").await;
    assert_eq!(other.get().await.status(), 200);

    for name in ["one", "two", "three"] {
        add(&manager, name);
    }
    let told = events.next().await.unwrap();
    assert_eq!((told.id.as_deref(), told.data), (Some("0-1"), changed()));
    // One event, and then only keep-alive comments.
    assert_eq!(events.raw().await.as_deref(), Some(": \n\n"));

    drop(events);
    let mut events = TestEvents::new(caller.get().await);
    assert_eq!(events.next().await.unwrap().id.as_deref(), Some("0-1"));
    assert_eq!(events.raw().await.as_deref(), Some(": \n\n"));
}

#[tokio::test(start_paused = true)]
async fn a_change_before_a_client_listens_is_announced_when_it_does() {
    let manager = manager();
    let mcp = http(&manager);
    let caller = HttpCaller::with_session(&mcp, "2025-11-25").await;
    add(&manager, "one");
    let mut events = TestEvents::new(caller.get().await);
    assert_eq!(events.message().await, changed());
    drop(events);
    add(&manager, "two");
    // Listing the tools makes the change known.
    caller.ask("tools/list", json!({})).await;
    let mut events = TestEvents::new(caller.get().await);
    events.next().await;
    assert_eq!(events.raw().await.as_deref(), Some(": \n\n"));
}

#[tokio::test(start_paused = true)]
async fn a_change_lost_with_the_connection_is_announced_again() {
    let manager = manager();
    let mcp = http(&manager);
    let caller = HttpCaller::with_session(&mcp, "2025-11-25").await;
    let mut broken = TestEvents::new(caller.get().await);
    broken.next().await;
    add(&manager, "one");
    assert_eq!(broken.message().await, changed());
    // The client never saw it; and its old connection is not yet known to be broken.
    let back = caller.with("last-event-id", "0-0");
    let mut events = TestEvents::new(back.get().await);
    let told = events.next().await.unwrap();
    assert_eq!((told.id.as_deref(), told.data), (Some("0-1"), changed()));
    assert_eq!(broken.next().await, None);
    drop(broken);
    assert_eq!(
        caller.get().await.status(),
        409,
        "the new one has the place"
    );
}

#[tokio::test(start_paused = true)]
async fn in_the_newer_era_subscribers_are_told_of_changes() {
    let manager = manager();
    let mcp = http(&manager);
    let caller = HttpCaller::modern(&mcp, "subscriptions/listen", "");
    let listen = |filter: Value| {
        let message =
            modern_request_message("subscriptions/listen", json!({ "notifications": filter }));
        let caller = caller.clone();
        async move { TestEvents::new(caller.post(message).await) }
    };
    let mut tools = listen(json!({ "toolsListChanged": true, "promptsListChanged": true })).await;
    let mut prompts = listen(json!({ "promptsListChanged": true })).await;
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": 1 });
    for (events, accepted) in [
        (&mut tools, json!({ "toolsListChanged": true })),
        (&mut prompts, json!({})),
    ] {
        let first = events.message().await;
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(first["params"]["notifications"], accepted);
        assert_eq!(first["params"]["_meta"], meta);
    }
    add(&manager, "one");
    let told = tools.message().await;
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_eq!(told["params"]["_meta"], meta);
    later().await;
    assert_eq!(prompts.raw().await.as_deref(), Some(": \n\n"));

    // An orderly end is answered.
    mcp.close(std::time::Duration::from_secs(1)).await;
    for mut events in [tools, prompts] {
        let end = events.message().await;
        assert_eq!(
            (&end["id"], &end["result"]["resultType"]),
            (&json!(1), &json!("complete"))
        );
        assert_eq!(events.next().await, None);
    }
    let json_only = caller.with("accept", "application/json");
    let message = modern_request_message("subscriptions/listen", json!({ "notifications": {} }));
    assert_eq!(json_only.post(message).await.status(), 503);
}

#[tokio::test]
async fn a_client_that_accepts_no_events_cannot_listen() {
    let mcp = http(&manager());
    let caller =
        HttpCaller::modern(&mcp, "subscriptions/listen", "").with("accept", "application/json");
    let message = modern_request_message("subscriptions/listen", json!({ "notifications": {} }));
    assert_eq!(caller.post(message).await.status(), 406);
}
