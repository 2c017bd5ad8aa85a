//! A server on this machine that says what a test tells it to, byte by byte, and an inbox that writes everything down.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};

use crate::client::http::{Http, Shared};
use crate::client::message::{Message, Outgoing};
use crate::client::transport::{End, Inbox, Lost, Transport, TransportError};
use crate::{Era, Headers};

/// Nothing here takes longer unless it hangs.
pub(super) const HANG: Duration = Duration::from_secs(20);
pub(super) const LIMIT: usize = 10_000;

/// Holds a paused clock until it is dropped, or for as long as nothing takes unless it hangs: it would be moved on whenever all
/// wait for a socket.
pub(super) fn clock_stands_still() -> std::sync::mpsc::Sender<()> {
    let (held, released) = std::sync::mpsc::channel();
    tokio::task::spawn_blocking(move || released.recv_timeout(HANG).is_ok());
    held
}

/// A request as the server got it.
#[derive(Debug, Clone)]
pub(super) struct Request {
    /// `POST /mcp`
    pub(super) line: String,
    head: String,
    pub(super) body: String,
}

impl Request {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// The method of the JSON-RPC message.
    pub(super) fn says(&self, method: &str) -> bool {
        self.body.contains(&format!("\"method\":\"{method}\""))
    }
}

/// What the server does with a request. The connection is closed after the last step.
pub(super) enum Step {
    Write(Vec<u8>),
    /// Until the client closes the connection.
    Hang,
    /// Until the test says so.
    Wait(Arc<Notify>),
}

/// Makes the steps for a request whatever it is.
pub(super) type Script = fn() -> Vec<Step>;

/// A whole response.
pub(super) fn reply(status: &str, headers: &str, body: &str) -> Vec<Step> {
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    );
    vec![Step::Write(text.into())]
}

pub(super) fn json(body: &str) -> Vec<Step> {
    reply("200 OK", "Content-Type: application/json\r\n", body)
}

/// The beginning of a stream: it ends, without a proper end, when the connection does.
pub(super) fn events(text: &str) -> Vec<Step> {
    let length = text.len();
    let text = format!(
        "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n{length:x}\r\n{text}\r\n"
    );
    vec![Step::Write(text.into())]
}

/// A stream with its proper end.
pub(super) fn ended_events(text: &str) -> Vec<Step> {
    let mut steps = events(text);
    steps.push(Step::Write(b"0\r\n\r\n".into()));
    steps
}

pub(super) fn then_hang(mut steps: Vec<Step>) -> Vec<Step> {
    steps.push(Step::Hang);
    steps
}

/// The answer to our request of this id.
pub(super) fn answer(id: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

/// A running server.
pub(super) struct Server {
    pub(super) port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
    /// Told when a client closed a connection that hung.
    pub(super) left: mpsc::UnboundedReceiver<()>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    pub(super) async fn start(
        script: impl Fn(&Request) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        Self::start_at("127.0.0.1:0", script).await
    }

    pub(super) async fn start_at(
        address: &str,
        script: impl Fn(&Request) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let (leaving, left) = mpsc::unbounded_channel();
        let seen = Arc::clone(&requests);
        let script = Arc::new(script);
        let task = tokio::spawn(async move {
            // They end with the server.
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
                            Step::Write(bytes) => drop(stream.write_all(&bytes).await),
                            Step::Hang => {
                                drop(stream.read(&mut [0]).await);
                                leaving.send(()).unwrap_or(());
                            }
                            Step::Wait(until) => until.notified().await,
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

    pub(super) fn requests(&self) -> Vec<Request> {
        self.requests.lock().clone()
    }

    /// From now on nobody is there, and all connections are cut.
    pub(super) async fn stop(self) {
        self.task.abort();
        drop(self.task.await);
    }
}

async fn read(stream: &mut TcpStream) -> Option<Request> {
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
    let mut request = Request {
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

/// What an inbox was given.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Got {
    Message(Message),
    Lost(Option<u64>, Lost),
    Failed(u64, TransportError),
    Closed(String),
}

pub(super) struct Book(mpsc::UnboundedSender<Got>);

impl Book {
    fn write(&self, got: Got) {
        drop(self.0.send(got));
    }
}

impl Inbox for Book {
    fn message(&self, message: Message) {
        self.write(Got::Message(message));
    }
    fn lost(&self, id: Option<u64>, problem: Lost) {
        self.write(Got::Lost(id, problem));
    }
    fn failed(&self, id: u64, error: TransportError) {
        self.write(Got::Failed(id, error));
    }
    fn closed(&self, end: End) {
        self.write(Got::Closed(end.status.to_string()));
    }
}

/// A transport and what it delivered.
pub(super) struct Client {
    pub(super) http: Arc<Http>,
    got: mpsc::UnboundedReceiver<Got>,
}

impl Client {
    pub(super) fn new(url: &str) -> Self {
        Self::with(url, &secret())
    }

    pub(super) fn without_headers(url: &str) -> Self {
        Self::with(url, &Headers::default())
    }

    fn with(url: &str, headers: &Headers) -> Self {
        let (writer, got) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared::new(LIMIT));
        let http = Http::new("test", url, headers, shared, Arc::new(Book(writer))).unwrap();
        Self { http, got }
    }

    pub(super) async fn oldest(url: &str) -> Result<Self, TransportError> {
        let (writer, got) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared::new(LIMIT));
        let inbox = Arc::new(Book(writer));
        let headers = secret();
        let connecting = Http::old_sse("test", url, &headers, shared, inbox);
        let http = tokio::time::timeout(HANG, connecting).await.unwrap()?;
        Ok(Self { http, got })
    }

    pub(super) async fn send(&self, message: Outgoing) -> Result<(), TransportError> {
        let sending = tokio::time::timeout(HANG, self.http.send(message));
        sending.await.unwrap()
    }

    pub(super) async fn ask(&self, id: u64, method: &'static str) {
        self.send(request(id, method)).await.unwrap();
    }

    pub(super) async fn next(&mut self) -> Got {
        let next = tokio::time::timeout(HANG, self.got.recv());
        next.await.unwrap().unwrap()
    }

    /// Nothing more, now that the connection is over.
    pub(super) async fn nothing_more(&mut self) {
        assert!(!self.http.wire.outlet.is_open());
        assert_eq!(self.got.recv().await, None);
    }

    /// Initialises a session against a server that gives one.
    pub(super) async fn begin(&mut self) {
        self.ask(1, "initialize").await;
        self.answered(1).await;
        self.http.agreed(Era::Legacy, "2025-11-25");
    }

    pub(super) async fn answered(&mut self, id: u64) {
        assert_eq!(
            self.next().await,
            Got::Message(Message::parse(answer(id).as_bytes()).unwrap())
        );
    }
}

fn secret() -> Headers {
    Headers(vec![(
        "Authorization".to_owned(),
        "Bearer tok-123".to_owned(),
    )])
}

pub(super) fn request(id: u64, method: &'static str) -> Outgoing {
    let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\"}}\n");
    Outgoing {
        id: Some(id),
        method: Some(method),
        name: None,
        headers: Vec::new(),
        body: body.into(),
    }
}

pub(super) fn notification(method: &'static str) -> Outgoing {
    Outgoing {
        id: None,
        method: Some(method),
        name: None,
        headers: Vec::new(),
        body: format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\"}}\n").into(),
    }
}
