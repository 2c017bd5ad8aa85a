//! What a running tool reports, on its way to the client that asked for it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use tokio::sync::Notify;
use toolgate_core::Progress;

/// Reports that wait for a slow client; beyond that the newest takes the place of the one before.
const MOST_WAITING: usize = 64;

/// Takes reports from a tool, which must not wait, and hands them on to the client, which may be slow.
#[derive(Default)]
pub(super) struct Reports {
    waiting: Mutex<VecDeque<Progress>>,
    added: Notify,
}

impl Reports {
    /// Called by the tool.
    pub(super) fn add(&self, progress: &Progress) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() == MOST_WAITING {
            waiting.pop_back();
        }
        waiting.push_back(progress.clone());
        self.added.notify_one();
    }

    fn take(&self) -> Option<Progress> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.pop_front()
    }
}

/// Runs `call` while its reports go to the client, by `tell`, which says whether there still is one. Nothing is under way any
/// more when it returns: a report after the answer would be about a request that is over.
pub(super) async fn relayed<T, F: Future<Output = bool>>(
    call: impl Future<Output = T>,
    reports: &Reports,
    token: ProgressToken,
    tell: impl Fn(ProgressNotificationParam) -> F,
) -> T {
    let mut relay = Relay {
        reports,
        tell,
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
        // The call goes on while a report is being written.
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

struct Relay<'a, T> {
    reports: &'a Reports,
    tell: T,
    token: ProgressToken,
    last: f64,
}

impl<T, F> Relay<'_, T>
where
    T: Fn(ProgressNotificationParam) -> F,
    F: Future<Output = bool>,
{
    async fn send_waiting(&mut self) {
        while let Some(progress) = self.reports.take() {
            // MCP wants it to grow with every notification; what is no number has no place in JSON.
            if !(progress.done.is_finite() && progress.done > self.last) {
                continue;
            }
            self.last = progress.done;
            let mut told = ProgressNotificationParam::new(self.token.clone(), progress.done);
            told.total = progress.total.filter(|total| total.is_finite());
            told.message = progress.message;
            if !(self.tell)(told).await {
                return; // The client is gone; the call ends by itself.
            }
        }
    }
}
