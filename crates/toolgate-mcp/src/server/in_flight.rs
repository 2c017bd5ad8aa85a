//! Requests of one client that have not been answered, so that it can cancel them by id.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::jsonrpc::RequestId;

/// When a session ends, both tokens are cancelled, in this order.
#[derive(Clone, Default)]
pub(super) struct SessionLifetime {
    // No more requests come. Subscriptions end in an orderly way.
    pub(super) ending: CancellationToken,
    // Calls that still run are cancelled.
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
    // Ids of clients may repeat, so requests are told apart by number.
    last: u64,
    running: Vec<(RequestId, u64, CancellationToken)>,
}

impl InFlightRequests {
    pub(super) fn next_number(&self) -> u64 {
        let mut state = self.0.lock();
        state.last += 1;
        state.last
    }

    /// Registers a request. Cancelling `calls` cancels it too.
    pub(super) fn begin(
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
