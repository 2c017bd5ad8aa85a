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

use crate::place::{self, NEARBY};
use crate::store::suffixed;
use crate::{batch, time};

/// What is said of a call whose process ended before it did.
pub(crate) const INTERRUPTED: &str = "interrupted, outcome unknown";

/// Calls looked at at once.
const SLICE: i64 = 20_000;
/// How much earlier than its run the id of a call may have been made.
const HOUR: i64 = 3600 * 1_000_000;

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

    /// The run is over in good order. Calls that are still open, by their places, will never end.
    pub(crate) fn leave(
        &self,
        connection: &mut Connection,
        open: impl Iterator<Item = i64>,
    ) -> rusqlite::Result<()> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let seq: i64 =
            transaction.query_row("SELECT seq FROM runs WHERE id = ?", [&self.id], |row| {
                row.get(0)
            })?;
        for place in open {
            interrupt(&transaction, seq, place, place + NEARBY)?;
        }
        let sql = "UPDATE runs SET ended_at = ? WHERE seq = ?";
        transaction.execute(sql, params![time::now(), seq])?;
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

/// Marks calls of runs that are over, the newest first and not too many at once. True if that was all.
pub(crate) fn mark_interrupted(
    connection: &mut Connection,
    database: &Path,
) -> rusqlite::Result<bool> {
    if dead(connection, database)?.is_empty() {
        return Ok(true);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut calls = 0;
    let mut is_all = true;
    // Looked at again: another process may have done it in between.
    for run in dead(&transaction, database)? {
        let (marked, is_done) = mark(&transaction, run.seq, run.unmarked)?;
        calls += marked;
        is_all &= is_done;
        if is_done {
            drop(fs::remove_file(folder_of(database).join(run.id)));
        }
    }
    transaction.commit()?;
    if calls > 0 {
        warn!(
            calls,
            "calls were interrupted when their process ended; their outcome is unknown"
        );
    }
    Ok(is_all)
}

/// A run that is over without having said so.
pub(crate) struct Dead {
    pub(crate) seq: i64,
    id: String,
    /// Its calls from here on are marked.
    unmarked: i64,
}

/// Runs that are over without having said so.
pub(crate) fn dead(connection: &Connection, database: &Path) -> rusqlite::Result<Vec<Dead>> {
    let mut statement =
        connection.prepare_cached("SELECT seq, id, unmarked FROM runs WHERE ended_at IS NULL")?;
    let open = statement.query_map([], |row| {
        Ok(Dead {
            seq: row.get(0)?,
            id: row.get(1)?,
            unmarked: row.get(2)?,
        })
    })?;
    let open = open.collect::<rusqlite::Result<Vec<Dead>>>()?;
    let folder = folder_of(database);
    let is_over = |run: &Dead| !is_alive(&folder, &run.id);
    Ok(open.into_iter().filter(is_over).collect())
}

/// Calls that are still open get what is known of their end: nothing. Looks at some before `unmarked`, and says how many were
/// marked and whether no more are left.
fn mark(connection: &Connection, run: i64, unmarked: i64) -> rusqlite::Result<(usize, bool)> {
    let now = time::now();
    let started: i64 =
        connection.query_row("SELECT started_at FROM runs WHERE seq = ?", [run], |row| {
            row.get(0)
        })?;
    let oldest = place::first_at((started - HOUR) / 1000);
    let from: Option<i64> = connection.query_row(
        "SELECT min(seq) FROM (SELECT seq FROM calls WHERE seq >= ? AND seq < ? ORDER BY seq DESC LIMIT ?)",
        params![oldest, unmarked, SLICE],
        |row| row.get(0),
    )?;
    let calls = interrupt(connection, run, from.unwrap_or(unmarked), unmarked)?;
    let ended_at = from.is_none().then_some(now);
    connection.execute(
        "UPDATE runs SET ended_at = ?, unmarked = ? WHERE seq = ?",
        params![ended_at, from.unwrap_or(oldest), run],
    )?;
    Ok((calls, from.is_none()))
}

/// Marks all open calls of a run from a place to another.
fn interrupt(connection: &Connection, run: i64, from: i64, until: i64) -> rusqlite::Result<usize> {
    let last = batch::last_finished(connection)?;
    connection.execute(
        "UPDATE calls SET outcome = 'interrupted', error = ?1, finished = ?2 + n FROM
            (SELECT seq AS open, row_number() OVER (ORDER BY seq) AS n FROM calls
             WHERE seq >= ?3 AND seq < ?4 AND finished IS NULL AND run = ?5)
         WHERE seq = open",
        params![INTERRUPTED, time::now().max(last), from, until, run],
    )
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
