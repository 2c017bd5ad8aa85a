//! Server-sent events: their encoding, and the log of one response from which clients resume.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::server::methods::ClientSink;

// How long a client waits before it reconnects.
const RETRY: Duration = Duration::from_secs(1);
// Bytes of one response that are kept for a client that may reconnect. Beyond that the oldest
// progress reports are dropped.
const MAX_LOG_BYTES: usize = 256 * 1024;

/// Names an event by the number of its stream in the session and its own number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventId {
    pub(super) stream: u64,
    pub(super) number: u64,
}

impl EventId {
    // The format of `Last-Event-ID`.
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

pub(super) fn event(id: Option<EventId>, message: &[u8]) -> Bytes {
    // JSON has no raw line breaks, so one `data:` line holds the whole message.
    let mut text = Vec::with_capacity(message.len() + 48);
    if let Some(id) = id {
        text.extend_from_slice(format!("id: {id}\n").as_bytes());
    }
    text.extend_from_slice(b"data: ");
    text.extend_from_slice(message);
    text.extend_from_slice(b"\n\n");
    text.into()
}

/// An empty event that gives a client an id to resume from before there is anything to send.
pub(super) fn priming_event(id: EventId) -> Bytes {
    format!("id: {id}\nretry: {}\ndata: \n\n", RETRY.as_millis()).into()
}

/// Keeps proxies and clients from taking the connection for dead.
pub(super) fn keep_alive_comment() -> Bytes {
    Bytes::from_static(b": \n\n")
}

/// The events of one response. Any number of readers may follow each other; the newest one wins.
pub(super) struct EventLog {
    // `None` if the client can't resume this stream.
    pub(super) stream: Option<u64>,
    state: Mutex<EventLogState>,
    changed: Notify,
    // Bytes kept by all logs of the server together.
    kept_bytes: Arc<AtomicUsize>,
}

#[derive(Default)]
struct EventLogState {
    events: VecDeque<Bytes>,
    // Events that were dropped from the front.
    dropped: u64,
    bytes: usize,
    is_over: bool,
    // The number of the latest reader. Earlier readers stop.
    reader: u64,
}

impl EventLog {
    pub(super) fn new(stream: Option<u64>, kept_bytes: Arc<AtomicUsize>) -> Arc<Self> {
        Arc::new(Self {
            stream,
            state: Mutex::default(),
            changed: Notify::new(),
            kept_bytes,
        })
    }

    pub(super) fn push(&self, message: &[u8]) {
        let mut state = self.state.lock();
        let number = state.dropped + state.events.len() as u64 + 1;
        let id = self.stream.map(|stream| EventId { stream, number });
        let event = event(id, message);
        state.bytes += event.len();
        self.kept_bytes.fetch_add(event.len(), Ordering::Relaxed);
        state.events.push_back(event);
        // The last event is the response itself, which is never dropped.
        while state.bytes > MAX_LOG_BYTES && state.events.len() > 1 {
            self.drop_oldest(&mut state);
        }
        drop(state);
        self.changed.notify_waiters();
    }

    fn drop_oldest(&self, state: &mut EventLogState) {
        if let Some(event) = state.events.pop_front() {
            state.dropped += 1;
            state.bytes -= event.len();
            self.kept_bytes.fetch_sub(event.len(), Ordering::Relaxed);
        }
    }

    pub(super) fn end(&self) {
        self.state.lock().is_over = true;
        self.changed.notify_waiters();
    }

    pub(super) fn is_over(&self) -> bool {
        self.state.lock().is_over
    }

    /// Reads the events after `number`. Ends every earlier reader.
    pub(super) fn read_from(self: &Arc<Self>, number: u64) -> EventReader {
        let mut state = self.state.lock();
        state.reader += 1;
        let reader = EventReader {
            number: state.reader,
            read: number,
            log: Arc::clone(self),
        };
        drop(state);
        self.changed.notify_waiters();
        reader
    }
}

// Never waits, because the log drops old reports: a slow client doesn't hold up its call.
impl ClientSink for EventLog {
    fn send(&self, message: Vec<u8>) -> BoxFuture<'_, bool> {
        self.push(&message);
        Box::pin(std::future::ready(true))
    }
}

impl Drop for EventLog {
    fn drop(&mut self) {
        let bytes = self.state.lock().bytes;
        self.kept_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

pub(super) struct EventReader {
    pub(super) log: Arc<EventLog>,
    number: u64,
    read: u64,
}

impl EventReader {
    /// Returns `None` at the end of the log or once there is a newer reader. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        loop {
            let log = Arc::clone(&self.log);
            let mut changed = std::pin::pin!(log.changed.notified());
            changed.as_mut().enable();
            {
                let mut state = log.state.lock();
                if state.reader != self.number {
                    return None;
                }
                let next = self.read.max(state.dropped);
                let at = (next - state.dropped) as usize;
                if let Some(event) = state.events.get(at).cloned() {
                    self.read = next + 1;
                    // Nobody can ask for it again, and a subscription may last for months.
                    if log.stream.is_none() && at == 0 {
                        log.drop_oldest(&mut state);
                    }
                    return Some(event);
                }
                if state.is_over {
                    return None;
                }
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn events_are_kept_only_for_clients_that_can_resume() {
        for (stream, is_kept) in [(None, false), (Some(7), true)] {
            let kept = Arc::new(AtomicUsize::new(0));
            let log = EventLog::new(stream, Arc::clone(&kept));
            let mut reader = log.read_from(0);
            for n in 1..=3 {
                log.push(format!("{n}").as_bytes());
                log.push(b"x");
                for text in [n.to_string().as_str(), "x"] {
                    let event = reader.next().await.unwrap();
                    let data = format!("data: {text}\n\n");
                    assert!(event.ends_with(data.as_bytes()), "{event:?}");
                }
            }
            log.end();
            assert_eq!(reader.next().await, None);
            assert_eq!(kept.load(Ordering::Relaxed) > 0, is_kept);
        }
    }
}
