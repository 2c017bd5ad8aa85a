//! A server's stdin: whole messages, one after the other, whoever sends them and whoever gives up.

use std::io;
use std::time::Duration;

use tokio::net::unix::pipe::Sender;
use tokio::sync::{Mutex, Notify};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::client::transport::TransportError;

/// Where messages are written. The sender's own task writes: the usual message costs one system call and no hop.
pub(super) struct Stdin {
    server: String,
    pipe: Mutex<Option<Pipe>>,
    /// Nobody may wait for the pipe any longer.
    over: CancellationToken,
    /// The server has closed its end.
    broken: Notify,
}

struct Pipe {
    sender: Sender,
    /// A message that was begun, and how much of it is written. A sender that gave up leaves it to the next one.
    begun: Vec<u8>,
    written: usize,
}

enum Hindrance {
    Broken,
    Over,
}

impl Stdin {
    pub(super) fn new(server: &str, sender: Sender) -> Self {
        Self {
            server: server.to_owned(),
            pipe: Mutex::new(Some(Pipe {
                sender,
                begun: Vec::new(),
                written: 0,
            })),
            over: CancellationToken::new(),
            broken: Notify::new(),
        }
    }

    /// Writes one whole message. Waits as long as the server does not read; dropping the future is safe at any point.
    pub(super) async fn send(&self, message: Vec<u8>) -> Result<(), TransportError> {
        let mut pipe = self.pipe.lock().await;
        if self.over.is_cancelled() {
            pipe.take();
        }
        let Some(pipe) = pipe.as_mut() else {
            return Err(TransportError::NotSent(self.text(&Hindrance::Over).into()));
        };
        let not_sent = |hindrance| TransportError::NotSent(self.text(&hindrance).into());
        self.finish(pipe).await.map_err(not_sent)?;
        let written = self.write(&pipe.sender, &message).await.map_err(not_sent)?;
        if written == message.len() {
            return Ok(());
        }
        (pipe.begun, pipe.written) = (message, written);
        let finished = self.finish(pipe).await;
        finished.map_err(|hindrance| TransportError::Interrupted(self.text(&hindrance).into()))
    }

    /// Returns when the server has closed its end and somebody has noticed by writing.
    pub(super) async fn broken(&self) {
        self.broken.notified().await;
    }

    /// Closes the pipe: the server reads an end. Those who wait for it are sent away.
    pub(super) async fn close(&self) {
        /// They leave at once, unless somebody keeps a future without polling it.
        const LEAVING: Duration = Duration::from_millis(100);
        self.over.cancel();
        if let Ok(mut pipe) = timeout(LEAVING, self.pipe.lock()).await {
            pipe.take();
        }
    }

    async fn finish(&self, pipe: &mut Pipe) -> Result<(), Hindrance> {
        while pipe.written < pipe.begun.len() {
            let rest = &pipe.begun[pipe.written..];
            pipe.written += self.write(&pipe.sender, rest).await?;
        }
        pipe.begun = Vec::new();
        pipe.written = 0;
        Ok(())
    }

    /// Writes some bytes, once. If the future is dropped, none were written.
    async fn write(&self, sender: &Sender, bytes: &[u8]) -> Result<usize, Hindrance> {
        loop {
            match sender.try_write(bytes) {
                Ok(written) => return Ok(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => {
                    self.broken.notify_one();
                    return Err(Hindrance::Broken);
                }
            }
            tokio::select! {
                // A pipe that cannot be waited for is over as well.
                ready = sender.writable() => ready.map_err(|_| Hindrance::Over)?,
                () = self.over.cancelled() => return Err(Hindrance::Over),
            }
        }
    }

    fn text(&self, hindrance: &Hindrance) -> String {
        let what = match hindrance {
            Hindrance::Broken => "does not read its stdin any more",
            Hindrance::Over => "is not running any more",
        };
        format!("MCP server '{}' {what}", self.server)
    }
}
