//! Guards that undo on drop what a running call took: a pause of its clock, and its slot.

use std::time::Duration;

use tokio::time::Instant;

use super::CallContext;

#[derive(Default)]
pub(super) struct ClockPauses {
    // Guards that exist; they may overlap.
    pub(super) open: usize,
    pub(super) since: Option<Instant>,
    // Time of the pauses that are over.
    pub(super) total: Duration,
}

/// Resumes a call's clock when it is dropped. Made by [`CallContext::pause_clock`].
#[must_use]
pub struct PausedClock(pub(super) CallContext);

impl Drop for PausedClock {
    fn drop(&mut self) {
        let state = &*self.0.0;
        let mut pauses = state.pauses.lock();
        pauses.open -= 1;
        if pauses.open == 0 {
            let since = pauses.since.take();
            pauses.total += since.map(|since| since.elapsed()).unwrap_or_default();
            state.clock_resumed.notify_waiters();
        }
    }
}

/// Frees the slot of a call that has ended, even if something still has its context.
#[must_use]
pub(crate) struct HeldSlot<'a>(pub(super) &'a CallContext);

impl Drop for HeldSlot<'_> {
    fn drop(&mut self) {
        self.0.release_slot();
    }
}
