//! Memory use per server. A separate test process, so that nothing else is measured.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::Mutex;
use tokio::time::Instant;
use toolgate_core::{ToolCall, ToolExecutor, ToolManager};
use toolgate_mcp::{ServerConnection, ServerProgram, ServerSettings, Servers, ServersOptions};

/// Serializes the measurements of this process.
static ALONE: Mutex<()> = Mutex::const_new(());

const MIB: u64 = 1024;

/// A figure of our own memory in KiB: `VmRSS` is the current use, `VmHWM` the peak.
fn memory(figure: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with(figure))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

async fn start(count: usize) -> (Servers, ToolExecutor) {
    let manager = Arc::new(ToolManager::new());
    let servers = Servers::new(Arc::clone(&manager), ServersOptions::new());
    let settings = (0..count).map(|n| {
        let program = ServerProgram {
            command: fakemcp::program().display().to_string(),
            ..ServerProgram::default()
        };
        let mut settings =
            ServerSettings::new(format!("server{n}"), ServerConnection::Stdio(program));
        settings.start_timeout = Some(Duration::from_secs(100));
        settings
    });
    servers.apply(settings.collect());
    servers.start_all().await;
    (servers, ToolExecutor::new(manager))
}

#[tokio::test]
async fn a_hundred_servers_are_ready_soon_and_cost_less_than_a_megabyte_each() {
    let _alone = ALONE.lock().await;
    // The first server pays one-time costs.
    let (first, _) = start(1).await;
    let before = memory("VmRSS");
    let started = Instant::now();
    let (servers, executor) = start(100).await;
    let ready = started.elapsed();
    let each = memory("VmRSS").saturating_sub(before) / 100;
    for n in 0..100 {
        let call = ToolCall::new(format!("server{n}__echo"), json!({ "text": "x" }));
        let outcome = executor.execute(call).await;
        assert!(outcome.is_success(), "{n}: {:?}", outcome.error());
    }
    assert!(ready < Duration::from_secs(300), "{ready:?}");
    assert!(each < MIB, "{each} KiB for each server");
    servers.stop().await;
    first.stop().await;
}

#[tokio::test]
async fn no_answer_of_any_size_fills_our_memory() {
    let _alone = ALONE.lock().await;
    let (servers, executor) = start(1).await;
    let objects = format!(
        r#"{{"jsonrpc":"2.0","id":$ID,"result":{{"content":[],"x":[{}{{}}]}}}}"#,
        "{},".repeat(300_000)
    );
    for (what, tool, arguments) in [
        (
            "an endless answer",
            "flood",
            json!({ "bytes": 1_u64 << 30 }),
        ),
        (
            "endless junk",
            "flood",
            json!({ "bytes": 256 << 20, "junk": true }),
        ),
        ("a large answer", "big", json!({ "bytes": 17 << 20 })),
        (
            "many small objects",
            "raw",
            json!({ "text": format!("{objects}\\n") }),
        ),
        (
            "a flood on stderr",
            "stderr",
            json!({ "bytes": 100_000_000, "text": "e".repeat(8192) }),
        ),
    ] {
        let before = memory("VmRSS");
        reset_the_peak();
        let call = ToolCall::new(format!("server0__{tool}"), arguments);
        executor.execute(call.timeout(Duration::from_secs(5))).await;
        let grown = memory("VmHWM").saturating_sub(before);
        assert!(grown < 64 * MIB, "{what}: {grown} KiB");
    }
    let call = ToolCall::new("server0__echo", json!({ "text": "still here" }));
    let outcome = executor.execute(call).await;
    assert_eq!(outcome.to_envelope()["result"], "still here");
    servers.stop().await;
}

/// From here on `VmHWM` is the peak of what comes.
fn reset_the_peak() {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
}
