//! How long to wait before the next try.

use std::time::Duration;

use tokio::time::Instant;
use toolgate_net::{backoff, jittered};

use super::trouble::Trouble;

/// How long to wait before the next try: longer each time, never the same for two clients.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
    online: Option<Instant>,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(250);
    const LONGEST: Duration = Duration::from_secs(30);
    /// Nothing to win by hurrying: a person has to do something.
    const SLOW: Duration = Duration::from_secs(10);
    /// A connection that lasted this long was a good one. One that breaks at once must not be tried at once for ever.
    const GOOD: Duration = Duration::from_secs(10);

    pub(super) fn connected(&mut self) {
        self.online = Some(Instant::now());
    }

    /// After a failure.
    pub(super) fn next(&mut self, trouble: &Trouble) -> Duration {
        if self
            .online
            .take()
            .is_some_and(|since| since.elapsed() >= Self::GOOD)
        {
            self.failures = 0;
        }
        let mut longest = backoff(Self::FIRST, self.failures, Self::LONGEST);
        self.failures = self.failures.saturating_add(1);
        if trouble.needs_a_person() {
            longest = longest.max(Self::SLOW);
        }
        jittered(longest, 0.5..1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_half_a_minute_and_differ() {
        let mut backoff = Backoff::default();
        let mut longest = 0.25;
        for _ in 0..20 {
            let wait = backoff.next(&Trouble::Nobody).as_secs_f64();
            assert!(
                (longest / 2.0..=longest).contains(&wait),
                "{wait} of {longest}"
            );
            longest = f64::min(longest * 2.0, 30.0);
        }
        let waits: Vec<_> = (0..5).map(|_| backoff.next(&Trouble::Nobody)).collect();
        assert!(waits.windows(2).any(|two| two[0] != two[1]));
    }

    #[test]
    fn a_wrong_password_is_not_tried_often() {
        let mut backoff = Backoff::default();
        let trouble = Trouble::Credentials { given: true };
        assert!(backoff.next(&trouble) >= Duration::from_secs(5));
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_connection_that_lasted_makes_the_next_try_quick_again() {
        let mut backoff = Backoff::default();
        for _ in 0..10 {
            backoff.connected();
            backoff.next(&Trouble::Lost);
        }
        assert!(backoff.next(&Trouble::Lost) > Duration::from_secs(10));
        backoff.connected();
        tokio::time::advance(Backoff::GOOD).await;
        assert!(backoff.next(&Trouble::Lost) <= Backoff::FIRST);
    }
}
