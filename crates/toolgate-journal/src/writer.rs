//! The thread that owns the database. It writes rows in batches and does everything slow: waiting
//! for other processes, recovery, upkeep, checkpoints.

mod maintenance;

use std::collections::HashSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use tokio::time::Instant;
use toolgate_core::Redactor;
use tracing::{debug, warn};

use crate::backlog::RowBacklog;
use crate::checkpointer::{Checkpointer, checkpoint};
use crate::file_identity::FileIdentity;
use crate::health::HealthMonitor;
use crate::key::ChainKey;
use crate::queue::RowQueue;
use crate::row::JournalRow;
use crate::runs::CurrentRun;
use crate::spool::{self, SharedSpool, Spool, SpoolSegment};
use crate::store::{CheckDepth, StoreError};
use crate::upkeep::Upkeep;
use crate::{JournalError, SyncMode, batch, chain, seq, store};

// How long the thread sleeps when nothing happens.
const IDLE_TIMEOUT: Duration = Duration::from_secs(1);
// If nobody waits for a row, the thread waits this long for more of them. Other processes see them
// that much later.
const GATHER_TIME: Duration = Duration::from_millis(20);
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// A longer log is checkpointed when the journal is closed.
const LONG_LOG_BYTES: u64 = 1 << 20;
const PAGE_BYTES: usize = 4096;
// How many pages a transaction writes besides its rows.
const PAGES_PER_TRANSACTION: usize = 2;

pub(crate) struct JournalWriter {
    pub(crate) file: PathBuf,
    pub(crate) sync: SyncMode,
    pub(crate) redactor: Redactor,
    pub(crate) key: Option<ChainKey>,
    pub(crate) run: CurrentRun,
    pub(crate) run_seq: i64,
    // The same number for others.
    pub(crate) shared_run: Arc<AtomicI64>,
    pub(crate) connection: Connection,
    pub(crate) queue: Arc<RowQueue>,
    pub(crate) health: Arc<HealthMonitor>,
    // Calls append to `spool`. `spooled` holds rows that were appended before and are not in the
    // database yet.
    pub(crate) spool: Arc<SharedSpool>,
    pub(crate) spooled: SpoolSegment,
    pub(crate) upkeep: Upkeep,
    pub(crate) checkpointer: Checkpointer,
    pub(crate) identity: FileIdentity,
    pub(crate) backlog: RowBacklog,
    pub(crate) last_failure: Option<LastFailure>,
    // The first `seq` of each call of this process that hasn't ended.
    pub(crate) open_calls: HashSet<i64>,
    /// The approximate number of pages in SQLite's log.
    pub(crate) log_pages: usize,
    pub(crate) idle_timeout: Duration,
    pub(crate) lost_lock_reported: bool,
    pub(crate) checked_at: Option<Instant>,
}

pub(crate) struct LastFailure {
    at: Instant,
    needs_opening: bool,
}

pub(crate) fn run(mut writer: JournalWriter) {
    run_surviving_panics(&mut writer, JournalWriter::work, JournalWriter::recover);
    let closing = writer.backlog.closing.take();
    // Releases the lock of the run before the close is acknowledged.
    drop(writer);
    if let Some(done) = closing {
        done.notify();
    }
}

// A panic costs the current batch, not the thread: without the thread nothing would be recorded.
fn run_surviving_panics<T>(worker: &mut T, work: fn(&mut T) -> bool, recover: fn(&mut T) -> bool) {
    loop {
        let continues = catch_unwind(AssertUnwindSafe(|| work(worker)));
        if !continues.unwrap_or_else(|_| recover(worker)) {
            return;
        }
    }
}

// SQLite calls this each time it finds the file locked. SQLite's own handler sleeps so long between
// its tries that other processes are always faster.
fn retry_when_busy(times: i32) -> bool {
    const FAST_RETRIES: i32 = 50;
    const MAX_RETRIES: i32 = 2500;
    let micros = if times < FAST_RETRIES { 200 } else { 2000 };
    std::thread::park_timeout(Duration::from_micros(micros));
    times < MAX_RETRIES
}

impl JournalWriter {
    fn work(&mut self) -> bool {
        self.queue
            .wait(self.idle_timeout, self.idle_timeout.min(GATHER_TIME));
        self.take_queued();
        self.write();
        if self.backlog.closing.is_some() {
            // Rows appended while the queue was full may still be in the other spool file.
            self.take_queued();
            self.write();
            self.close();
            return false;
        }
        self.run_maintenance();
        true
    }

    // The rows that led to the panic would do so again, so they are dropped.
    fn recover(&mut self) -> bool {
        self.health.add_lost(self.backlog.rows.len() as u64);
        self.health.record_failure(&"writing panicked");
        self.backlog.clear();
        self.backlog.acks.clear();
        self.spooled.has_unqueued = false;
        self.upkeep.finish_round();
        self.last_failure = Some(LastFailure {
            at: Instant::now(),
            needs_opening: true,
        });
        std::thread::park_timeout(RETRY_INTERVAL);
        !self.queue.is_closed()
    }

    fn take_queued(&mut self) {
        // The spool first: then all rows of the file that is swapped out are in the queue already,
        // and the backlog gets them.
        self.with_spool(Spool::swap_if_empty);
        let overflow = self.backlog.take_from(&self.queue);
        self.health.add_lost(overflow.lost);
        if overflow.has_spooled {
            // It isn't known which of the two files has these rows.
            self.spooled.has_unqueued = true;
            self.with_spool(|spool, _| spool.mark_unqueued());
        }
    }

