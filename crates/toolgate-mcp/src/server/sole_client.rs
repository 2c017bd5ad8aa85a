//! The only client of a process, which gets what servers log outside of calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use toolgate_core::{LogHandler, LogLevel, LogMessage};

use super::client_log::{ClientLogLevel, WaitingLogs};
use super::methods::ClientSink;
use crate::SoleClientLog;

/// Belongs to the first client with a session of its own. Once there is a second client, nobody
/// knows any more who caused a message, and nobody gets one.
#[derive(Default)]
pub(super) struct SoleClient {
    level: Arc<ClientLogLevel>,
    waiting: WaitingLogs,
    clients: AtomicUsize,
}

impl SoleClient {
    /// The log level of a new client, if it is the first.
    pub(super) fn admit(&self) -> Option<Arc<ClientLogLevel>> {
        let before = self.clients.fetch_add(1, Ordering::Relaxed);
        (before == 0).then(|| Arc::clone(&self.level))
    }

    /// Clients over HTTP may be any number.
    pub(super) fn admit_any(&self) {
        self.clients.fetch_add(2, Ordering::Relaxed);
    }

    pub(super) fn to_log(self: &Arc<Self>) -> SoleClientLog {
        SoleClientLog {
            handler: Arc::clone(self) as Arc<dyn LogHandler>,
            levels: self.level.watch(),
        }
    }

    /// Sends what servers log until the client is gone.
    pub(super) async fn send_logs(&self, sink: &dyn ClientSink) {
        loop {
            self.waiting.added.notified().await;
            for message in self.waiting.take() {
                if !sink.send(message).await {
                    return;
                }
            }
        }
    }
}

impl LogHandler for SoleClient {
    fn level(&self) -> Option<LogLevel> {
        let is_sole = self.clients.load(Ordering::Relaxed) == 1;
        self.level.get().filter(|_| is_sole)
    }

    fn caller(&self) -> u64 {
        self.level.client
    }

    fn log(&self, message: LogMessage) {
        self.waiting.add(message);
    }
}
