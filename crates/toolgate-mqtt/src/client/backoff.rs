//! The delay before the next connection attempt.

use std::time::Duration;

use tokio::time::Instant;
use toolgate_net::{backoff, jitter};

use super::link_error::LinkError;

// Delays grow with each failure and are jittered, so that clients don't reconnect in step.
#[derive(Debug, Default)]
pub(super) struct ReconnectDelay {
    failures: u32,
    online: Option<Instant>,
}

impl ReconnectDelay {
    const FIRST_DELAY: Duration = Duration::from_millis(250);
    const MAX_DELAY: Duration = Duration::from_secs(30);
    // The minimum if a person has to fix something, because retrying sooner can't help.
    const MIN_USER_ACTION: Duration = Duration::from_secs(10);
    // Only a connection that lasted this long resets the delay. Otherwise one that always breaks at
    // once would be retried at once, forever.
    const STABLE_AFTER: Duration = Duration::from_secs(10);

    pub(super) fn connected(&mut self) {
        self.online = Some(Instant::now());
    }

    pub(super) fn next(&mut self, link_error: &LinkError) -> Duration {
        if self
            .online
            .take()
            .is_some_and(|since| since.elapsed() >= Self::STABLE_AFTER)
        {
            self.failures = 0;
        }
        let mut longest = backoff(Self::FIRST_DELAY, self.failures, Self::MAX_DELAY);
        self.failures = self.failures.saturating_add(1);
        if link_error.needs_user_action() {
            longest = longest.max(Self::MIN_USER_ACTION);
        }
        jitter(longest, 0.5..1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_half_a_minute_and_differ() {
        let mut backoff = ReconnectDelay::default();
        let mut longest = 0.25;
        for _ in 0..20 {
            let wait = backoff.next(&LinkError::Refused).as_secs_f64();
            assert!(
                (longest / 2.0..=longest).contains(&wait),
                "{wait} of {longest}"
            );
            longest = f64::min(longest * 2.0, 30.0);
        }
        let waits: Vec<_> = (0..5).map(|_| backoff.next(&LinkError::Refused)).collect();
        assert!(waits.windows(2).any(|two| two[0] != two[1]));
    }

    #[test]
    fn a_wrong_password_is_retried_slowly() {
        let mut backoff = ReconnectDelay::default();
        let link_error = LinkError::Credentials { given: true };
        assert!(backoff.next(&link_error) >= Duration::from_secs(5));
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_lasting_connection_resets_the_delay() {
        let mut backoff = ReconnectDelay::default();
        for _ in 0..10 {
            backoff.connected();
            backoff.next(&LinkError::Lost);
        }
        assert!(backoff.next(&LinkError::Lost) > Duration::from_secs(10));
        backoff.connected();
        tokio::time::advance(ReconnectDelay::STABLE_AFTER).await;
        assert!(backoff.next(&LinkError::Lost) <= ReconnectDelay::FIRST_DELAY);
    }
}
