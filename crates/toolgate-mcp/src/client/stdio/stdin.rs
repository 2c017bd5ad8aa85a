//! Writes whole messages to a server's stdin, even if a sender is cancelled in the middle of one.

use std::io;
use std::time::Duration;

use tokio::net::unix::pipe::Sender;
use tokio::sync::{Mutex, Notify};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::client::transport::{FailureReason, TransportError};

/// The stdin of a server. The sender's own task writes, so most messages cost one system call
/// and no task switch.
pub(super) struct ServerStdin {
    server: String,
    pipe: Mutex<Option<StdinPipe>>,
    /// Cancelled on close, which ends every wait for the pipe.
    closed: CancellationToken,
    broken: Notify,
}

struct StdinPipe {
    sender: Sender,
    // A message that is partly written. If its sender is cancelled, the next
    // sender writes the rest.
    unfinished: Vec<u8>,
    written: usize,
}

impl ServerStdin {
    pub(super) fn new(server: &str, sender: Sender) -> Self {
        Self {
            server: server.to_owned(),
            pipe: Mutex::new(Some(StdinPipe {
                sender,
                unfinished: Vec::new(),
                written: 0,
            })),
            closed: CancellationToken::new(),
            broken: Notify::new(),
        }
    }

    /// Writes one whole message. Waits while the server doesn't read. Cancel safe.
    pub(super) async fn send(&self, message: Vec<u8>) -> Result<(), TransportError> {
        let mut pipe = self.pipe.lock().await;
        if self.closed.is_cancelled() {
            pipe.take();
        }
        let Some(pipe) = pipe.as_mut() else {
            return Err(TransportError::NotSent(self.closed_reason()));
        };
        let unfinished = self.write_unfinished(pipe).await;
        unfinished.map_err(TransportError::NotSent)?;
        let written = self.write(&pipe.sender, &message).await;
        let written = written.map_err(TransportError::NotSent)?;
        if written == message.len() {
            return Ok(());
        }
        (pipe.unfinished, pipe.written) = (message, written);
        let finished = self.write_unfinished(pipe).await;
        finished.map_err(TransportError::Interrupted)
    }

    pub(super) async fn wait_broken(&self) {
        self.broken.notified().await;
    }

    pub(super) async fn close(&self) {
        // Waiting senders return at once, unless their future isn't polled.
        const LOCK_TIMEOUT: Duration = Duration::from_millis(100);
        self.closed.cancel();
        if let Ok(mut pipe) = timeout(LOCK_TIMEOUT, self.pipe.lock()).await {
            pipe.take();
        }
    }

    async fn write_unfinished(&self, pipe: &mut StdinPipe) -> Result<(), FailureReason> {
        while pipe.written < pipe.unfinished.len() {
            let rest = &pipe.unfinished[pipe.written..];
            pipe.written += self.write(&pipe.sender, rest).await?;
        }
        pipe.unfinished = Vec::new();
        pipe.written = 0;
        Ok(())
    }

    /// Writes some bytes. If the future is dropped, none were written.
    async fn write(&self, sender: &Sender, bytes: &[u8]) -> Result<usize, FailureReason> {
        loop {
            match sender.try_write(bytes) {
                Ok(written) => return Ok(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => {
                    self.broken.notify_one();
                    let server = &self.server;
                    let reason = format!("MCP server '{server}' does not read its stdin any more");
                    return Err(reason.into());
                }
            }
            tokio::select! {
                // An error here means that the pipe is unusable.
                ready = sender.writable() => ready.map_err(|_| self.closed_reason())?,
                () = self.closed.cancelled() => return Err(self.closed_reason()),
            }
        }
    }

    fn closed_reason(&self) -> FailureReason {
        format!("MCP server '{}' is not running any more", self.server).into()
    }
}
