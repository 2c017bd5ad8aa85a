//! A6, A7, MC3, MC4, MC5: servers that can not be started, start late, or say nothing.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use serde_json::json;
use toolgate_core::FunctionTool;
use toolgate_mcp::{Connection, ServerSettings};

use crate::house::{FAKE, NEIGHBOUR, Plan};

fn quick(plan: Plan) -> Plan {
    plan.retry(|retry| retry.base_delay = Duration::from_millis(100))
}

#[tokio::test]
async fn mc4_a_program_that_can_not_be_started_is_explained_and_the_rest_goes_on() {
    let plan = Plan::new();
    let file = |name: &str, text: &str, mode: u32| {
        let path = plan.path(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path.display().to_string()
    };
    let forbidden = file("forbidden", "#!/bin/sh\n", 0o644);
    let shebang = file("shebang", "#!/no/such/interpreter\n", 0o755);
    let mut nowhere = plan.program(fakemcp::program().display().to_string());
    nowhere.cwd = Some(plan.path("no-such-folder"));
    let broken = [
        ("missing", plan.program("no-such-program-anywhere")),
        ("absent", plan.program("/no/such/program")),
        ("forbidden", plan.program(forbidden)),
        ("shebang", plan.program(shebang)),
        ("nowhere", nowhere),
    ];
    let mut plan = quick(plan);
    for (name, program) in &broken {
        plan = plan.add(ServerSettings::new(
            *name,
            Connection::Stdio(program.clone()),
        ));
    }
    let house = plan.server(NEIGHBOUR, &[]).settled().await;
    let log = house.log();
    for (name, _) in &broken {
        let reason = format!("Reason: Connection to stdio server '{name}' failed");
        assert!(log.contains(&reason), "{name}\n{log}");
    }
    assert!(
        log.contains("MCP connection failed after 3 attempts"),
        "{log}"
    );
    assert!(log.contains("no-such-program-anywhere"), "{log}");
    house.end().await;
}

#[tokio::test]
async fn mc4_the_block_has_what_the_server_said_on_stderr() {
    let plan = quick(Plan::new()).settings(
        "zwave",
        &[
            "stderr=Traceback: no broker\\nat line 3\\n",
            "failing=1000:@/starts",
        ],
        |zwave| zwave.check = Some("MQTT broker running, zwave-mcp-server installed".to_owned()),
    );
    let house = plan.open();
    for name in ["datetime", "search", "volume"] {
        house.manager.add(
            FunctionTool::new(name, "Local", async |_: serde_json::Value, _| {
                Ok::<_, toolgate_core::ToolError>("local")
            })
            .unwrap(),
        );
    }
    house.servers.settled().await;
    let block = "❌ Failed to initialize MCP tools after 3 attempts\n   \
        Reason: Connection to stdio server 'zwave' failed\n   \
        MCP Server stderr: Traceback: no broker\n      at line 3\n   \
        Check: MQTT broker running, zwave-mcp-server installed\n\
        ⚠️ Continuing with local tools only (datetime, search, volume)";
    let log = house.log();
    assert!(log.contains(block), "{log}");
    let starts = std::fs::metadata(house.folder.path().join("starts"))
        .unwrap()
        .len();
    assert_eq!(starts, 3);
    house.end().await;
}

#[tokio::test]
async fn mc3_a_later_attempt_that_succeeds_says_which() {
    let house = quick(Plan::new())
        .server(FAKE, &["failing=1:@/starts"])
        .server(NEIGHBOUR, &[])
        .settled()
        .await;
    let log = house.log();
    assert!(
        log.contains("MCP connection succeeded on attempt 2"),
        "{log}"
    );
    house.works().await;
    house.end().await;
}

#[tokio::test]
async fn mc4_a_server_that_comes_back_later_gets_its_tools_without_a_restart() {
    let house = quick(Plan::new())
        .retry(|retry| retry.max_delay = Duration::from_millis(400))
        .server(FAKE, &["failing=4:@/starts"])
        .server(NEIGHBOUR, &[])
        .settled()
        .await;
    assert!(house.manager.find("fake__echo").is_none());
    house
        .until("it is back", |house| {
            house.manager.find("fake__echo").is_some()
        })
        .await;
    house.works().await;
    house.end().await;
}

#[tokio::test]
async fn a_server_that_never_answers_is_ended_and_the_key_to_raise_is_named() {
    let house = quick(Plan::new())
        .settings(FAKE, &["mute", "stderr=loading\\n"], |fake| {
            fake.start_timeout = Duration::from_millis(300);
        })
        .server(NEIGHBOUR, &[])
        .settled()
        .await;
    let log = house.log();
    assert!(log.contains("startTimeout"), "{log}");
    assert!(log.contains("loading"), "{log}");
    house
        .until("it is ended", |house| house.processes().len() == 1)
        .await;
    house.end().await;
}

#[tokio::test]
async fn mc5_a_slow_server_delays_nobody() {
    let house = Plan::new()
        .server(FAKE, &["wait=3000"])
        .server(NEIGHBOUR, &[])
        .open();
    house
        .until("the neighbour is up", |house| {
            house.manager.find("neighbour__echo").is_some()
        })
        .await;
    assert!(
        house.manager.find("fake__echo").is_none(),
        "the slow one is not there yet"
    );
    let envelope = house
        .call_of(NEIGHBOUR, "echo", json!({ "text": "x" }))
        .await;
    assert_eq!(envelope["result"], "x");
    house.servers.settled().await;
    house.works().await;
    house.end().await;
}
