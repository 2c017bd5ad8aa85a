//! Timeouts of connections, with a clock that is moved by hand.

use tokio::io::{DuplexStream, duplex};

use super::*;
use crate::guard::tests::loopback_addresses;

struct TestConnection {
    reaper: ConnectionReaper,
    near: DuplexStream,
    task: JoinHandle<()>,
}

impl TestConnection {
    /// A connection whose far side is the gateway. `room` is what fits in between unread.
    fn new(room: usize) -> Self {
        let gateway = gateway(json!({}));
        let guard = Arc::new(RequestGuard::new(gateway, ([127, 0, 0, 1], 7460).into()));
        let reaper = ConnectionReaper::default();
        let (near, far) = duplex(room);
        let (_, watch) = reaper.register();
        let task = tokio::spawn(serve_connection(
            guard,
            far,
            loopback_addresses(),
            watch,
            CancellationToken::new(),
        ));
        Self { reaper, near, task }
    }

    async fn send(&mut self, text: &str) {
        self.near.write_all(text.as_bytes()).await.unwrap();
        settle().await;
    }

    async fn wait(&self, ticks: u32) {
        for _ in 0..ticks {
            self.reaper.tick();
        }
        settle().await;
    }

    fn is_open(&self) -> bool {
        !self.task.is_finished() && self.reaper.count() == 1
    }

    async fn text(mut self) -> String {
        let mut text = String::new();
        timeout(HANG, self.near.read_to_string(&mut text))
            .await
            .expect("it hangs")
            .unwrap();
        text
    }
}

/// Lets the other side do everything it can without input.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

const ASK: &str = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";

#[tokio::test(start_paused = true)]
async fn g6_a_slow_head_gets_408_after_ten_seconds() {
    let mut line = TestConnection::new(4096);
    line.wait(4).await;
    line.send("GET / HTTP/1.1\r\n").await;
    for _ in 0..5 {
        line.wait(1).await;
        line.send("x: y\r\n").await;
    }
    assert!(line.is_open());
    line.wait(1).await;
    assert!(line.text().await.starts_with("HTTP/1.1 408 "));
}

#[tokio::test(start_paused = true)]
async fn a_silent_connection_is_closed_after_ten_seconds() {
    let line = TestConnection::new(4096);
    line.wait(9).await;
    assert!(line.is_open());
    line.wait(1).await;
    assert_eq!(line.text().await, "");
}

#[tokio::test(start_paused = true)]
async fn idle_connections_get_a_minute_and_heads_ten_seconds() {
    let mut line = TestConnection::new(4096);
    line.send(ASK).await;
    line.wait(59).await;
    assert!(line.is_open());
    line.send(ASK).await;
    line.wait(50).await;
    line.send("GET").await;
    line.wait(9).await;
    assert!(line.is_open());
    line.wait(1).await;
    let text = line.text().await;
    assert_eq!(
        (text.matches("200 OK").count(), text.matches("408").count()),
        (2, 1),
        "{text}"
    );
    let mut idle = TestConnection::new(4096);
    idle.send(ASK).await;
    idle.wait(60).await;
    let text = idle.text().await;
    assert!(text.contains("200 OK") && !text.contains("408"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_long_call_is_not_cut() {
    let mut line = TestConnection::new(4096);
    line.send(&call("nap", r#"{"ms":20000}"#).replace("HOST", "localhost"))
        .await;
    line.wait(1000).await;
    assert!(line.is_open());
    tokio::time::sleep(Duration::from_secs(21)).await;
    settle().await;
    line.wait(60).await;
    assert!(line.text().await.contains("slept"));
}

#[tokio::test(start_paused = true)]
async fn g6_a_client_that_does_not_read_is_cut_after_thirty_seconds() {
    let mut line = TestConnection::new(16);
    line.send(ASK).await;
    line.wait(29).await;
    assert!(line.is_open());
    line.wait(1).await;
    assert!(!line.is_open());
}
