//! Holds calls back until the server's own stream stands.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// The longest a call waits for the stream, counted from when it was asked for: some servers begin to answer only when they have
/// something to say.
const LONGEST: Duration = Duration::from_secs(1);

/// Closed while the server's own stream is being opened for the first time. A server may ask its questions about a call there, and
/// what it says before there is a stream is lost: the call would wait for its answer until it times out.
#[derive(Default)]
pub(super) struct Gate {
    /// Until when, if it is closed.
    closed: watch::Sender<Option<Instant>>,
}

impl Gate {
    pub(super) fn close(&self) {
        self.closed.send_replace(Some(Instant::now() + LONGEST));
    }

    /// Calls go out: there is a stream, or there will be none.
    pub(super) fn open(&self) {
        self.closed.send_replace(None);
    }

    /// Returns when the gate is open, or was closed for too long: then it stays open.
    pub(super) async fn pass(&self) {
        let Some(until) = *self.closed.borrow() else {
            return;
        };
        if timeout_at(until, self.opened()).await.is_err() {
            self.open();
        }
    }

    pub(super) async fn opened(&self) {
        let mut closed = self.closed.subscribe();
        // Fails only without a sender, which is ours.
        drop(closed.wait_for(Option::is_none).await);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_gate_is_open_until_it_is_closed_and_then_not_for_long() {
        let (gate, begun) = (Gate::default(), Instant::now());
        gate.pass().await;
        gate.close();
        gate.pass().await;
        assert_eq!(begun.elapsed(), LONGEST);
        gate.pass().await;
        assert_eq!(begun.elapsed(), LONGEST, "nobody waits twice");
    }

    #[tokio::test(start_paused = true)]
    async fn all_pass_as_soon_as_it_opens() {
        let (gate, begun) = (Gate::default(), Instant::now());
        gate.close();
        let mut both = std::pin::pin!(futures::future::join(gate.pass(), gate.pass()));
        assert!((&mut both).now_or_never().is_none());
        gate.open();
        both.await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }
}
