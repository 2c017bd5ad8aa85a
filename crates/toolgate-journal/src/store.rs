//! Creates, opens, checks and upgrades the database file.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags, TransactionBehavior};

use crate::{
    JournalError, SyncMode, batch, chain, columns, foreign_schema, recovery, runs, task_rows,
    turn_store,
};

// "TGjo". Distinguishes our files from other SQLite files.
const APPLICATION_ID: i64 = 0x5447_6a6f;
// The version of the file's format: the first one, and one for each later table and column.
const FORMAT: i64 = columns::newest_format(TABLES[TABLES.len() - 1].0);
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
// How much disk space SQLite's log may keep after a checkpoint.
const MAX_LOG_BYTES: i64 = 16 << 20;
const MIN_PAGE_SIZE: u64 = 512;
// Checking this much takes a millisecond.
const ALWAYS_CHECKED_BYTES: u64 = 1 << 20;
// Checking this much takes more than a second.
const NEVER_CHECKED_BYTES: u64 = 64 << 20;

const RUNS: &str = "
    CREATE TABLE runs (
        seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, command TEXT NOT NULL, pid INTEGER NOT NULL,
        version TEXT NOT NULL, started_at INTEGER NOT NULL, ended_at INTEGER, unmarked INTEGER NOT NULL DEFAULT 9223372036854775807
    );";
// The only index of calls, and a start doesn't touch it: every page that changes is written to the
// disk.
const CALLS_BY_END: &str =
    "CREATE INDEX calls_by_end ON calls (finished) WHERE finished IS NOT NULL;";
// The tables that later formats added, each with its format.
const TABLES: [(i64, &str); 3] = [
    (2, turn_store::TABLE),
    (7, chain::TABLE),
    (8, task_rows::TABLE),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckDepth {
    /// Checks little, because a start must not take long.
    Quick,
    /// Checks the whole file, because something seems to be wrong with it already.
    Whole,
}

/// Opens the file for writing, creating it if missing. Sets a damaged file aside.
pub(crate) fn open(
    file: &Path,
    sync: SyncMode,
    depth: CheckDepth,
) -> Result<Connection, JournalError> {
    match connect(file, sync, depth) {
        Err(error) if error.is_damage() => {
            let is_damaged = || connect(file, sync, depth).is_err_and(|error| error.is_damage());
            let broken = recovery::set_aside(file, &error, is_damaged)
                .map_err(|error| StoreError::Io(error).at_path(file))?;
            let mut connection = connect(file, sync, depth).map_err(|error| error.at_path(file))?;
            if let Some(broken) = broken {
                recovery::salvage(&broken, file, &mut connection);
            }
            Ok(connection)
        }
        result => result.map_err(|error| error.at_path(file)),
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("{0}")]
    Damaged(String),
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl StoreError {
    pub(crate) fn at_path(self, file: &Path) -> JournalError {
        let file = file.to_owned();
        match self {
            Self::Damaged(problem) => JournalError::Damaged { file, problem },
            Self::Sqlite(error) => JournalError::Sqlite { file, error },
            Self::Io(error) => JournalError::Io { file, error },
            Self::Journal(error) => error,
        }
    }

    fn is_damage(&self) -> bool {
        match self {
            Self::Damaged(_) => true,
            Self::Sqlite(error) => is_damage(error),
            Self::Io(_) | Self::Journal(_) => false,
        }
    }
}

pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    )
}

// SQLite doesn't understand our tables or the file's header. For a file that is ours, that is
// damage too.
fn is_unreadable(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::Unknown)
}

fn connect(file: &Path, sync: SyncMode, depth: CheckDepth) -> Result<Connection, StoreError> {
    create(file)?;
    match connect_to_existing(file, sync, depth) {
        Err(StoreError::Sqlite(error)) if is_unreadable(&error) => {
            Err(StoreError::Damaged(error.to_string()))
        }
        result => result,
    }
}

