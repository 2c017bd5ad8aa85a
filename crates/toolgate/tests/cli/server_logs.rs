//! What servers of `toolgate mcp` log outside of any call reaches its only client.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::mcp::started;

/// A client that wants log messages from a level on.
struct LoggingClient {
    program: Child,
    lines: BufReader<ChildStdout>,
    // What came before a response.
    logs: VecDeque<Value>,
    _folder: TempDir,
}

impl LoggingClient {
    fn new(server: &Value, level: &str) -> Self {
        let config = json!({ "mcpServers": { "s": server } });
        let (program, lines, folder) = started(&config.to_string());
        let mut client = Self {
            program,
            lines,
            logs: VecDeque::new(),
            _folder: folder,
        };
        client.ask("tools/list", &json!({}));
        client.ask("logging/setLevel", &json!({ "level": level }));
        client
    }

    fn next_log(&mut self) -> Value {
        while self.logs.is_empty() {
            self.take_message();
        }
        self.logs.pop_front().unwrap()
    }

    /// Keeps a log message; returns any other one.
    fn take_message(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        let mut message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"));
        if message["method"] != "notifications/message" {
            return Some(message);
        }
        self.logs.push_back(message["params"].take());
        None
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let stdin = self.program.stdin.as_mut().unwrap();
        stdin.write_all(format!("{request}\n").as_bytes()).unwrap();
        loop {
            let message = self.take_message();
            if let Some(response) = message.filter(|message| message["id"] == 1) {
                assert!(response["error"].is_null(), "{response}");
                return response;
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        let mut response = self.ask("tools/call", &params);
        assert_ne!(response["result"]["isError"], true, "{response}");
        response["result"]["content"][0]["text"].take()
    }
}

impl Drop for LoggingClient {
    fn drop(&mut self) {
        drop(self.program.stdin.take());
        drop(self.program.wait());
    }
}

#[test]
fn a_message_after_the_answer_reaches_the_client_from_its_level_on() {
    let program = fakemcp::program().display().to_string();
    let mut client = LoggingClient::new(&json!({ "command": program }), "warning");
    let answer =
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"a"}]}}\n"#;
    let say = |level: &str, data: &str| {
        let params = json!({ "level": level, "data": data });
        let message =
            json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params });
        format!(r"{message}\n")
    };
    let text = answer.to_owned() + &say("info", "quiet") + &say("error", "loud");
    client.call("raw", &json!({ "text": text }));
    let heard = client.next_log();
    assert_eq!(
        heard,
        json!({ "level": "error", "logger": "s", "data": "loud" })
    );
}

#[test]
fn everything_logs_to_the_client_between_its_calls() {
    let Some(folder) = fakemcp::real_servers() else {
        return;
    };
    let script = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
    let server = json!({
        "command": fakemcp::node(&folder), "args": [folder.join(script), "stdio"],
        "startTimeout": "100s",
    });
    let mut client = LoggingClient::new(&server, "debug");
    let said = client.call("toggle-simulated-logging", &json!({}));
    assert!(said.as_str().unwrap().starts_with("Started"), "{said}");
    // The first message comes during the call, and the next one five seconds later.
    client.logs.clear();
    let is_simulated = |log: &Value| {
        let data = log["data"].as_str().unwrap();
        data.contains("level") && data.contains("message")
    };
    while !is_simulated(&client.next_log()) {}
    let said = client.call("toggle-simulated-logging", &json!({}));
    assert!(said.as_str().unwrap().starts_with("Stopped"), "{said}");
}
