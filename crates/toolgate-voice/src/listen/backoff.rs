//! How long to wait before an engine is tried again.

use std::time::Duration;

use toolgate_net::{backoff, jittered};

/// Longer each time, and never the same for two clients of one engine.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(250);
    const LONGEST: Duration = Duration::from_secs(15);

    pub(crate) fn next(&mut self) -> Duration {
        let longest = backoff(Self::FIRST, self.failures, Self::LONGEST);
        self.failures = self.failures.saturating_add(1);
        jittered(longest, 0.5..1.0)
    }

    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_their_bound_and_begin_anew_after_success() {
        let mut backoff = Backoff::default();
        assert!(backoff.next() <= Backoff::FIRST);
        for _ in 0..100 {
            backoff.next();
        }
        let longest = backoff.next();
        assert!((Backoff::LONGEST / 2..=Backoff::LONGEST).contains(&longest));
        backoff.reset();
        assert!(backoff.next() <= Backoff::FIRST);
    }
}
