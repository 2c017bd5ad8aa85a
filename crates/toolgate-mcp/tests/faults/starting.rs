//! A6, A7, MC3, MC4, MC5: servers that can't be started, start late, or never answer.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_core::{FunctionTool, ToolCall, ToolError};
use toolgate_mcp::{ServerConnection, ServerSettings, ServerState};

use crate::fault_test::{FAKE, FaultTestBuilder, NEIGHBOR, within};

fn quick(plan: FaultTestBuilder) -> FaultTestBuilder {
    plan.retry(|retry| retry.base_delay = Duration::from_millis(100))
}

#[tokio::test]
async fn mc4_an_unstartable_program_is_explained_and_the_rest_continues() {
    let plan = FaultTestBuilder::new();
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
            ServerConnection::Stdio(program.clone()),
        ));
    }
    let test = plan.server(NEIGHBOR, &[]).start_settled().await;
    let log = test.log();
    for (name, _) in &broken {
        let reason = format!("Reason: Connection to stdio server '{name}' failed");
        assert!(log.contains(&reason), "{name}\n{log}");
    }
    assert!(
        log.contains("MCP connection failed after 3 attempts"),
        "{log}"
    );
    assert!(log.contains("no-such-program-anywhere"), "{log}");
    // The rest works: local tools, and tools of the other server.
    let clock = FunctionTool::new("clock", "d", async |_: Value, _| {
        Ok::<_, ToolError>("local")
    });
    test.manager.add(clock.unwrap());
    let local = test.execute(ToolCall::new("clock", json!({}))).await;
    assert_eq!(local["result"], "local");
    let echo = test
        .execute(ToolCall::new("echo", json!({ "text": "hello" })))
        .await;
    assert_eq!(echo["result"], "hello", "{echo}");
    for (name, _) in &broken {
        let envelope = test.call_on(name, "echo", json!({})).await;
        assert_eq!(envelope["error_kind"], "unavailable", "{envelope}");
    }
    test.finish().await;
}

#[tokio::test]
async fn mc4_the_zwave_server_names_its_broker_by_default() {
    let plan = FaultTestBuilder::new();
    let program = plan.path("zwave-mcp-server");
    std::fs::write(&program, "#!/bin/sh\necho 'no broker' >&2\nexit 1\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = plan.program(program.display().to_string());
    let settings = ServerSettings::new("zwave", ServerConnection::Stdio(program));
    let test = quick(plan).add(settings).start_settled().await;
    let block = "❌ Failed to initialize MCP tools after 3 attempts
   Reason: Connection to stdio server 'zwave' failed
   MCP Server stderr: no broker
   Check: MQTT broker running, zwave-mcp-server installed
⚠️ Continuing with local tools only (none)";
    assert!(test.log().contains(block), "{}", test.log());
    test.finish().await;
}

#[tokio::test]
async fn mc4_the_block_quotes_stderr() {
    let plan = quick(FaultTestBuilder::new()).settings(
        "zwave",
        &[
            "stderr=Traceback: no broker\\nat line 3\\n",
            "failing=1000:@/starts",
        ],
        |zwave| zwave.check = Some("the stick is plugged in".to_owned()),
    );
    let test = plan.start();
    for name in ["datetime", "search", "volume"] {
        test.manager.add(
            FunctionTool::new(name, "Local", async |_: serde_json::Value, _| {
                Ok::<_, toolgate_core::ToolError>("local")
            })
            .unwrap(),
        );
    }
    test.servers.start_all().await;
    let block = "❌ Failed to initialize MCP tools after 3 attempts\n   \
        Reason: Connection to stdio server 'zwave' failed\n   \
        MCP Server stderr: Traceback: no broker\n      at line 3\n   \
        Check: the stick is plugged in\n\
        ⚠️ Continuing with local tools only (datetime, search, volume)";
    let log = test.log();
    assert!(log.contains(block), "{log}");
    let starts = std::fs::metadata(test.folder.path().join("starts"))
        .unwrap()
        .len();
    assert_eq!(starts, 3);
    test.finish().await;
}

#[tokio::test]
async fn mc3_a_later_attempt_that_succeeds_says_which() {
    let test = quick(FaultTestBuilder::new())
        .server(FAKE, &["failing=1:@/starts"])
        .server(NEIGHBOR, &[])
        .start_settled()
        .await;
    let log = test.log();
    assert!(
        log.contains("MCP connection succeeded on attempt 2"),
        "{log}"
    );
    test.assert_works().await;
    test.finish().await;
}

#[tokio::test]
async fn mc4_a_server_that_comes_back_later_gets_its_tools_without_a_restart() {
    let test = quick(FaultTestBuilder::new())
        .retry(|retry| retry.max_delay = Duration::from_millis(400))
        .server(FAKE, &["failing=4:@/starts"])
        .server(NEIGHBOR, &[])
        .start_settled()
        .await;
    assert!(test.manager.find("fake__echo").is_none());
    test.wait_until("it is back", |test| {
        test.manager.find("fake__echo").is_some()
    })
    .await;
    test.assert_works().await;
    test.finish().await;
}

#[tokio::test]
async fn a_silent_server_times_out_and_names_the_setting() {
    let test = quick(FaultTestBuilder::new())
        .settings(FAKE, &["mute", "stderr=loading\\n"], |fake| {
            fake.start_timeout = Some(Duration::from_millis(300));
        })
        .server(NEIGHBOR, &[])
        .start_settled()
        .await;
    let log = test.log();
    assert!(log.contains("startTimeout"), "{log}");
    assert!(log.contains("loading"), "{log}");
    test.wait_until("it is ended", |test| test.processes().len() == 1)
        .await;
    test.finish().await;
}

#[tokio::test]
async fn mc5_a_slow_server_delays_nobody() {
    let tools =
        json!([{ "name": "alpha", "description": "d", "inputSchema": { "type": "object" } }]);
    let test = FaultTestBuilder::new()
        .file("tools", &tools)
        .settings(FAKE, &["mute"], |fake| {
            fake.start_timeout = Some(Duration::from_secs(600));
        })
        .server(NEIGHBOR, &["list=@/tools", "wait=300"])
        .start();
    // The slow server comes first in the configuration and could own this name too.
    within(Duration::from_secs(60), test.servers.wait_for_tool("alpha")).await;
    let envelope = test.execute(ToolCall::new("alpha", json!({}))).await;
    assert_eq!(envelope["success"], true, "{envelope}");
    let slow = &test.servers.status()[0];
    assert_eq!(slow.state, ServerState::Starting, "it is still waited for");
    test.finish().await;
}
