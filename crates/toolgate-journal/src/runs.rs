//! Which processes write to the database, and which of them are still there.
//!
//! Each run has a row, and beside the database a file of its own that it holds locked while it lives. The lock goes with the
//! process, however that ends: a run whose lock is free is over. What it left is for whoever comes next, see `takeover.rs`.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};
use tracing::debug;

use crate::store::suffixed;
use crate::{line, spool, takeover, time};

/// This process, for as long as it holds the lock.
pub(crate) struct Run {
    entry: Entry,
    database: PathBuf,
    /// Holds the lock; both go with the process.
    lock: File,
    /// What it left is for the next process.
    leaves_files: bool,
}

/// Who a run is: its row in the database, and what stands in its file.
#[derive(Serialize, Deserialize, Default)]
pub(crate) struct Entry {
    id: String,
    command: String,
    pid: u32,
    version: String,
    started_at: i64,
}

impl Run {
    /// Takes a new lock. The row follows with [`enter`](Self::enter): nobody may see it before the lock is held.
    pub(crate) fn begin(database: &Path, command: &str) -> io::Result<Self> {
        let entry = Entry {
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
            leaves_files: false,
        })
    }

    pub(crate) fn path(&self) -> PathBuf {
        folder_of(&self.database).join(&self.entry.id)
    }

    /// False if the file is no longer where others look for it.
    pub(crate) fn is_seen(&self) -> bool {
        let number = |file: fs::Metadata| (file.dev(), file.ino());
        let ours = self.lock.metadata().map(number).ok();
        fs::metadata(self.path()).map(number).ok() == ours
    }

    /// Takes the same lock again, in a new file.
    pub(crate) fn renew(&mut self) -> io::Result<()> {
        self.lock = self.entry.lock(&self.database)?;
        Ok(())
    }

    /// Adds the row, unless it is there, and says its number.
    pub(crate) fn enter(&self, connection: &Connection) -> rusqlite::Result<i64> {
        self.entry.enter(connection)
    }

    /// The run is over in good order. Calls that are still open, by their places, will never end.
    pub(crate) fn leave(
        &self,
        connection: &mut Connection,
        open: impl Iterator<Item = i64>,
    ) -> rusqlite::Result<()> {
        takeover::end(connection, &self.database, &self.entry.id, open)
    }

    /// Not everything could be written: the files stay, for the next process.
    pub(crate) fn leave_files(&mut self) {
        self.leaves_files = true;
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.leaves_files
            && self.is_seen()
            && let Err(error) = fs::remove_file(self.path())
        {
            debug!(%error, "the lock of a run can not be removed");
        }
    }
}

impl Entry {
    /// Of a run whose file is locked no longer. Where it can not be read, the name of the file is all there is.
    pub(crate) fn left(database: &Path, id: &str) -> Self {
        let text = fs::read(folder_of(database).join(id)).unwrap_or_default();
        let entry = line::parsed(text.strip_suffix(b"\n").unwrap_or(&text));
        Self {
            id: id.to_owned(),
            ..entry.unwrap_or_default()
        }
    }

    /// The file gets its name when it is locked, so that nobody takes it for one of a run that is over.
    fn lock(&self, database: &Path) -> io::Result<File> {
        let path = folder(database)?.join(&self.id);
        let nameless = suffixed(&path, ".new");
        let mut lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&nameless)?;
        lock.try_lock()?;
        if let Err(error) = lock.write_all(&line::of(self)) {
            debug!(%error, "the file of a run does not say whose it is");
        }
        fs::rename(&nameless, &path)?;
        Ok(lock)
    }

    pub(crate) fn enter(&self, connection: &Connection) -> rusqlite::Result<i64> {
        connection.execute(
            "INSERT INTO runs (id, command, pid, version, started_at) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
            params![self.id, self.command, self.pid, self.version, self.started_at],
        )?;
        let sql = "SELECT seq FROM runs WHERE id = ?";
        connection.query_row(sql, [&self.id], |row| row.get(0))
    }
}

