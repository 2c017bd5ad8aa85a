//! The thread that owns the database: it moves rows there, many at a time, and does what takes long: waiting for other
//! processes, trouble, upkeep, working off SQLite's log.

mod maintenance;

use std::collections::HashSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use tokio::time::Instant;
use toolgate_core::Redactor;
use tracing::{debug, warn};

use crate::backlog::Backlog;
use crate::health::Health;
use crate::identity::Identity;
use crate::key::Key;
use crate::queue::Queue;
use crate::row::Row;
use crate::runs::Run;
use crate::spool::{self, Segment, SharedSpool, Spool};
use crate::store::{Look, Unusable};
use crate::tidier::{Tidier, checkpoint};
use crate::upkeep::Upkeep;
use crate::{JournalError, Sync, batch, chain, place, store};

/// How often the thread looks around when nothing happens.
const TICK: Duration = Duration::from_secs(1);
/// Where nobody waits for a row, the thread lets some come together. That late others see them.
const GATHER: Duration = Duration::from_millis(20);
/// How often what failed is tried again.
const RETRY: Duration = Duration::from_millis(100);
/// A log that is longer is worked off at the end.
const LONG_LOG_FILE: u64 = 1 << 20;
const PAGE: usize = 4096;
/// Pages of one small transaction.
const PAGES: usize = 2;

/// The database and all that is needed to write to it.
pub(crate) struct Writer {
    pub(crate) file: PathBuf,
    pub(crate) sync: Sync,
    pub(crate) redactor: Redactor,
    /// Makes the hashes of the chain, where there is one.
    pub(crate) key: Option<Key>,
    pub(crate) run: Run,
    /// The number of the run in the file.
    pub(crate) run_seq: i64,
    pub(crate) connection: Connection,
    pub(crate) queue: Arc<Queue>,
    pub(crate) health: Arc<Health>,
    /// What calls append to, and what was appended before that is not in the database yet.
    pub(crate) spool: Arc<SharedSpool>,
    pub(crate) spooled: Segment,
    pub(crate) upkeep: Upkeep,
    pub(crate) tidier: Tidier,
    pub(crate) identity: Identity,
    /// Rows that are not written yet, and who waits for them.
    pub(crate) backlog: Backlog,
    /// Since when nothing could be written, and whether the file has to be opened anew.
    pub(crate) failed: Option<Failed>,
    /// The places of calls that started and did not end.
    pub(crate) open: HashSet<i64>,
    /// Pages in SQLite's log, roughly.
    pub(crate) log: usize,
    /// How long to wait when there is nothing to write.
    pub(crate) patience: Duration,
    /// It was said that the lock of the run is gone.
    pub(crate) is_unseen: bool,
    /// When the whole file was last looked through.
    pub(crate) looked: Option<Instant>,
}

/// What is known of the last try.
pub(crate) struct Failed {
    at: Instant,
    needs_opening: bool,
}

/// The thread, until it is told to close.
pub(crate) fn run(mut writer: Writer) {
    endure(&mut writer, Writer::work, Writer::recover);
    let closing = writer.backlog.closing.take();
    // The lock of the run goes with it.
    drop(writer);
    if let Some(done) = closing {
        done.tell();
    }
}

/// Works until there is nothing left to do. A panic costs what was at hand, not the thread.
fn endure<T>(worker: &mut T, work: fn(&mut T) -> bool, recover: fn(&mut T) -> bool) {
    loop {
        let goes_on = catch_unwind(AssertUnwindSafe(|| work(worker)));
        if !goes_on.unwrap_or_else(|_| recover(worker)) {
            return;
        }
    }
}

/// Asked by SQLite each time it finds the file locked. Its own way sleeps so long in between that others are always faster.
fn waits(times: i32) -> bool {
    const FEW: i32 = 50;
    const MOST: i32 = 2500;
    std::thread::park_timeout(Duration::from_micros(if times < FEW { 200 } else { 2000 }));
    times < MOST
}

impl Writer {
    /// False if that was all.
    fn work(&mut self) -> bool {
        self.queue.wait(self.patience, self.patience.min(GATHER));
        self.take();
        self.write();
        if self.backlog.closing.is_some() {
            // What was appended while there was no room for it may still be in the other spool.
            self.take();
            self.write();
            self.close();
            return false;
        }
        self.keep_up();
        true
    }

    /// After a panic. The rows that led to it would do so again.
    fn recover(&mut self) -> bool {
        self.health.loses(self.backlog.rows.len() as u64);
        self.health.fails(&"writing panicked");
        self.backlog.clear();
        self.backlog.acks.clear();
        self.spooled.has_more = false;
        self.upkeep.rest();
        self.failed = Some(Failed {
            at: Instant::now(),
            needs_opening: true,
        });
        std::thread::park_timeout(RETRY);
        !self.queue.is_closed()
    }

    /// What waits in the queue now waits here.
    fn take(&mut self) {
        // First the spool: whatever stands in the part that is put away was in the queue before.
        self.with_spool(Spool::turn);
        let left_over = self.backlog.take_from(&self.queue);
        self.health.loses(left_over.lost);
        if left_over.is_spooled {
            // In one of them.
            self.spooled.has_more = true;
            self.with_spool(|spool, _| spool.has_more());
        }
    }

    fn with_spool(&mut self, work: impl FnOnce(&mut Spool, &mut Segment)) {
        if let Some(mut guard) = spool::lock(&self.spool)
            && let Some(spool) = &mut *guard
        {
            work(spool, &mut self.spooled);
        }
    }

