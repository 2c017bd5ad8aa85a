//! Messages through the pipes of a server.

use std::collections::BTreeSet;

use rustix::process::{Signal, kill_process};

use super::*;

#[tokio::test]
async fn messages_go_there_and_back() {
    let mut server = TestStdioServer::sh("cat");
    for number in 0..100 {
        let text = format!(r#"{{"jsonrpc":"2.0","method":"m{number}"}}"#);
        server.send(&text).await.unwrap();
    }
    for number in 0..100 {
        assert_eq!(server.next_method().await, format!("m{number}"));
    }
    timeout(HANG, server.stdio.close()).await.unwrap();
    // The end of stdin was enough; no signal was needed.
    assert_eq!(server.end().await.status.to_string(), "exit status 0");
    assert_eq!(
        server.send("{}").await,
        Err(TransportError::NotSent(
            "MCP server 'test' is not running any more".into()
        ))
    );
    server.close().await;
}

#[tokio::test]
async fn a8_a_server_that_never_reads_blocks_only_its_own_calls() {
    let mut server = TestStdioServer::sh(&says("ready", "exec sleep 1000"));
    assert_eq!(server.next_method().await, "ready");
    let much = "x".repeat(1024 * 1024);
    for _ in 0..3 {
        let sent = timeout(Duration::from_millis(50), server.send(&much)).await;
        assert!(sent.is_err(), "{sent:?}");
    }
    // A sender that still waits when the server dies gets an error.
    let stdio = Arc::clone(&server.stdio);
    let waiting = tokio::spawn(async move { stdio.stdin.send(vec![b'y'; 10]).await });
    tokio::task::yield_now().await;
    kill_process(server.stdio.group.leader(), Signal::KILL).unwrap();
    assert_eq!(server.end().await.status.to_string(), "signal 9 (killed)");
    let told = timeout(HANG, waiting).await.unwrap().unwrap();
    assert!(matches!(told, Err(TransportError::NotSent(_))), "{told:?}");
    server.close().await;
}

#[tokio::test]
async fn a_sender_that_is_not_polled_does_not_keep_a_server_alive() {
    let mut server = TestStdioServer::sh(&says("ready", "exec sleep 1000"));
    assert_eq!(server.next_method().await, "ready");
    let much = "x".repeat(1024 * 1024);
    let mut held = Box::pin(server.send(&much));
    assert!(timeout(Duration::from_millis(50), &mut held).await.is_err());
    timeout(HANG, server.stdio.close()).await.unwrap();
    let told = held.await;
    assert!(
        matches!(told, Err(TransportError::Interrupted(_))),
        "{told:?}"
    );
    assert!(matches!(
        server.send("{}").await,
        Err(TransportError::NotSent(_))
    ));
    assert_eq!(
        server.end().await.status.to_string(),
        "signal 15 (terminated)"
    );
    server.close().await;
}

#[tokio::test]
async fn a_cancelled_sender_leaves_the_stream_intact() {
    // Reads nothing until a file appears, then everything.
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let script = format!(
        "until test -e '{}'; do sleep 0.01; done; exec cat",
        go.display()
    );
    let mut server = TestStdioServer::sh(&script);
    let half = format!(
        r#"{{"jsonrpc":"2.0","method":"half","params":["{}"]}}"#,
        "x".repeat(200_000)
    );
    let sent = timeout(Duration::from_millis(50), server.send(&half)).await;
    assert!(sent.is_err());
    let never = timeout(Duration::from_millis(50), server.send(&note("never"))).await;
    assert!(never.is_err());
    std::fs::write(&go, "").unwrap();
    server.send(&note("next")).await.unwrap();
    assert_eq!(server.next_method().await, "half");
    assert_eq!(server.next_method().await, "next");
    server.close().await;
}

#[tokio::test]
async fn messages_of_many_senders_are_not_mixed() {
    let mut server = TestStdioServer::sh("exec cat");
    let send = |number: usize| {
        let stdio = Arc::clone(&server.stdio);
        let filler = "x".repeat(number * 1000);
        let text =
            format!("{{\"jsonrpc\":\"2.0\",\"method\":\"m{number}\",\"params\":[\"{filler}\"]}}\n");
        tokio::spawn(async move { stdio.stdin.send(text.into_bytes()).await })
    };
    let senders: Vec<_> = (0..100).map(send).collect();
    let mut told = BTreeSet::new();
    for _ in 0..100 {
        told.insert(server.next_method().await);
    }
    assert_eq!(told.len(), 100);
    for sender in senders {
        sender.await.unwrap().unwrap();
    }
    assert_eq!(server.diagnostics.output().stray_line_count, 0);
    server.close().await;
}