/// A run that is over without having said so.
pub(crate) struct Dead {
    pub(crate) seq: i64,
    pub(crate) id: String,
    /// Its calls from here on are marked.
    pub(crate) unmarked: i64,
}

#[derive(Default)]
pub(crate) struct DeadRuns(Vec<i64>);

impl DeadRuns {
    pub(crate) fn new(runs: Vec<Dead>) -> Self {
        Self(runs.into_iter().map(|run| run.seq).collect())
    }

    pub(crate) fn has(&self, run: i64) -> bool {
        self.0.contains(&run)
    }

    /// As SQL that stands in parentheses after `IN`.
    pub(crate) fn list(&self) -> String {
        let runs: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        runs.join(", ")
    }
}

pub(crate) fn dead(connection: &Connection, database: &Path) -> rusqlite::Result<Vec<Dead>> {
    let sql = "SELECT seq, id, unmarked, pid FROM runs WHERE ended_at IS NULL";
    let mut statement = connection.prepare_cached(sql)?;
    let open = statement.query_map([], |row| {
        let run = Dead {
            seq: row.get(0)?,
            id: row.get(1)?,
            unmarked: row.get(2)?,
        };
        Ok((run, row.get(3)?))
    })?;
    let open = open.collect::<rusqlite::Result<Vec<(Dead, i64)>>>()?;
    let folder = folder_of(database);
    let is_over = |(run, pid): (Dead, i64)| match Lock::of(&folder, &run.id) {
        Lock::Held => None,
        Lock::Free => Some(run),
        // Somebody deleted it. Its process would make a new one within a second; until then this is all that can be known.
        Lock::Missing => (!is_running(pid)).then_some(run),
    };
    Ok(open.into_iter().filter_map(is_over).collect())
}

/// Runs that are over, and whose files are still there.
pub(crate) fn left(database: &Path) -> BTreeSet<String> {
    let folder = folder_of(database);
    let mut ids = names(&folder);
    ids.retain(|id| matches!(Lock::of(&folder, id), Lock::Free));
    ids
}

/// True if a process that is gone left rows that are not in the database.
pub(crate) fn has_left_rows(database: &Path) -> bool {
    let folder = folder_of(database);
    let mut ids = left(database).into_iter();
    ids.any(|id| spool::is_left(&folder.join(id)))
}

/// True if a process writes to the database now.
pub(crate) fn is_anyone_alive(database: &Path) -> bool {
    let folder = folder_of(database);
    let mut ids = names(&folder).into_iter();
    ids.any(|id| matches!(Lock::of(&folder, &id), Lock::Held))
}

fn names(folder: &Path) -> BTreeSet<String> {
    let Ok(files) = fs::read_dir(folder) else {
        return BTreeSet::new();
    };
    let names = files.flatten().map(|file| file.file_name());
    let names = names.filter_map(|name| name.into_string().ok());
    names.filter(|name| is_id(name)).collect()
}

/// A damaged database may hold any text: it must not lead elsewhere.
fn is_id(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether someone holds the lock of a run.
enum Lock {
    Held,
    Free,
    Missing,
}

impl Lock {
    /// Only a shared lock is tried, so that those who look never see each other.
    fn of(folder: &Path, id: &str) -> Self {
        if !is_id(id) {
            return Self::Free;
        }
        match File::open(folder.join(id)) {
            Ok(file) => match file.try_lock_shared() {
                Err(TryLockError::WouldBlock) => Self::Held,
                _ => Self::Free,
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::Missing,
            // Whether it lives can not be seen; to call a running call interrupted would be worse than to wait.
            Err(_) => Self::Held,
        }
    }
}

fn is_running(pid: i64) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let tried = pid.map(test_kill_process);
    matches!(tried, Some(Ok(()) | Err(Errno::PERM)))
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

pub(crate) fn folder_of(database: &Path) -> PathBuf {
    suffixed(database, ".runs")
}
