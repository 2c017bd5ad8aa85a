//! Works off SQLite's log, beside the thread that writes: syncing takes its time.

use std::io;
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::Connection;
use tracing::debug;

/// How long to wait for those who read.
const BUSY: Duration = Duration::from_secs(1);

/// Moves SQLite's log into the file, once at a time.
#[derive(Default)]
pub(crate) struct Tidier {
    worker: Option<JoinHandle<()>>,
}

impl Tidier {
    pub(crate) fn is_at_work(&self) -> bool {
        let mut worker = self.worker.iter();
        worker.any(|worker| !worker.is_finished())
    }

    /// Until it is done: two can not work at once.
    pub(crate) fn wait(&mut self) {
        if let Some(worker) = self.worker.take() {
            // If it panicked, nothing of it is needed.
            worker.join().ok();
        }
    }

    pub(crate) fn work_off_log(&mut self, file: &Path) -> io::Result<()> {
        let file = file.to_owned();
        let work = move || {
            if let Err(error) = work_off(&file) {
                debug!(%error, "the log of the journal could not be worked off now");
            }
        };
        let worker = thread::Builder::new().name("journal-log".to_owned());
        self.worker = Some(worker.spawn(work)?);
        Ok(())
    }
}

fn work_off(file: &Path) -> rusqlite::Result<()> {
    let connection = Connection::open(file)?;
    connection.busy_timeout(BUSY)?;
    // Most of it without holding up anybody.
    checkpoint(&connection, "PASSIVE")?;
    checkpoint(&connection, "RESTART")
}

pub(crate) fn checkpoint(connection: &Connection, kind: &str) -> rusqlite::Result<()> {
    connection.query_row(&format!("PRAGMA wal_checkpoint({kind})"), [], |_| Ok(()))
}
