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
        let house = FaultTest::start(modes).await;
        house.assert_works().await;
        let children = modes
            .iter()
            .filter(|mode| mode.starts_with("child"))
            .count();
        assert_eq!(house.processes().len(), 2 + children, "{modes:?}");
        house.finish().await;
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
    let house = plan
        .add(ServerSettings::new(FAKE, ServerConnection::Stdio(program)))
        .server(NEIGHBOR, &[])
        .start_settled()
        .await;
    house.assert_works().await;
    assert_eq!(
        house.processes().len(),
        4,
        "shell, server, its child, and the neighbor"
    );
    house.finish().await;
}

#[tokio::test]
async fn an_attempt_that_failed_leaves_nothing_behind() {
    let house = FaultTestBuilder::new()
        .settings(FAKE, &["deaf", "child", "mute"], |fake| {
            fake.start_timeout = Some(Duration::from_millis(300));
        })
        .retry(|retry| retry.base_delay = Duration::from_millis(100))
        .start_settled()
        .await;
    house.wait_no_processes().await;
    house.finish().await;
}

#[tokio::test]
async fn a_dead_process_is_noticed_while_its_child_holds_the_pipe() {
    for child in ["child", "child=setsid"] {
        let house = FaultTest::start(&[child]).await;
        let envelope = within(
            Duration::from_secs(10),
            house.call("die", json!({ "status": 3 })),
        )
        .await;
        assert_eq!(
            envelope["error"], "MCP server 'fake' stopped during the call (exit status 3)",
            "{child}"
        );
        house.finish().await;
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
    let (house, pid) = runtime.block_on(async {
        let handle = tokio::runtime::Handle::current();
        tokio::task::spawn_blocking(move || {
            handle.block_on(async {
                let house = FaultTest::start(&[]).await;
                let pid = house.answer("pid", json!({})).await;
                (house, pid)
            })
        })
        .await
        .unwrap()
    });
    runtime.block_on(async move {
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(house.answer("pid", json!({})).await, pid);
        house.finish().await;
    });
}

#[tokio::test]
async fn dropping_everything_leaves_nothing_behind() {
    let house = FaultTest::start(&["child"]).await;
    let mark = house.folder.path().display().to_string();
    drop(house);
    within(Duration::from_secs(60), async {
        while !fakemcp::processes(&mark).is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}
