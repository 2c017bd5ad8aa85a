//! Connections over real sockets, well-behaved and hostile ones.

mod hostile;
mod stopping;
mod timeout;

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;
use crate::guard::tests::gateway;

/// Far longer than any of these tests takes.
const HANG: Duration = Duration::from_secs(60);

struct TestListener {
    at: SocketAddr,
    stop: CancellationToken,
    task: JoinHandle<io::Result<()>>,
}

impl TestListener {
    async fn start(settings: Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let task = tokio::spawn(serve(gateway(settings), listener, stop.clone()));
        Self { at, stop, task }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.at).await.unwrap()
    }

    /// Sends bytes with HOST replaced by our address, and reads until the other side closes.
    async fn exchange(&self, request: &str) -> String {
        let mut stream = self.connect().await;
        let request = request.replace("HOST", &self.at.to_string());
        // The server may close the connection before everything is sent.
        drop(stream.write_all(request.as_bytes()).await);
        rest(&mut stream).await
    }

    async fn is_well(&self) -> bool {
        let answer = self
            .exchange("GET /healthz HTTP/1.1\r\nhost: HOST\r\nconnection: close\r\n\r\n")
            .await;
        answer.starts_with("HTTP/1.1 200")
    }

    async fn ended(self) {
        self.stop.cancel();
        timeout(HANG, self.task)
            .await
            .expect("it hangs")
            .unwrap()
            .unwrap();
    }
}

/// Reads everything until the end.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A reset after the answer is an end too.
    drop(
        timeout(HANG, stream.read_to_end(&mut bytes))
            .await
            .expect("it hangs"),
    );
    String::from_utf8_lossy(&bytes).into_owned()
}

fn call(tool: &str, arguments: &str) -> String {
    let length = arguments.len();
    format!(
        "POST /api/tools/{tool}/call HTTP/1.1\r\nhost: HOST\r\ncontent-length: {length}\r\n\r\n{arguments}"
    )
}

/// Waits until other tasks make a condition true.
async fn until(what: impl Fn() -> bool) {
    let becomes_so = async {
        while !what() {
            tokio::task::yield_now().await;
        }
    };
    timeout(HANG, becomes_so)
        .await
        .expect("it never came to that");
}

#[tokio::test]
async fn one_connection_serves_many_requests_in_turn() {
    let served = TestListener::start(json!({})).await;
    let ask = "GET /healthz HTTP/1.1\r\nhost: HOST\r\n\r\n";
    let last = "GET /healthz HTTP/1.1\r\nhost: HOST\r\nconnection: close\r\n\r\n";
    let answers = served.exchange(&format!("{ask}{ask}{ask}{last}")).await;
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 4, "{answers}");
    served.ended().await;
}

#[tokio::test]
async fn insecure_settings_are_not_served() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let settings = json!({ "bind": "0.0.0.0:0" });
    let refused = serve(gateway(settings), listener, CancellationToken::new())
        .await
        .unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    assert!(refused.to_string().contains("serve.token"), "{refused}");
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let refused = serve(gateway(json!({})), listener, CancellationToken::new())
        .await
        .unwrap_err();
    assert!(
        refused.to_string().contains("no token is set"),
        "what is listened on counts: {refused}"
    );
}
