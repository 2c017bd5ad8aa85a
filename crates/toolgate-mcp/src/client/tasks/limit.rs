//! [`RunningTaskLimit`]: bounds the tasks of one server.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

// A task holds no slot, so something else has to keep a server from filling memory with them.
pub(crate) const MAX_TASKS: usize = 1000;

#[derive(Clone)]
pub(crate) struct RunningTaskLimit {
    permits: Arc<Semaphore>,
}

impl Default for RunningTaskLimit {
    fn default() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(MAX_TASKS)),
        }
    }
}

impl RunningTaskLimit {
    pub(crate) fn has_room(&self) -> bool {
        self.permits.available_permits() > 0
    }

    /// Counts a task until the permit is dropped. `None` if several calls became tasks at the same
    /// time and this one is too many. It runs anyway: as many as there are slots are no harm.
    pub(super) fn count(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.permits).try_acquire_owned().ok()
    }

    /// Returns once no task runs and every cancellation was sent.
    pub(crate) async fn ended(&self) {
        drop(self.permits.acquire_many(MAX_TASKS as u32).await);
    }
}
