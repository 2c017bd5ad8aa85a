//! The file: how it is made, opened, checked and written.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags, TransactionBehavior};

use crate::{JournalError, Sync, batch, chain, columns, foreign, recover, runs, turns};

/// "TGjo": tells our files from other SQLite files.
const APPLICATION_ID: i64 = 0x5447_6a6f;
/// Counts the forms of the file: the first one, and one for each later table and column.
const FORM: i64 = columns::newest_form(TABLES[TABLES.len() - 1].0);
/// How long to wait for another process that writes.
const BUSY: Duration = Duration::from_secs(5);
/// What SQLite's log may keep of the disk once it has been worked off.
const LONGEST_LOG: i64 = 16 << 20;
const SMALLEST_PAGE: u64 = 512;
/// Checked in a millisecond.
const SMALL: u64 = 1 << 20;
/// Not checked within a second.
const HUGE: u64 = 64 << 20;

const RUNS: &str = "
    CREATE TABLE runs (
        seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, command TEXT NOT NULL, pid INTEGER NOT NULL,
        version TEXT NOT NULL, started_at INTEGER NOT NULL, ended_at INTEGER, unmarked INTEGER NOT NULL DEFAULT 9223372036854775807
    );";
/// One index of calls is all there is, and a start does not touch it: every page that changes is written to the disk.
const INDEX: &str = "CREATE INDEX calls_by_end ON calls (finished) WHERE finished IS NOT NULL;";
/// The form that each later table came with.
const TABLES: [(i64, &str); 2] = [(2, turns::TABLE), (7, chain::TABLE)];

/// How much of a file is looked at before it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// A start must not take long.
    Quick,
    /// Something is wrong with it already.
    Whole,
}

/// Opens the file for writing, and makes it if there is none. One that is damaged is set aside.
pub(crate) fn open(file: &Path, sync: Sync, look: Look) -> Result<Connection, JournalError> {
    match connect(file, sync, look) {
        Err(error) if error.is_damage() => {
            let is_damaged = || connect(file, sync, look).is_err_and(|error| error.is_damage());
            let broken = recover::set_aside(file, &error, is_damaged)
                .map_err(|error| Unusable::Io(error).of(file))?;
            let mut connection = connect(file, sync, look).map_err(|error| error.of(file))?;
            if let Some(broken) = broken {
                recover::salvage(&broken, file, &mut connection);
            }
            Ok(connection)
        }
        result => result.map_err(|error| error.of(file)),
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("{0}")]
    Damaged(String),
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl Unusable {
    pub(crate) fn of(self, file: &Path) -> JournalError {
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

/// True if SQLite says that the file is not what it should be.
pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    )
}

/// True if our own tables or the head of the file are not understood: said of a file that is ours, that is damage too.
fn is_nonsense(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::Unknown)
}

fn connect(file: &Path, sync: Sync, look: Look) -> Result<Connection, Unusable> {
    create(file)?;
    match connect_to_existing(file, sync, look) {
        Err(Unusable::Sqlite(error)) if is_nonsense(&error) => {
            Err(Unusable::Damaged(error.to_string()))
        }
        result => result,
    }
}

fn connect_to_existing(file: &Path, sync: Sync, look: Look) -> Result<Connection, Unusable> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(BUSY)?;
    let is_new = form(&connection, file)?.is_none();
    if is_new && fs::metadata(file)?.len() % SMALLEST_PAGE != 0 {
        // To SQLite that is an empty file, and it would write over it.
        return Err(Unusable::Damaged("its first page is cut off".to_owned()));
    }
    if is_new {
        // Only an empty file can be told to give back what is deleted.
        connection.pragma_update(None, "auto_vacuum", "incremental")?;
    }
    // Another process may be at it: what counts is that one of them succeeds.
    let mode = connection.pragma_update(None, "journal_mode", "wal");
    if let Err(error) = mode
        && error.sqlite_error_code() != Some(ErrorCode::DatabaseBusy)
    {
        return Err(error.into());
    }
    let synchronous = if sync == Sync::Full { "full" } else { "normal" };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "journal_size_limit", LONGEST_LOG)?;
    // The writer's thread does this; only if it does not get to it, SQLite does.
    connection.pragma_update(None, "wal_autocheckpoint", LONGEST_LOG / 4096)?;
    if is_new {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Looked at again: two processes may start on an empty file at once.
        if form(&transaction, file)?.is_none() {
            let calls = columns::create_table();
            for sql in [RUNS, &calls, INDEX, turns::TABLE, chain::TABLE] {
                transaction.execute_batch(sql)?;
            }
            chain::begin(&transaction, file)?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", FORM)?;
        }
        transaction.commit()?;
    } else {
        foreign::check(&connection, file)?;
        check(&connection, file, look)?;
        renew(&mut connection, file)?;
    }
    // Else the end of every command would wait for the disk.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    batch::prepare(&connection)?;
    Ok(connection)
}

