//! What a read and a prompt cost beside a call of a tool, from an MCP client through the gateway to
//! a server that runs as a child process, and back.
//!
//! `cargo bench -p toolgate-mcp`; the fake server itself takes a little longer for a read and a
//! prompt than for its tool, because it looks whether its file was replaced.
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot go on says where"
)]

use std::sync::Arc;
use std::time::Duration;

use divan::Bencher;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use toolgate_core::{ToolExecutor, ToolManager};
use toolgate_mcp::{
    McpServer, ServeOptions, ServerConnection, ServerProgram, ServerSettings, Servers,
    ServersOptions,
};

fn main() {
    divan::main();
}

/// A client that waits for the answer to each of its requests.
struct Client {
    lines: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
    _servers: Servers,
    _folder: tempfile::TempDir,
}

impl Client {
    async fn start(era: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let content = folder.path().join("content");
        let offered = json!({ "resources": [{ "uri": "x:1" }], "prompts": [{ "name": "p" }] });
        std::fs::write(&content, offered.to_string()).unwrap();
        let mut program = ServerProgram {
            command: fakemcp::program().display().to_string(),
            args: vec![format!("content={}", content.display())],
            ..ServerProgram::default()
        };
        program
            .args
            .extend((era == "modern").then(|| era.to_owned()));
        let manager = Arc::new(ToolManager::new());
        let servers = Servers::new(Arc::clone(&manager), ServersOptions::new());
        let mut settings = ServerSettings::new("s", ServerConnection::Stdio(program));
        settings.start_timeout = Some(Duration::from_secs(60));
        servers.apply(vec![settings]);
        servers.start_all().await;
        let executor = ToolExecutor::builder(manager).without_observers().build();
        let server = McpServer::new(executor, ServeOptions::gateway("1.0.0"));
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (reader, writer) = tokio::io::split(theirs);
        tokio::spawn(async move { server.serve(reader, writer, CancellationToken::new()).await });
        let (reader, writer) = tokio::io::split(ours);
        let mut client = Self {
            lines: BufReader::new(reader).lines(),
            writer,
            _servers: servers,
            _folder: folder,
        };
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "bench", "version": "1" },
        });
        client.ask(&request("initialize", &hello)).await;
        client
    }

    async fn ask(&mut self, request: &str) -> String {
        self.writer.write_all(request.as_bytes()).await.unwrap();
        self.lines.next_line().await.unwrap().unwrap()
    }
}

fn request(method: &str, params: &Value) -> String {
    format!(
        "{}\n",
        json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
    )
}

/// Measures one request; `answer` is part of what must come back.
fn measure(bencher: Bencher<'_, '_>, era: &str, request: &str, answer: &str) {
    let runtime = Runtime::new().unwrap();
    let mut client = runtime.block_on(Client::start(era));
    let first = runtime.block_on(client.ask(request));
    assert!(first.contains(answer), "{first}");
    bencher.bench_local(|| runtime.block_on(client.ask(request)));
}

#[divan::bench(args = ["legacy", "modern"], sample_count = 200, sample_size = 20)]
fn call_tool(bencher: Bencher<'_, '_>, server_era: &str) {
    let params = json!({ "name": "echo", "arguments": { "text": "x:1 of fakemcp" } });
    measure(
        bencher,
        server_era,
        &request("tools/call", &params),
        "x:1 of fakemcp",
    );
}

#[divan::bench(args = ["legacy", "modern"], sample_count = 200, sample_size = 20)]
fn read_resource(bencher: Bencher<'_, '_>, server_era: &str) {
    let params = json!({ "uri": "x:1" });
    measure(
        bencher,
        server_era,
        &request("resources/read", &params),
        "x:1 of fakemcp",
    );
}

#[divan::bench(args = ["legacy", "modern"], sample_count = 200, sample_size = 20)]
fn get_prompt(bencher: Bencher<'_, '_>, server_era: &str) {
    let params = json!({ "name": "p", "arguments": { "a": "b" } });
    measure(
        bencher,
        server_era,
        &request("prompts/get", &params),
        "p of fakemcp",
    );
}
