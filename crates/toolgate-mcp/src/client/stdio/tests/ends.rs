//! How servers end, and that nothing of them is left.

use super::*;

#[tokio::test]
async fn a2_an_end_is_told_once_with_status_and_stderr_after_what_was_said_before() {
    for (then, status) in [
        ("exit 3", "exit status 3"),
        ("exit 0", "exit status 0"),
        ("kill -9 $$", "signal 9 (killed)"),
        ("kill -SEGV $$", "signal 11 (segmentation fault)"),
    ] {
        let mut server = Server::sh(&says("last", &format!("echo 'why hunter2' >&2; {then}")));
        assert_eq!(server.told().await, "last");
        let End {
            status: said,
            stderr,
        } = server.end().await;
        assert_eq!(
            (said.as_str(), &stderr[..]),
            (status, &["why [REDACTED]".to_owned()][..])
        );
        timeout(HANG, server.stdio.close()).await.unwrap();
        assert_eq!(server.diagnostics.stderr_tail(), stderr);
        assert!(
            server.events.try_recv().is_err(),
            "something was told after the end"
        );
        server.close().await;
    }
}

#[tokio::test]
async fn a8_the_death_of_a_server_is_seen_although_others_hold_its_pipes() {
    for hold in ["sleep 1000 &", "setsid sleep 1000 &"] {
        let mut server = Server::sh(&says("ready", &format!("{hold} sleep 0.1; exit 4")));
        assert_eq!(server.told().await, "ready");
        assert_eq!(server.end().await.status, "exit status 4", "{hold}");
        server.close().await;
    }
}

#[tokio::test]
async fn a8_a_server_that_closes_a_pipe_is_ended() {
    let mut server = Server::sh("exec >&-; exec sleep 1000");
    assert_eq!(server.end().await.status, "closed its stdout");
    server.close().await;

    let mut server = Server::sh(&format!("exec <&-; {}", says("ready", "exec sleep 1000")));
    assert_eq!(server.told().await, "ready");
    let sent = server.send("{}").await;
    assert_eq!(
        sent,
        Err(TransportError::NotSent(
            "MCP server 'test' does not read its stdin any more".to_owned()
        ))
    );
    assert_eq!(server.end().await.status, "closed its stdin");
    server.close().await;
}

#[tokio::test]
async fn a4_a_server_that_will_not_end_is_killed_with_its_grandchildren() {
    let stubborn = "trap '' TERM HUP INT; while :; do sleep 1; done";
    let script = format!("sh -c \"{stubborn}\" & {}", says("ready", stubborn));
    let mut server = Server::sh(&script);
    assert_eq!(server.told().await, "ready");
    let (mut first, second) = (server.stdio.close(), server.stdio.close());
    // Whoever gives up waiting does not stop the stopping.
    assert!(
        timeout(Duration::from_millis(10), &mut first)
            .await
            .is_err()
    );
    drop(first);
    timeout(HANG, second).await.unwrap();
    assert_eq!(server.end().await.status, "signal 9 (killed)");
    server.close().await;
}

#[tokio::test]
async fn a4_grandchildren_that_outlive_an_orderly_server_are_ended() {
    for hold in ["sleep 1000 &", "setsid sleep 1000 >/dev/null 2>&1 &"] {
        let mut server = Server::sh(&format!("{hold} {}", says("ready", "exec cat")));
        assert_eq!(server.told().await, "ready");
        assert!(server.stdio.group.lives());
        server.close().await;
    }
}

#[test]
fn a_dropped_server_is_killed_without_a_runtime() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut server = runtime.block_on(async {
        let mut server = Server::sh(&says("ready", "setsid sleep 1000 & exec sleep 1000"));
        assert_eq!(server.told().await, "ready");
        server
    });
    let group = Arc::clone(&server.stdio.group);
    runtime.shutdown_background();
    server.events.close();
    assert!(group.lives());
    drop(server);
    let begun = Instant::now();
    while group.lives() {
        assert!(begun.elapsed() < HANG, "processes are left");
        std::thread::yield_now();
    }
}
