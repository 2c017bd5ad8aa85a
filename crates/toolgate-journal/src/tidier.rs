//! Works off SQLite's log, so that nobody whose call waits has to.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use tracing::debug;

/// How long to wait for those who read.
const BUSY: Duration = Duration::from_secs(1);

/// Moves SQLite's log into the file, beside those who write: syncing takes its time.
#[derive(Default)]
pub(crate) struct Tidier {
    file: PathBuf,
    run: i64,
    opened: u64,
    connection: Option<Connection>,
}

impl Tidier {
    /// Which file, and the number of our run in it. `opened` is another number when the file is another.
    pub(crate) fn is_for(&mut self, file: &Path, run: i64, opened: u64) {
        if self.opened != opened {
            self.connection = None;
        }
        file.clone_into(&mut self.file);
        (self.run, self.opened) = (run, opened);
    }

    pub(crate) fn work_off_log(&mut self) {
        if let Err(error) = self.try_to_work_off_log() {
            debug!(%error, "the log of the journal could not be worked off now");
            self.connection = None;
        }
    }

    fn try_to_work_off_log(&mut self) -> rusqlite::Result<()> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(&self.file)?,
        };
        let connection = self.connection.insert(connection);
        connection.busy_timeout(BUSY)?;
        checkpoint(connection, "PASSIVE")?;
        checkpoint(connection, "RESTART")?;
        // The first page of a new log is synced at once: better here than by someone whose call waits.
        connection.execute("UPDATE runs SET pid = pid WHERE seq = ?", [self.run])?;
        Ok(())
    }
}

pub(crate) fn checkpoint(connection: &Connection, kind: &str) -> rusqlite::Result<()> {
    connection.query_row(&format!("PRAGMA wal_checkpoint({kind})"), [], |_| Ok(()))
}
