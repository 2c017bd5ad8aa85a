//! The remembered tools as a client of `toolgate mcp` sees them.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::CatalogFolder;
use crate::gateway::HANG;

/// A client of `toolgate mcp` that waits for each response.
pub(super) struct TestMcpClient {
    child: std::process::Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl TestMcpClient {
    pub(super) fn new(folder: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_toolgate"))
            .args(["--config", "house.json", "mcp"])
            .current_dir(folder)
            .env("HOME", folder)
            .env_remove("XDG_STATE_HOME")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut client = Self { child, lines };
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        client.ask(0, "initialize", &hello);
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    pub(super) fn ask(&mut self, id: u64, method: &str, params: &Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let line = self.lines.next().unwrap().unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message["result"].clone();
            }
        }
    }
}

impl Drop for TestMcpClient {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        drop(self.child.wait());
    }
}

#[test]
fn mc5_in_mcp_a_mute_server_delays_neither_the_list_nor_an_early_call() {
    let home = CatalogFolder::new(&[]);
    let tools = home.tools("tools", &["alpha"]);
    let servers: [(&str, &[&str]); 2] = [("mute", &["mute"]), ("good", &[&tools, "wait=700"])];
    home.configure(&servers);
    // Nothing is remembered: the caller is woken when its tool is there, long before the mute
    // one is given up.
    let begin = Instant::now();
    let mut client = TestMcpClient::new(home.folder.path());
    let answer = client.ask(
        1,
        "tools/call",
        &json!({ "name": "alpha", "arguments": {} }),
    );
    assert_ne!(answer["isError"], true, "{answer}");
    assert!(
        begin.elapsed() < Duration::from_secs(15),
        "it took as long as the mute server"
    );
    drop(client);
    // From then on its tools are listed before it answers.
    home.write_program("good", "exec sleep 600");
    let begin = Instant::now();
    let mut client = TestMcpClient::new(home.folder.path());
    let list = client.ask(1, "tools/list", &json!({}));
    assert!(list.to_string().contains("\"alpha\""), "{list}");
    assert!(begin.elapsed() < HANG);
}
