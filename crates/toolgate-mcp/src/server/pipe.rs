//! rmcp's transport over a pair of byte streams.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use toolgate_core::escape;
use tracing::{debug, warn};

use super::lines::{Line, Lines};
use super::request::{self, Incoming};

/// A request may not be longer; the executor's own limit for arguments is far below.
const LONGEST_LINE: usize = 16 * 1024 * 1024;
/// While a client leaves more than this unread, nothing more is read from it.
const MOST_UNREAD: usize = 16 * 1024 * 1024;
/// How much of a line that is none of ours is logged.
const SHOWN: usize = 200;

/// Clones share one stream: a session that failed to begin leaves it to the next.
pub(super) struct Pipe<R, W>(Arc<Shared<R, W>>);

struct Shared<R, W> {
    lines: tokio::sync::Mutex<Lines<R>>,
    /// Of one message.
    max_values: usize,
    out: Outbox<W>,
    /// The client will send nothing more, or reads no more.
    ended: CancellationToken,
    failure: Mutex<Option<io::Error>>,
}

/// Messages that wait to be written. Whoever comes to write takes all there are: under load that is one write for many.
struct Outbox<W> {
    waiting: Mutex<Vec<u8>>,
    writer: tokio::sync::Mutex<W>,
    written: Notify,
}

impl<R: AsyncRead + Unpin, W> Pipe<R, W> {
    pub(super) fn new(reader: R, writer: W, max_values: usize) -> Self {
        Self(Arc::new(Shared {
            lines: tokio::sync::Mutex::new(Lines::new(reader, LONGEST_LINE)),
            max_values,
            out: Outbox {
                waiting: Mutex::default(),
                writer: tokio::sync::Mutex::new(writer),
                written: Notify::new(),
            },
            ended: CancellationToken::new(),
            failure: Mutex::default(),
        }))
    }
}

impl<R, W> Pipe<R, W> {
    /// Returns when the client has closed its end, or no longer reads.
    pub(super) async fn ended(&self) {
        self.0.ended.cancelled().await;
    }

    /// How it ended. A client that went away is no failure.
    pub(super) fn end(&self) -> io::Result<()> {
        let mut failure = self
            .0
            .failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match failure.take() {
            None => Ok(()),
            Some(error) => match error.kind() {
                io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Ok(()),
                _ => Err(error),
            },
        }
    }
}

impl<R, W> Shared<R, W> {
    fn fail(&self, error: io::Error) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(error);
        self.ended.cancel();
    }
}

impl<R: AsyncRead + Send + Unpin + 'static, W: AsyncWrite + Send + Unpin + 'static> Shared<R, W> {
    /// The next message; what is none is answered or passed over here.
    async fn receive(self: &Arc<Self>) -> Option<RxJsonRpcMessage<RoleServer>> {
        let mut lines = self.lines.lock().await;
        loop {
            self.out.has_room().await;
            let line = match lines.next().await {
                Ok(Some(line)) => line,
                Ok(None) => {
                    self.ended.cancel();
                    return None;
                }
                Err(error) => {
                    self.fail(error);
                    return None;
                }
            };
            match line {
                Line::Whole(line) => match request::read(&line, self.max_values) {
                    Incoming::Call { id, call } => return Some(call.into_message(id)),
                    Incoming::Request { id, request } => {
                        return Some(ClientJsonRpcMessage::request(*request, id));
                    }
                    Incoming::Notification(notification) => {
                        return Some(ClientJsonRpcMessage::notification(notification));
                    }
                    Incoming::Refused { id, error } => {
                        warn!(line = %shown(&line), problem = %error.message, "the client sent what is no request");
                        self.refuse(id, error);
                    }
                    Incoming::Ignored(why) => debug!(line = %shown(&line), why, "ignored a line"),
                },
                Line::TooLong { id } => {
                    warn!("the client sent a line of more than {LONGEST_LINE} bytes");
                    if let Some(id) = id.and_then(request_id) {
                        self.refuse(Some(id), too_long());
                    }
                }
            }
        }
    }

    /// In a task of its own: a receive may be dropped at any time.
    fn refuse(self: &Arc<Self>, id: Option<RequestId>, error: ErrorData) {
        self.push(&ServerJsonRpcMessage::error(error, id));
        let shared = Arc::clone(self);
        tokio::spawn(async move { shared.flush().await });
    }

    fn push(&self, message: &TxJsonRpcMessage<RoleServer>) {
        let mut waiting = self.out.waiting();
        let before = waiting.len();
        match serde_json::to_writer(&mut *waiting, message) {
            Ok(()) => waiting.push(b'\n'),
            Err(error) => {
                waiting.truncate(before);
                warn!(%error, "a message can not be written as JSON");
            }
        }
    }

    /// Writes all that waits. A failure ends the pipe; there is nobody left to tell.
    async fn flush(&self) {
        let mut writer = self.out.writer.lock().await;
        let bytes = std::mem::take(&mut *self.out.waiting());
        if bytes.is_empty() || self.ended_by_failure() {
            return;
        }
        let written = async {
            writer.write_all(&bytes).await?;
            writer.flush().await
        };
        if let Err(error) = written.await {
            self.fail(error);
        }
        self.out.written.notify_waiters();
    }

    fn ended_by_failure(&self) -> bool {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.is_some()
    }
}

impl<W> Outbox<W> {
    fn waiting(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn has_room(&self) {
        loop {
            let written = self.written.notified();
            if self.waiting().len() <= MOST_UNREAD {
                return;
            }
            written.await;
        }
    }
}

impl<R, W> Clone for Pipe<R, W> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R, W> Transport<RoleServer> for Pipe<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        // Queued at once: messages leave in the order in which they were sent.
        self.0.push(&message);
        let shared = Arc::clone(&self.0);
        async move {
            shared.flush().await;
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        tokio::select! {
            biased;
            () = self.0.ended.cancelled() => None,
            message = self.0.receive() => message,
        }
    }

    /// Nothing: everything sent is written by then, or the client does not read.
    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn request_id(id: Value) -> Option<RequestId> {
    serde_json::from_value(id).ok()
}

fn too_long() -> ErrorData {
    let text = format!("the request is longer than {LONGEST_LINE} bytes");
    ErrorData::invalid_request(text, None)
}

fn shown(line: &[u8]) -> String {
    escape(&String::from_utf8_lossy(&line[..line.len().min(SHOWN)]))
}
