//! What the thread does between batches: upkeep, looking after its files, mending the database.

use std::time::Duration;

use tokio::time::Instant;
use tracing::{debug, warn};

use super::{GATHER, RETRY, TICK, Writer};
use crate::identity::Identity;
use crate::spool::Spool;
use crate::store::{self, Look};

/// SQLite's log is worked off after about so many pages.
const LONG_LOG: usize = 1000;
/// How long a file that was found whole is not looked through again.
const TRUST: Duration = Duration::from_secs(60);

impl Writer {
    /// A bit of upkeep, and how long to wait before the next.
    pub(super) fn keep_up(&mut self) {
        self.stay_seen();
        if self.queue.take_damage() {
            self.mend();
        }
        if !self.upkeep.is_resting() && self.failed.is_none() && self.wait_for_others().is_ok() {
            self.tidy_up();
        }
        if self.log > LONG_LOG && !self.tidier.is_at_work() {
            self.log = 0;
            if let Err(error) = self.tidier.work_off_log(&self.file) {
                debug!(%error, "the log of the journal can not be worked off now");
            }
        }
        self.patience = match self.upkeep.is_resting() {
            _ if self.failed.is_some() => RETRY,
            true => TICK,
            false => Duration::ZERO,
        }
    }

    /// As much as there is time for while rows come together: under load more of them come than one step deletes.
    fn tidy_up(&mut self) {
        let end = Instant::now() + GATHER;
        loop {
            match self.step_of_upkeep() {
                Err(error) if store::is_damage(&error) => return self.mend(),
                _ => {}
            }
            if self.upkeep.is_resting() || Instant::now() > end || self.queue.is_urgent() {
                return;
            }
        }
    }

    fn step_of_upkeep(&mut self) -> rusqlite::Result<()> {
        self.upkeep
            .step(&mut self.connection, self.key.as_ref(), &self.file)
    }

    /// Someone who reads or tidies up met damage that no row has met. A file that has it is set aside.
    fn mend(&mut self) {
        if self.looked.is_some_and(|at| at.elapsed() < TRUST) {
            return;
        }
        let mut before = Identity::of(&self.file);
        match self.reopen(Look::Whole) {
            Ok(()) if before.is_still(&self.file) => {
                warn!(file = %self.file.display(), "the journal seemed to be damaged, but nothing is found wrong with it");
            }
            Ok(()) => self.upkeep.begin(),
            Err(error) => self.fail(&error),
        }
    }

    /// Without its lock this run would look to others as if it were over; without its spools it would leave nothing.
    fn stay_seen(&mut self) {
        if !self.run.is_seen() {
            let was_said = std::mem::replace(&mut self.is_unseen, true);
            let file = self.run.path();
            let file = file.display();
            match self.run.renew() {
                Ok(()) => warn!(%file, "the journal's lock was deleted; it is made anew"),
                Err(_) if was_said => return,
                Err(error) => {
                    return warn!(%error, %file, "the journal's lock was deleted and can not be made anew; to others, running calls may look interrupted");
                }
            }
            self.is_unseen = false;
        }
        self.with_spool(Spool::renew);
    }
}
