//! How long a connection may do nothing. The clock is the patrol's, moved by hand.

use tokio::io::{DuplexStream, duplex};

use super::*;
use crate::guard::tests::ends;

struct Line {
    patrol: Patrol,
    near: DuplexStream,
    task: JoinHandle<()>,
}

impl Line {
    /// A connection whose far side is the gateway. `room` is what fits in between unread.
    fn new(room: usize) -> Self {
        let gateway = gateway(json!({}));
        let guard = Arc::new(Guard::new(gateway, ([127, 0, 0, 1], 7460).into()));
        let patrol = Patrol::default();
        let (near, far) = duplex(room);
        let (_, watch) = patrol.join();
        let task = tokio::spawn(converse(
            guard,
            far,
            ends(),
            watch,
            CancellationToken::new(),
        ));
        Self { patrol, near, task }
    }

    async fn send(&mut self, text: &str) {
        self.near.write_all(text.as_bytes()).await.unwrap();
        settle().await;
    }

    async fn wait(&self, ticks: u32) {
        for _ in 0..ticks {
            self.patrol.tick();
        }
        settle().await;
    }

    fn is_open(&self) -> bool {
        !self.task.is_finished() && self.patrol.count() == 1
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

/// Lets the other side do all it can do.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

const ASK: &str = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";

#[tokio::test(start_paused = true)]
async fn g6_a_head_that_drips_is_told_408_after_ten_seconds() {
    let mut line = Line::new(4096);
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
async fn one_that_never_says_a_word_is_closed_after_ten_seconds() {
    let line = Line::new(4096);
    line.wait(9).await;
    assert!(line.is_open());
    line.wait(1).await;
    assert_eq!(line.text().await, "");
}

#[tokio::test(start_paused = true)]
async fn between_requests_a_minute_may_pass_and_then_ten_seconds_for_the_next_head() {
    let mut line = Line::new(4096);
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
    let mut idle = Line::new(4096);
    idle.send(ASK).await;
    idle.wait(60).await;
    let text = idle.text().await;
    assert!(text.contains("200 OK") && !text.contains("408"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_call_may_take_its_time() {
    let mut line = Line::new(4096);
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
async fn g6_who_does_not_read_the_answer_is_cut_after_thirty_seconds() {
    let mut line = Line::new(16);
    line.send(ASK).await;
    line.wait(29).await;
    assert!(line.is_open());
    line.wait(1).await;
    assert!(!line.is_open());
}