    fn with_spool(&mut self, work: impl FnOnce(&mut Spool, &mut SpoolSegment)) {
        if let Some(mut guard) = spool::try_lock(&self.spool)
            && let Some(spool) = &mut *guard
        {
            work(spool, &mut self.spooled);
        }
    }

    fn write(&mut self) {
        if self.backlog.rows.is_empty() && !self.spooled.has_unqueued && !self.needs_opening() {
            return self.finish_write();
        }
        let is_urgent = std::mem::take(&mut self.backlog.is_urgent);
        let is_too_early = |failed: &LastFailure| failed.at.elapsed() < RETRY_INTERVAL;
        if is_urgent || !self.last_failure.as_ref().is_some_and(is_too_early) {
            match self.commit() {
                Ok(dropped) => {
                    self.health.add_lost(dropped);
                    self.finish_write();
                }
                Err(error) => self.fail(&error),
            }
        }
        // After a failure, the calls that still wait continue. Their rows are kept for another try.
        self.backlog.acks.clear();
    }

    fn needs_opening(&self) -> bool {
        let failed = self.last_failure.as_ref();
        failed.is_some_and(|failed| failed.needs_opening)
    }

    fn fail(&mut self, error: &JournalError) {
        self.health.record_failure(error);
        self.last_failure = Some(LastFailure {
            at: Instant::now(),
            needs_opening: !error.is_temporary(),
        });
    }

    fn finish_write(&mut self) {
        if !self.backlog.rows.is_empty() {
            self.upkeep.add_written(self.backlog.bytes);
            self.log_pages += PAGES_PER_TRANSACTION + self.backlog.bytes / PAGE_BYTES;
        }
        self.backlog.recycle_into(&self.queue);
        self.spooled.clear();
        self.last_failure = None;
        self.backlog.is_urgent = false;
        self.health.record_recovery();
        for ack in self.backlog.acks.drain(..) {
            ack.notify();
        }
    }

    fn commit(&mut self) -> Result<u64, JournalError> {
        // Checked every time: rows written to a file that nobody can find are lost.
        if !self.identity.still_matches(&self.file) {
            warn!(file = %self.file.display(), "the journal was moved or deleted; starting a new one");
            self.reopen(CheckDepth::Quick)?;
        }
        if self.needs_opening() {
            self.reopen(CheckDepth::Quick)?;
        }
        self.wait_for_others()?;
        match self.commit_once() {
            Err(error) if store::is_damage(&error) => {
                self.reopen(CheckDepth::Whole)?;
                self.commit_once()
            }
            result => result,
        }
        .map_err(|error| self.store_error(error))
    }

    fn commit_once(&mut self) -> rusqlite::Result<u64> {
        let unqueued = self.spooled.unqueued_rows();
        let rows = self.backlog.rows.iter().chain(&unqueued);
        let dropped = batch::write(
            &self.connection,
            self.key.as_ref(),
            self.run_seq,
            &self.redactor,
            rows.clone(),
        )?;
        // A failure doesn't matter: the saved head may be behind the chain, never ahead of it.
        chain::save_head(&self.connection, &self.file).ok();
        for row in rows {
            match row {
                JournalRow::Start(row) => self.open_calls.insert(seq::for_id(&row.id)),
                JournalRow::End(row) => self.open_calls.remove(&seq::for_id(&row.id)),
                JournalRow::Turn(_) | JournalRow::Task(_) => false,
            };
        }
        Ok(dropped)
    }

    fn reopen(&mut self, depth: CheckDepth) -> Result<(), JournalError> {
        if depth == CheckDepth::Whole {
            self.checked_at = Some(Instant::now());
        }
        self.connection = store::open(&self.file, self.sync, depth)?;
        chain::check_head(&mut self.connection, &self.file)
            .map_err(|error| self.store_error(error))?;
        self.identity = FileIdentity::read(&self.file);
        self.run_seq = self
            .run
            .insert(&self.connection)
            .map_err(|error| self.store_error(error))?;
        self.shared_run.store(self.run_seq, Ordering::Relaxed);
        Ok(())
    }

    fn store_error(&self, error: rusqlite::Error) -> JournalError {
        StoreError::Sqlite(error).at_path(&self.file)
    }

    /// Makes the connection wait for other processes that write.
    fn wait_for_others(&mut self) -> Result<(), JournalError> {
        let result = self.connection.busy_handler(Some(retry_when_busy));
        result.map_err(|error| self.store_error(error))
    }

    fn close(&mut self) {
        self.end_run();
        self.checkpointer.wait();
        // A short log is left to the next process, because a checkpoint takes longer than most
        // commands.
        let log = fs::metadata(store::suffixed(&self.file, "-wal"));
        if log.is_ok_and(|log| log.len() > LONG_LOG_BYTES)
            && let Err(error) = checkpoint(&self.connection, "TRUNCATE")
        {
            debug!(%error, "the journal's write-ahead log can't be checkpointed");
        }
    }

    /// Ends the run, unless the next process has to take over unwritten rows.
    fn end_run(&mut self) {
        let (rows, spooled) = (self.backlog.rows.len(), self.backlog.spooled);
        if rows > spooled {
            self.health.add_lost((rows - spooled) as u64);
            warn!(rows = rows - spooled, "the last calls couldn't be recorded");
        }
        if spooled > 0 || self.spooled.has_unqueued {
            warn!(
                rows = spooled,
                "the last calls are not in the journal yet; the next start adds them"
            );
            return self.run.keep_files();
        }
        if let Err(error) = self.run.end(&mut self.connection, self.open_calls.drain()) {
            debug!(%error, "the end of this process couldn't be recorded");
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
    fn a_panic_does_not_end_the_thread() {
        let mut seen = Vec::new();
        run_surviving_panics(
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
