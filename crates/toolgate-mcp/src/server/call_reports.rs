//! Relays what a running tool reports, progress, log messages and notifications of extensions, to
//! the client that asked for it.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;
use toolgate_core::{LogLevel, Progress, ToolCall};

use super::client_log::{CallLog, ClientLogLevel, WaitingLogs};
use super::extension_notices::ExtensionNotices;
use super::jsonrpc::{RequestId, notification};
use super::methods::ClientSink;

// Reports that wait for a slow client. Beyond that the newest replaces the one before.
const MAX_WAITING: usize = 64;

/// Decouples the tool, which must not wait, from the client, which may be slow.
pub(super) struct CallReports {
    progress: Arc<Mutex<VecDeque<Progress>>>,
    logs: Arc<WaitingLogs>,
    /// Which log messages the client wants.
    pub(super) log_level: Option<Arc<ClientLogLevel>>,
    notices: Option<Arc<ExtensionNotices>>,
    added: Arc<Notify>,
}

impl Default for CallReports {
    fn default() -> Self {
        Self::new(None, None)
    }
}

impl CallReports {
    /// `notices` are set for a client that declares extensions.
    pub(super) fn new(
        log_level: Option<Arc<ClientLogLevel>>,
        notices: Option<Arc<ExtensionNotices>>,
    ) -> Self {
        let added = match &notices {
            Some(notices) => Arc::clone(&notices.added),
            None => Arc::default(),
        };
        Self {
            progress: Arc::default(),
            logs: Arc::new(WaitingLogs::new(Arc::clone(&added))),
            log_level,
            notices,
            added,
        }
    }

    /// Has everything that the call reports added.
    pub(super) fn listen(&self, mut call: ToolCall) -> ToolCall {
        if let Some(level) = &self.log_level {
            call = call.on_log(Arc::new(CallLog {
                level: Arc::clone(level),
                waiting: Arc::clone(&self.logs),
            }));
        }
        let (waiting, added) = (Arc::clone(&self.progress), Arc::clone(&self.added));
        call.on_progress(move |progress| {
            let mut waiting = waiting.lock();
            if waiting.len() == MAX_WAITING {
                waiting.pop_back();
            }
            waiting.push_back(progress.clone());
            added.notify_one();
        })
    }

    /// Returns when something was added.
    pub(super) async fn changed(&self) {
        self.added.notified().await;
    }

    /// For a client that gets no reports, only the present state. Drops what else waits.
    pub(super) fn take_last_progress(&self) -> Option<Progress> {
        drop((self.logs.take(), self.take_notices()));
        std::mem::take(&mut *self.progress.lock()).pop_back()
    }

    fn take_notices(&self) -> Vec<Vec<u8>> {
        let notices = self.notices.as_ref();
        notices.map(|notices| notices.take()).unwrap_or_default()
    }

    pub(super) fn set_log_level(&self, level: Option<LogLevel>) {
        if let Some(own) = &self.log_level {
            own.set(level);
        }
    }
}

/// Runs `call` while its reports go to the client. All reports are sent before it returns, because
/// none may follow the answer. Without a token the client gets no progress.
pub(super) async fn relay_reports<T>(
    call: impl Future<Output = T>,
    reports: &CallReports,
    token: Option<&RequestId>,
    sink: &dyn ClientSink,
) -> T {
    let mut relay = ReportRelay {
        reports,
        sink,
        token,
        last: f64::NEG_INFINITY,
    };
    let mut call = std::pin::pin!(call);
    loop {
        tokio::select! {
            outcome = &mut call => return relay.finish(outcome).await,
            () = reports.added.notified() => {}
        }
        // The call must go on while a report is being written.
        let finished = {
            let mut sending = std::pin::pin!(relay.send_waiting());
            tokio::select! {
                outcome = &mut call => {
                    sending.await;
                    Some(outcome)
                }
                () = &mut sending => None,
            }
        };
        if let Some(outcome) = finished {
            return relay.finish(outcome).await;
        }
    }
}

pub(super) fn progress_message(token: &RequestId, progress: Progress) -> Vec<u8> {
    let mut params = json!({ "progressToken": token, "progress": progress.done });
    if let Some(total) = progress.total.filter(|total| total.is_finite()) {
        params["total"] = json!(total);
    }
    if let Some(message) = progress.message {
        params["message"] = json!(message);
    }
    if let Some(meta) = progress.meta {
        params["_meta"] = meta.into();
    }
    notification("notifications/progress", params)
}

struct ReportRelay<'a> {
    reports: &'a CallReports,
    sink: &'a dyn ClientSink,
    token: Option<&'a RequestId>,
    last: f64,
}

impl ReportRelay<'_> {
    /// Sends what waits now. What is added meanwhile waits for the next time, so that a flood can't
    /// keep the call from going on.
    async fn send_waiting(&mut self) {
        let logs = self.reports.logs.take();
        for message in logs.into_iter().chain(self.reports.take_notices()) {
            if !self.sink.send(message).await {
                return; // The client is gone; the call ends by itself.
            }
        }
        let waiting = std::mem::take(&mut *self.reports.progress.lock());
        let Some(token) = self.token else { return };
        for progress in waiting {
            // MCP wants progress to grow, and JSON can't hold NaN or infinity.
            if !(progress.done.is_finite() && progress.done > self.last) {
                continue;
            }
            self.last = progress.done;
            if !self.sink.send(progress_message(token, progress)).await {
                return;
            }
        }
    }

    async fn finish<T>(&mut self, outcome: T) -> T {
        self.send_waiting().await;
        outcome
    }
}
