//! Relays the progress of a running tool to the client that asked for it.

use std::collections::VecDeque;

use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;
use toolgate_core::Progress;

use super::jsonrpc::{RequestId, notification};
use super::methods::ClientSink;

// Reports that wait for a slow client. Beyond that the newest replaces the one before.
const MAX_WAITING: usize = 64;

/// Decouples the tool, which must not wait, from the client, which may be slow.
#[derive(Default)]
pub(super) struct ProgressReports {
    waiting: Mutex<VecDeque<Progress>>,
    added: Notify,
}

impl ProgressReports {
    pub(super) fn add(&self, progress: &Progress) {
        let mut waiting = self.waiting.lock();
        if waiting.len() == MAX_WAITING {
            waiting.pop_back();
        }
        waiting.push_back(progress.clone());
        self.added.notify_one();
    }

    fn take(&self) -> Option<Progress> {
        self.waiting.lock().pop_front()
    }
}

/// Runs `call` while its reports go to the client. All reports are sent before it returns, because
/// none may follow the answer.
pub(super) async fn relay_progress<T>(
    call: impl Future<Output = T>,
    reports: &ProgressReports,
    token: &RequestId,
    sink: &dyn ClientSink,
) -> T {
    let mut relay = ProgressRelay {
        reports,
        sink,
        token,
        last: f64::NEG_INFINITY,
    };
    let mut call = std::pin::pin!(call);
    loop {
        tokio::select! {
            outcome = &mut call => {
                relay.send_waiting().await;
                return outcome;
            }
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
            relay.send_waiting().await;
            return outcome;
        }
    }
}

struct ProgressRelay<'a> {
    reports: &'a ProgressReports,
    sink: &'a dyn ClientSink,
    token: &'a RequestId,
    last: f64,
}

impl ProgressRelay<'_> {
    async fn send_waiting(&mut self) {
        while let Some(progress) = self.reports.take() {
            // MCP wants progress to grow, and JSON can't hold NaN or infinity.
            if !(progress.done.is_finite() && progress.done > self.last) {
                continue;
            }
            self.last = progress.done;
            let mut params = json!({ "progressToken": self.token, "progress": progress.done });
            if let Some(total) = progress.total.filter(|total| total.is_finite()) {
                params["total"] = json!(total);
            }
            if let Some(message) = progress.message {
                params["message"] = json!(message);
            }
            let message = notification("notifications/progress", params);
            if !self.sink.send(message).await {
                return; // The client is gone; the call ends by itself.
            }
        }
    }
}
