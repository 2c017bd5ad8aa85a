//! What comes in.

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
}

impl Subscription {
    /// Fed by whoever holds the other end; for connections, and for tests.
    pub fn new(messages: mpsc::Receiver<Message>) -> Self {
        Self { messages }
    }

    /// The next one; `None` once the connection was closed for good.
    pub async fn next(&mut self) -> Option<Message> {
        self.messages.recv().await
    }
}
