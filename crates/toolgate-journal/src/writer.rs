//! The one thread that writes. It takes all that waits, commits it at once, and then wakes those who wait for it.

use std::collections::VecDeque;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use tokio::time::Instant;
use toolgate_core::Redactor;
use tracing::{debug, warn};

use crate::health::Health;
use crate::queue::{Ack, Job, MOST_BYTES, MOST_ROWS, Queue};
use crate::row::Row;
use crate::runs::Run;
use crate::upkeep::Upkeep;
use crate::{JournalError, Sync, batch, store};

/// How often it looks around when nothing happens.
const TICK: Duration = Duration::from_secs(1);

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
    /// Rows that could not be written yet.
    pub(crate) backlog: Backlog,
    pub(crate) upkeep: Upkeep,
    pub(crate) identity: Identity,
}

/// Which file it is that is written to: SQLite does not notice when it is moved or deleted.
pub(crate) struct Identity {
    device_and_inode: Option<(u64, u64)>,
    looked: Instant,
}

impl Identity {
    pub(crate) fn of(file: &Path) -> Self {
        let numbers = |file: Metadata| (file.dev(), file.ino());
        Self {
            device_and_inode: fs::metadata(file).ok().map(numbers),
            looked: Instant::now(),
        }
    }

    /// True if nobody has looked for a while.
    fn is_due(&self) -> bool {
        self.looked.elapsed() >= TICK
    }

    /// True if it is still the same file.
    fn is_still(&mut self, file: &Path) -> bool {
        let now = Self::of(file);
        self.looked = now.looked;
        self.device_and_inode == now.device_and_inode
    }
}

/// Rows that wait for better times, bounded like the queue.
#[derive(Default)]
pub(crate) struct Backlog {
    rows: VecDeque<Row>,
    bytes: usize,
}

impl Backlog {
    /// False if there is no room.
    fn keep(&mut self, row: Row) -> bool {
        let bytes = row.bytes();
        let has_room = self.rows.len() < MOST_ROWS && self.bytes + bytes <= MOST_BYTES;
        if has_room {
            self.bytes += bytes;
            self.rows.push_back(row);
        }
        has_room
    }
}

impl Writer {
    /// Until it is told to close.
    pub(crate) fn run(mut self) {
        loop {
            let is_resting = self.upkeep.is_resting();
            let jobs = self
                .queue
                .take(if is_resting { TICK } else { Duration::ZERO });
            let closing = self.work(jobs);
            if let Some(done) = closing {
                self.close();
                done.send(()).ok();
                return;
            }
            if !is_resting {
                self.upkeep.step(&mut self.connection, &self.file);
            }
        }
    }

    fn work(&mut self, jobs: VecDeque<Job>) -> Option<Ack> {
        let mut acks = Vec::with_capacity(jobs.len());
        let mut closing = None;
        let mut lost = 0;
        for job in jobs {
            match job {
                Job::Write(row, ack) => {
                    lost += u64::from(!self.backlog.keep(row));
                    acks.extend(ack);
                }
                Job::Flush(ack) => acks.push(ack),
                Job::Close(ack) => closing = Some(ack),
            }
        }
        self.health.loses(lost);
        if self.write() {
            for ack in acks {
                // Whoever no longer waits does not mind.
                ack.send(()).ok();
            }
        }
        closing
    }

    /// True if everything is written.
    fn write(&mut self) -> bool {
        if self.backlog.rows.is_empty() {
            self.health.is_well();
            return true;
        }
        let written = catch_unwind(AssertUnwindSafe(|| self.commit()));
        match written {
            Ok(Ok(())) => {
                self.upkeep.wrote(self.backlog.bytes);
                self.backlog = Backlog::default();
                self.health.is_well();
                true
            }
            Ok(Err(error)) => {
                self.health.fails(&error);
                false
            }
            Err(_) => {
                // The rows that led to it would do so again.
                self.health.loses(self.backlog.rows.len() as u64);
                self.backlog = Backlog::default();
                self.health.fails(&"writing panicked");
                false
            }
        }
    }

    fn commit(&mut self) -> Result<(), JournalError> {
        if self.identity.is_due() && !self.identity.is_still(&self.file) {
            warn!(file = %self.file.display(), "the journal was moved or deleted; a new one is begun");
            self.reopen()?;
        }
        let rows = self.backlog.rows.iter();
        match batch::write(&mut self.connection, self.run_seq, &self.redactor, rows) {
            Err(error) if store::is_damage(&error) => {
                self.reopen()?;
                let rows = self.backlog.rows.iter();
                batch::write(&mut self.connection, self.run_seq, &self.redactor, rows)
            }
            result => result,
        }
        .map_err(|error| self.trouble(error))
    }

    fn reopen(&mut self) -> Result<(), JournalError> {
        self.connection = store::open(&self.file, self.sync)?;
        self.identity = Identity::of(&self.file);
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

    fn close(&mut self) {
        let rows = self.backlog.rows.len();
        if rows > 0 {
            self.health.loses(rows as u64);
            warn!(rows, "the last calls could not be recorded");
        }
        if let Err(error) = self.run.leave(&mut self.connection) {
            debug!(%error, "the end of the run could not be recorded");
        }
        let checkpoint = self
            .connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        if let Err(error) = checkpoint {
            debug!(%error, "the journal could not be tidied up");
        }
    }
}