    fn write(&mut self) {
        if self.backlog.rows.is_empty() && !self.spooled.has_more && !self.needs_opening() {
            return self.written();
        }
        let is_urgent = std::mem::take(&mut self.backlog.is_urgent);
        let is_too_early = |failed: &Failed| failed.at.elapsed() < RETRY;
        if is_urgent || !self.failed.as_ref().is_some_and(is_too_early) {
            match self.commit() {
                Ok(displaced) => {
                    self.health.loses(displaced);
                    self.written();
                }
                Err(error) => self.fail(&error),
            }
        }
        // Whoever still waits goes on; the rows are kept for another try.
        self.backlog.acks.clear();
    }

    fn needs_opening(&self) -> bool {
        let failed = self.failed.as_ref();
        failed.is_some_and(|failed| failed.needs_opening)
    }

    fn fail(&mut self, error: &JournalError) {
        self.health.fails(error);
        self.failed = Some(Failed {
            at: Instant::now(),
            needs_opening: !error.is_passing(),
        });
    }

    fn written(&mut self) {
        if !self.backlog.rows.is_empty() {
            self.upkeep.wrote(self.backlog.bytes);
            self.log += PAGES + self.backlog.bytes / PAGE;
        }
        self.backlog.clear_into(&self.queue);
        self.spooled.clear();
        self.failed = None;
        self.backlog.is_urgent = false;
        self.health.is_well();
        for ack in self.backlog.acks.drain(..) {
            ack.tell();
        }
    }

    /// Says how many rows there is no place for.
    fn commit(&mut self) -> Result<u64, JournalError> {
        if self.identity.is_due() && !self.identity.is_still(&self.file) {
            warn!(file = %self.file.display(), "the journal was moved or deleted; a new one is begun");
            self.reopen(Look::Quick)?;
        }
        if self.needs_opening() {
            self.reopen(Look::Quick)?;
        }
        self.wait_for_others()?;
        match self.commit_once() {
            Err(error) if store::is_damage(&error) => {
                self.reopen(Look::Whole)?;
                self.commit_once()
            }
            result => result,
        }
        .map_err(|error| self.trouble(error))
    }

    fn commit_once(&mut self) -> rusqlite::Result<u64> {
        let more = self.spooled.more();
        let rows = self.backlog.rows.iter().chain(&more);
        let displaced = batch::write(
            &self.connection,
            self.key.as_ref(),
            self.run_seq,
            &self.redactor,
            rows.clone(),
        )?;
        // Behind by a moment is enough: what is noted must be there, what is there need not be noted.
        chain::note(&self.connection, &self.file).ok();
        for row in rows {
            match row {
                Row::Start(row) => self.open.insert(place::of(&row.id)),
                Row::End(row) => self.open.remove(&place::of(&row.id)),
                Row::Turn(_) => false,
            };
        }
        Ok(displaced)
    }

    fn reopen(&mut self, look: Look) -> Result<(), JournalError> {
        if look == Look::Whole {
            self.looked = Some(Instant::now());
        }
        self.connection = store::open(&self.file, self.sync, look)?;
        chain::attend(&mut self.connection, &self.file).map_err(|error| self.trouble(error))?;
        self.identity = Identity::of(&self.file);
        self.run_seq = self
            .run
            .enter(&self.connection)
            .map_err(|error| self.trouble(error))?;
        Ok(())
    }

    fn trouble(&self, error: rusqlite::Error) -> JournalError {
        Unusable::Sqlite(error).of(&self.file)
    }

    /// Another process that writes is waited for.
    fn wait_for_others(&mut self) -> Result<(), JournalError> {
        let result = self.connection.busy_handler(Some(waits));
        result.map_err(|error| self.trouble(error))
    }

    fn close(&mut self) {
        self.leave();
        self.tidier.wait();
        // A short log is left for the next process: working it off takes longer than most commands.
        let log = fs::metadata(store::suffixed(&self.file, "-wal"));
        if log.is_ok_and(|log| log.len() > LONG_LOG_FILE)
            && let Err(error) = checkpoint(&self.connection, "TRUNCATE")
        {
            debug!(%error, "the log of the journal could not be worked off");
        }
    }

    /// Ends the run, unless the next process has to take over what could not be written.
    fn leave(&mut self) {
        let (rows, spooled) = (self.backlog.rows.len(), self.backlog.spooled);
        if rows > spooled {
            self.health.loses((rows - spooled) as u64);
            warn!(
                rows = rows - spooled,
                "the last calls could not be recorded"
            );
        }
        if spooled > 0 || self.spooled.has_more {
            warn!(
                rows = spooled,
                "the last calls are not in the journal yet; the next start sees to it"
            );
            return self.run.leave_files();
        }
        if let Err(error) = self.run.leave(&mut self.connection, self.open.drain()) {
            debug!(%error, "the end of the run could not be recorded");
        }
        let mut guard = self.spool.lock();
        if let Some(spool) = guard.take() {
            spool.remove(&self.spooled);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_costs_what_was_at_hand_and_not_the_thread() {
        let mut seen = Vec::new();
        endure(
            &mut seen,
            |seen| {
                seen.push("work");
                assert!(seen.len() % 3 != 0, "now");
                seen.len() < 8
            },
            |seen| {
                seen.push("recovery");
                true
            },
        );
        let expected = [
            "work", "work", "work", "recovery", "work", "work", "recovery", "work",
        ];
        assert_eq!(seen, expected);
    }
}
