//! Keeps the notifications of a client on a byte stream, which are passed on one after another.
//! Over HTTP, the client waits for each of them instead.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::client_message::ClientNotification;

// Notifications that wait for a slow server. Later ones are dropped.
const MAX_WAITING: usize = 64;
// A client that sends more and more must not fill the log.
const WARNING_INTERVAL: Duration = Duration::from_secs(10);

pub(super) struct NotificationQueue {
    sender: mpsc::Sender<ClientNotification>,
    // Not reported yet.
    dropped: u64,
    warned: Option<Instant>,
}

impl NotificationQueue {
    pub(super) fn new(ending: CancellationToken) -> (Self, WaitingNotifications) {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        let queue = Self {
            sender,
            dropped: 0,
            warned: None,
        };
        (queue, WaitingNotifications { receiver, ending })
    }

    pub(super) fn push(&mut self, notification: ClientNotification) {
        if self.sender.try_send(notification).is_err() {
            self.dropped += 1;
        }
        let is_due = self
            .warned
            .is_none_or(|warned| warned.elapsed() >= WARNING_INTERVAL);
        if is_due {
            self.report_dropped();
        }
    }

    fn report_dropped(&mut self) {
        if self.dropped > 0 {
            let dropped = std::mem::take(&mut self.dropped);
            self.warned = Some(Instant::now());
            warn!(
                dropped,
                "a client sends notifications of extensions faster than they can be passed on"
            );
        }
    }
}

impl Drop for NotificationQueue {
    fn drop(&mut self) {
        self.report_dropped();
    }
}

/// The other end of a [`NotificationQueue`].
pub(super) struct WaitingNotifications {
    receiver: mpsc::Receiver<ClientNotification>,
    // Cancelled when the session starts to close.
    ending: CancellationToken,
}

impl WaitingNotifications {
    /// Returns `None` at the end of the session, after what was waiting by then.
    pub(super) async fn next(&mut self) -> Option<ClientNotification> {
        let ended = self.ending.cancelled();
        if !self.receiver.is_closed() {
            tokio::select! {
                next = self.receiver.recv() => return next,
                () = ended => self.receiver.close(),
            }
        }
        self.receiver.recv().await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_notifications_is_cut_and_passed_on_in_order() {
        let ending = CancellationToken::new();
        let (mut queue, mut waiting) = NotificationQueue::new(ending.clone());
        for number in 0..10_000 {
            queue.push(ClientNotification::new(
                format!("thing/{number}"),
                Value::Null,
            ));
        }
        // The first one that was dropped was reported at once.
        assert_eq!(queue.dropped, 10_000 - MAX_WAITING as u64 - 1);
        tokio::time::advance(WARNING_INTERVAL).await;
        queue.push(ClientNotification::new(
            "thing/late".to_owned(),
            Value::Null,
        ));
        assert_eq!(queue.dropped, 0);

        ending.cancel();
        let mut passed = Vec::new();
        while let Some(notification) = waiting.next().await {
            passed.push(notification.method);
        }
        let expected: Vec<String> = (0..MAX_WAITING).map(|n| format!("thing/{n}")).collect();
        assert_eq!(passed, expected);
    }
}
