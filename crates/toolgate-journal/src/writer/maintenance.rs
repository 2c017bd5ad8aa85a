//! The writer's work between batches: upkeep, checking that its files still
//! exist, repairing the database.

use std::time::Duration;

use tokio::time::Instant;
use tracing::{debug, warn};

use super::{GATHER_TIME, IDLE_TIMEOUT, JournalWriter, RETRY_INTERVAL};
use crate::file_identity::FileIdentity;
use crate::spool::Spool;
use crate::store::{self, CheckDepth};

// SQLite's log is checkpointed after about this many pages.
const LONG_LOG_PAGES: usize = 1000;
// For this long after a full check, the file isn't checked again.
const RECHECK_INTERVAL: Duration = Duration::from_secs(60);

impl JournalWriter {
    pub(super) fn run_maintenance(&mut self) {
        self.keep_lock_visible();
        if self.queue.take_damage() {
            self.check_for_damage();
        }
        if !self.upkeep.is_idle() && self.last_failure.is_none() && self.wait_for_others().is_ok() {
            self.run_upkeep();
        }
        if self.log_pages > LONG_LOG_PAGES && !self.checkpointer.is_running() {
            self.log_pages = 0;
            if let Err(error) = self.checkpointer.start(&self.file) {
                debug!(%error, "the journal's checkpoint can't be started now");
            }
        }
        self.idle_timeout = match self.upkeep.is_idle() {
            _ if self.last_failure.is_some() => RETRY_INTERVAL,
            true => IDLE_TIMEOUT,
            false => Duration::ZERO,
        }
    }

    // Runs as many steps as there is time for while rows are gathered. Under load more rows arrive
    // than one step deletes.
    fn run_upkeep(&mut self) {
        let end = Instant::now() + GATHER_TIME;
        loop {
            match self.upkeep_step() {
                Err(error) if store::is_damage(&error) => return self.check_for_damage(),
                _ => {}
            }
            if self.upkeep.is_idle() || Instant::now() > end || self.queue.is_urgent() {
                return;
            }
        }
    }

    fn upkeep_step(&mut self) -> rusqlite::Result<()> {
        self.upkeep
            .step(&mut self.connection, self.key.as_ref(), &self.file)
    }

    /// Checks the whole file after a reader or the upkeep found damage. Sets a damaged file aside.
    fn check_for_damage(&mut self) {
        let is_recent = |at: Instant| at.elapsed() < RECHECK_INTERVAL;
        if self.checked_at.is_some_and(is_recent) {
            return;
        }
        let before = FileIdentity::read(&self.file);
        match self.reopen(CheckDepth::Whole) {
            Ok(()) if before.still_matches(&self.file) => {
                warn!(file = %self.file.display(), "the journal seemed to be damaged, but a full check found nothing wrong");
            }
            Ok(()) => self.upkeep.restart(),
            Err(error) => self.fail(&error),
        }
    }

    // Without its lock this run would look dead to other processes. Without its spool files nobody
    // could take over its rows after a crash.
    fn keep_lock_visible(&mut self) {
        if !self.run.is_lock_visible() {
            let was_reported = std::mem::replace(&mut self.lost_lock_reported, true);
            let file = self.run.path();
            let file = file.display();
            match self.run.recreate_lock() {
                Ok(()) => warn!(%file, "the journal's lock was deleted; it was recreated"),
                Err(_) if was_reported => return,
                Err(error) => {
                    return warn!(%error, %file, "the journal's lock was deleted and can't be recreated; other processes may see running calls as interrupted");
                }
            }
            self.lost_lock_reported = false;
        }
        self.with_spool(Spool::recreate_missing);
    }
}
