//! How often a task is polled, and until when.

use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use toolgate_net::{backoff, jitter};

use super::state::TaskState;

// Bounds on what a server suggests.
pub(super) const MIN_INTERVAL: Duration = Duration::from_millis(200);
pub(super) const MAX_INTERVAL: Duration = Duration::from_secs(60);
// Without a suggestion the intervals grow, because most tasks are short or very long.
const FIRST_INTERVAL: Duration = Duration::from_millis(500);
const MAX_OWN_INTERVAL: Duration = Duration::from_secs(10);
// Failed polls in a row, which take about five minutes: enough for a server to be restarted.
pub(super) const MAX_FAILURES: u32 = 10;
const FIRST_RETRY: Duration = Duration::from_secs(1);

pub(super) struct TaskPacing {
    polls: u32,
    failures: u32,
    // By our own clock, because the server's may be wrong.
    created: Instant,
    expires: Option<Instant>,
    // What the server gave the task, for the error.
    lifetime: Option<Duration>,
}

impl TaskPacing {
    pub(super) fn new(state: &TaskState) -> Self {
        let mut pacing = Self::starting_now();
        pacing.set_lifetime(state.lifetime);
        pacing
    }

    pub(super) fn of_resumed(expires: Option<SystemTime>) -> Self {
        let mut pacing = Self::starting_now();
        // A task that has expired is polled once more: the server may still have its result.
        let left = |at: SystemTime| at.duration_since(SystemTime::now()).unwrap_or_default();
        pacing.set_lifetime(expires.map(left));
        pacing
    }

    fn starting_now() -> Self {
        Self {
            polls: 0,
            failures: 0,
            created: Instant::now(),
            expires: None,
            lifetime: None,
        }
    }

    /// The lifetime of a task may change while it runs.
    pub(super) fn set_lifetime(&mut self, lifetime: Option<Duration>) {
        self.expires = lifetime.and_then(|lifetime| self.created.checked_add(lifetime));
        self.lifetime = lifetime;
    }

    pub(super) fn expiry_time(&self) -> Option<SystemTime> {
        let left = self.expires?.saturating_duration_since(Instant::now());
        SystemTime::now().checked_add(left)
    }

    /// The time until the next poll, after one that worked.
    pub(super) fn interval(&mut self, suggested: Option<Duration>) -> Duration {
        self.failures = 0;
        let own = backoff(FIRST_INTERVAL, self.polls, MAX_OWN_INTERVAL);
        self.polls = self.polls.saturating_add(1);
        suggested.unwrap_or(own).clamp(MIN_INTERVAL, MAX_INTERVAL)
    }

    /// The time until the next try, after one that failed; `None` if it was the last.
    pub(super) fn retry_delay(&mut self) -> Option<Duration> {
        let delay = backoff(FIRST_RETRY, self.failures, MAX_INTERVAL);
        self.failures += 1;
        (self.failures <= MAX_FAILURES).then(|| jitter(delay, 0.75..1.25))
    }

    /// Ends a wait when the task expires, so that it is polled once more then. Fails with the
    /// task's lifetime when that was done.
    pub(super) fn until_expiry(&self, delay: Duration) -> Result<Duration, Duration> {
        let Some(expires) = self.expires else {
            return Ok(delay);
        };
        let left = expires.saturating_duration_since(Instant::now());
        match left.is_zero() {
            true => Err(self.lifetime.unwrap_or_default()),
            false => Ok(delay.min(left)),
        }
    }
}
