//! A4, J4: what is left behind when a server stops, is stopped, or never starts.

use std::time::Duration;

use serde_json::json;
use toolgate_mcp::{Connection, ServerSettings};

use crate::house::{FAKE, House, NEIGHBOUR, Plan, within};

#[tokio::test]
async fn stopping_ends_children_that_listen_to_nothing_and_theirs() {
    for modes in [
        &["deaf"][..],
        &["child"],
        &["deaf", "child"],
        &["deaf", "child=setsid"],
    ] {
        let house = House::with(modes).await;
        house.works().await;
        let children = modes
            .iter()
            .filter(|mode| mode.starts_with("child"))
            .count();
        assert_eq!(house.processes().len(), 2 + children, "{modes:?}");
        house.end().await;
    }
}

#[tokio::test]
async fn a_child_behind_a_shell_is_ended_with_it() {
    let plan = Plan::new();
    let mut program = plan.program("sh");
    let fake = fakemcp::program().display().to_string();
    program.args = ["-c", "\"$0\" \"$@\"; exit $?", &fake, "deaf", "child"]
        .map(str::to_owned)
        .to_vec();
    let house = plan
        .add(ServerSettings::new(FAKE, Connection::Stdio(program)))
        .server(NEIGHBOUR, &[])
        .settled()
        .await;
    house.works().await;
    assert_eq!(
        house.processes().len(),
        4,
        "shell, server, its child, and the neighbour"
    );
    house.end().await;
}

#[tokio::test]
async fn an_attempt_that_failed_leaves_nothing_behind() {
    let house = Plan::new()
        .settings(FAKE, &["deaf", "child", "mute"], |fake| {
            fake.start_timeout = Some(Duration::from_millis(300));
        })
        .retry(|retry| retry.base_delay = Duration::from_millis(100))
        .settled()
        .await;
    house.nobody_left().await;
    house.end().await;
}

#[tokio::test]
async fn a_leader_that_dies_while_its_child_holds_the_pipe_is_seen_at_once() {
    for child in ["child", "child=setsid"] {
        let house = House::with(&[child]).await;
        let envelope = within(
            Duration::from_secs(10),
            house.call("die", json!({ "status": 3 })),
        )
        .await;
        assert_eq!(
            envelope["error"], "MCP server 'fake' stopped during the call (exit status 3)",
            "{child}"
        );
        house.end().await;
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
                let house = House::with(&[]).await;
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
        house.end().await;
    });
}

#[tokio::test]
async fn dropping_everything_leaves_nothing_behind() {
    let house = House::with(&["child"]).await;
    let mark = house.folder.path().display().to_string();
    drop(house);
    within(Duration::from_secs(60), async {
        while !fakemcp::processes(&mark).is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}
