//! Server-sent events: their text, and those of one answer until the client has them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::server::methods::ClientSink;

/// After a line like this a client that lost its connection waits so long. A second is short for a person and long for a network.
const RETRY: Duration = Duration::from_secs(1);
/// Bytes of one answer that are kept for a client that may come back; beyond that the oldest reports go.
const MOST_KEPT: usize = 256 * 1024;

/// An event's place: the number of its stream in the session, and its own number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventId {
    pub(super) stream: u64,
    pub(super) number: u64,
}

impl EventId {
    /// As it comes back in `Last-Event-ID`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (stream, number) = text.split_once('-')?;
        Some(Self {
            stream: stream.parse().ok()?,
            number: number.parse().ok()?,
        })
    }
}

impl std::fmt::Display for EventId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.stream, self.number)
    }
}

/// A message as an event. JSON has no line breaks of its own.
pub(super) fn event(id: Option<EventId>, message: &[u8]) -> Bytes {
    let mut text = Vec::with_capacity(message.len() + 48);
    if let Some(id) = id {
        text.extend_from_slice(format!("id: {id}\n").as_bytes());
    }
    text.extend_from_slice(b"data: ");
    text.extend_from_slice(message);
    text.extend_from_slice(b"\n\n");
    text.into()
}

/// Gives a client, before there is anything to tell, the place to come back to.
pub(super) fn priming(id: EventId) -> Bytes {
    format!("id: {id}\nretry: {}\ndata: \n\n", RETRY.as_millis()).into()
}

/// Says nothing, but keeps a connection from being taken for dead.
pub(super) fn comment() -> Bytes {
    Bytes::from_static(b": \n\n")
}

/// The events of one answer: what its call writes and its client reads.
pub(super) struct EventLog {
    /// None: its client can not come back.
    pub(super) stream: Option<u64>,
    state: Mutex<State>,
    news: Notify,
    /// Bytes kept by all logs of the server.
    kept: Arc<AtomicUsize>,
}

#[derive(Default)]
struct State {
    events: VecDeque<Bytes>,
    /// How many there were before those.
    gone: u64,
    bytes: usize,
    is_over: bool,
    /// Whoever reads; the latest to come.
    reader: u64,
}

impl EventLog {
    pub(super) fn new(stream: Option<u64>, kept: Arc<AtomicUsize>) -> Arc<Self> {
        Arc::new(Self {
            stream,
            state: Mutex::default(),
            news: Notify::new(),
            kept,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(super) fn push(&self, message: &[u8]) {
        let mut state = self.state();
        let number = state.gone + state.events.len() as u64 + 1;
        let event = event(
            self.stream.map(|stream| EventId { stream, number }),
            message,
        );
        state.bytes += event.len();
        self.kept.fetch_add(event.len(), Ordering::Relaxed);
        state.events.push_back(event);
        // The last one is the answer, which is never given up.
        while state.bytes > MOST_KEPT && state.events.len() > 1 {
            if let Some(event) = state.events.pop_front() {
                state.gone += 1;
                state.bytes -= event.len();
                self.kept.fetch_sub(event.len(), Ordering::Relaxed);
            }
        }
        drop(state);
        self.news.notify_waiters();
    }

    pub(super) fn end(&self) {
        self.state().is_over = true;
        self.news.notify_waiters();
    }

    pub(super) fn is_over(&self) -> bool {
        self.state().is_over
    }

    /// Starts to read, behind the event of this number. Whoever read so far reads no more: its connection is broken.
    pub(super) fn read_from(self: &Arc<Self>, number: u64) -> EventReader {
        let mut state = self.state();
        state.reader += 1;
        let reader = EventReader {
            number: state.reader,
            read: number,
            log: Arc::clone(self),
        };
        drop(state);
        self.news.notify_waiters();
        reader
    }
}

/// A client that doesn't read holds up nobody: the log is bounded, and gives up old reports.
impl ClientSink for EventLog {
    fn send(&self, message: Vec<u8>) -> BoxFuture<'_, bool> {
        self.push(&message);
        Box::pin(std::future::ready(true))
    }
}

impl Drop for EventLog {
    fn drop(&mut self) {
        let bytes = self.state().bytes;
        self.kept.fetch_sub(bytes, Ordering::Relaxed);
    }
}

pub(super) struct EventReader {
    pub(super) log: Arc<EventLog>,
    number: u64,
    read: u64,
}

impl EventReader {
    /// The next event; none at the end, and none when another one reads. A dropped call loses nothing.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        loop {
            let log = Arc::clone(&self.log);
            let mut news = std::pin::pin!(log.news.notified());
            news.as_mut().enable();
            {
                let state = log.state();
                if state.reader != self.number {
                    return None;
                }
                let next = self.read.max(state.gone);
                if let Some(event) = state.events.get((next - state.gone) as usize) {
                    self.read = next + 1;
                    return Some(event.clone());
                }
                if state.is_over {
                    return None;
                }
            }
            news.await;
        }
    }
}
