//! The unanswered requests of one client, which it can cancel by id.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::jsonrpc::RequestId;

/// Ends a session in two steps, so that running calls can finish in between.
#[derive(Clone, Default)]
pub(super) struct SessionLifetime {
    // Cancelled first: no more requests are read, and subscriptions end in an orderly way.
    pub(super) ending: CancellationToken,
    // Cancelled last: stops the calls that are still running.
    pub(super) calls: CancellationToken,
}

impl SessionLifetime {
    pub(super) fn child(&self) -> Self {
        Self {
            ending: self.ending.child_token(),
            calls: self.calls.child_token(),
        }
    }
}

#[derive(Default)]
pub(super) struct InFlightRequests(Mutex<InFlightState>);

#[derive(Default)]
struct InFlightState {
    // Clients may reuse an id, so each request has a number of its own.
    last: u64,
    running: Vec<(RequestId, u64, CancellationToken)>,
}

impl InFlightRequests {
    pub(super) fn next_number(&self) -> u64 {
        let mut state = self.0.lock();
        state.last += 1;
        state.last
    }

    /// Registers a request until the returned value is dropped. Cancelling `calls` cancels it too.
    pub(super) fn register(
        self: &Arc<Self>,
        id: RequestId,
        calls: &CancellationToken,
    ) -> InFlightRequest {
        let stop = calls.child_token();
        let mut state = self.0.lock();
        state.last += 1;
        let number = state.last;
        state.running.push((id, number, stop.clone()));
        drop(state);
        let requests = Arc::clone(self);
        InFlightRequest {
            requests,
            number,
            stop,
        }
    }

    pub(super) fn cancel(&self, id: &RequestId) {
        let mut state = self.0.lock();
        let cancelled = state.running.extract_if(.., |(running, ..)| running == id);
        let cancelled: Vec<_> = cancelled.collect();
        // Cancelling runs wakers, so it happens outside the lock.
        drop(state);
        for (_, _, stop) in cancelled {
            stop.cancel();
        }
    }
}

pub(super) struct InFlightRequest {
    requests: Arc<InFlightRequests>,
    number: u64,
    pub(super) stop: CancellationToken,
}

impl InFlightRequest {
    pub(super) fn is_cancelled_by_client(&self) -> bool {
        let state = self.requests.0.lock();
        let mut numbers = state.running.iter().map(|(_, number, _)| *number);
        !numbers.any(|number| number == self.number)
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        let mut state = self.requests.0.lock();
        let mut running = state.running.iter();
        if let Some(at) = running.position(|(_, number, _)| *number == self.number) {
            state.running.swap_remove(at);
        }
    }
}
