//! Limits concurrent requests and streams, with a share for each caller.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::ServeSettings;

/// Permits for requests, streams or bytes of memory. Half of them are divided among the tokens as
/// reserved shares. The other half is shared by all, except that its last quarter is reserved for
/// tokens that may use every tool. Nobody waits for a permit.
pub(crate) struct CallerPermits {
    // Indexed by the caller's number.
    own: Vec<PermitPool>,
    common: PermitPool,
    pub(crate) capacity: usize,
}

struct PermitPool {
    taken: Arc<AtomicUsize>,
    capacity: usize,
}

pub(crate) struct CallerPermit {
    taken: Arc<AtomicUsize>,
    size: usize,
}

impl CallerPermits {
    pub(crate) fn new(capacity: usize, settings: &ServeSettings) -> Self {
        // `serve.token` has the number 1 and `serve.tokens` begin with 2. Without tokens everybody
        // has the number 0.
        let tokens = settings.tokens.iter().map(|token| &*token.token);
        let tokens = std::iter::once(&*settings.token).chain(tokens);
        let mut is_caller: Vec<bool> = tokens.map(|token| !token.is_empty()).collect();
        is_caller.insert(0, !is_caller.contains(&true));
        let callers = is_caller.iter().filter(|is_caller| **is_caller).count();
        let share = capacity / 2 / callers;
        let own = is_caller
            .into_iter()
            .map(|is_caller| PermitPool::new(if is_caller { share } else { 0 }));
        Self {
            own: own.collect(),
            common: PermitPool::new(capacity - share * callers),
            capacity,
        }
    }

    /// Takes a permit. The error is the number of permits that the caller may hold at most.
    pub(super) fn acquire(
        &self,
        number: u64,
        is_unrestricted: bool,
    ) -> Result<CallerPermit, usize> {
        self.acquire_many(number, is_unrestricted, 1)
    }

    pub(super) fn acquire_many(
        &self,
        number: u64,
        is_unrestricted: bool,
        size: usize,
    ) -> Result<CallerPermit, usize> {
        let own = usize::try_from(number).ok();
        let own = own.and_then(|number| self.own.get(number));
        let common = self.common.capacity;
        let most = if is_unrestricted {
            common
        } else {
            common - common / 4
        };
        own.and_then(|own| own.acquire(own.capacity, size))
            .or_else(|| self.common.acquire(most, size))
            .ok_or_else(|| own.map_or(0, |own| own.capacity) + most)
    }

    pub(crate) fn taken(&self) -> usize {
        let own = self.own.iter().map(PermitPool::taken);
        own.sum::<usize>() + self.common.taken()
    }

    /// True if the shared half is used up, so that callers have only their own shares left.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.common.taken() >= self.common.capacity
    }
}

impl PermitPool {
    fn new(capacity: usize) -> Self {
        Self {
            taken: Arc::default(),
            capacity,
        }
    }

    fn acquire(&self, most: usize, size: usize) -> Option<CallerPermit> {
        let taken = Arc::clone(&self.taken);
        // If the pool was full, dropping the permit returns what was added.
        let before = taken.fetch_add(size, Ordering::Relaxed);
        let permit = CallerPermit { taken, size };
        (before + size <= most).then_some(permit)
    }

    fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
}

impl Drop for CallerPermit {
    fn drop(&mut self) {
        self.taken.fetch_sub(self.size, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const OPERATOR: u64 = 1;

    fn permits(capacity: usize, tokens: usize) -> CallerPermits {
        let token = |name: String| json!({ "token": name, "allow": ["echo"] });
        let tokens: Vec<_> = (0..tokens).map(|n| token(format!("token-{n}"))).collect();
        let token = if tokens.is_empty() { "" } else { "all" };
        let settings = json!({ "token": token, "tokens": tokens });
        CallerPermits::new(capacity, &serde_json::from_value(settings).unwrap())
    }

    fn fill(permits: &CallerPermits, number: u64, is_unrestricted: bool) -> Vec<CallerPermit> {
        std::iter::from_fn(|| permits.acquire(number, is_unrestricted).ok()).collect()
    }

    #[test]
    fn permits_are_limited_and_returned() {
        for capacity in [1, 2, 7] {
            let permits = permits(capacity, 0);
            let mut held = fill(&permits, 0, true);
            assert_eq!((held.len(), permits.taken()), (capacity, capacity));
            assert_eq!(permits.acquire(0, true).err(), Some(capacity));
            assert!(permits.is_exhausted());
            held.pop();
            assert!(!permits.is_exhausted() && permits.acquire(0, true).is_ok());
        }
    }

    #[test]
    fn one_token_cannot_take_the_shares_of_others() {
        // 8 for each of four tokens, and 32 for all.
        for (first, is_unrestricted, most) in [(2, false, 8 + 24), (OPERATOR, true, 8 + 32)] {
            let permits = permits(64, 3);
            let held = fill(&permits, first, is_unrestricted);
            assert_eq!(held.len(), most);
            assert_eq!(permits.acquire(first, is_unrestricted).err(), Some(most));
            for other in [3, 4] {
                assert_eq!(fill(&permits, other, false).len(), 8, "{first}, {other}");
            }
            assert_eq!(permits.taken(), most, "a failed attempt takes nothing");
        }
    }

    #[test]
    fn the_last_quarter_of_the_shared_half_is_reserved_for_the_operator() {
        let permits = permits(64, 3);
        let held: Vec<_> = (2..=4).flat_map(|n| fill(&permits, n, false)).collect();
        assert_eq!(held.len(), 3 * 8 + 24);
        assert_eq!(fill(&permits, OPERATOR, true).len(), 8 + 8);
        assert_eq!(
            permits.acquire(99, false).err(),
            Some(24),
            "an unknown number"
        );
    }
}
