//! Those who write: whoever has a row and finds the file free writes it on the spot, with all that waits; else the thread
//! does. The thread also does what takes time: waiting for other processes, trouble, upkeep, working off SQLite's log.

use std::collections::HashSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::Duration;

use rusqlite::Connection;
use tokio::time::Instant;
use toolgate_core::Redactor;
use tracing::{debug, warn};

use crate::backlog::Backlog;
use crate::health::Health;
use crate::identity::Identity;
use crate::queue::Queue;
use crate::row::Row;
use crate::runs::Run;
use crate::store::Look;
use crate::tidier::{Tidier, checkpoint};
use crate::upkeep::Upkeep;
use crate::{JournalError, Sync, batch, place, store};

/// How often the thread looks around when nothing happens.
const TICK: Duration = Duration::from_secs(1);
/// Where nobody waits for a row, the thread lets some come together: to be woken for each costs more than to write it.
const GATHER: Duration = Duration::from_millis(10);
/// How often what failed is tried again.
const RETRY: Duration = Duration::from_millis(100);
/// SQLite's log is worked off after about so many pages.
const LONG_LOG: usize = 1000;
const LONG_LOG_FILE: u64 = 1 << 20;
const PAGE: usize = 4096;
/// Pages of one small transaction.
const PAGES: usize = 2;

/// The file and all that is needed to write to it. Only one writes at a time.
pub(crate) struct Writer {
    pub(crate) file: PathBuf,
    pub(crate) sync: Sync,
    pub(crate) redactor: Redactor,
    pub(crate) run: Run,
    /// The number of the run in the file.
    pub(crate) run_seq: i64,
    pub(crate) connection: Connection,
    pub(crate) queue: Arc<Queue>,
    pub(crate) health: Arc<Health>,
    pub(crate) upkeep: Upkeep,
    pub(crate) identity: Identity,
    /// Rows that are not written yet, and who waits for them.
    pub(crate) backlog: Backlog,
    /// Since when nothing could be written, and whether the file has to be opened anew.
    pub(crate) failed: Option<Failed>,
    /// The places of calls that started and did not end.
    pub(crate) open: HashSet<i64>,
    /// How often the file was opened.
    pub(crate) opened: u64,
    /// Pages in SQLite's log, roughly.
    pub(crate) log: usize,
}

/// What is known of the last try.
pub(crate) struct Failed {
    at: Instant,
    needs_opening: bool,
}

/// Writes all that waits, if nobody else does and nothing stands in the way; else the thread is called.
pub(crate) fn write_at_once(writer: &Mutex<Option<Writer>>, queue: &Queue) {
    let mut guard = match writer.try_lock() {
        Ok(writer) => writer,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return queue.call(),
    };
    let Some(writer) = &mut *guard else {
        return; // It is closed, and so is the queue.
    };
    let is_clear = writer.backlog.rows.is_empty() && !writer.identity.is_due();
    writer.take();
    let is_written = is_clear && writer.write_now();
    if !is_written || writer.backlog.closing.is_some() || writer.log > LONG_LOG {
        queue.call();
    }
}