fn connect_to_existing(
    file: &Path,
    sync: SyncMode,
    depth: CheckDepth,
) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    let is_new = read_format(&connection, file)?.is_none();
    if is_new && fs::metadata(file)?.len() % MIN_PAGE_SIZE != 0 {
        // SQLite would take this for an empty file and overwrite it.
        return Err(StoreError::Damaged("its first page is cut off".to_owned()));
    }
    if is_new {
        // Only an empty file can be set to return deleted pages to the file system.
        connection.pragma_update(None, "auto_vacuum", "incremental")?;
    }
    // Another process may be setting it too. It's enough if one of them succeeds.
    let mode = connection.pragma_update(None, "journal_mode", "wal");
    if let Err(error) = mode
        && error.sqlite_error_code() != Some(ErrorCode::DatabaseBusy)
    {
        return Err(error.into());
    }
    let synchronous = if sync == SyncMode::Full {
        "full"
    } else {
        "normal"
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "journal_size_limit", MAX_LOG_BYTES)?;
    // The checkpointer does this. SQLite does it only if the checkpointer is too late.
    connection.pragma_update(None, "wal_autocheckpoint", MAX_LOG_BYTES / 4096)?;
    if is_new {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Checked again, because two processes may start on an empty file at once.
        if read_format(&transaction, file)?.is_none() {
            let calls = columns::create_table();
            let first = [RUNS, &calls, CALLS_BY_END].into_iter();
            for sql in first.chain(TABLES.map(|(_, table)| table)) {
                transaction.execute_batch(sql)?;
            }
            chain::begin(&transaction, file)?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", FORMAT)?;
        }
        transaction.commit()?;
    } else {
        foreign_schema::check(&connection, file)?;
        check(&connection, file, depth)?;
        upgrade(&mut connection, file)?;
    }
    // Otherwise the end of every command would wait for the disk.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    batch::prepare(&connection)?;
    Ok(connection)
}

/// Upgrades a file of an older format. Older programs that have it open can still write, because
/// they name the columns they write.
fn upgrade(connection: &mut Connection, file: &Path) -> Result<(), StoreError> {
    if read_format(connection, file)? == Some(FORMAT) {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Checked again, because another process may have been faster.
    let format = read_format(&transaction, file)?.unwrap_or(FORMAT);
    for next in format.max(1) + 1..=FORMAT {
        transaction.execute_batch(&columns::upgrade(next))?;
        for (_, table) in TABLES.iter().filter(|(format, _)| *format == next) {
            transaction.execute_batch(table)?;
        }
    }
    chain::begin(&transaction, file)?;
    transaction.pragma_update(None, "user_version", FORMAT)?;
    transaction.commit()?;
    Ok(())
}

/// Checks the file for damage. A quick check always reads small files, larger ones only after a
/// process died, and huge ones never. Damage that the writer, the upkeep or a reader meets later
/// has the same consequences.
fn check(connection: &Connection, file: &Path, depth: CheckDepth) -> Result<(), StoreError> {
    if connection.is_readonly(MAIN_DB)? {
        return Err(StoreError::Damaged("its header forbids writing".to_owned()));
    }
    let size = fs::metadata(file)?.len();
    let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    let log = fs::metadata(suffixed(file, "-wal"));
    // SQLite would read zeros for the missing part of the last page. If there is a log, that part
    // may be in the log.
    if size % page.unsigned_abs().max(1) != 0 && !log.is_ok_and(|log| log.len() > 0) {
        return Err(StoreError::Damaged("its end is missing".to_owned()));
    }
    let is_due = depth == CheckDepth::Whole
        || size <= ALWAYS_CHECKED_BYTES
        || (size <= NEVER_CHECKED_BYTES && !runs::dead_runs(connection, file)?.is_empty());
    if is_due {
        let verdict: String =
            connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        if verdict != "ok" {
            return Err(StoreError::Damaged(verdict));
        }
    }
    Ok(())
}

// Nobody else may read the arguments of calls, whatever the umask. SQLite's side files inherit the
// mode.
fn create(file: &Path) -> io::Result<()> {
    if let Some(folder) = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        create_private_folder(folder)?;
    }
    match fs::metadata(file) {
        // Only a missing file is opened here, because closing an open one drops all POSIX locks
        // that this process has on it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            private_file().append(true).create(true).open(file)?;
        }
        Ok(existing) if existing.permissions().mode() & 0o077 != 0 => {
            fs::set_permissions(file, Permissions::from_mode(0o600))?;
        }
        Ok(_) => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Options that let only the owner read a new file.
pub(crate) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

pub(crate) fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder)
}

/// The format of a journal, or `None` if the file is still empty. Fails if the file is not a
/// journal, or if its format is newer than ours.
pub(crate) fn read_format(connection: &Connection, file: &Path) -> Result<Option<i64>, StoreError> {
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    match (number("application_id")?, number("user_version")?, tables) {
        (APPLICATION_ID, format, _) if format > FORMAT => Err(JournalError::Newer {
            file: file.to_owned(),
            format,
            known: FORMAT,
        }
        .into()),
        (APPLICATION_ID, format, _) => Ok(Some(format)),
        (0, 0, 0) => Ok(None),
        _ => Err(JournalError::Foreign(file.to_owned()).into()),
    }
}

pub(crate) fn suffixed(file: &Path, suffix: &str) -> PathBuf {
    let mut path = OsString::from(file);
    path.push(suffix);
    PathBuf::from(path)
}
