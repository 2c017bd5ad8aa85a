//! The queue of requests that wait for their answer.

use std::collections::VecDeque;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::transcribing::QueuedRequest;

// Needs no limit of its own: each request holds a permit.
#[derive(Default)]
pub(super) struct AnswerQueue {
    waiting: Mutex<VecDeque<QueuedRequest>>,
    added: Notify,
}

impl AnswerQueue {
    pub(super) fn push(&self, request: QueuedRequest) {
        self.waiting.lock().push_back(request);
        self.added.notify_one();
    }

    pub(super) async fn next(&self) -> QueuedRequest {
        loop {
            let first = self.waiting.lock().pop_front();
            match first {
                Some(request) => return request,
                None => self.added.notified().await,
            }
        }
    }

    pub(super) fn remove_before(&self, before: u64) -> VecDeque<QueuedRequest> {
        let mut waiting = self.waiting.lock();
        let all = std::mem::take(&mut *waiting).into_iter();
        let (leaving, staying) = all.partition(|request| request.number < before);
        *waiting = staying;
        leaving
    }
}
