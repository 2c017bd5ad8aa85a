//! [`IndexStore`]: the index in an SQLite file, which several processes may share, or in memory. It
//! is only a cache, so a file that is damaged or from another version is deleted and created again.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, TransactionBehavior};
use tracing::warn;

use super::DocumentsError;

// "TGdo": distinguishes our files from other SQLite files.
const APPLICATION_ID: i32 = 0x5447_646f;
// The version of the tables below. A file with another version is created again.
const TABLES_VERSION: i32 = 1;
// How long to wait for another process that is writing a batch.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
const TABLES: &str = "
    CREATE TABLE folders (id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, used INTEGER NOT NULL);
    CREATE TABLE files (
        id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, folder INTEGER NOT NULL,
        modified INTEGER, size INTEGER NOT NULL, is_text INTEGER NOT NULL
    );
    CREATE INDEX files_by_folder ON files (folder);
    CREATE VIRTUAL TABLE pages USING fts5 (title, path, body, tokenize = 'unicode61 remove_diacritics 2');";

pub(super) struct IndexStore {
    file: Option<PathBuf>,
    connection: Option<Connection>,
}

#[derive(Debug, thiserror::Error)]
enum IndexOpenError {
    #[error("it is not a document index, or it has another version")]
    Foreign,
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl IndexStore {
    /// Without a file, the index is kept in memory.
    pub(super) fn new(file: Option<PathBuf>) -> Self {
        Self {
            file,
            connection: None,
        }
    }

    /// Runs `work` on the index. If the index turns out to be damaged, it is created again and
    /// `work` runs once more.
    pub(super) fn with<T>(
        &mut self,
        mut work: impl FnMut(&mut Connection) -> Result<T, DocumentsError>,
    ) -> Result<T, DocumentsError> {
        match work(self.connection()?) {
            Err(DocumentsError::Index(error)) if is_corruption(&error) => {
                self.connection = None;
                if let Some(file) = &self.file {
                    warn!(file = %file.display(), %error, "the document index is damaged; creating a new one");
                    if let Err(error) = delete(file) {
                        warn!(file = %file.display(), %error, "can't delete the document index; keeping it in memory");
                        self.file = None;
                    }
                }
                work(self.connection()?)
            }
            result => result,
        }
    }

    fn connection(&mut self) -> Result<&mut Connection, DocumentsError> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.open()?,
        };
        Ok(self.connection.insert(connection))
    }

    #[cfg(test)]
    pub(super) fn is_in_memory(&self) -> bool {
        self.file.is_none()
    }

    fn open(&mut self) -> Result<Connection, DocumentsError> {
        let Some(file) = &self.file else {
            return open_in_memory();
        };
        let opened = match open_file(file) {
            Err(IndexOpenError::Foreign) => recreate(file, &IndexOpenError::Foreign),
            Err(IndexOpenError::Sqlite(error)) if is_corruption(&error) => {
                recreate(file, &error.into())
            }
            result => result,
        };
        match opened {
            Ok(connection) => Ok(connection),
            Err(error) => {
                warn!(file = %file.display(), %error, "can't open the document index; keeping it in memory");
                self.file = None;
                open_in_memory()
            }
        }
    }
}

fn open_in_memory() -> Result<Connection, DocumentsError> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(TABLES)?;
    Ok(connection)
}

fn recreate(file: &Path, reason: &IndexOpenError) -> Result<Connection, IndexOpenError> {
    warn!(file = %file.display(), %reason, "creating a new document index");
    delete(file)?;
    open_file(file)
}

fn open_file(file: &Path) -> Result<Connection, IndexOpenError> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    // The index contains the text of the documents, so other users must not read it, whatever the
    // umask. SQLite's other files inherit the mode.
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(file)?;
    let mut connection = Connection::open(file)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // With WAL, readers never wait for a writer. Another process may be switching to it at the same
    // time. It is enough if one of them succeeds.
    let mode = connection.pragma_update(None, "journal_mode", "wal");
    if let Err(error) = mode
        && error.sqlite_error_code() != Some(ErrorCode::DatabaseBusy)
    {
        return Err(error.into());
    }
    connection.pragma_update(None, "synchronous", "normal")?;
    if !is_ours(&connection)? {
        // Checked again inside the transaction, because two processes may start on an
        // empty file at once.
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if !is_ours(&transaction)? {
            transaction.execute_batch(TABLES)?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", TABLES_VERSION)?;
        }
        transaction.commit()?;
    }
    Ok(connection)
}

/// Returns false if the file is empty, and fails if it isn't ours.
fn is_ours(connection: &Connection) -> Result<bool, IndexOpenError> {
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0));
    match (number("application_id")?, number("user_version")?, tables) {
        (APPLICATION_ID, TABLES_VERSION, _) => Ok(true),
        (0, 0, 0) => Ok(false),
        _ => Err(IndexOpenError::Foreign),
    }
}

fn delete(file: &Path) -> io::Result<()> {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let mut path = OsString::from(file);
        path.push(suffix);
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn is_corruption(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    )
}
