//! The server half over HTTP in both eras, without a socket.

mod answers;
mod asking;
mod cancelling;
mod changes;
mod extensions;
mod logging;
mod resuming;
mod sessions;
mod statuses;
mod tasks;
mod watched;

use ::http::{HeaderName, HeaderValue, Request, Response};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};

use super::*;
use crate::server::http::{HttpBody, HttpOptions, McpHttp};

const BOTH: &str = "application/json, text/event-stream";

/// A client, with or without a session.
#[derive(Clone)]
struct HttpCaller {
    mcp: McpHttp,
    owner: u64,
    headers: Vec<(&'static str, String)>,
}

impl HttpCaller {
    fn new(mcp: &McpHttp) -> Self {
        let headers = [("accept", BOTH), ("content-type", "application/json")];
        Self {
            mcp: mcp.clone(),
            owner: 1,
            headers: headers
                .map(|(name, value)| (name, value.to_owned()))
                .to_vec(),
        }
    }

    /// With a session of the older era.
    async fn with_session(mcp: &McpHttp, version: &str) -> Self {
        let caller = Self::new(mcp);
        let answer = caller.post(initialize(version)).await;
        assert_eq!(answer.status(), 200);
        let session = answer.headers()["mcp-session-id"].to_str().unwrap();
        caller.with("mcp-session-id", session)
    }

    /// Of the newer era, for one method and one tool.
    fn modern(mcp: &McpHttp, method: &str, name: &str) -> Self {
        let caller = Self::new(mcp).with("mcp-protocol-version", "2026-07-28");
        let caller = caller.with("mcp-method", method);
        match name {
            "" => caller,
            name => caller.with("mcp-name", name),
        }
    }

    /// Replaces a header. An empty value removes it.
    fn with(&self, name: &'static str, value: &str) -> Self {
        let mut other = self.clone();
        other.headers.retain(|(known, _)| *known != name);
        if !value.is_empty() {
            other.headers.push((name, value.to_owned()));
        }
        other
    }

    fn request(&self, method: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(body.into()));
        *request.method_mut() = method.parse().unwrap();
        for (name, value) in &self.headers {
            let value = HeaderValue::from_str(value).unwrap();
            request
                .headers_mut()
                .append(HeaderName::from_static(name), value);
        }
        request
    }

    async fn send(&self, method: &str, body: impl Into<Bytes>) -> Response<HttpBody> {
        let request = self.request(method, body);
        self.mcp.respond(request, self.owner).await
    }

    async fn post(&self, message: Value) -> Response<HttpBody> {
        self.send("POST", message.to_string()).await
    }

    async fn get(&self) -> Response<HttpBody> {
        self.send("GET", "").await
    }

    async fn ask(&self, method: &str, params: Value) -> Value {
        json_of(self.post(request_message(method, params)).await).await
    }
}

fn http(manager: &Arc<ToolManager>) -> McpHttp {
    server(manager).http(HttpOptions::default())
}

fn initialize(version: &str) -> Value {
    let client = json!({ "name": "c", "version": "1" });
    let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
    request_message("initialize", params)
}

fn request_message(method: &str, params: Value) -> Value {
    let mut message = json!({ "jsonrpc": "2.0", "id": 1, "method": method });
    message["params"] = params;
    message
}

/// Like `request_message`, in the form of the newer era.
fn modern_request_message(method: &str, mut params: Value) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    match params.get_mut("_meta").and_then(Value::as_object_mut) {
        Some(given) => given.extend(meta.as_object().unwrap().clone()),
        None => params["_meta"] = meta,
    }
    request_message(method, params)
}

async fn text_of(response: Response<HttpBody>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

async fn json_of(response: Response<HttpBody>) -> Value {
    assert_eq!(response.headers()["content-type"], "application/json");
    serde_json::from_str(&text_of(response).await).unwrap()
}

/// A stream of events as a client reads it.
struct TestEvents(HttpBody);

#[derive(Debug, PartialEq)]
struct TestEvent {
    id: Option<String>,
    /// Null if the event has no message.
    data: Value,
}

impl TestEvents {
    fn new(response: Response<HttpBody>) -> Self {
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["x-accel-buffering"], "no");
        Self(response.into_body())
    }

    /// The raw text of the next event.
    async fn raw(&mut self) -> Option<String> {
        let frame = self.0.frame().await?.unwrap();
        let text = frame.into_data().unwrap();
        Some(String::from_utf8(text.to_vec()).unwrap())
    }

    async fn next(&mut self) -> Option<TestEvent> {
        let text = self.raw().await?;
        let field = |name: &str| {
            let mut lines = text.lines();
            lines.find_map(|line| line.strip_prefix(name).map(str::trim))
        };
        let data = field("data:").filter(|data| !data.is_empty());
        Some(TestEvent {
            id: field("id:").map(str::to_owned),
            data: data.map_or(Value::Null, |data| serde_json::from_str(data).unwrap()),
        })
    }

    /// The next event with a message in it.
    async fn message(&mut self) -> Value {
        loop {
            let event = self.next().await.expect("an event");
            if !event.data.is_null() {
                return event.data;
            }
        }
    }
}
