//! Delays calls until the server's own event stream is open.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

// Longest wait for the stream. Some servers send the response headers only
// with their first message.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Closed while the server's own stream is being opened for the first time. A server may
/// send questions about a call on that stream. Without it they would be lost, and the
/// call would time out.
#[derive(Default)]
pub(super) struct CallGate {
    closed_until: watch::Sender<Option<Instant>>,
}

impl CallGate {
    pub(super) fn close(&self) {
        self.closed_until
            .send_replace(Some(Instant::now() + MAX_WAIT));
    }

    pub(super) fn open(&self) {
        self.closed_until.send_replace(None);
    }

    pub(super) async fn wait_open(&self) {
        let Some(until) = *self.closed_until.borrow() else {
            return;
        };
        if timeout_at(until, self.opened()).await.is_err() {
            self.open();
        }
    }

    pub(super) async fn opened(&self) {
        let mut closed = self.closed_until.subscribe();
        // Can't fail: `self` owns the sender.
        drop(closed.wait_for(Option::is_none).await);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_closed_gate_opens_by_itself() {
        let (gate, begun) = (CallGate::default(), Instant::now());
        gate.wait_open().await;
        gate.close();
        gate.wait_open().await;
        assert_eq!(begun.elapsed(), MAX_WAIT);
        gate.wait_open().await;
        assert_eq!(begun.elapsed(), MAX_WAIT, "the gate stays open");
    }

    #[tokio::test(start_paused = true)]
    async fn all_pass_as_soon_as_it_opens() {
        let (gate, begun) = (CallGate::default(), Instant::now());
        gate.close();
        let mut both = std::pin::pin!(futures::future::join(gate.wait_open(), gate.wait_open()));
        assert!((&mut both).now_or_never().is_none());
        gate.open();
        both.await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }
}
