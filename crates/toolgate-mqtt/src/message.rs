//! Incoming messages, and the queue between a connection and a reader.

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use bytes::Bytes;
use tokio::sync::mpsc;

/// A message that was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MqttMessage {
    pub topic: String,
    pub payload: Bytes,
    /// True if the broker had retained it, so that it may be old.
    pub retained: bool,
}

impl MqttMessage {
    fn bytes(&self) -> usize {
        self.topic.len() + self.payload.len()
    }
}

/// Whether the broker is connected.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MqttState {
    Offline {
        /// The cause and what to do, as sentences for a person.
        reason: String,
    },
    Online,
}

/// The messages of one topic filter, until it is dropped.
#[derive(Debug)]
pub struct TopicSubscription {
    messages: mpsc::Receiver<MqttMessage>,
    // `None` for a subscription whose sender is outside this crate.
    backlog: Option<Arc<ReaderBacklog>>,
}

impl TopicSubscription {
    /// A subscription that is fed by a channel, for other implementations of `Mqtt`.
    pub fn new(messages: mpsc::Receiver<MqttMessage>) -> Self {
        Self {
            messages,
            backlog: None,
        }
    }

    /// The next message; `None` once the connection is closed for good.
    pub async fn next(&mut self) -> Option<MqttMessage> {
        let message = self.messages.recv().await?;
        if let Some(backlog) = &self.backlog {
            backlog.remove(&message);
        }
        Some(message)
    }

    /// The messages dropped so far because the reader was too slow. If it grows, request
    /// the current state again.
    pub fn dropped(&self) -> u64 {
        self.backlog
            .as_ref()
            .map_or(0, |backlog| backlog.dropped.load(Ordering::Relaxed))
    }
}

#[derive(Debug, Default)]
struct ReaderBacklog {
    bytes: AtomicUsize,
    dropped: AtomicU64,
}

impl ReaderBacklog {
    fn remove(&self, message: &MqttMessage) {
        self.bytes.fetch_sub(message.bytes(), Ordering::Relaxed);
    }
}

// The sending end of a subscription. Never blocks, and its queue is bounded.
#[derive(Debug)]
pub(crate) struct SubscriptionFeed {
    messages: mpsc::Sender<MqttMessage>,
    backlog: Arc<ReaderBacklog>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FeedOutcome {
    Queued,
    Dropped,
    Closed,
}

impl SubscriptionFeed {
    // The memory limit of one reader's queue.
    const MAX_BYTES: usize = 32 * 1024 * 1024;

    pub(crate) fn new(capacity: usize) -> (Self, TopicSubscription) {
        let (sender, messages) = mpsc::channel(capacity.clamp(1, 1_000_000));
        let backlog = Arc::<ReaderBacklog>::default();
        let feed = Self {
            messages: sender,
            backlog: backlog.clone(),
        };
        let backlog = Some(backlog);
        (feed, TopicSubscription { messages, backlog })
    }

    pub(crate) fn try_send(&self, message: MqttMessage) -> FeedOutcome {
        let bytes = message.bytes();
        let waiting = self.backlog.bytes.load(Ordering::Relaxed);
        let fits = waiting == 0 || waiting + bytes <= Self::MAX_BYTES;
        // Added before the reader can subtract it, so the count never underflows.
        self.backlog.bytes.fetch_add(bytes, Ordering::Relaxed);
        let outcome = match self.messages.try_reserve() {
            Ok(permit) if fits => {
                permit.send(message);
                return FeedOutcome::Queued;
            }
            Err(mpsc::error::TrySendError::Closed(())) => FeedOutcome::Closed,
            Ok(_) | Err(mpsc::error::TrySendError::Full(())) => FeedOutcome::Dropped,
        };
        self.backlog.bytes.fetch_sub(bytes, Ordering::Relaxed);
        if outcome == FeedOutcome::Dropped {
            self.backlog.dropped.fetch_add(1, Ordering::Relaxed);
        }
        outcome
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.messages.is_closed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: usize) -> MqttMessage {
        MqttMessage {
            topic: String::new(),
            payload: vec![0; bytes].into(),
            retained: false,
        }
    }

    #[tokio::test]
    async fn a_slow_reader_loses_messages_and_can_count_them() {
        let (feed, mut reader) = SubscriptionFeed::new(2);
        assert_eq!(feed.try_send(message(1)), FeedOutcome::Queued);
        assert_eq!(feed.try_send(message(1)), FeedOutcome::Queued);
        assert_eq!(feed.try_send(message(1)), FeedOutcome::Dropped);
        assert_eq!(reader.dropped(), 1);
        reader.next().await.unwrap();
        assert_eq!(feed.try_send(message(1)), FeedOutcome::Queued);
    }

    #[tokio::test]
    async fn a_queue_is_bounded_in_bytes_too() {
        let (feed, mut reader) = SubscriptionFeed::new(1000);
        let third = SubscriptionFeed::MAX_BYTES / 3;
        for _ in 0..3 {
            assert_eq!(feed.try_send(message(third)), FeedOutcome::Queued);
        }
        assert_eq!(feed.try_send(message(third)), FeedOutcome::Dropped);
        reader.next().await.unwrap();
        assert_eq!(feed.try_send(message(third)), FeedOutcome::Queued);
        for _ in 0..3 {
            reader.next().await.unwrap();
        }
        // The queue is empty, so even a larger message is queued: it would never fit otherwise.
        assert_eq!(
            feed.try_send(message(SubscriptionFeed::MAX_BYTES + 1)),
            FeedOutcome::Queued
        );
    }

    #[tokio::test]
    async fn nothing_is_queued_for_a_dropped_reader() {
        let (feed, reader) = SubscriptionFeed::new(2);
        drop(reader);
        assert!(feed.is_closed());
        assert_eq!(feed.try_send(message(1)), FeedOutcome::Closed);
    }
}
