//! Requests of one client that are not answered yet, so that it can cancel them by their ids.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

use super::jsonrpc::RequestId;

/// Until when a session works. Both are cancelled in this order when it ends.
#[derive(Clone, Default)]
pub(super) struct Lifetime {
    /// The client asks no more: subscriptions end in good order.
    pub(super) ending: CancellationToken,
    /// Calls that still run are stopped.
    pub(super) calls: CancellationToken,
}

impl Lifetime {
    /// One that ends by itself, and at the latest with this one.
    pub(super) fn child(&self) -> Self {
        Self {
            ending: self.ending.child_token(),
            calls: self.calls.child_token(),
        }
    }
}

#[derive(Default)]
pub(super) struct InFlightRequests(Mutex<State>);

#[derive(Default)]
struct State {
    /// The number given last; ids of clients may repeat.
    last: u64,
    running: Vec<(RequestId, u64, CancellationToken)>,
}

impl InFlightRequests {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    /// A number that was not given before.
    pub(super) fn next_number(&self) -> u64 {
        let mut state = self.state();
        state.last += 1;
        state.last
    }

    /// Begins a request, which is stopped with `calls` at the latest.
    pub(super) fn begin(
        self: &Arc<Self>,
        id: RequestId,
        calls: &CancellationToken,
    ) -> InFlightRequest {
        let stop = calls.child_token();
        let mut state = self.state();
        state.last += 1;
        let number = state.last;
        state.running.push((id, number, stop.clone()));
        drop(state);
        InFlightRequest {
            requests: Arc::clone(self),
            number,
            stop,
        }
    }

    /// Stops the requests with this id: their client wants no answer any more.
    pub(super) fn cancel(&self, id: &RequestId) {
        let mut state = self.state();
        let cancelled = state.running.extract_if(.., |(running, ..)| running == id);
        let cancelled: Vec<_> = cancelled.collect();
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
    /// True if the client itself has cancelled it: then it is not answered.
    pub(super) fn is_cancelled_by_client(&self) -> bool {
        let state = self.requests.state();
        !state
            .running
            .iter()
            .any(|(_, number, _)| *number == self.number)
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        let mut state = self.requests.state();
        let mut running = state.running.iter();
        if let Some(at) = running.position(|(_, number, _)| *number == self.number) {
            state.running.swap_remove(at);
        }
    }
}
