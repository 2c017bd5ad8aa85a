//! Permits for callers who can't be distinguished: a new request evicts the oldest.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// The requests in progress, the oldest first. Because the oldest is evicted, nobody can lock out
/// others by holding all permits.
pub(super) struct EvictingPermits {
    capacity: usize,
    all: Arc<Mutex<VecDeque<CancellationToken>>>,
}

pub(super) struct EvictingPermit {
    all: Arc<Mutex<VecDeque<CancellationToken>>>,
    pub(super) evicted: CancellationToken,
}

impl EvictingPermits {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            all: Arc::default(),
        }
    }

    pub(super) fn acquire(&self) -> EvictingPermit {
        let evicted = CancellationToken::new();
        let mut all = self.all.lock();
        if all.len() >= self.capacity
            && let Some(oldest) = all.pop_front()
        {
            oldest.cancel();
        }
        all.push_back(evicted.clone());
        EvictingPermit {
            all: Arc::clone(&self.all),
            evicted,
        }
    }

    pub(super) fn taken(&self) -> usize {
        self.all.lock().len()
    }
}

impl Drop for EvictingPermit {
    fn drop(&mut self) {
        // Cancelling the token marks this permit, so that `retain` finds it. Evicted permits have
        // left the list already.
        self.evicted.cancel();
        self.all.lock().retain(|other| !other.is_cancelled());
    }
}
