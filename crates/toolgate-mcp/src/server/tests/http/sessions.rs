use tokio::runtime::Handle;

use super::*;

fn bounded(most: usize) -> McpHttp {
    server(&manager()).http(HttpOptions {
        max_sessions: most,
        ..HttpOptions::default()
    })
}

async fn is_alive(caller: &HttpCaller) -> bool {
    match caller
        .post(request_message("ping", json!({})))
        .await
        .status()
        .as_u16()
    {
        200 => true,
        404 => false,
        other => panic!("{other}"),
    }
}

async fn wait(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn an_unused_session_ends() {
    let mcp = bounded(10);
    let (used, unused) = (
        HttpCaller::with_session(&mcp, "2025-11-25").await,
        HttpCaller::with_session(&mcp, "2025-11-25").await,
    );
    let streaming = HttpCaller::with_session(&mcp, "2025-11-25").await;
    let stream = streaming.get().await;
    wait(20 * 60).await;
    assert!(is_alive(&used).await);
    wait(20 * 60).await;
    assert_eq!(mcp.session_count(), 2);
    assert!(is_alive(&used).await && !is_alive(&unused).await);
    // A stream is use, and so is its end.
    drop(stream);
    wait(20 * 60).await;
    assert!(is_alive(&streaming).await);
}

#[tokio::test(start_paused = true)]
async fn the_least_recently_used_session_is_evicted() {
    let mcp = bounded(3);
    let mut callers = Vec::new();
    for _ in 0..3 {
        callers.push(HttpCaller::with_session(&mcp, "2025-11-25").await);
        wait(1).await;
    }
    let _stream = callers[0].get().await;
    assert!(is_alive(&callers[1]).await);
    wait(1).await;
    let newest = HttpCaller::with_session(&mcp, "2025-11-25").await;
    assert_eq!(mcp.session_count(), 3);
    let alive = [
        is_alive(&callers[0]).await,
        is_alive(&callers[1]).await,
        is_alive(&callers[2]).await,
        is_alive(&newest).await,
    ];
    assert_eq!(alive, [true, true, false, true]);

    let _more = [callers[1].get().await, newest.get().await];
    let refused = HttpCaller::new(&mcp).post(initialize("2025-11-25")).await;
    assert_eq!(refused.status(), 503, "all of them are in use");
    assert_eq!(refused.headers()["retry-after"], "1");
}

#[tokio::test(start_paused = true)]
async fn a_client_with_many_sessions_evicts_only_its_own() {
    let mcp = bounded(10);
    let modest = HttpCaller::with_session(&mcp, "2025-11-25").await;
    let greedy = HttpCaller {
        owner: 2,
        ..HttpCaller::new(&mcp)
    };
    for _ in 0..50 {
        wait(1).await;
        greedy.post(initialize("2025-11-25")).await;
    }
    assert_eq!(mcp.session_count(), 10);
    assert!(is_alive(&modest).await);
}

#[tokio::test]
async fn no_two_sessions_have_ids_that_look_alike() {
    let mcp = bounded(1000);
    let mut ids = std::collections::HashSet::new();
    for _ in 0..200 {
        let answer = HttpCaller::new(&mcp).post(initialize("2025-11-25")).await;
        let id = answer.headers()["mcp-session-id"]
            .to_str()
            .unwrap()
            .to_owned();
        assert!(ids.insert(id[..8].to_owned()) && ids.insert(id[24..].to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_abandoned_sessions_leave_no_task() {
    let manager = manager();
    let mcp = server(&manager).http(HttpOptions::default());
    let before = Handle::current().metrics().num_alive_tasks();
    for n in 0..1000 {
        let caller = HttpCaller::with_session(&mcp, "2025-11-25").await;
        let call = json!({ "name": "steps", "_meta": { "progressToken": n } });
        match n % 4 {
            0 => drop(caller.get().await),
            1 => {
                let mut events = TestEvents::new(caller.get().await);
                events.next().await;
            }
            2 => drop(caller.post(request_message("tools/call", call)).await),
            _ => {
                let mut events =
                    TestEvents::new(caller.post(request_message("tools/call", call)).await);
                events.message().await;
            }
        }
    }
    assert_eq!(mcp.session_count(), 1000);
    wait(5).await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), before);
    wait(31 * 60).await;
    assert_eq!(mcp.session_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn at_the_end_quick_calls_are_answered_and_the_rest_is_stopped() {
    let mcp = bounded(10);
    let caller = HttpCaller::with_session(&mcp, "2025-11-25").await;
    let mut stream = TestEvents::new(caller.get().await);
    stream.next().await;
    let ask = |name: &'static str| {
        let caller = caller.clone();
        tokio::spawn(async move { caller.ask("tools/call", json!({ "name": name })).await })
    };
    let (quick, slow) = (ask("steps"), ask("sleep"));
    tokio::time::sleep(Duration::from_millis(500)).await;
    let started = tokio::time::Instant::now();
    mcp.close(std::time::Duration::from_secs(1)).await;
    assert!(started.elapsed() <= Duration::from_secs(2));
    assert_eq!(quick.await.unwrap()["result"]["isError"], false);
    assert_eq!(slow.await.unwrap()["result"]["isError"], true);
    assert_eq!(stream.next().await, None);
    assert_eq!(mcp.session_count(), 0);
    let refused = caller.post(request_message("ping", json!({}))).await;
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.headers()["retry-after"], "1");
}
