//! A scripted HTTP server on loopback, and an inbox that records everything.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};

use crate::client::http::{HttpClients, HttpTransport};
use crate::client::message::{OutgoingMessage, RpcMessage};
use crate::client::transport::{
    SessionEnd, Transport, TransportError, TransportInbox, UnreadableAnswer,
};
use crate::{ProtocolEra, SecretHeaders};

/// Only a hang takes longer than this.
pub(super) const HANG: Duration = Duration::from_secs(20);
pub(super) const LIMIT: usize = 10_000;

/// Keeps a paused clock from advancing until dropped, or for at most [`HANG`]: tokio would advance
/// it whenever all tasks wait for a socket.
pub(super) fn clock_stands_still() -> std::sync::mpsc::Sender<()> {
    let (held, released) = std::sync::mpsc::channel();
    tokio::task::spawn_blocking(move || released.recv_timeout(HANG).is_ok());
    held
}

#[derive(Debug, Clone)]
pub(super) struct ReceivedRequest {
    /// `POST /mcp`
    pub(super) line: String,
    head: String,
    pub(super) body: String,
}

impl ReceivedRequest {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// True if the body is a JSON-RPC message with this method.
    pub(super) fn says(&self, method: &str) -> bool {
        self.body.contains(&format!("\"method\":\"{method}\""))
    }
}

/// One step of handling a request. The connection closes after the last one.
pub(super) enum ResponseStep {
    Write(Vec<u8>),
    /// Waits until the client closes the connection.
    Hang,
    /// Waits until the test continues it.
    Wait(Arc<Notify>),
}

pub(super) type ResponseScript = fn() -> Vec<ResponseStep>;

pub(super) fn reply(status: &str, headers: &str, body: &str) -> Vec<ResponseStep> {
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    );
    vec![ResponseStep::Write(text.into())]
}

pub(super) fn json(body: &str) -> Vec<ResponseStep> {
    reply("200 OK", "Content-Type: application/json\r\n", body)
}

/// An event stream without a proper end: it stops when the connection closes.
pub(super) fn events(text: &str) -> Vec<ResponseStep> {
    let length = text.len();
    let text = format!(
        "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n{length:x}\r\n{text}\r\n"
    );
    vec![ResponseStep::Write(text.into())]
}

/// An event stream with a proper end.
pub(super) fn ended_events(text: &str) -> Vec<ResponseStep> {
    let mut steps = events(text);
    steps.push(ResponseStep::Write(b"0\r\n\r\n".into()));
    steps
}

pub(super) fn then_hang(mut steps: Vec<ResponseStep>) -> Vec<ResponseStep> {
    steps.push(ResponseStep::Hang);
    steps
}

pub(super) fn answer(id: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

pub(super) struct ScriptedHttpServer {
    pub(super) port: u16,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
    /// Notified when a client closes a hanging connection.
    pub(super) left: mpsc::UnboundedReceiver<()>,
    task: tokio::task::JoinHandle<()>,
}

impl ScriptedHttpServer {
    pub(super) async fn start(
        script: impl Fn(&ReceivedRequest) -> Vec<ResponseStep> + Send + Sync + 'static,
    ) -> Self {
        Self::start_at("127.0.0.1:0", script).await
    }

    pub(super) async fn start_at(
        address: &str,
        script: impl Fn(&ReceivedRequest) -> Vec<ResponseStep> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests: Arc<Mutex<Vec<ReceivedRequest>>> = Arc::default();
        let (leaving, left) = mpsc::unbounded_channel();
        let seen = Arc::clone(&requests);
        let script = Arc::new(script);
        let task = tokio::spawn(async move {
            // The connection tasks end with the server.
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let (seen, script, leaving) =
                    (Arc::clone(&seen), Arc::clone(&script), leaving.clone());
                connections.spawn(async move {
                    let Some(request) = read(&mut stream).await else {
                        return;
                    };
                    seen.lock().push(request.clone());
                    for step in script(&request) {
                        match step {
                            ResponseStep::Write(bytes) => drop(stream.write_all(&bytes).await),
                            ResponseStep::Hang => {
                                drop(stream.read(&mut [0]).await);
                                leaving.send(()).unwrap_or(());
                            }
                            ResponseStep::Wait(until) => until.notified().await,
                        }
                    }
                    drop(stream.shutdown().await);
                });
            }
        });
        Self {
            port,
            requests,
            left,
            task,
        }
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    pub(super) fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.lock().clone()
    }

    /// Stops listening and cuts all connections.
    pub(super) async fn stop(self) {
        self.task.abort();
        drop(self.task.await);
    }
}

