//! An MCP client that rejects anything but JSON-RPC on stdout.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Guards against a hang; not a performance target.
const GUARD: Duration = Duration::from_secs(60);

pub(crate) struct StdioClient {
    child: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
    stderr: JoinHandle<String>,
    id: u64,
}

impl StdioClient {
    /// Starts the program with only these environment variables, and initializes the session.
    pub(crate) async fn start(variables: &[(&str, &str)]) -> Self {
        let mut client = Self::spawn(variables);
        let hello = client
            .ask(
                "initialize",
                json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } }),
            )
            .await;
        assert_eq!(hello["serverInfo"]["name"], "zwave-mcp-server");
        client
            .send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await;
        client
    }

    fn spawn(variables: &[(&str, &str)]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_zwave-mcp-server"))
            .env_clear()
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut errors = child.stderr.take().unwrap();
        let stderr = tokio::spawn(async move {
            let mut text = String::new();
            errors.read_to_string(&mut text).await.unwrap();
            text
        });
        Self {
            child,
            stdin,
            stdout,
            stderr,
            id: 0,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }

    async fn send(&mut self, message: &Value) {
        self.send_line(message.to_string().as_bytes()).await;
    }

    /// Sends any bytes as a line.
    pub(crate) async fn send_line(&mut self, line: &[u8]) {
        self.stdin.write_all(line).await.unwrap();
        self.stdin.write_all(b"\n").await.unwrap();
    }

    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.id += 1;
        let id = self.id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
        loop {
            let message = self.next().await.expect("an answer");
            if message["id"] == id {
                return message["result"].clone();
            }
        }
    }

    /// Calls a tool: whether it failed, its text, and its fields.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> (bool, String, Value) {
        let result = self
            .ask(
                "tools/call",
                json!({ "name": tool, "arguments": arguments }),
            )
            .await;
        let text = result["content"][0]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let failed = result["isError"] == true;
        (failed, text, result["structuredContent"].clone())
    }

    /// The next message. Every line must be one.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let line = timeout(GUARD, self.stdout.next_line())
            .await
            .expect("no line came")
            .unwrap()?;
        let message: Value =
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        check_message(&message);
        Some(message)
    }

    pub(crate) async fn leave(self) -> (ExitStatus, String) {
        let Self {
            mut child,
            stdin,
            mut stdout,
            stderr,
            ..
        } = self;
        drop(stdin);
        while let Some(line) = timeout(GUARD, stdout.next_line()).await.unwrap().unwrap() {
            let message: Value =
                serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
            check_message(&message);
        }
        let status = timeout(GUARD, child.wait())
            .await
            .expect("it did not end")
            .unwrap();
        (status, stderr.await.unwrap())
    }

    pub(crate) async fn end(&mut self) -> ExitStatus {
        timeout(GUARD, self.child.wait())
            .await
            .expect("it did not end")
            .unwrap()
    }
}

/// Checks that a line is a complete JSON-RPC message: a request, a notification, or a response with
/// either a result or an error. Only the response to an unreadable line has no `id`.
fn check_message(message: &Value) {
    let fields = message.as_object().unwrap_or_else(|| panic!("{message}"));
    assert_eq!(message["jsonrpc"], "2.0", "{message}");
    let has = |name: &str| fields.contains_key(name);
    let id_is_sound = message["id"].is_number() || message["id"].is_string();
    if has("method") {
        assert!(
            message["method"].is_string() && !has("result") && !has("error"),
            "{message}"
        );
        assert!(!has("id") || id_is_sound, "{message}");
    } else {
        assert!(
            has("result") != has("error"),
            "exactly one of them: {message}"
        );
        let unread = matches!(message["error"]["code"].as_i64(), Some(-32700 | -32600));
        assert!(id_is_sound || (unread && !has("id")), "{message}");
    }
    let known = ["jsonrpc", "id", "method", "params", "result", "error"];
    assert!(
        fields.keys().all(|name| known.contains(&name.as_str())),
        "{message}"
    );
}
