//! A4, J4: no process is left when a server stops, is stopped, or never starts.

use std::time::Duration;

use serde_json::json;
use toolgate_mcp::{ServerConnection, ServerSettings};

use crate::fault_test::{FAKE, FaultTest, FaultTestBuilder, NEIGHBOR, within};

#[tokio::test]
async fn stopping_kills_stubborn_children_and_grandchildren() {
    for modes in [
        &["deaf"][..],
        &["child"],
        &["deaf", "child"],
        &["deaf", "child=setsid"],
    ] {
        let test = FaultTest::start(modes).await;
        test.assert_works().await;
        let children = modes
            .iter()
            .filter(|mode| mode.starts_with("child"))
            .count();
        assert_eq!(test.processes().len(), 2 + children, "{modes:?}");
        test.finish().await;
    }
}

#[tokio::test]
async fn a_child_behind_a_shell_is_ended_with_it() {
    let plan = FaultTestBuilder::new();
    let mut program = plan.program("sh");
    let fake = fakemcp::program().display().to_string();
    program.args = ["-c", "\"$0\" \"$@\"; exit $?", &fake, "deaf", "child"]
        .map(str::to_owned)
        .to_vec();
    let test = plan
        .add(ServerSettings::new(FAKE, ServerConnection::Stdio(program)))
        .server(NEIGHBOR, &[])
        .start_settled()
        .await;
    test.assert_works().await;
    assert_eq!(
        test.processes().len(),
        4,
        "shell, server, its child, and the neighbor"
    );
    test.finish().await;
}

#[tokio::test]
async fn an_attempt_that_failed_leaves_nothing_behind() {
    let test = FaultTestBuilder::new()
        .settings(FAKE, &["deaf", "child", "mute"], |fake| {
            fake.start_timeout = Some(Duration::from_millis(300));
        })
        .retry(|retry| retry.base_delay = Duration::from_millis(100))
        .start_settled()
        .await;
    test.wait_no_processes().await;
    test.finish().await;
}

#[tokio::test]
async fn a_dead_process_is_noticed_while_its_child_holds_the_pipe() {
    for child in ["child", "child=setsid"] {
        let test = FaultTest::start(&[child]).await;
        let envelope = within(
            Duration::from_secs(10),
            test.call("die", json!({ "status": 3 })),
        )
        .await;
        assert_eq!(
            envelope["error"], "MCP server 'fake' stopped during the call (exit status 3)",
            "{child}"
        );
        test.finish().await;
    }
}

#[test]
fn a_server_outlives_the_thread_that_started_it() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_keep_alive(Duration::from_millis(1))
        .enable_all()
        .build()
        .unwrap();
    let (test, pid) = runtime.block_on(async {
        let handle = tokio::runtime::Handle::current();
        tokio::task::spawn_blocking(move || {
            handle.block_on(async {
                let test = FaultTest::start(&[]).await;
                let pid = test.answer("pid", json!({})).await;
                (test, pid)
            })
        })
        .await
        .unwrap()
    });
    runtime.block_on(async move {
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(test.answer("pid", json!({})).await, pid);
        test.finish().await;
    });
}

#[tokio::test]
async fn dropping_everything_leaves_nothing_behind() {
    let test = FaultTest::start(&["child"]).await;
    let mark = test.folder.path().display().to_string();
    drop(test);
    within(Duration::from_secs(60), async {
        while !fakemcp::processes(&mark).is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}
