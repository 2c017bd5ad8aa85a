use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use crate::test_server::{TestMcpServer, add};

/// Ten times what anything here should take.
const PATIENCE: Duration = Duration::from_secs(20);

impl TestMcpServer {
    /// Returns when no call of `search` is under way.
    pub(crate) async fn wait_until_idle(&self) {
        let idle = async {
            while self.searching.load(Ordering::Relaxed) > 0 {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, idle)
            .await
            .expect("a call is still running");
    }

    async fn wait_until_searching(&self) {
        let started = async {
            while self.searching.load(Ordering::Relaxed) == 0 {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, started).await.expect("no call starts");
    }

    /// A connection with one request on it.
    async fn send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> RawConnection {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let mut head = format!(
            "{method} /mcp HTTP/1.1\r\nhost: x\r\naccept: application/json, text/event-stream\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        let request = format!("{head}\r\n{body}");
        stream.write_all(request.as_bytes()).await.unwrap();
        RawConnection(BufReader::new(stream))
    }

    async fn session(&self) -> String {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" },
        });
        let mut wire = self
            .send("POST", &[], &message("initialize", &params))
            .await;
        let id = wire.line_with("mcp-session-id: ").await;
        id["mcp-session-id: ".len()..].to_owned()
    }
}

fn message(method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
}

fn call(tool: &str, token: Option<u32>) -> String {
    let meta = token.map_or(json!({}), |token| json!({ "progressToken": token }));
    message("tools/call", &json!({ "name": tool, "_meta": meta }))
}

struct RawConnection(BufReader<TcpStream>);

impl RawConnection {
    /// The next line that is like this.
    async fn line(&mut self, wanted: impl Fn(&str) -> bool) -> String {
        let found = async {
            loop {
                let mut line = String::new();
                let read = self.0.read_line(&mut line).await.unwrap();
                assert!(read > 0, "the connection is closed");
                if wanted(&line) {
                    return line.trim().to_owned();
                }
            }
        };
        timeout(PATIENCE, found).await.expect("no such line comes")
    }

    async fn line_with(&mut self, text: &str) -> String {
        self.line(|line| line.contains(text)).await
    }
}

#[tokio::test]
async fn a_connection_that_breaks_cancels_the_call_it_waits_for() {
    let server = TestMcpServer::open().await;
    let session = server.session().await;
    let wire = server
        .send(
            "POST",
            &[("mcp-session-id", &session)],
            &call("search", None),
        )
        .await;
    server.wait_until_searching().await;
    drop(wire);
    server.wait_until_idle().await;
}

#[tokio::test]
async fn the_rest_of_an_answer_comes_on_another_connection() {
    let server = TestMcpServer::open().await;
    let session = server.session().await;
    let id = ("mcp-session-id", session.as_str());
    let mut wire = server.send("POST", &[id], &call("steps", Some(7))).await;
    // It comes at once, not when all of it is there.
    wire.line_with(r#""progress":1.0"#).await;
    drop(wire);
    let mut wire = server
        .send("GET", &[id, ("last-event-id", "2-1")], "")
        .await;
    wire.line_with(r#""progress":2.0"#).await;
    wire.line_with(r#""text":"done""#).await;
    // The last piece of a body has no bytes.
    wire.line(|line| line == "0\r\n").await;
}

#[tokio::test]
async fn a_change_of_the_tools_reaches_an_open_stream() {
    let server = TestMcpServer::open().await;
    let session = server.session().await;
    let mut wire = server
        .send("GET", &[("mcp-session-id", &session)], "")
        .await;
    wire.line_with("id: 0-0").await;
    let work = Box::new(|_, _| {
        let answer = Ok(toolgate_core::ToolOutput::text(""));
        Box::pin(async { answer }) as futures::future::BoxFuture<'static, _>
    });
    add(&server.manager, "new", json!({ "type": "object" }), work);
    wire.line_with("notifications/tools/list_changed").await;
}

#[tokio::test]
async fn connections_that_break_leave_no_task_and_no_call() {
    let server = TestMcpServer::open().await;
    let alive = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let before = alive();
    for n in 0..300 {
        let session = server.session().await;
        let id = ("mcp-session-id", session.as_str());
        match n % 4 {
            0 => drop(server.send("GET", &[id], "").await),
            1 => {
                let mut wire = server.send("GET", &[id], "").await;
                wire.line_with("id: 0-0").await;
            }
            2 => drop(server.send("POST", &[id], &call("search", None)).await),
            _ => {
                let mut wire = server.send("POST", &[id], &call("steps", Some(n))).await;
                wire.line_with("retry:").await;
            }
        }
    }
    let started = Instant::now();
    while alive() > before && started.elapsed() < PATIENCE {
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(alive(), before);
    server.wait_until_idle().await;
}
