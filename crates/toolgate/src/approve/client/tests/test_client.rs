//! MCP clients of both eras that send exactly what a test writes.

use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio_util::sync::CancellationToken;
use toolgate_mcp::{HttpBody, McpHttp, McpServer};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientKind {
    LegacyStdio,
    ModernStdio,
    LegacyHttp,
    ModernHttp,
}

impl ClientKind {
    pub(super) const ALL: [Self; 4] = [
        Self::LegacyStdio,
        Self::ModernStdio,
        Self::LegacyHttp,
        Self::ModernHttp,
    ];

    pub(super) fn is_modern(self) -> bool {
        matches!(self, Self::ModernStdio | Self::ModernHttp)
    }

    pub(super) fn is_http(self) -> bool {
        matches!(self, Self::LegacyHttp | Self::ModernHttp)
    }
}

pub(super) struct TestClient {
    kind: ClientKind,
    capabilities: Value,
    link: ClientLink,
    // The tool and the arguments of the latest call.
    called: (String, Value),
}

enum ClientLink {
    Lines {
        lines: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
        writer: WriteHalf<DuplexStream>,
    },
    Http {
        mcp: McpHttp,
        token: u64,
        session: Option<HeaderValue>,
        // The response that is being read.
        response: Option<HttpBody>,
    },
}

impl TestClient {
    pub(super) async fn connect(
        server: &McpServer,
        http: &McpHttp,
        kind: ClientKind,
        capabilities: Value,
    ) -> Self {
        let link = match kind.is_http() {
            true => ClientLink::Http {
                mcp: http.clone(),
                token: 1,
                session: None,
                response: None,
            },
            false => ClientLink::lines(server.clone()),
        };
        let mut client = Self {
            kind,
            capabilities,
            link,
            called: Default::default(),
        };
        if !kind.is_modern() {
            let params = json!({
                "protocolVersion": "2025-11-25", "capabilities": client.capabilities,
                "clientInfo": { "name": "c", "version": "1" },
            });
            client.send(&request("initialize", &params)).await;
            client.next().await;
        }
        client
    }

    /// The caller's number, by which clients with different tokens are told apart.
    pub(super) fn use_token(&mut self, number: u64) {
        if let ClientLink::Http { token, .. } = &mut self.link {
            *token = number;
        }
    }

    /// Returns the question, or the result if nothing was asked.
    pub(super) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.called = (tool.to_owned(), arguments.clone());
        self.send_call(json!({ "name": tool, "arguments": arguments }))
            .await;
        self.next().await
    }

    /// The form in a question.
    pub(super) fn form<'a>(&self, asked: &'a Value) -> &'a Value {
        let question = match self.kind.is_modern() {
            true => &asked["result"]["inputRequests"]["approval"],
            false => asked,
        };
        assert_eq!(question["method"], "elicitation/create", "{asked}");
        assert_eq!(question["params"]["mode"], "form", "{asked}");
        &question["params"]
    }

    /// Answers a question of the latest call, and returns what comes next.
    pub(super) async fn answer(&mut self, asked: &Value, answer: Value) -> Value {
        let (tool, arguments) = self.called.clone();
        match self.kind.is_modern() {
            true => self.repeat(asked, &tool, arguments, answer).await,
            false => {
                self.resolve(asked, answer).await;
                self.next().await
            }
        }
    }

    /// Sends an answer, whosever question it was. Doesn't wait for the result.
    pub(super) async fn resolve(&mut self, asked: &Value, answer: Value) {
        match self.kind.is_modern() {
            true => drop(self.repeat(asked, "unlock", json!({}), answer).await),
            false => {
                let id = &asked["id"];
                let response = json!({ "jsonrpc": "2.0", "id": id, "result": answer });
                self.send(&response).await;
            }
        }
    }

    /// Sends a call with an answer, as clients of 2026-07-28 do.
    pub(super) async fn repeat(
        &mut self,
        asked: &Value,
        tool: &str,
        arguments: Value,
        answer: Value,
    ) -> Value {
        let mut params = json!({ "name": tool, "arguments": arguments });
        params["inputResponses"] = json!({ "approval": answer });
        if let Some(state) = asked["result"].get("requestState") {
            params["requestState"] = state.clone();
        }
        self.send_call(params).await;
        self.next().await
    }

    async fn send_call(&mut self, mut params: Value) {
        if self.kind.is_modern() {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            });
        }
        self.send(&request("tools/call", &params)).await;
    }

    async fn send(&mut self, message: &Value) {
        let is_modern = self.kind.is_modern();
        let text = message.to_string();
        match &mut self.link {
            ClientLink::Lines { writer, .. } => {
                writer
                    .write_all(format!("{text}\n").as_bytes())
                    .await
                    .unwrap();
            }
            ClientLink::Http {
                mcp,
                token,
                session,
                response,
            } => {
                let request = post(message, session.as_ref(), is_modern);
                let answer: Response<HttpBody> = mcp.respond(request, *token).await;
                *session = session.take().or_else(|| {
                    let header = answer.headers().get("mcp-session-id");
                    header.cloned()
                });
                // An answer to a question is only accepted; the call's own response goes on.
                if message.get("method").is_some() {
                    *response = Some(answer.into_body());
                }
            }
        }
    }

    /// The next message that is about a call.
    pub(super) async fn next(&mut self) -> Value {
        match &mut self.link {
            ClientLink::Lines { lines, .. } => {
                let line = lines.next_line().await.unwrap().expect("a message");
                serde_json::from_str(&line).unwrap()
            }
            ClientLink::Http { response, .. } => loop {
                let body = response.as_mut().expect("a response");
                let frame = body.frame().await.expect("a message").unwrap();
                let bytes = frame.into_data().unwrap();
                let text = std::str::from_utf8(&bytes).unwrap();
                let mut lines = text
                    .lines()
                    .map(|line| line.strip_prefix("data:").unwrap_or(line));
                if let Some(message) = lines.find_map(|line| serde_json::from_str(line).ok()) {
                    return message;
                }
            },
        }
    }
}

impl ClientLink {
    fn lines(server: McpServer) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (reader, writer) = tokio::io::split(theirs);
        tokio::spawn(async move {
            let serving = server.serve(reader, writer, CancellationToken::new());
            serving.await.unwrap();
        });
        let (reader, writer) = tokio::io::split(ours);
        Self::Lines {
            lines: BufReader::new(reader).lines(),
            writer,
        }
    }
}

fn request(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

fn post(message: &Value, session: Option<&HeaderValue>, is_modern: bool) -> Request<Full<Bytes>> {
    let mut builder = Request::post("/mcp")
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json");
    if let Some(session) = session {
        builder = builder.header("mcp-session-id", session);
    }
    if is_modern {
        let name = message["params"]["name"].as_str().unwrap_or_default();
        builder = builder
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", name);
    }
    builder.body(Full::new(message.to_string().into())).unwrap()
}
