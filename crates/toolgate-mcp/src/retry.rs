//! Retry policy and start limits of MCP servers.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};
use tokio::time::Instant;
use toolgate_core::text::DURATION_PATTERN;
use toolgate_net::{backoff, jitter};

/// Attempts to connect to a server before it counts as failed.
pub const MCP_RETRY_ATTEMPTS: u32 = 3;
/// The wait before the second attempt; it doubles with each further one.
pub const MCP_RETRY_BASE_DELAY: Duration = Duration::from_secs(2);

const MAX_DELAY: Duration = Duration::from_secs(60);
// Slow retries follow anyway, so more fast attempts would not help.
const MAX_ATTEMPTS: u32 = 20;
// A random factor for slow retries, so that many servers don't retry at the same moment.
const JITTER: Range<f64> = 0.8..1.2;
// Starts that are allowed within `WINDOW`.
const MAX_STARTS: usize = 5;
const WINDOW: Duration = Duration::from_secs(60);

/// The configuration's `retry`: when a server that does not connect is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(description = "When a server that does not connect is tried again")]
#[non_exhaustive]
pub struct RetryPolicy {
    /// Attempts in a row; after the last the server counts as failed and is retried slowly.
    #[serde(deserialize_with = "attempts")]
    #[schemars(range(min = 1, max = 20))]
    pub attempts: u32,
    /// The wait before the second attempt; it doubles with each further one.
    #[serde(deserialize_with = "toolgate_core::text::deserialize_duration")]
    #[schemars(with = "String", regex(pattern = DURATION_PATTERN))]
    pub base_delay: Duration,
    /// The longest wait between two attempts.
    #[serde(deserialize_with = "toolgate_core::text::deserialize_duration")]
    #[schemars(with = "String", regex(pattern = DURATION_PATTERN))]
    pub max_delay: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: MCP_RETRY_ATTEMPTS,
            base_delay: MCP_RETRY_BASE_DELAY,
            max_delay: MAX_DELAY,
        }
    }
}

impl RetryPolicy {
    /// The wait before an attempt. Attempts count from 1, and the first doesn't wait.
    pub fn delay(&self, attempt: u32) -> Duration {
        let Some(doublings) = attempt.checked_sub(2) else {
            return Duration::ZERO;
        };
        backoff(self.base_delay, doublings, self.max_delay)
    }

    pub(crate) fn slow_delay(&self, attempt: u32) -> Duration {
        jitter(self.delay(attempt), JITTER)
    }

    /// The wait before a retry that is unlikely to succeed.
    pub(crate) fn slowest_delay(&self) -> Duration {
        self.slow_delay(u32::MAX)
    }
}

fn attempts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        attempts @ 1..=MAX_ATTEMPTS => Ok(attempts),
        _ => Err(de::Error::custom(format!(
            "must be from 1 to {MAX_ATTEMPTS}"
        ))),
    }
}

/// Limits how often a server is started, so that a crash loop doesn't become a fork storm.
#[derive(Debug)]
pub(crate) struct StartLimiter {
    times: VecDeque<Instant>,
    max_starts: usize,
}

impl StartLimiter {
    pub(crate) fn new(policy: &RetryPolicy) -> Self {
        let mut starts = Self {
            times: VecDeque::new(),
            max_starts: MAX_STARTS,
        };
        starts.set_policy(policy);
        starts
    }

    /// Raises the limit to the configured number of attempts, so that a round is never delayed.
    pub(crate) fn set_policy(&mut self, policy: &RetryPolicy) {
        self.max_starts = MAX_STARTS.max(policy.attempts as usize);
    }

    /// When the next start is allowed: now, or later if there were too many.
    pub(crate) fn allowed_at(&self) -> Instant {
        let first = self.times.len().checked_sub(self.max_starts);
        match first.and_then(|first| self.times.get(first)) {
            Some(first) => *first + WINDOW,
            None => Instant::now(),
        }
    }

    pub(crate) fn max_starts(&self) -> usize {
        self.max_starts
    }

    pub(crate) fn record(&mut self) {
        while self.times.len() >= self.max_starts {
            self.times.pop_front();
        }
        self.times.push_back(Instant::now());
    }

    /// Forgets earlier starts, because a person asked for the next one.
    pub(crate) fn reset(&mut self) {
        self.times.clear();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mc3_the_delays_double_up_to_the_longest() {
        let policy = RetryPolicy::default();
        let delays = [0, 1, 2, 3, 4, 5, 6, 7, 8, 1000, u32::MAX]
            .map(|attempt| policy.delay(attempt).as_secs());
        assert_eq!(delays, [0, 0, 2, 4, 8, 16, 32, 60, 60, 60, 60]);
    }

    #[test]
    fn slow_retries_keep_near_the_delay_and_differ() {
        let policy = RetryPolicy::default();
        let delays: Vec<f64> = (0..1000)
            .map(|_| policy.slow_delay(4).as_secs_f64())
            .collect();
        assert!(delays.iter().all(|delay| (6.4..=9.6).contains(delay)));
        let (least, most) = delays.iter().fold((f64::MAX, 0.0_f64), |(least, most), d| {
            (least.min(*d), most.max(*d))
        });
        assert!(least < 7.0 && most > 9.0, "{least} to {most}");
        assert!((48.0..=72.0).contains(&policy.slowest_delay().as_secs_f64()));
    }

    #[test]
    fn mc3_the_configuration_sets_attempts_and_delays() {
        let read = serde_json::from_value::<RetryPolicy>;
        assert_eq!(read(json!({})).unwrap(), RetryPolicy::default());
        let policy =
            read(json!({ "attempts": 5, "baseDelay": "100ms", "maxDelay": "1s" })).unwrap();
        let delays = [1, 2, 3, 4, 5, 6].map(|attempt| policy.delay(attempt).as_millis());
        assert_eq!(
            (policy.attempts, delays),
            (5, [0, 100, 200, 400, 800, 1000])
        );
        for wrong in [
            json!({ "attempts": 0 }),
            json!({ "attempts": 21 }),
            json!({ "attempts": "3" }),
            json!({ "baseDelay": 2 }),
            json!({ "baseDelay": "2" }),
            json!({ "tries": 3 }),
        ] {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_sixth_start_within_a_minute_waits() {
        let mut starts = StartLimiter::new(&RetryPolicy::default());
        let begin = Instant::now();
        for _ in 0..5 {
            assert!(starts.allowed_at() <= Instant::now());
            starts.record();
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!(starts.allowed_at() - begin, WINDOW);
        starts.reset();
        assert!(starts.allowed_at() <= Instant::now());
    }
}
