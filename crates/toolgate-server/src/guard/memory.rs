//! Limits the memory that requests in progress may take once they are parsed.

use std::sync::Arc;

use parking_lot::Mutex;
use toolgate_core::{Limits, ValueCounter};

use super::Caller;
use super::caller_permits::{CallerPermit, CallerPermits};
use crate::{Gateway, ServeSettings};

// All requests in progress share this much, or more if `limits.maxArguments` is so large that a
// few requests would exceed it.
const MIN_BUDGET_BYTES: usize = 64 << 20;
// How much a parsed value takes at most in addition to its text: an object with one member.
const BYTES_PER_VALUE: usize = 300;
// How much memory a request may take without a lease. The limit on requests bounds the sum.
const UNLEASED_BYTES: usize = 32 << 10;
// Shorter bodies aren't measured.
const UNMEASURED_BYTES: u64 = 1 << 10;
// Leased in steps, so that a body in many pieces doesn't need as many leases.
const LEASE_STEP_BYTES: usize = 64 << 10;

/// The memory for all requests in bytes, divided like other permits: a share for each token, and
/// the rest for all.
pub(crate) fn memory_budget(limits: &Limits, settings: &ServeSettings) -> CallerPermits {
    let budget = MIN_BUDGET_BYTES.max(limits.max_arguments.saturating_mul(8));
    CallerPermits::new(budget, settings)
}

/// The part of the budget that one request has taken. Dropping it returns the memory.
pub(super) struct MemoryLease {
    gateway: Gateway,
    number: u64,
    // Whether the caller may use all tools.
    pub(super) is_unrestricted: bool,
    taken: Mutex<(usize, Vec<CallerPermit>)>,
}

impl MemoryLease {
    pub(super) fn new(gateway: &Gateway, caller: Option<&Caller>) -> Arc<Self> {
        Arc::new(Self {
            gateway: gateway.clone(),
            number: caller.map_or(u64::MAX, |caller| caller.number),
            is_unrestricted: caller.is_some_and(|caller| caller.scope.is_unrestricted()),
            taken: Mutex::default(),
        })
    }

    /// Extends the lease to cover this many bytes. Returns false if the budget is used up.
    fn extend(&self, bytes: usize) -> bool {
        let mut taken = self.taken.lock();
        let (size, permits) = &mut *taken;
        if bytes <= *size + UNLEASED_BYTES {
            return true;
        }
        let more = (bytes - *size).max(LEASE_STEP_BYTES);
        let memory = &self.gateway.memory;
        let Ok(permit) = memory.acquire_many(self.number, self.is_unrestricted, more) else {
            return false;
        };
        *size += more;
        permits.push(permit);
        true
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MemoryError {
    #[error("it has more than {limit} values, which is the limit")]
    TooManyValues { limit: usize },
    #[error("other requests use all the memory that is available for requests; try again in 1 s")]
    Exhausted,
}

pub(super) struct JsonMeter {
    counter: ValueCounter,
    bytes: usize,
    max_values: usize,
    lease: Arc<MemoryLease>,
}

impl JsonMeter {
    /// Returns `None` for a body that is too short to matter.
    pub(super) fn new(
        length: Option<u64>,
        max_values: usize,
        lease: &Arc<MemoryLease>,
    ) -> Option<Self> {
        length
            .is_none_or(|length| length > UNMEASURED_BYTES)
            .then(|| Self {
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

    /// Takes the memory for the parsed body. Called at the end of the body, before it is parsed.
    pub(super) fn finish(&mut self) -> Result<(), MemoryError> {
        self.take(2 * self.bytes + self.counter.values() * BYTES_PER_VALUE)
    }

    fn take(&self, bytes: usize) -> Result<(), MemoryError> {
        let is_covered = self.lease.extend(bytes);
        is_covered.then_some(()).ok_or(MemoryError::Exhausted)
    }
}
