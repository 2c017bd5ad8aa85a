//! Checkpoints SQLite's write-ahead log on a separate thread, because syncing takes long.

use std::io;
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::Connection;
use tracing::debug;

const BUSY_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(crate) struct Checkpointer {
    worker: Option<JoinHandle<()>>,
}

impl Checkpointer {
    pub(crate) fn is_running(&self) -> bool {
        let mut worker = self.worker.iter();
        worker.any(|worker| !worker.is_finished())
    }

    /// Waits for the running checkpoint, since two can't run at once.
    pub(crate) fn wait(&mut self) {
        if let Some(worker) = self.worker.take() {
            // Nothing is needed from it, even if it panicked.
            worker.join().ok();
        }
    }

    pub(crate) fn start(&mut self, file: &Path) -> io::Result<()> {
        let file = file.to_owned();
        let work = move || {
            if let Err(error) = checkpoint_all(&file) {
                debug!(%error, "the journal's write-ahead log can't be checkpointed now");
            }
        };
        let worker = thread::Builder::new().name("journal-log".to_owned());
        self.worker = Some(worker.spawn(work)?);
        Ok(())
    }
}

fn checkpoint_all(file: &Path) -> rusqlite::Result<()> {
    let connection = Connection::open(file)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // The passive checkpoint does most of it without blocking anybody.
    checkpoint(&connection, "PASSIVE")?;
    checkpoint(&connection, "RESTART")
}

pub(crate) fn checkpoint(connection: &Connection, kind: &str) -> rusqlite::Result<()> {
    connection.query_row(&format!("PRAGMA wal_checkpoint({kind})"), [], |_| Ok(()))
}
