//! What comes in.

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use bytes::Bytes;
use tokio::sync::mpsc;

/// A message that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Where it was published.
    pub topic: String,
    /// What was published.
    pub payload: Bytes,
    /// True if the broker kept it from before: what it tells may be old.
    pub retained: bool,
}

impl Message {
    fn bytes(&self) -> usize {
        self.topic.len() + self.payload.len()
    }
}

/// How a connection is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// Not there, or not there yet.
    Offline {
        /// Why, for a person, and what to do.
        reason: String,
    },
    /// There.
    Online,
}

/// The messages of one topic filter.
#[derive(Debug)]
pub struct Subscription {
    messages: mpsc::Receiver<Message>,
    /// Whoever feeds it by hand counts nothing.
    backlog: Option<Arc<Backlog>>,
}

impl Subscription {
    /// Fed by whoever holds the other end; for connections, and for tests.
    pub fn new(messages: mpsc::Receiver<Message>) -> Self {
        Self {
            messages,
            backlog: None,
        }
    }

    /// The next one; `None` once the connection was closed for good.
    pub async fn next(&mut self) -> Option<Message> {
        let message = self.messages.recv().await?;
        if let Some(backlog) = &self.backlog {
            backlog.took(&message);
        }
        Some(message)
    }

    /// How many messages were dropped so far because this reader was too slow. When it grows, what is known may be old: ask anew.
    pub fn dropped(&self) -> u64 {
        self.backlog
            .as_ref()
            .map_or(0, |backlog| backlog.dropped.load(Ordering::Relaxed))
    }
}

/// What waits for a reader.
#[derive(Debug, Default)]
struct Backlog {
    bytes: AtomicUsize,
    dropped: AtomicU64,
}

impl Backlog {
    fn took(&self, message: &Message) {
        self.bytes.fetch_sub(message.bytes(), Ordering::Relaxed);
    }
}

/// The end of a subscription that is fed: never waits, never grows without bound.
#[derive(Debug)]
pub(crate) struct Feed {
    messages: mpsc::Sender<Message>,
    backlog: Arc<Backlog>,
}

/// What became of a message for a reader.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fed {
    Taken,
    /// The reader is too slow.
    Dropped,
    Gone,
}

impl Feed {
    /// What waits for one reader takes no more memory than this.
    const MOST_BYTES: usize = 32 * 1024 * 1024;

    pub(crate) fn new(most: usize) -> (Self, Subscription) {
        let (sender, messages) = mpsc::channel(most.clamp(1, 1_000_000));
        let backlog = Arc::<Backlog>::default();
        let feed = Self {
            messages: sender,
            backlog: backlog.clone(),
        };
        let backlog = Some(backlog);
        (feed, Subscription { messages, backlog })
    }

    pub(crate) fn put(&self, message: Message) -> Fed {
        let bytes = message.bytes();
        let waiting = self.backlog.bytes.load(Ordering::Relaxed);
        let fits = waiting == 0 || waiting + bytes <= Self::MOST_BYTES;
        // Counted in before the reader can count it out.
        self.backlog.bytes.fetch_add(bytes, Ordering::Relaxed);
        let outcome = match self.messages.try_reserve() {
            Ok(place) if fits => {
                place.send(message);
                return Fed::Taken;
            }
            Err(mpsc::error::TrySendError::Closed(())) => Fed::Gone,
            Ok(_) | Err(mpsc::error::TrySendError::Full(())) => Fed::Dropped,
        };
        self.backlog.bytes.fetch_sub(bytes, Ordering::Relaxed);
        if outcome == Fed::Dropped {
            self.backlog.dropped.fetch_add(1, Ordering::Relaxed);
        }
        outcome
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.messages.is_closed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: usize) -> Message {
        Message {
            topic: String::new(),
            payload: vec![0; bytes].into(),
            retained: false,
        }
    }

    #[tokio::test]
    async fn a_slow_reader_loses_what_does_not_fit_and_can_tell() {
        let (feed, mut reader) = Feed::new(2);
        assert_eq!(feed.put(message(1)), Fed::Taken);
        assert_eq!(feed.put(message(1)), Fed::Taken);
        assert_eq!(feed.put(message(1)), Fed::Dropped);
        assert_eq!(reader.dropped(), 1);
        reader.next().await.unwrap();
        assert_eq!(feed.put(message(1)), Fed::Taken);
    }

    #[tokio::test]
    async fn what_waits_is_bounded_in_bytes_too() {
        let (feed, mut reader) = Feed::new(1000);
        let third = Feed::MOST_BYTES / 3;
        for _ in 0..3 {
            assert_eq!(feed.put(message(third)), Fed::Taken);
        }
        assert_eq!(feed.put(message(third)), Fed::Dropped);
        reader.next().await.unwrap();
        assert_eq!(feed.put(message(third)), Fed::Taken);
        for _ in 0..3 {
            reader.next().await.unwrap();
        }
        // One alone always passes, however large: nobody would ever get it otherwise.
        assert_eq!(feed.put(message(Feed::MOST_BYTES + 1)), Fed::Taken);
    }

    #[tokio::test]
    async fn nothing_is_kept_for_a_reader_that_is_gone() {
        let (feed, reader) = Feed::new(2);
        drop(reader);
        assert!(feed.is_gone());
        assert_eq!(feed.put(message(1)), Fed::Gone);
    }
}
