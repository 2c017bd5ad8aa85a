//! Tracks which processes write to the database and which of them are alive.
//!
//! Each run has a row, and a file beside the database that it keeps locked while it lives. The
//! operating system releases the lock when the process ends, however it ends, so a run whose lock
//! is free is over. `takeover.rs` handles what it left.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};
use tracing::debug;

use crate::store::{create_private_folder, private_file, suffixed};
use crate::{checksummed_line, spool, takeover, time};

pub(crate) struct CurrentRun {
    entry: RunEntry,
    database: PathBuf,
    lock: File,
    keeps_files: bool,
}

#[derive(Serialize, Deserialize, Default)]
pub(crate) struct RunEntry {
    id: String,
    command: String,
    pid: u32,
    version: String,
    started_at: i64,
}

impl CurrentRun {
    /// Takes a new lock. [`insert`](Self::insert) adds the row afterwards, because other processes
    /// would take a row without a held lock for a dead run.
    pub(crate) fn begin(database: &Path, command: &str) -> io::Result<Self> {
        let entry = RunEntry {
            id: format!("{:016x}", fastrand::u64(..)),
            command: command.to_owned(),
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: time::now(),
        };
        Ok(Self {
            lock: entry.lock(database)?,
            entry,
            database: database.to_owned(),
            keeps_files: false,
        })
    }

    pub(crate) fn path(&self) -> PathBuf {
        folder_path(&self.database).join(&self.entry.id)
    }

    /// False if the lock file is no longer where other processes look for it.
    pub(crate) fn is_lock_visible(&self) -> bool {
        let number = |file: fs::Metadata| (file.dev(), file.ino());
        let ours = self.lock.metadata().map(number).ok();
        fs::metadata(self.path()).map(number).ok() == ours
    }

    pub(crate) fn recreate_lock(&mut self) -> io::Result<()> {
        self.lock = self.entry.lock(&self.database)?;
        Ok(())
    }

    /// Adds the row unless it exists, and returns its number.
    pub(crate) fn insert(&self, connection: &Connection) -> rusqlite::Result<i64> {
        self.entry.insert(connection)
    }

    /// Ends the run in good order. `open` lists the first `seq` of each call that is still open;
    /// these calls become interrupted.
    pub(crate) fn end(
        &self,
        connection: &mut Connection,
        open: impl Iterator<Item = i64>,
    ) -> rusqlite::Result<()> {
        takeover::end_run(connection, &self.database, &self.entry.id, open)
    }

    /// Keeps the files for the next process, because not everything could be written.
    pub(crate) fn keep_files(&mut self) {
        self.keeps_files = true;
    }
}

impl Drop for CurrentRun {
    fn drop(&mut self) {
        if !self.keeps_files
            && self.is_lock_visible()
            && let Err(error) = fs::remove_file(self.path())
        {
            debug!(%error, "the lock of this process can't be removed");
        }
    }
}

impl RunEntry {
    /// Reads the file of a run that is over. If it can't be read, only the id is known,
    /// from the file name.
    pub(crate) fn read_abandoned(database: &Path, id: &str) -> Self {
        let text = fs::read(folder_path(database).join(id)).unwrap_or_default();
        let entry = checksummed_line::decode(text.strip_suffix(b"\n").unwrap_or(&text));
        Self {
            id: id.to_owned(),
            ..entry.unwrap_or_default()
        }
    }

    // The file gets its name only once it is locked, or another process could take it for the lock
    // of a dead run.
    fn lock(&self, database: &Path) -> io::Result<File> {
        let path = create_folder(database)?.join(&self.id);
        let unlocked_path = suffixed(&path, ".new");
        let mut lock = private_file()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&unlocked_path)?;
        lock.try_lock()?;
        if let Err(error) = lock.write_all(&checksummed_line::encode(self)) {
            debug!(%error, "the lock of this process can't be labelled");
        }
        fs::rename(&unlocked_path, &path)?;
        Ok(lock)
    }

    pub(crate) fn insert(&self, connection: &Connection) -> rusqlite::Result<i64> {
        connection.execute(
            "INSERT INTO runs (id, command, pid, version, started_at) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
            params![self.id, self.command, self.pid, self.version, self.started_at],
        )?;
        let sql = "SELECT seq FROM runs WHERE id = ?";
        connection.query_row(sql, [&self.id], |row| row.get(0))
    }
}

