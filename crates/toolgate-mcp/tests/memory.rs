//! Memory use per server and per subscription. A separate test process, so that
//! nothing else is measured.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolgate_core::{ToolCall, ToolExecutor, ToolManager};
use toolgate_mcp::{
    McpServer, ServeOptions, ServerConnection, ServerProgram, ServerSettings, Servers,
    ServersOptions,
};

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
    start_with(count, &[]).await
}

/// Starts servers with these modes.
async fn start_with(count: usize, modes: &[&str]) -> (Servers, ToolExecutor) {
    let manager = Arc::new(ToolManager::new());
    let servers = Servers::new(Arc::clone(&manager), ServersOptions::new());
    let settings = (0..count).map(|n| {
        let program = ServerProgram {
            command: fakemcp::program().display().to_string(),
            args: modes.iter().map(|mode| (*mode).to_owned()).collect(),
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
async fn answers_of_any_size_take_bounded_memory() {
    let _alone = ALONE.lock().await;
    let (servers, executor) = start(1).await;
    let objects = format!(
        r#"{{"jsonrpc":"2.0","id":$ID,"result":{{"content":[],"x":[{}{{}}]}}}}"#,
        "{},".repeat(300_000)
    );
    for (what, tool, arguments) in [
        (
            "an unfinished response",
            "long_line",
            json!({ "bytes": 1_u64 << 30 }),
        ),
        (
            "a long line of junk",
            "long_line",
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
            "write_stderr",
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

/// Ten clients of one gateway with a thousand subscriptions each; each is notified
/// of its own resource.
#[tokio::test]
async fn ten_thousand_subscriptions_cost_less_than_a_hundred_megabytes() {
    const CLIENTS: usize = 10;
    const EACH: usize = 1000;
    let _alone = ALONE.lock().await;
    let folder = tempfile::tempdir().unwrap();
    let content = folder.path().join("content");
    let offered =
        json!({ "resources": [{ "uri": "x:0" }], "templates": [{ "uriTemplate": "x:{n}" }] });
    std::fs::write(&content, offered.to_string()).unwrap();
    for era in ["dual", "describe=1"] {
        let (servers, executor) =
            start_with(1, &[era, &format!("content={}", content.display())]).await;
        let server = McpServer::new(executor.clone(), ServeOptions::gateway("1.0.0"));
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            clients.push(SubscribedClient::new(&server).await);
        }
        clients[0].subscribe("x:0").await;
        let before = memory("VmRSS");
        for (first, client) in (1..).step_by(EACH).zip(&mut clients) {
            for n in first..first + EACH {
                client.subscribe(&format!("x:{n}")).await;
            }
        }
        let subscribed = async || {
            let call = ToolCall::new("server0__subscribed", json!({}));
            let all = executor.execute(call).await.to_envelope()["result"].take();
            let all: Vec<String> = serde_json::from_str(all.as_str().unwrap()).unwrap();
            all.len()
        };
        let started = Instant::now();
        while subscribed().await < CLIENTS * EACH + 1 {
            assert!(started.elapsed() < Duration::from_secs(200), "{era}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let grown = memory("VmRSS").saturating_sub(before);
        assert!(grown < 100 * MIB, "{era}: {grown} KiB");
        for (first, client) in (1..).step_by(EACH).zip(&mut clients) {
            for n in [first, first + EACH - 1] {
                let uri = format!("x:{n}");
                let call = ToolCall::new("server0__update", json!({ "uri": uri }));
                assert_eq!(executor.execute(call).await.to_envelope()["result"], "true");
                let update = client.next().await;
                assert_eq!(update["params"]["uri"], uri, "{era}");
            }
        }
        drop(clients);
        servers.stop().await;
    }
}

/// A client of 2025-11-25.
struct SubscribedClient {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
}

impl SubscribedClient {
    async fn new(server: &McpServer) -> Self {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let (reader, writer) = tokio::io::split(theirs);
        let server = server.clone();
        tokio::spawn(async move { server.serve(reader, writer, CancellationToken::new()).await });
        let (reader, writer) = tokio::io::split(ours);
        let lines = BufReader::new(reader).lines();
        let mut client = Self { lines, writer };
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        client.ask("initialize", hello).await;
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        client.write(&initialized).await;
        client
    }

    async fn subscribe(&mut self, uri: &str) {
        let done = self.ask("resources/subscribe", json!({ "uri": uri })).await;
        assert_eq!(done["result"], json!({}), "{done}");
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.write(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }))
            .await;
        self.next().await
    }

    async fn write(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.writer.write_all(line.as_bytes()).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        let line = self.lines.next_line().await.unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

/// From here on `VmHWM` is the peak of what comes.
fn reset_the_peak() {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
}
