//! How the journal is, and what is said about it: once when trouble begins, once when it is over.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::{Require, time};

/// How long it is not said again that writing takes long.
const QUIET: Duration = Duration::from_secs(60);
/// The same of calls that make room for others.
const QUIET_EVICTION: Duration = Duration::from_secs(600);

/// Whether calls are recorded.
///
/// ```
/// use toolgate_journal::JournalHealth;
///
/// let well = JournalHealth::Ok { lost: 0 };
/// assert_eq!(serde_json::to_string(&well).unwrap(), r#"{"state":"ok","lost":0}"#);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[non_exhaustive]
pub enum JournalHealth {
    /// They are.
    Ok {
        /// Rows that could not be written since the program started.
        lost: u64,
    },
    /// They are not, or too late. It is tried again all the time.
    Failing {
        /// What is wrong.
        error: String,
        /// Since when.
        #[serde(serialize_with = "time::serialize")]
        since: Timestamp,
        /// Rows that could not be written since the program started.
        lost: u64,
    },
}

/// Shared by the writer and all who wait for it.
#[derive(Default)]
pub(crate) struct Health {
    /// What is refused meanwhile.
    require: Require,
    /// The same as in `state`, for those who are in a hurry.
    is_failing: AtomicBool,
    is_broken: AtomicBool,
    state: Mutex<State>,
    lost: AtomicU64,
    evicted: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Calls that made room, by caller, and when that was last said.
    untold: HashMap<String, u64>,
    eviction_said: Option<Instant>,
    trouble: Option<Trouble>,
    /// When it was last said that writing takes long.
    said: Option<Instant>,
}

struct Trouble {
    error: String,
    since: Timestamp,
    lost_before: u64,
    is_said: bool,
}

impl Health {
    pub(crate) fn new(require: Require) -> Self {
        Self {
            require,
            ..Self::default()
        }
    }

    /// Writing fails or takes long: nobody should wait for it.
    pub(crate) fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Relaxed)
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Relaxed)
    }

    /// Writing fails; said once.
    pub(crate) fn fails(&self, error: &dyn Display) {
        let mut state = self.state();
        let trouble = self.trouble(&mut state, error);
        if !self.is_broken.swap(true, Ordering::Relaxed) {
            trouble.is_said = true;
            warn!(%error, "calls can not be recorded; {}", self.require);
        }
    }

    /// Writing takes long; said once, and not again and again on a machine where it often does.
    pub(crate) fn is_late(&self, error: &dyn Display) {
        let mut state = self.state();
        let was_said = state.said.is_some_and(|said| said.elapsed() < QUIET);
        let trouble = self.trouble(&mut state, error);
        if !trouble.is_said && !was_said {
            trouble.is_said = true;
            state.said = Some(Instant::now());
            warn!(%error, "calls are recorded late; they do not wait for it");
        }
    }

    fn trouble<'a>(&self, state: &'a mut State, error: &dyn Display) -> &'a mut Trouble {
        self.is_failing.store(true, Ordering::Relaxed);
        let trouble = state.trouble.get_or_insert_with(|| Trouble {
            error: String::new(),
            since: Timestamp::now(),
            lost_before: self.lost(),
            is_said: false,
        });
        trouble.error = error.to_string();
        trouble
    }

    /// All is well again; said if the trouble was, or cost anything.
    pub(crate) fn is_well(&self) {
        if !self.is_failing() {
            return;
        }
        if let Some(over) = self.state().trouble.take() {
            self.is_failing.store(false, Ordering::Relaxed);
            self.is_broken.store(false, Ordering::Relaxed);
            let lost = self.lost() - over.lost_before;
            if over.is_said || lost > 0 {
                info!(lost, "calls are recorded again");
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Rows that will never be written.
    pub(crate) fn loses(&self, rows: u64) {
        self.lost.fetch_add(rows, Ordering::Relaxed);
    }

    /// Calls were deleted before their time because the journal was full; said now and then.
    pub(crate) fn evicts(&self, calls: &HashMap<String, u64>, max_size: i64) {
        self.evicted
            .fetch_add(calls.values().sum(), Ordering::Relaxed);
        let mut state = self.state();
        for (caller, count) in calls {
            *state.untold.entry(caller.clone()).or_default() += count;
        }
        let was_said = |said: Instant| said.elapsed() < QUIET_EVICTION;
        if state.untold.is_empty() || state.eviction_said.is_some_and(was_said) {
            return;
        }
        state.eviction_said = Some(Instant::now());
        let untold = std::mem::take(&mut state.untold);
        let calls: u64 = untold.values().sum();
        let most = untold.into_iter().max_by_key(|(_, count)| *count);
        let (caller, of_caller) = most.unwrap_or_default();
        warn!(
            calls,
            caller,
            of_caller,
            max_size,
            "the journal is full: calls were deleted before 'keepDays' is over, those of the caller that takes most first; raise journal.maxSize to keep them"
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
        match &self.state().trouble {
            None => JournalHealth::Ok { lost },
            Some(trouble) => JournalHealth::Failing {
                error: trouble.error.clone(),
                since: trouble.since,
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
    async fn that_calls_made_room_is_said_now_and_then() {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        let _guard = tracing::subscriber::set_default(subscriber);
        let health = Health::default();
        let evicts = |count| health.evicts(&HashMap::from([("kitchen".to_owned(), count)]), 1);
        health.evicts(&HashMap::new(), 1);
        evicts(3);
        evicts(4);
        evicts(5);
        let said = || String::from_utf8(log.0.lock().clone()).unwrap();
        assert_eq!(
            said().matches("the journal is full").count(),
            1,
            "{}",
            said()
        );
        assert!(said().contains("calls=3 caller=\"kitchen\""), "{}", said());
        tokio::time::advance(QUIET_EVICTION).await;
        evicts(1);
        assert!(said().contains("calls=10"), "{}", said());
        assert_eq!(health.evicted(), 13);
    }
}
