//! How the journal is, and what is said about it: once when trouble begins, once when it is over.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use serde::Serialize;
use tracing::{info, warn};

use crate::time;

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
    /// The same as `trouble.is_some()`, for those who are in a hurry.
    is_failing: AtomicBool,
    /// Writing failed; else it only takes long.
    is_broken: AtomicBool,
    trouble: Mutex<Option<Trouble>>,
    lost: AtomicU64,
}

struct Trouble {
    error: String,
    since: Timestamp,
    lost_before: u64,
}

impl Health {
    pub(crate) fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Relaxed)
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Relaxed)
    }

    /// Writing fails.
    pub(crate) fn fails(&self, error: &dyn std::fmt::Display) {
        self.is_broken.store(true, Ordering::Relaxed);
        self.is_late(error);
    }

    /// Writing takes long, for whatever reason; said unless something has been.
    pub(crate) fn is_late(&self, error: &dyn std::fmt::Display) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        let error = error.to_string();
        match &mut *trouble {
            Some(known) => known.error = error,
            None => {
                warn!(%error, "calls can not be recorded; they run all the same");
                *trouble = Some(Trouble {
                    error,
                    since: Timestamp::now(),
                    lost_before: self.lost(),
                });
                self.is_failing.store(true, Ordering::Relaxed);
            }
        }
    }

    /// All is well again; said unless it always was.
    pub(crate) fn is_well(&self) {
        if !self.is_failing() {
            return;
        }
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(over) = trouble.take() {
            self.is_failing.store(false, Ordering::Relaxed);
            self.is_broken.store(false, Ordering::Relaxed);
            let lost = self.lost() - over.lost_before;
            info!(lost, "calls are recorded again");
        }
    }

    /// Rows that will never be written.
    pub(crate) fn loses(&self, rows: u64) {
        self.lost.fetch_add(rows, Ordering::Relaxed);
    }

    fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    pub(crate) fn report(&self) -> JournalHealth {
        let lost = self.lost();
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        match &*trouble {
            None => JournalHealth::Ok { lost },
            Some(trouble) => JournalHealth::Failing {
                error: trouble.error.clone(),
                since: trouble.since,
                lost,
            },
        }
    }
}
