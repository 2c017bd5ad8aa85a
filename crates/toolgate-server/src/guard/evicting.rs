//! Places for those who can't be told apart: whoever comes takes the place of the oldest.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// What is under way, the oldest first. With more than there are places for, the oldest has to go, so that whoever
/// takes all of them keeps nobody out.
pub(super) struct EvictingPlaces {
    places: usize,
    all: Arc<Mutex<VecDeque<CancellationToken>>>,
}

pub(super) struct EvictingPlace {
    all: Arc<Mutex<VecDeque<CancellationToken>>>,
    evicted: CancellationToken,
}

impl EvictingPlaces {
    pub(super) fn new(places: usize) -> Self {
        Self {
            places,
            all: Arc::default(),
        }
    }

    pub(super) fn enter(&self) -> EvictingPlace {
        let evicted = CancellationToken::new();
        let mut all = self.all.lock();
        if all.len() >= self.places
            && let Some(oldest) = all.pop_front()
        {
            oldest.cancel();
        }
        all.push_back(evicted.clone());
        EvictingPlace {
            all: Arc::clone(&self.all),
            evicted,
        }
    }
}

impl EvictingPlace {
    /// Cancelled when somebody else needs the place.
    pub(super) fn evicted(&self) -> &CancellationToken {
        &self.evicted
    }
}

impl EvictingPlaces {
    pub(super) fn taken(&self) -> usize {
        self.all.lock().len()
    }
}

impl Drop for EvictingPlace {
    fn drop(&mut self) {
        // Done, so that it is known from the others; those that were evicted are gone from the list already.
        self.evicted.cancel();
        self.all.lock().retain(|other| !other.is_cancelled());
    }
}
