//! The file: how it is made, opened, checked and written.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior, params};
use toolgate_core::Redactor;
use tracing::warn;

use crate::row::{EndRow, Executed, Row, Start, StartRow};
use crate::{JournalError, Sync, time};

/// "TGjo": tells our files from other SQLite files.
const APPLICATION_ID: i64 = 0x5447_6a6f;
/// Counts the forms of the tables below.
const FORM: i64 = 1;
/// How long to wait for another process that writes.
const BUSY: Duration = Duration::from_secs(5);

/// Times are microseconds since 1970, durations microseconds. `finished` is the time of the end moved so that it never
/// repeats nor goes back: it is the order in which calls ended, over all processes. It is NULL while a call runs, which is
/// how open calls are found. Long columns come last: a list does not read past them.
const TABLES: &str = "
    CREATE TABLE runs (
        seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, command TEXT NOT NULL, pid INTEGER NOT NULL,
        version TEXT NOT NULL, started_at INTEGER NOT NULL, ended_at INTEGER
    );
    CREATE TABLE calls (
        seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, run INTEGER NOT NULL, tool TEXT NOT NULL, source TEXT, server TEXT,
        origin TEXT NOT NULL, trace_id TEXT, parent_span_id TEXT, started_at INTEGER NOT NULL, finished INTEGER,
        outcome TEXT, duration INTEGER, check_time INTEGER, approval_time INTEGER, invoke_time INTEGER, result_bytes INTEGER,
        result_cut INTEGER NOT NULL DEFAULT 0, is_as_asked INTEGER NOT NULL, error TEXT, hint TEXT, details TEXT,
        renamed TEXT, dropped TEXT, asked TEXT NOT NULL, executed TEXT, result TEXT, content TEXT
    );
    CREATE INDEX calls_by_end ON calls (finished);";

const INSERT: &str = "
    INSERT INTO calls (id, run, tool, source, server, origin, trace_id, parent_span_id, started_at, asked, executed, is_as_asked)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING";
const UPDATE: &str = "
    UPDATE calls SET finished = ?2, outcome = ?3, duration = ?4, check_time = ?5, approval_time = ?6, invoke_time = ?7,
        result_bytes = ?8, result_cut = ?9, error = ?10, hint = ?11, details = ?12, renamed = ?13, dropped = ?14,
        result = ?15, content = ?16
    WHERE id = ?1";

/// Opens the file for writing, and makes it if there is none. One that is damaged is set aside.
pub(crate) fn open(file: &Path, sync: Sync) -> Result<Connection, JournalError> {
    match connect(file, sync) {
        Err(Unusable::Sqlite(error)) if is_damage(&error) => {
            set_aside(file, &error).map_err(|error| JournalError::Io {
                file: file.to_owned(),
                error,
            })?;
            connect(file, sync)
        }
        result => result,
    }
    .map_err(|unusable| unusable.of(file))
}

/// Why a file does not serve as it is.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unusable {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl Unusable {
    pub(crate) fn of(self, file: &Path) -> JournalError {
        match self {
            Self::Sqlite(error) => JournalError::Sqlite {
                file: file.to_owned(),
                error,
            },
            Self::Journal(error) => error,
        }
    }
}

fn connect(file: &Path, sync: Sync) -> Result<Connection, Unusable> {
    create(file).map_err(|error| JournalError::Io {
        file: file.to_owned(),
        error,
    })?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(BUSY)?;
    let form = form(&connection, file)?;
    if form.is_none() {
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
    if form.is_none() {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Looked at again: two processes may start on an empty file at once.
        if self::form(&transaction, file)?.is_none() {
            transaction.execute_batch(TABLES)?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", FORM)?;
        }
        transaction.commit()?;
    }
    Ok(connection)
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
    let made = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(file)?;
    if made.metadata()?.permissions().mode() & 0o077 != 0 {
        made.set_permissions(Permissions::from_mode(0o600))?;
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

/// Renames a damaged file and what belongs to it, so that nothing of it is lost.
fn set_aside(file: &Path, reason: &rusqlite::Error) -> io::Result<()> {
    let broken = suffixed(
        file,
        &format!(
            ".broken-{}",
            Timestamp::now().strftime("%Y%m%dT%H%M%S%.3fZ")
        ),
    );
    warn!(file = %file.display(), kept_as = %broken.display(), %reason, "the journal is damaged; it is set aside, and a new one is begun");
    for suffix in ["-wal", "-shm", ""] {
        match fs::rename(suffixed(file, suffix), suffixed(&broken, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn suffixed(file: &Path, suffix: &str) -> PathBuf {
    let mut path = OsString::from(file);
    path.push(suffix);
    PathBuf::from(path)
}

pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    )
}

/// Writes rows in one transaction: all of them or none.
pub(crate) fn write<'a>(
    connection: &mut Connection,
    run: i64,
    redactor: &Redactor,
    rows: impl Iterator<Item = &'a Row>,
) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    {
        let mut batch = Batch {
            connection: &transaction,
            run,
            redactor,
            last: last_finished(&transaction)?,
        };
        for row in rows {
            match row {
                Row::Start(row) => batch.insert(row)?,
                Row::End(row) => batch.end(row)?,
            }
        }
    }
    transaction.commit()
}

fn last_finished(connection: &Connection) -> rusqlite::Result<i64> {
    let mut statement = connection.prepare_cached("SELECT max(finished) FROM calls")?;
    let last: Option<i64> = statement.query_row([], |row| row.get(0))?;
    Ok(last.unwrap_or(0))
}

struct Batch<'a> {
    connection: &'a Connection,
    run: i64,
    redactor: &'a Redactor,
    last: i64,
}

impl Batch<'_> {
    fn insert(&mut self, row: &StartRow) -> rusqlite::Result<()> {
        let (executed, is_as_asked) = match &row.executed {
            Executed::Not => (None, false),
            Executed::AsAsked => (None, true),
            Executed::Otherwise(executed) => (Some(executed), false),
        };
        self.connection.prepare_cached(INSERT)?.execute(params![
            row.id,
            self.run,
            row.tool,
            row.source,
            row.server,
            row.origin,
            row.trace_id,
            row.parent_span_id,
            row.started_at,
            row.asked,
            executed,
            is_as_asked,
        ])?;
        Ok(())
    }

    fn end(&mut self, row: &EndRow) -> rusqlite::Result<()> {
        self.last = time::now().max(self.last + 1);
        match &row.start {
            Start::Made(start) => self.insert(start)?,
            Start::Known(known) => {
                if self.update(row)? {
                    return Ok(());
                }
                self.insert(&known.row(self.redactor))?;
            }
        }
        self.update(row)?;
        Ok(())
    }

    /// False if there is no such row.
    fn update(&mut self, row: &EndRow) -> rusqlite::Result<bool> {
        let rows = self.connection.prepare_cached(UPDATE)?.execute(params![
            row.id,
            self.last,
            row.outcome,
            row.duration,
            row.check,
            row.approval,
            row.invoke,
            row.result_bytes,
            row.result_cut,
            row.error,
            row.hint,
            row.details,
            row.renamed,
            row.dropped,
            row.result,
            row.content,
        ])?;
        Ok(rows > 0)
    }
}