/// The thread, until it is told to close.
pub(crate) fn run(writer: &Mutex<Option<Writer>>, queue: &Queue) {
    let mut tidier = Tidier::default();
    let mut patience = TICK;
    loop {
        queue.wait(patience);
        if queue.nobody_waits() {
            std::thread::park_timeout(GATHER);
        }
        let mut guard = writer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(writer) = &mut *guard else { return };
        writer.take();
        writer.write_patiently();
        if let Some(done) = writer.backlog.closing.take() {
            writer.close();
            // The lock of the run goes with it.
            *guard = None;
            done.send(()).ok();
            return;
        }
        patience = writer.keep_up();
        if writer.log > LONG_LOG {
            writer.log = 0;
            tidier.is_for(&writer.file, writer.run_seq, writer.opened);
            drop(guard);
            tidier.work_off_log();
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
    /// What waits in the queue now waits here.
    fn take(&mut self) {
        let lost = self.backlog.add(self.queue.take());
        self.health.loses(lost);
    }

    /// True if everything is written. Waits for nobody and leaves every trouble to the thread.
    fn write_now(&mut self) -> bool {
        let rows = self.backlog.rows.iter();
        let result = catch_unwind(AssertUnwindSafe(|| {
            self.connection.busy_timeout(Duration::ZERO)?;
            batch::write(&self.connection, self.run_seq, &self.redactor, rows)
        }));
        let is_written = matches!(result, Ok(Ok(())));
        if is_written {
            self.written();
        }
        is_written
    }

    fn write_patiently(&mut self) {
        if self.backlog.rows.is_empty() {
            return self.written();
        }
        let is_urgent = std::mem::take(&mut self.backlog.is_urgent);
        let is_too_early = |failed: &Failed| failed.at.elapsed() < RETRY;
        if is_urgent || !self.failed.as_ref().is_some_and(is_too_early) {
            match catch_unwind(AssertUnwindSafe(|| self.commit())) {
                Ok(Ok(())) => self.written(),
                Ok(Err(error)) => self.fail(&error),
                Err(_) => {
                    // The rows that led to it would do so again.
                    self.health.loses(self.backlog.rows.len() as u64);
                    self.backlog.clear();
                    self.health.fails(&"writing panicked");
                }
            }
        }
        // Whoever still waits goes on; the rows are kept for another try.
        self.backlog.acks.clear();
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
            for row in &self.backlog.rows {
                match row {
                    Row::Start(row) => self.open.insert(place::of(&row.id)),
                    Row::End(row) => self.open.remove(&place::of(&row.id)),
                    Row::Turn(_) => false,
                };
            }
            self.backlog.clear();
        }
        self.failed = None;
        self.backlog.is_urgent = false;
        self.health.is_well();
        for ack in self.backlog.acks.drain(..) {
            // Whoever no longer waits does not mind.
            ack.send(()).ok();
        }
    }

    fn commit(&mut self) -> Result<(), JournalError> {
        if self.identity.is_due() && !self.identity.is_still(&self.file) {
            warn!(file = %self.file.display(), "the journal was moved or deleted; a new one is begun");
            self.reopen(Look::Quick)?;
        }
        if self
            .failed
            .as_ref()
            .is_some_and(|failed| failed.needs_opening)
        {
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

    fn commit_once(&mut self) -> rusqlite::Result<()> {
        let rows = self.backlog.rows.iter();
        batch::write(&self.connection, self.run_seq, &self.redactor, rows)
    }

    fn reopen(&mut self, look: Look) -> Result<(), JournalError> {
        self.connection = store::open(&self.file, self.sync, look)?;
        self.identity = Identity::of(&self.file);
        self.opened += 1;
        self.run_seq = self
            .run
            .enter(&self.connection)
            .map_err(|error| self.trouble(error))?;
        Ok(())
    }

    fn trouble(&self, error: rusqlite::Error) -> JournalError {
        JournalError::Sqlite {
            file: self.file.clone(),
            error,
        }
    }

    /// From here on another process that writes is waited for.
    fn wait_for_others(&mut self) -> Result<(), JournalError> {
        let result = self.connection.busy_handler(Some(waits));
        result.map_err(|error| self.trouble(error))
    }

    /// A bit of upkeep, and how long to wait before the next.
    fn keep_up(&mut self) -> Duration {
        if !self.upkeep.is_resting() && self.failed.is_none() && self.wait_for_others().is_ok() {
            self.upkeep.step(&mut self.connection, &self.file);
        }
        match self.upkeep.is_resting() {
            _ if self.failed.is_some() => RETRY,
            true => TICK,
            false => Duration::ZERO,
        }
    }

    fn close(&mut self) {
        let rows = self.backlog.rows.len();
        if rows > 0 {
            self.health.loses(rows as u64);
            warn!(rows, "the last calls could not be recorded");
        }
        if let Err(error) = self.run.leave(&mut self.connection, self.open.drain()) {
            debug!(%error, "the end of the run could not be recorded");
        }
        // A short log is left for the next process: working it off takes longer than most commands.
        let log = fs::metadata(store::suffixed(&self.file, "-wal"));
        if log.is_ok_and(|log| log.len() > LONG_LOG_FILE)
            && let Err(error) = checkpoint(&self.connection, "TRUNCATE")
        {
            debug!(%error, "the log of the journal could not be worked off");
        }
    }
}
