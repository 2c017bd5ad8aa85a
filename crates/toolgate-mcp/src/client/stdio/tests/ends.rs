//! How servers end, and that no process survives.

use super::*;

#[tokio::test]
async fn a2_an_end_is_reported_once_with_status_and_stderr_after_all_messages() {
    for (then, status) in [
        ("exit 3", "exit status 3"),
        ("exit 0", "exit status 0"),
        ("kill -9 $$", "signal 9 (killed)"),
        ("kill -SEGV $$", "signal 11 (segmentation fault)"),
    ] {
        let mut server =
            TestStdioServer::sh(&says("last", &format!("echo 'why hunter2' >&2; {then}")));
        assert_eq!(server.next_method().await, "last");
        let SessionEnd {
            status: said,
            stderr,
        } = server.end().await;
        assert_eq!(
            (said.to_string().as_str(), &stderr[..]),
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
async fn a8_the_death_of_a_server_is_noticed_although_others_hold_its_pipes() {
    for hold in ["sleep 1000 &", "setsid sleep 1000 &"] {
        let mut server = TestStdioServer::sh(&says("ready", &format!("{hold} sleep 0.1; exit 4")));
        assert_eq!(server.next_method().await, "ready");
        assert_eq!(
            server.end().await.status.to_string(),
            "exit status 4",
            "{hold}"
        );
        server.close().await;
    }
}

#[tokio::test]
async fn a8_a_server_that_closes_a_pipe_is_ended() {
    let mut server = TestStdioServer::sh("exec >&-; exec sleep 1000");
    assert_eq!(server.end().await.status.to_string(), "closed its stdout");
    server.close().await;

    let mut server =
        TestStdioServer::sh(&format!("exec <&-; {}", says("ready", "exec sleep 1000")));
    assert_eq!(server.next_method().await, "ready");
    let sent = server.send("{}").await;
    assert_eq!(
        sent,
        Err(TransportError::NotSent(
            "MCP server 'test' does not read its stdin any more".into()
        ))
    );
    assert_eq!(server.end().await.status.to_string(), "closed its stdin");
    server.close().await;
}

#[tokio::test]
async fn a4_a_server_that_ignores_signals_is_killed_with_its_grandchildren() {
    let stubborn = "trap '' TERM HUP INT; while :; do sleep 1; done";
    let script = format!("sh -c \"{stubborn}\" & {}", says("ready", stubborn));
    let mut server = TestStdioServer::sh(&script);
    assert_eq!(server.next_method().await, "ready");
    let (mut first, second) = (server.stdio.close(), server.stdio.close());
    // Dropping the future of `close` doesn't interrupt the shutdown.
    assert!(
        timeout(Duration::from_millis(10), &mut first)
            .await
            .is_err()
    );
    drop(first);
    timeout(HANG, second).await.unwrap();
    assert_eq!(server.end().await.status.to_string(), "signal 9 (killed)");
    server.close().await;
}

#[tokio::test]
async fn a4_grandchildren_that_outlive_an_orderly_server_are_ended() {
    for hold in ["sleep 1000 &", "setsid sleep 1000 >/dev/null 2>&1 &"] {
        let mut server = TestStdioServer::sh(&format!("{hold} {}", says("ready", "exec cat")));
        assert_eq!(server.next_method().await, "ready");
        assert!(server.stdio.group.is_alive());
        server.close().await;
    }
}

/// A fake `npx` that writes the signals it gets to a file.
fn npx(folder: &std::path::Path, then: &str) -> ServerProgram {
    use std::os::unix::fs::PermissionsExt;
    let file = folder.join("npx");
    let told = folder.join("told").display().to_string();
    let script = format!(
        "#!/bin/sh\ntrap 'echo INT >> {told}' INT\ntrap 'echo TERM >> {told}' TERM\n{then}\n"
    );
    std::fs::write(&file, script).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    ServerProgram {
        command: file.display().to_string(),
        ..ServerProgram::default()
    }
}

/// An ignored SIGINT is inherited by children, and a shell ignores it for background scripts. A
/// handler, which `toolgate` installs too, is not inherited.
fn handle_interrupts() {
    use tokio::signal::unix::{SignalKind, signal};
    drop(signal(SignalKind::interrupt()).unwrap());
}

/// Cleans up for three seconds, which is longer than other servers get.
const INSTALLS: &str = "while ! [ -s $(dirname $0)/told ]; do sleep 0.1; done; sleep 3; echo done >> $(dirname $0)/told; exit 1";

fn signals_received(folder: &std::path::Path) -> String {
    std::fs::read_to_string(folder.join("told")).unwrap_or_default()
}

#[tokio::test]
async fn a_package_runner_is_asked_once_and_given_time_to_clean_up() {
    handle_interrupts();
    let folder = tempfile::tempdir().unwrap();
    let program = npx(folder.path(), &says("ready", INSTALLS));
    let mut server = TestStdioServer::start(&program, |_| {});
    assert_eq!(server.next_method().await, "ready");
    server.close().await;
    assert_eq!(signals_received(folder.path()), "INT\ndone\n");
}

#[tokio::test]
async fn a_package_runner_that_is_dropped_is_given_the_same_time() {
    handle_interrupts();
    let folder = tempfile::tempdir().unwrap();
    let program = npx(folder.path(), &says("ready", INSTALLS));
    let mut server = TestStdioServer::start(&program, |_| {});
    assert_eq!(server.next_method().await, "ready");
    let (exited, group) = (server.stdio.exited(), Arc::clone(&server.stdio.group));
    drop(server);
    timeout(HANG, exited.cancelled()).await.unwrap();
    assert!(!group.is_alive());
    assert_eq!(signals_received(folder.path()), "INT\ndone\n");
}

#[tokio::test]
async fn a_package_runner_that_has_connected_ends_like_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let program = npx(folder.path(), &says("ready", INSTALLS));
    let mut server = TestStdioServer::start(&program, |_| {});
    assert_eq!(server.next_method().await, "ready");
    server.stdio.mark_installed();
    server.close().await;
    assert_eq!(signals_received(folder.path()), "TERM\n");
}

#[test]
fn a_package_runner_is_not_killed_without_a_runtime() {
    let folder = tempfile::tempdir().unwrap();
    let program = npx(folder.path(), &says("ready", INSTALLS));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut server = runtime.block_on(async {
        handle_interrupts();
        let mut server = TestStdioServer::start(&program, |_| {});
        assert_eq!(server.next_method().await, "ready");
        server
    });
    let group = Arc::clone(&server.stdio.group);
    runtime.shutdown_background();
    server.events.close();
    drop(server);
    let begun = Instant::now();
    while group.is_alive() {
        assert!(begun.elapsed() < HANG, "processes are left");
        std::thread::yield_now();
    }
    assert_eq!(signals_received(folder.path()), "INT\ndone\n");
}

#[test]
fn a_dropped_server_is_killed_without_a_runtime() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut server = runtime.block_on(async {
        let mut server = TestStdioServer::sh(&says("ready", "setsid sleep 1000 & exec sleep 1000"));
        assert_eq!(server.next_method().await, "ready");
        server
    });
    let group = Arc::clone(&server.stdio.group);
    assert!(group.is_alive());
    runtime.shutdown_background();
    server.events.close();
    drop(server);
    let begun = Instant::now();
    while group.is_alive() {
        assert!(begun.elapsed() < HANG, "processes are left");
        std::thread::yield_now();
    }
}