async fn read(stream: &mut TcpStream) -> Option<ReceivedRequest> {
    let mut bytes = Vec::new();
    let split = loop {
        if let Some(at) = bytes.windows(4).position(|part| part == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..split].to_vec()).unwrap();
    let mut request = ReceivedRequest {
        line: head
            .lines()
            .next()?
            .trim_end_matches(" HTTP/1.1")
            .to_owned(),
        head,
        body: String::new(),
    };
    let length: usize = request
        .header("content-length")
        .map_or(0, |text| text.parse().unwrap());
    while bytes.len() < split + length {
        stream.read_buf(&mut bytes).await.ok()?;
    }
    request.body = String::from_utf8(bytes[split..].to_vec()).unwrap();
    Some(request)
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum InboxEvent {
    Message(RpcMessage),
    Lost(Option<u64>, UnreadableAnswer),
    Failed(u64, TransportError),
    Closed(String),
}

pub(super) struct RecordingInbox(mpsc::UnboundedSender<InboxEvent>);

impl RecordingInbox {
    fn write(&self, got: InboxEvent) {
        drop(self.0.send(got));
    }
}

impl TransportInbox for RecordingInbox {
    fn on_message(&self, message: RpcMessage, _request: Option<u64>) {
        self.write(InboxEvent::Message(message));
    }
    fn on_unreadable(&self, id: Option<u64>, problem: UnreadableAnswer) {
        self.write(InboxEvent::Lost(id, problem));
    }
    fn on_request_failed(&self, id: u64, error: TransportError) {
        self.write(InboxEvent::Failed(id, error));
    }
    fn on_closed(&self, end: SessionEnd) {
        self.write(InboxEvent::Closed(end.status.to_string()));
    }
}

/// A transport and what it has delivered.
pub(super) struct TestHttpClient {
    pub(super) http: Arc<HttpTransport>,
    got: mpsc::UnboundedReceiver<InboxEvent>,
}

impl TestHttpClient {
    pub(super) fn new(url: &str) -> Self {
        Self::with(url, &secret())
    }

    pub(super) fn without_headers(url: &str) -> Self {
        Self::with(url, &SecretHeaders::default())
    }

    fn with(url: &str, headers: &SecretHeaders) -> Self {
        let (writer, got) = mpsc::unbounded_channel();
        let shared = Arc::new(HttpClients::new(LIMIT));
        let http = HttpTransport::new(
            "test",
            url,
            headers,
            shared,
            Arc::new(RecordingInbox(writer)),
        )
        .unwrap();
        Self { http, got }
    }

    pub(super) async fn oldest(url: &str) -> Result<Self, TransportError> {
        let (writer, got) = mpsc::unbounded_channel();
        let shared = Arc::new(HttpClients::new(LIMIT));
        let inbox = Arc::new(RecordingInbox(writer));
        let headers = secret();
        let connecting = HttpTransport::connect_legacy_sse("test", url, &headers, shared, inbox);
        let http = tokio::time::timeout(HANG, connecting).await.unwrap()?;
        Ok(Self { http, got })
    }

    pub(super) async fn send(&self, message: OutgoingMessage) -> Result<(), TransportError> {
        let sending = tokio::time::timeout(HANG, self.http.send(message));
        sending.await.unwrap()
    }

    pub(super) async fn ask(&self, id: u64, method: &'static str) {
        self.send(request(id, method)).await.unwrap();
    }

    pub(super) async fn next(&mut self) -> InboxEvent {
        let next = tokio::time::timeout(HANG, self.got.recv());
        next.await.unwrap().unwrap()
    }

    /// Asserts that nothing more arrives after the end of the connection.
    pub(super) async fn nothing_more(&mut self) {
        assert!(!self.http.wire.inbox.is_open());
        assert_eq!(self.got.recv().await, None);
    }

    /// Initializes a session with a server that assigns an id.
    pub(super) async fn begin(&mut self) {
        self.ask(1, "initialize").await;
        self.answered(1).await;
        self.http.set_protocol(ProtocolEra::Legacy, "2025-11-25");
    }

    pub(super) async fn answered(&mut self, id: u64) {
        assert_eq!(
            self.next().await,
            InboxEvent::Message(RpcMessage::parse(answer(id).as_bytes()).unwrap())
        );
    }
}

fn secret() -> SecretHeaders {
    SecretHeaders(vec![(
        "Authorization".to_owned(),
        "Bearer tok-123".to_owned(),
    )])
}

pub(super) fn request(id: u64, method: &'static str) -> OutgoingMessage {
    let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\"}}\n");
    OutgoingMessage {
        id: Some(id),
        method: Some(method.into()),
        name: None,
        headers: Vec::new(),
        body: body.into(),
    }
}

pub(super) fn notification(method: &'static str) -> OutgoingMessage {
    OutgoingMessage {
        id: None,
        method: Some(method.into()),
        name: None,
        headers: Vec::new(),
        body: format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\"}}\n").into(),
    }
}