pub(crate) struct DeadRun {
    pub(crate) seq: i64,
    pub(crate) id: String,
    /// Open calls from this `seq` on are already marked as interrupted.
    pub(crate) unmarked: i64,
}

#[derive(Default)]
pub(crate) struct DeadRuns(Vec<i64>);

impl DeadRuns {
    pub(crate) fn new(runs: Vec<DeadRun>) -> Self {
        Self(runs.into_iter().map(|run| run.seq).collect())
    }

    pub(crate) fn contains(&self, run: i64) -> bool {
        self.0.contains(&run)
    }

    pub(crate) fn list(&self) -> String {
        let runs: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        runs.join(", ")
    }
}

pub(crate) fn dead_runs(
    connection: &Connection,
    database: &Path,
) -> rusqlite::Result<Vec<DeadRun>> {
    let sql = "SELECT seq, id, unmarked, pid FROM runs WHERE ended_at IS NULL";
    let mut statement = connection.prepare_cached(sql)?;
    let open = statement.query_map([], |row| {
        let run = DeadRun {
            seq: row.get(0)?,
            id: row.get(1)?,
            unmarked: row.get(2)?,
        };
        Ok((run, row.get(3)?))
    })?;
    let open = open.collect::<rusqlite::Result<Vec<(DeadRun, i64)>>>()?;
    let folder = folder_path(database);
    let is_over = |(run, pid): (DeadRun, i64)| match LockState::probe(&folder, &run.id) {
        LockState::Held => None,
        LockState::Free => Some(run),
        // Somebody deleted it. A living process recreates its lock within a second. Until then only
        // the process id shows whether it lives.
        LockState::Missing => (!is_running(pid)).then_some(run),
    };
    Ok(open.into_iter().filter_map(is_over).collect())
}

/// Runs that are over but whose files are still there.
pub(crate) fn abandoned_runs(database: &Path) -> BTreeSet<String> {
    let folder = folder_path(database);
    let mut ids = run_ids(&folder);
    ids.retain(|id| matches!(LockState::probe(&folder, id), LockState::Free));
    ids
}

/// True if a dead process left rows that are not in the database.
pub(crate) fn has_abandoned_rows(database: &Path) -> bool {
    let folder = folder_path(database);
    let mut ids = abandoned_runs(database).into_iter();
    ids.any(|id| spool::has_abandoned(&folder.join(id)))
}

pub(crate) fn has_live_run(database: &Path) -> bool {
    let folder = folder_path(database);
    let mut ids = run_ids(&folder).into_iter();
    ids.any(|id| matches!(LockState::probe(&folder, &id), LockState::Held))
}

fn run_ids(folder: &Path) -> BTreeSet<String> {
    let Ok(files) = fs::read_dir(folder) else {
        return BTreeSet::new();
    };
    let names = files.flatten().map(|file| file.file_name());
    let names = names.filter_map(|name| name.into_string().ok());
    names.filter(|name| is_id(name)).collect()
}

// A damaged database may hold any text as an id, which must not lead to another path.
fn is_id(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

enum LockState {
    Held,
    Free,
    Missing,
}

impl LockState {
    // Tries only a shared lock, so that two processes that probe at once don't see each other's
    // lock.
    fn probe(folder: &Path, id: &str) -> Self {
        if !is_id(id) {
            return Self::Free;
        }
        match File::open(folder.join(id)) {
            Ok(file) => match file.try_lock_shared() {
                Err(TryLockError::WouldBlock) => Self::Held,
                _ => Self::Free,
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::Missing,
            // Unknown. Marking a running call as interrupted would be worse than waiting.
            Err(_) => Self::Held,
        }
    }
}

fn is_running(pid: i64) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let tried = pid.map(test_kill_process);
    matches!(tried, Some(Ok(()) | Err(Errno::PERM)))
}

/// The folder of the locks, created if missing.
pub(crate) fn create_folder(database: &Path) -> io::Result<PathBuf> {
    let folder = folder_path(database);
    create_private_folder(&folder)?;
    Ok(folder)
}

pub(crate) fn folder_path(database: &Path) -> PathBuf {
    suffixed(database, ".runs")
}