/// Brings a file of an older form to that of today. Programs that have it open go on: they name the columns they write.
fn renew(connection: &mut Connection, file: &Path) -> Result<(), Unusable> {
    if form(connection, file)? == Some(FORM) {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Looked at again: another process may have been faster.
    let form = form(&transaction, file)?.unwrap_or(FORM);
    for next in form.max(1) + 1..=FORM {
        transaction.execute_batch(&columns::upgrade(next))?;
        for (_, table) in TABLES.iter().filter(|(form, _)| *form == next) {
            transaction.execute_batch(table)?;
        }
    }
    chain::begin(&transaction, file)?;
    transaction.pragma_update(None, "user_version", FORM)?;
    transaction.commit()?;
    Ok(())
}

/// At a quick look a small file is always checked, a larger one after a process did not end in good order, a huge one never.
/// Damage that is met later, by the writer, its upkeep or a reader, has the same consequences.
fn check(connection: &Connection, file: &Path, look: Look) -> Result<(), Unusable> {
    if connection.is_readonly(MAIN_DB)? {
        return Err(Unusable::Damaged("its head forbids writing".to_owned()));
    }
    let size = fs::metadata(file)?.len();
    let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    let log = fs::metadata(suffixed(file, "-wal"));
    // What is missing of the last page SQLite would take for zeros. While there is a log, it may be in there.
    if size % page.unsigned_abs().max(1) != 0 && !log.is_ok_and(|log| log.len() > 0) {
        return Err(Unusable::Damaged("its end is missing".to_owned()));
    }
    let is_due = look == Look::Whole
        || size <= SMALL
        || (size <= HUGE && !runs::dead(connection, file)?.is_empty());
    if is_due {
        let verdict: String =
            connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        if verdict != "ok" {
            return Err(Unusable::Damaged(verdict));
        }
    }
    Ok(())
}

/// Nobody else may read the arguments of calls, whatever the umask. SQLite's side files follow the file.
fn create(file: &Path) -> io::Result<()> {
    if let Some(folder) = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    match fs::metadata(file) {
        // Only a file that is not there is opened here: to close one takes away all locks that this process has on it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut made = OpenOptions::new();
            made.append(true).create(true).mode(0o600).open(file)?;
        }
        Ok(existing) if existing.permissions().mode() & 0o077 != 0 => {
            fs::set_permissions(file, Permissions::from_mode(0o600))?;
        }
        Ok(_) => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// The form of the tables; `None` if the file is empty.
pub(crate) fn form(connection: &Connection, file: &Path) -> Result<Option<i64>, Unusable> {
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    match (number("application_id")?, number("user_version")?, tables) {
        (APPLICATION_ID, form, _) if form > FORM => Err(JournalError::Newer {
            file: file.to_owned(),
            form,
            known: FORM,
        }
        .into()),
        (APPLICATION_ID, form, _) => Ok(Some(form)),
        (0, 0, 0) => Ok(None),
        _ => Err(JournalError::Foreign(file.to_owned()).into()),
    }
}

pub(crate) fn suffixed(file: &Path, suffix: &str) -> PathBuf {
    let mut path = OsString::from(file);
    path.push(suffix);
    PathBuf::from(path)
}
