//! Tracks whether the journal works. Logs an outage once when it begins and once when it is over.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::{RecordRequirement, time};

// The shortest time between two warnings that writing is slow.
const DELAY_WARNING_INTERVAL: Duration = Duration::from_secs(60);
// The shortest time between two warnings about evicted calls.
const EVICTION_WARNING_INTERVAL: Duration = Duration::from_secs(600);

/// Whether calls are recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[non_exhaustive]
pub enum JournalHealth {
    Ok {
        /// How many records this process has lost so far.
        lost: u64,
    },
    /// Calls are not recorded, or only after a long delay. The writer keeps trying.
    Failing {
        error: String,
        #[serde(serialize_with = "time::serialize")]
        since: Timestamp,
        lost: u64,
    },
}

#[derive(Default)]
pub(crate) struct HealthMonitor {
    require: RecordRequirement,
    // Both mirror `state`, so that calls needn't take its lock. Writing that is only slow is
    // failing, but not broken.
    is_failing: AtomicBool,
    is_broken: AtomicBool,
    state: Mutex<OutageState>,
    lost: AtomicU64,
    evicted: AtomicU64,
}

#[derive(Default)]
struct OutageState {
    // Evicted calls by caller that no warning has mentioned yet.
    unreported_evictions: HashMap<String, u64>,
    eviction_reported_at: Option<Instant>,
    outage: Option<WriteOutage>,
    delay_reported_at: Option<Instant>,
}

struct WriteOutage {
    error: String,
    since: Timestamp,
    lost_before: u64,
    is_reported: bool,
}

impl HealthMonitor {
    pub(crate) fn new(require: RecordRequirement) -> Self {
        Self {
            require,
            ..Self::default()
        }
    }

    /// True if writing fails or is slow, so that nothing should wait for it.
    pub(crate) fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Relaxed)
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Relaxed)
    }

    pub(crate) fn record_failure(&self, error: &dyn Display) {
        let mut state = self.state();
        let outage = self.open_outage(&mut state, error);
        if !self.is_broken.swap(true, Ordering::Relaxed) {
            outage.is_reported = true;
            warn!(%error, "calls can't be recorded; {}", self.require);
        }
    }

    /// Records that writing is slow. Warns at most once a minute, because some
    /// machines are often slow.
    pub(crate) fn record_delay(&self, error: &dyn Display) {
        let mut state = self.state();
        let is_recent = |reported: Instant| reported.elapsed() < DELAY_WARNING_INTERVAL;
        let was_reported = state.delay_reported_at.is_some_and(is_recent);
        let outage = self.open_outage(&mut state, error);
        if !outage.is_reported && !was_reported {
            outage.is_reported = true;
            state.delay_reported_at = Some(Instant::now());
            warn!(%error, "recording is slow; calls don't wait for it");
        }
    }

    fn open_outage<'a>(
        &self,
        state: &'a mut OutageState,
        error: &dyn Display,
    ) -> &'a mut WriteOutage {
        self.is_failing.store(true, Ordering::Relaxed);
        let outage = state.outage.get_or_insert_with(|| WriteOutage {
            error: String::new(),
            since: Timestamp::now(),
            lost_before: self.lost(),
            is_reported: false,
        });
        outage.error = error.to_string();
        outage
    }

    /// Ends an outage. Logs that if the outage was logged or lost rows.
    pub(crate) fn record_recovery(&self) {
        if !self.is_failing() {
            return;
        }
        if let Some(over) = self.state().outage.take() {
            self.is_failing.store(false, Ordering::Relaxed);
            self.is_broken.store(false, Ordering::Relaxed);
            let lost = self.lost() - over.lost_before;
            if over.is_reported || lost > 0 {
                info!(lost, "calls are recorded again");
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, OutageState> {
        self.state.lock()
    }

    pub(crate) fn add_lost(&self, rows: u64) {
        self.lost.fetch_add(rows, Ordering::Relaxed);
    }

    /// Records that calls were deleted early because the journal was full. Warns at
    /// most every ten minutes.
    pub(crate) fn record_evictions(&self, calls: &HashMap<String, u64>, max_size: i64) {
        self.evicted
            .fetch_add(calls.values().sum(), Ordering::Relaxed);
        let mut state = self.state();
        let unreported = &mut state.unreported_evictions;
        for (caller, count) in calls {
            *unreported.entry(caller.clone()).or_default() += count;
        }
        let is_recent = |reported: Instant| reported.elapsed() < EVICTION_WARNING_INTERVAL;
        let was_reported = state.eviction_reported_at.is_some_and(is_recent);
        if state.unreported_evictions.is_empty() || was_reported {
            return;
        }
        state.eviction_reported_at = Some(Instant::now());
        let unreported = std::mem::take(&mut state.unreported_evictions);
        let calls: u64 = unreported.values().sum();
        let most = unreported.into_iter().max_by_key(|(_, count)| *count);
        let (caller, of_caller) = most.unwrap_or_default();
        warn!(
            calls,
            caller,
            of_caller,
            max_size,
            "the journal is full: calls newer than journal.keepDays were deleted, starting with the caller that uses the most space; raise journal.maxSize to keep them"
        );
    }

    pub(crate) fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    pub(crate) fn report(&self) -> JournalHealth {
        let lost = self.lost();
        match &self.state().outage {
            None => JournalHealth::Ok { lost },
            Some(outage) => JournalHealth::Failing {
                error: outage.error.clone(),
                since: outage.since,
                lost,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use super::*;

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn warnings_about_evicted_calls_are_rate_limited() {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        let _guard = tracing::subscriber::set_default(subscriber);
        let health = HealthMonitor::default();
        let evicts =
            |count| health.record_evictions(&HashMap::from([("kitchen".to_owned(), count)]), 1);
        health.record_evictions(&HashMap::new(), 1);
        evicts(3);
        evicts(4);
        evicts(5);
        let logged = || String::from_utf8(log.0.lock().clone()).unwrap();
        assert_eq!(
            logged().matches("the journal is full").count(),
            1,
            "{}",
            logged()
        );
        assert!(
            logged().contains("calls=3 caller=\"kitchen\""),
            "{}",
            logged()
        );
        tokio::time::advance(EVICTION_WARNING_INTERVAL).await;
        evicts(1);
        assert!(logged().contains("calls=10"), "{}", logged());
        assert_eq!(health.evicted(), 13);
    }
}
