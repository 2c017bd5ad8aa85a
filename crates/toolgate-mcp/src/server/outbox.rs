//! Queues messages for a client that reads lines.

use std::io;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::methods::ClientSink;

// While a client leaves more than this unread, we stop reading from it.
const MAX_UNREAD: usize = 16 * 1024 * 1024;

/// Messages that wait to be written. Whoever flushes writes all of them: under load that is one
/// write for many messages.
pub(super) struct Outbox {
    waiting: Mutex<Vec<u8>>,
    writer: tokio::sync::Mutex<Box<dyn AsyncWrite + Send + Unpin>>,
    written: Notify,
    pub(super) broken: CancellationToken,
    failure: Mutex<Option<io::Error>>,
}

impl Outbox {
    pub(super) fn new(writer: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        Self {
            waiting: Mutex::default(),
            writer: tokio::sync::Mutex::new(Box::new(writer)),
            written: Notify::new(),
            broken: CancellationToken::new(),
            failure: Mutex::default(),
        }
    }

    /// Queues a message without waiting. Messages leave in the order in which they were pushed.
    pub(super) fn push(&self, message: &[u8]) {
        let mut waiting = self.waiting.lock();
        waiting.extend_from_slice(message);
        waiting.push(b'\n');
    }

    pub(super) async fn flush(&self) {
        let mut writer = self.writer.lock().await;
        // Taken under the writer's lock, so that two flushes can't write out of order.
        let bytes = std::mem::take(&mut *self.waiting.lock());
        if bytes.is_empty() || self.broken.is_cancelled() {
            return;
        }
        let written = async {
            writer.write_all(&bytes).await?;
            writer.flush().await
        };
        if let Err(error) = written.await {
            self.fail(error);
        }
        self.written.notify_waiters();
    }

    pub(super) async fn wait_for_room(&self) {
        loop {
            let written = self.written.notified();
            if self.waiting.lock().len() <= MAX_UNREAD {
                return;
            }
            written.await;
        }
    }

    pub(super) fn fail(&self, error: io::Error) {
        self.failure.lock().get_or_insert(error);
        self.broken.cancel();
    }

    /// How the connection ended. A client that disconnects is not an error.
    pub(super) fn outcome(&self) -> io::Result<()> {
        use io::ErrorKind::{BrokenPipe, ConnectionReset};
        match self.failure.lock().take() {
            Some(error) if !matches!(error.kind(), BrokenPipe | ConnectionReset) => Err(error),
            _ => Ok(()),
        }
    }
}

impl ClientSink for Outbox {
    fn send(&self, message: Vec<u8>) -> BoxFuture<'_, bool> {
        self.push(&message);
        Box::pin(async {
            self.flush().await;
            !self.broken.is_cancelled()
        })
    }
}
