//! Requests that wait for their answer, in order. Whoever is given up leaves at once, wherever it stands.

use std::collections::VecDeque;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::listening::Request;

/// Filled by one task and emptied by another. Its length is bounded by the places that requests have.
#[derive(Default)]
pub(super) struct Line {
    waiting: Mutex<VecDeque<Request>>,
    came: Notify,
}

impl Line {
    pub(super) fn join(&self, request: Request) {
        self.waiting.lock().push_back(request);
        self.came.notify_one();
    }

    /// The first of them. May be dropped and called again; for one caller at a time.
    pub(super) async fn next(&self) -> Request {
        loop {
            let first = self.waiting.lock().pop_front();
            match first {
                Some(request) => return request,
                None => self.came.notified().await,
            }
        }
    }

    /// All with a smaller number leave, and with them their places.
    pub(super) fn leave(&self, before: u64) -> VecDeque<Request> {
        let mut waiting = self.waiting.lock();
        let all = std::mem::take(&mut *waiting).into_iter();
        let (leaving, staying) = all.partition(|request| request.number < before);
        *waiting = staying;
        leaving
    }
}
