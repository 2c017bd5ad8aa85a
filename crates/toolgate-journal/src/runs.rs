//! Which processes write to the file, and which of them are still there.
//!
//! Each run has a row, and beside the database a file of its own that it holds locked while it lives. The lock goes with the
//! process, however that ends: a run whose lock is free is over, and calls it left open were interrupted.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, TransactionBehavior, params};
use tracing::{debug, warn};

use crate::store::suffixed;
use crate::time;

/// What is said of a call whose process ended before it did.
pub(crate) const INTERRUPTED: &str = "interrupted, outcome unknown";

/// This process, for as long as it holds the lock.
pub(crate) struct Run {
    id: String,
    command: String,
    started_at: i64,
    path: PathBuf,
    /// Holds the lock; both go with the process.
    _lock: File,
}

impl Run {
    /// Takes a new lock. The row follows with [`enter`](Self::enter): nobody may see it before the lock is held.
    pub(crate) fn begin(database: &Path, command: &str) -> io::Result<Self> {
        let folder = folder(database)?;
        let id = format!("{:016x}", fastrand::u64(..));
        let path = folder.join(&id);
        let lock = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        lock.try_lock()?;
        Ok(Self {
            id,
            command: command.to_owned(),
            started_at: time::now(),
            path,
            _lock: lock,
        })
    }

    /// Adds the row, unless it is there, and says its number.
    pub(crate) fn enter(&self, connection: &Connection) -> rusqlite::Result<i64> {
        connection.execute(
            "INSERT INTO runs (id, command, pid, version, started_at) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
            params![self.id, self.command, std::process::id(), env!("CARGO_PKG_VERSION"), self.started_at],
        )?;
        connection.query_row("SELECT seq FROM runs WHERE id = ?", [&self.id], |row| {
            row.get(0)
        })
    }

    /// The run is over in good order.
    pub(crate) fn leave(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let seq =
            transaction.query_row("SELECT seq FROM runs WHERE id = ?", [&self.id], |row| {
                row.get(0)
            })?;
        end(&transaction, seq)?;
        transaction.commit()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            debug!(%error, "the lock of a run can not be removed");
        }
    }
}

/// Marks the calls of runs that are over, and says how many there were.
pub(crate) fn mark_interrupted(
    connection: &mut Connection,
    database: &Path,
) -> rusqlite::Result<usize> {
    if dead(connection, database)?.is_empty() {
        return Ok(0);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut calls = 0;
    // Looked at again: another process may have done it in between.
    for (seq, id) in dead(&transaction, database)? {
        calls += end(&transaction, seq)?;
        drop(fs::remove_file(folder_of(database).join(id)));
    }
    transaction.commit()?;
    if calls > 0 {
        warn!(
            calls,
            "calls were interrupted when their process ended; their outcome is unknown"
        );
    }
    Ok(calls)
}

/// Runs that are over without having said so.
pub(crate) fn dead(
    connection: &Connection,
    database: &Path,
) -> rusqlite::Result<Vec<(i64, String)>> {
    let mut statement = connection.prepare("SELECT seq, id FROM runs WHERE ended_at IS NULL")?;
    let open = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let open = open.collect::<rusqlite::Result<Vec<(i64, String)>>>()?;
    let folder = folder_of(database);
    let is_over = |(_, id): &(i64, String)| !is_alive(&folder, id);
    Ok(open.into_iter().filter(is_over).collect())
}

/// Its calls that are still open get what is known of their end: nothing.
fn end(connection: &Connection, run: i64) -> rusqlite::Result<usize> {
    let now = time::now();
    let last: Option<i64> =
        connection.query_row("SELECT max(finished) FROM calls", [], |row| row.get(0))?;
    let first = now.max(last.unwrap_or(0) + 1);
    let calls = connection.execute(
        "UPDATE calls SET outcome = 'interrupted', error = ?1, finished = ?2 + n FROM
            (SELECT seq AS open, row_number() OVER (ORDER BY seq) AS n FROM calls WHERE finished IS NULL AND run = ?3)
         WHERE seq = open",
        params![INTERRUPTED, first, run],
    )?;
    connection.execute(
        "UPDATE runs SET ended_at = ? WHERE seq = ?",
        params![now, run],
    )?;
    Ok(calls)
}

/// A run is alive while someone holds its lock. Only a shared lock is tried, so that those who look never see each other.
fn is_alive(folder: &Path, id: &str) -> bool {
    // A damaged file may hold any text: it must not lead elsewhere.
    if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return false;
    }
    match File::open(folder.join(id)) {
        Ok(file) => matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)),
        // Whether it lives can not be seen; to call a running call interrupted would be worse than to wait.
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// True if a process writes to the file now.
pub(crate) fn is_anyone_alive(database: &Path) -> bool {
    let folder = folder_of(database);
    let Ok(runs) = fs::read_dir(&folder) else {
        return false;
    };
    runs.flatten()
        .any(|run| is_alive(&folder, &run.file_name().to_string_lossy()))
}

/// Where the locks are, made if it is not there.
pub(crate) fn folder(database: &Path) -> io::Result<PathBuf> {
    let folder = folder_of(database);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)?;
    Ok(folder)
}

fn folder_of(database: &Path) -> PathBuf {
    suffixed(database, ".runs")
}
