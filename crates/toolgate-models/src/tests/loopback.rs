//! A provider on a real socket that sends a few scripted bytes.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Ten times what anything here may take.
pub(crate) const HANG: Duration = Duration::from_secs(20);

/// What happens on one connection once a request was read.
#[derive(Clone)]
pub(crate) enum LoopbackStep {
    Send(Vec<u8>),
    /// The socket is reset instead of closed.
    Reset,
    /// Sends nothing until the client goes away.
    Hang,
}

pub(crate) struct LoopbackServer {
    pub(crate) url: String,
    requests: mpsc::UnboundedReceiver<String>,
    gone: mpsc::UnboundedReceiver<()>,
    task: JoinHandle<()>,
}

impl Drop for LoopbackServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl LoopbackServer {
    pub(crate) async fn start(scripts: Vec<Vec<LoopbackStep>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (asked, requests) = mpsc::unbounded_channel();
        let (left, gone) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            for script in scripts {
                let (mut socket, _) = listener.accept().await.unwrap();
                asked.send(read_request(&mut socket).await).unwrap();
                tokio::spawn(play(socket, script, left.clone()));
            }
            // A surplus connection is an error of the test.
            drop(listener);
        });
        Self {
            url,
            requests,
            gone,
            task,
        }
    }

    /// One answer for each connection.
    pub(crate) async fn answers(answers: &[&str]) -> Self {
        let send = |answer: &&str| vec![LoopbackStep::Send(answer.as_bytes().to_vec())];
        Self::start(answers.iter().map(send).collect()).await
    }

    /// The next request as it arrived, head and body.
    pub(crate) async fn request(&mut self) -> String {
        let request = tokio::time::timeout(HANG, self.requests.recv());
        request.await.unwrap().unwrap()
    }

    /// How many received requests were not taken yet.
    pub(crate) fn waiting(&self) -> usize {
        self.requests.len()
    }

    /// Waits until a client has closed its connection to a script that hangs.
    pub(crate) async fn gone(&mut self) {
        let gone = tokio::time::timeout(HANG, self.gone.recv());
        gone.await.unwrap().unwrap();
    }
}

async fn play(mut socket: TcpStream, script: Vec<LoopbackStep>, left: mpsc::UnboundedSender<()>) {
    for step in script {
        match step {
            LoopbackStep::Send(bytes) => {
                if socket.write_all(&bytes).await.is_err() {
                    return;
                }
                socket.flush().await.unwrap();
                // Each piece must arrive as a separate piece.
                tokio::task::yield_now().await;
            }
            LoopbackStep::Reset => {
                socket.set_zero_linger().unwrap();
                return;
            }
            LoopbackStep::Hang => {
                let mut rest = [0];
                while matches!(socket.read(&mut rest).await, Ok(1..)) {}
                left.send(()).ok();
                return;
            }
        }
    }
}

pub(crate) async fn read_request(socket: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let count = socket.read(&mut piece).await.unwrap();
        bytes.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            assert_ne!(count, 0, "no request: {text}");
            continue;
        };
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("content-length")
                .then(|| value.parse().unwrap())
        });
        if body.len() >= length.unwrap_or(0) {
            return text.into_owned();
        }
        assert_ne!(count, 0, "half a request: {text}");
    }
}

/// A whole answer that ends with its connection.
pub(crate) fn answer(status: u16, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} Whatever\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    )
}

/// An answer in the given chunks, and its end.
pub(crate) fn chunked(content_type: &str, chunks: &[&[u8]]) -> Vec<LoopbackStep> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: {content_type}\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    let mut steps = vec![LoopbackStep::Send(head.into_bytes())];
    for chunk in chunks {
        let mut bytes = format!("{:x}\r\n", chunk.len()).into_bytes();
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
        steps.push(LoopbackStep::Send(bytes));
    }
    steps.push(LoopbackStep::Send(b"0\r\n\r\n".to_vec()));
    steps
}

/// A stream of server-sent events, one byte at a time.
pub(crate) fn dribbled(content_type: &str, body: &str) -> Vec<LoopbackStep> {
    let bytes: Vec<&[u8]> = body.as_bytes().chunks(1).collect();
    chunked(content_type, &bytes)
}
