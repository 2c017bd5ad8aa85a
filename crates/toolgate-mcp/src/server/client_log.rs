//! The log messages of running calls, and which of them each client wants.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use toolgate_core::{LogHandler, LogLevel, LogMessage, sanitize};

use super::client_message::RequestMeta;
use super::jsonrpc::{RequestError, notification};
use super::methods::RequestContext;

// What waits for a slow client. Later messages are left out.
const MAX_WAITING: usize = 64;
const MAX_WAITING_BYTES: u64 = 256 << 10;
/// Names us in the messages that we add.
const OWN_LOGGER: &str = "toolgate";

/// The least severe level that a client wants. In a session it holds until the client sets another
/// one, in 2026-07-28 for one request.
pub(super) struct ClientLogLevel {
    level: watch::Sender<Option<LogLevel>>,
    // Tells clients apart.
    pub(super) client: u64,
}

impl Default for ClientLogLevel {
    fn default() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self {
            level: watch::Sender::new(None),
            client: LAST.fetch_add(1, Ordering::Relaxed),
        }
    }
}

impl ClientLogLevel {
    pub(super) fn get(&self) -> Option<LogLevel> {
        *self.level.borrow()
    }

    pub(super) fn set(&self, level: Option<LogLevel>) {
        self.level.send_replace(level);
    }

    pub(super) fn watch(&self) -> watch::Receiver<Option<LogLevel>> {
        self.level.subscribe()
    }

    /// Answers `logging/setLevel`.
    pub(super) fn set_from_params(&self, params: &Value) -> Result<Value, RequestError> {
        self.set(Some(parse_level(&params["level"])?));
        Ok(json!({}))
    }
}

impl RequestContext<'_> {
    /// The level that the client wants for a call, if it wants messages and can get them.
    pub(super) fn wanted_log_level(&self, meta: &RequestMeta) -> Option<Arc<ClientLogLevel>> {
        self.sink?;
        if let Some(level) = self.log_level {
            return level.get().map(|_| Arc::clone(level));
        }
        let wanted = meta.log_level().ok().flatten()?;
        let level = ClientLogLevel::default();
        level.set(Some(wanted));
        Some(Arc::new(level))
    }
}

pub(super) fn parse_level(name: &Value) -> Result<LogLevel, RequestError> {
    name.as_str().and_then(LogLevel::from_name).ok_or_else(|| {
        RequestError::invalid_params(
            "unknown log level: send debug, info, notice, warning, error, critical, alert or emergency",
        )
    })
}

/// Messages that wait to be sent, of one call or of none.
#[derive(Default)]
pub(super) struct WaitingLogs {
    state: Mutex<WaitingState>,
    pub(super) added: Arc<Notify>,
}

#[derive(Default)]
struct WaitingState {
    messages: VecDeque<LogMessage>,
    bytes: u64,
    left_out: u64,
}

impl WaitingLogs {
    pub(super) fn new(added: Arc<Notify>) -> Self {
        Self {
            added,
            ..Self::default()
        }
    }

    pub(super) fn add(&self, message: LogMessage) {
        let bytes = sanitize::length(&message.data);
        let mut state = self.state.lock();
        let has_room =
            state.messages.len() < MAX_WAITING && state.bytes + bytes <= MAX_WAITING_BYTES;
        if has_room {
            state.bytes += bytes;
            state.messages.push_back(message);
        } else {
            state.left_out += 1;
        }
        self.added.notify_one();
    }

    /// Takes what waits, as notifications.
    pub(super) fn take(&self) -> Vec<Vec<u8>> {
        let mut state = self.state.lock();
        let left_out = std::mem::take(&mut state.left_out);
        state.bytes = 0;
        let waiting = std::mem::take(&mut state.messages);
        drop(state);
        let notice = (left_out > 0).then(|| LogMessage {
            level: LogLevel::Warning,
            logger: Some(OWN_LOGGER.to_owned()),
            data: format!("{left_out} log messages were left out: there were too many at once")
                .into(),
            meta: None,
        });
        waiting
            .into_iter()
            .chain(notice)
            .map(to_notification)
            .collect()
    }
}

fn to_notification(message: LogMessage) -> Vec<u8> {
    let mut params = json!({ "level": message.level.as_str() });
    if let Some(logger) = message.logger {
        params["logger"] = logger.into();
    }
    params["data"] = message.data;
    if let Some(meta) = message.meta {
        params["_meta"] = Value::Object(meta);
    }
    notification("notifications/message", params)
}

/// Takes the messages of one call.
pub(super) struct CallLog {
    pub(super) level: Arc<ClientLogLevel>,
    pub(super) waiting: Arc<WaitingLogs>,
}

impl LogHandler for CallLog {
    fn level(&self) -> Option<LogLevel> {
        self.level.get()
    }

    fn caller(&self) -> u64 {
        self.level.client
    }

    fn log(&self, message: LogMessage) {
        self.waiting.add(message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(data: impl Into<Value>) -> LogMessage {
        LogMessage {
            level: LogLevel::Info,
            logger: None,
            data: data.into(),
            meta: None,
        }
    }

    #[test]
    fn a_flood_is_cut_and_the_client_learns_how_much_is_missing() {
        let logs = WaitingLogs::default();
        for number in 0..1000 {
            logs.add(message(number));
        }
        let sent = logs.take();
        assert_eq!(sent.len(), MAX_WAITING + 1);
        let notice: Value = serde_json::from_slice(&sent[MAX_WAITING]).unwrap();
        assert_eq!(notice["params"]["level"], "warning");
        let text = notice["params"]["data"].as_str().unwrap();
        assert!(text.starts_with("936 log messages were left out"), "{text}");

        for _ in 0..10 {
            logs.add(message("x".repeat(100 << 10)));
        }
        assert_eq!(logs.take().len(), 2 + 1);
        logs.add(message("again"));
        assert_eq!(logs.take().len(), 1);
    }
}
