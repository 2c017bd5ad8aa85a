//! The queue of messages to a client on a byte stream, one message per line.

use std::io;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::methods::ClientSink;

// Bytes. While more than this is unwritten, we don't read more requests.
const MAX_PENDING: usize = 16 * 1024 * 1024;

/// Queues messages until one of the tasks flushes them. A flush writes all of them, so under load
/// many messages share one write.
pub(super) struct Outbox {
    pending: Mutex<Vec<u8>>,
    writer: tokio::sync::Mutex<ClientWriter>,
    written: Notify,
    pub(super) broken: CancellationToken,
    failure: Mutex<Option<io::Error>>,
}

/// Keeps what is left of a write, because the flush that began it may be dropped: another flush
/// then goes on in the middle of the line.
struct ClientWriter {
    stream: Box<dyn AsyncWrite + Send + Unpin>,
    unwritten: Vec<u8>,
    // How much of `unwritten` has been written.
    done: usize,
}

impl ClientWriter {
    async fn write_all(&mut self) -> io::Result<()> {
        while self.done < self.unwritten.len() {
            match self.stream.write(&self.unwritten[self.done..]).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => self.done += written,
            }
        }
        self.unwritten.clear();
        self.done = 0;
        self.stream.flush().await
    }
}

impl Outbox {
    pub(super) fn new(writer: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        Self {
            pending: Mutex::default(),
            writer: tokio::sync::Mutex::new(ClientWriter {
                stream: Box::new(writer),
                unwritten: Vec::new(),
                done: 0,
            }),
            written: Notify::new(),
            broken: CancellationToken::new(),
            failure: Mutex::default(),
        }
    }

    /// Queues a message without waiting. Messages leave in the order in which they were pushed.
    pub(super) fn push(&self, message: &[u8]) {
        let mut pending = self.pending.lock();
        pending.extend_from_slice(message);
        pending.push(b'\n');
    }

    /// Cancel safe: what isn't written yet is left to the next flush.
    pub(super) async fn flush(&self) {
        let mut writer = self.writer.lock().await;
        // Taken under the writer's lock, so that two flushes can't write out of order.
        let bytes = std::mem::take(&mut *self.pending.lock());
        match writer.unwritten.is_empty() {
            true => writer.unwritten = bytes,
            false => writer.unwritten.extend_from_slice(&bytes),
        }
        if writer.unwritten.is_empty() || self.broken.is_cancelled() {
            return;
        }
        if let Err(error) = writer.write_all().await {
            self.fail(error);
        }
        self.written.notify_waiters();
    }

    pub(super) async fn wait_for_space(&self) {
        loop {
            let written = self.written.notified();
            if self.pending.lock().len() <= MAX_PENDING {
                return;
            }
            written.await;
        }
    }

    pub(super) fn fail(&self, error: io::Error) {
        self.failure.lock().get_or_insert(error);
        self.broken.cancel();
    }

    /// Returns the error that ended the connection. A disconnected client isn't an error.
    pub(super) fn take_result(&self) -> io::Result<()> {
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
