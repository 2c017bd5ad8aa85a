//! How much memory requests under way may take together, once they are parsed.

use std::sync::Arc;

use parking_lot::Mutex;
use toolgate_core::{Limits, ValueCounter};

use super::Caller;
use super::room::{Place, Rooms};
use crate::{Gateway, ServeSettings};

/// For all requests under way, unless `limits.maxArguments` is so large that a few would take more.
const BUDGET: usize = 64 << 20;
/// What a parsed value takes at most beside its text: an object with one member.
const PER_VALUE: usize = 300;
/// What a request may take without being counted: the number of requests bounds those.
const UNCOUNTED: usize = 32 << 10;
/// Bodies up to this length aren't looked at.
const SMALL: u64 = 1 << 10;
/// Taken at once, so that a body in many pieces isn't counted in as many.
const STEP: usize = 64 << 10;

/// The memory there is, dealt out like places: a share for each token, the rest for whoever comes first.
pub(crate) fn budget(limits: &Limits, settings: &ServeSettings) -> Rooms {
    let budget = BUDGET.max(limits.max_arguments.saturating_mul(8));
    Rooms::new(budget, settings)
}

/// What one request has taken of the budget, until it is dropped.
pub(super) struct MemoryLease {
    gateway: Gateway,
    number: u64,
    is_full: bool,
    taken: Mutex<(usize, Vec<Place>)>,
}

impl MemoryLease {
    pub(super) fn new(gateway: &Gateway, caller: Option<&Caller>) -> Arc<Self> {
        Arc::new(Self {
            gateway: gateway.clone(),
            number: caller.map_or(u64::MAX, |caller| caller.number),
            is_full: caller.is_some_and(|caller| caller.scope.is_everything()),
            taken: Mutex::default(),
        })
    }

    /// True if it now has as much as that.
    fn extend(&self, bytes: usize) -> bool {
        let mut taken = self.taken.lock();
        let (size, places) = &mut *taken;
        if bytes <= *size + UNCOUNTED {
            return true;
        }
        let more = (bytes - *size).max(STEP);
        let memory = self.gateway.memory();
        let Ok(place) = memory.enter_with(self.number, self.is_full, more) else {
            return false;
        };
        *size += more;
        places.push(place);
        true
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MemoryError {
    #[error("it holds more than {limit} values, which is the limit")]
    TooManyValues { limit: usize },
    #[error("the requests under way take all the memory there is for them; try again in 1 s")]
    Exhausted,
}

/// Measures a body of JSON as it arrives.
pub(super) struct JsonMeter {
    counter: ValueCounter,
    bytes: usize,
    max_values: usize,
    lease: Arc<MemoryLease>,
}

impl JsonMeter {
    /// None for a body that is too short to matter.
    pub(super) fn new(
        length: Option<u64>,
        max_values: usize,
        lease: &Arc<MemoryLease>,
    ) -> Option<Self> {
        (length.is_none_or(|length| length > SMALL)).then(|| Self {
            counter: ValueCounter::default(),
            bytes: 0,
            max_values,
            lease: Arc::clone(lease),
        })
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<(), MemoryError> {
        self.bytes += bytes.len();
        let values = self.counter.feed(bytes);
        if values > self.max_values {
            let limit = self.max_values;
            return Err(MemoryError::TooManyValues { limit });
        }
        self.take(self.bytes)
    }

    /// The body is there, and about to be parsed.
    pub(super) fn finish(&mut self) -> Result<(), MemoryError> {
        self.take(2 * self.bytes + self.counter.values() * PER_VALUE)
    }

    fn take(&self, bytes: usize) -> Result<(), MemoryError> {
        match self.lease.extend(bytes) {
            true => Ok(()),
            false => Err(MemoryError::Exhausted),
        }
    }
}
