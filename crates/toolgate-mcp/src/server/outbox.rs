//! What goes to a client that reads lines.

use std::io;

use futures::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::methods::ClientSink;

/// While a client leaves more than this unread, nothing more is read from it.
const MOST_UNREAD: usize = 16 * 1024 * 1024;

/// Messages that wait to be written. Whoever comes to write takes all there are: under load that is
/// one write for many.
pub(super) struct Outbox {
    waiting: Mutex<Vec<u8>>,
    writer: tokio::sync::Mutex<Box<dyn AsyncWrite + Send + Unpin>>,
    written: Notify,
    broken: CancellationToken,
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

    fn waiting(&self) -> MutexGuard<'_, Vec<u8>> {
        self.waiting.lock()
    }

    /// Queues a message at once: messages leave in the order in which they were pushed.
    pub(super) fn push(&self, message: &[u8]) {
        let mut waiting = self.waiting();
        waiting.extend_from_slice(message);
        waiting.push(b'\n');
    }

    pub(super) async fn flush(&self) {
        let mut writer = self.writer.lock().await;
        let bytes = std::mem::take(&mut *self.waiting());
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

    /// Returns when the client has read enough of what waits for it.
    pub(super) async fn has_room(&self) {
        loop {
            let written = self.written.notified();
            if self.waiting().len() <= MOST_UNREAD {
                return;
            }
            written.await;
        }
    }

    /// The connection is of no use any more; there is nobody left to tell.
    pub(super) fn fail(&self, error: io::Error) {
        let mut failure = self.failure.lock();
        failure.get_or_insert(error);
        self.broken.cancel();
    }

    /// Returns when the connection has failed.
    pub(super) async fn broken(&self) {
        self.broken.cancelled().await;
    }

    /// How it ended. A client that went away is no failure.
    pub(super) fn outcome(&self) -> io::Result<()> {
        let mut failure = self.failure.lock();
        match failure.take() {
            None => Ok(()),
            Some(error) => match error.kind() {
                io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Ok(()),
                _ => Err(error),
            },
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
