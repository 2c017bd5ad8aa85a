//! Where the index lives: an SQLite file that several processes may share, or memory. It is only a cache, so a file that is
//! damaged or not ours is thrown away and made anew.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, TransactionBehavior};
use tracing::warn;

use super::DocumentsError;

/// "TGdo": tells our files from other SQLite files.
const APPLICATION_ID: i32 = 0x5447_646f;
/// Counts the forms of the tables below; a file of another form is made anew.
const FORM: i32 = 1;
/// How long to wait for another process that writes a batch.
const BUSY: Duration = Duration::from_secs(10);
const TABLES: &str = "
    CREATE TABLE folders (id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, used INTEGER NOT NULL);
    CREATE TABLE files (
        id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, folder INTEGER NOT NULL,
        modified INTEGER, size INTEGER NOT NULL, is_text INTEGER NOT NULL
    );
    CREATE INDEX files_by_folder ON files (folder);
    CREATE VIRTUAL TABLE pages USING fts5 (title, path, body, tokenize = 'unicode61 remove_diacritics 2');";

/// Opens the index when it is first needed.
pub(super) struct Store {
    file: Option<PathBuf>,
    connection: Option<Connection>,
}

#[derive(Debug, thiserror::Error)]
enum Unusable {
    #[error("it is not an index of documents, or one of another version")]
    Foreign,
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Store {
    /// `None` keeps the index in memory.
    pub(super) fn new(file: Option<PathBuf>) -> Self {
        Self {
            file,
            connection: None,
        }
    }

    /// Works on the index. If it turns out to be damaged, the work is done once more on a new one.
    pub(super) fn with<T>(
        &mut self,
        mut work: impl FnMut(&mut Connection) -> Result<T, DocumentsError>,
    ) -> Result<T, DocumentsError> {
        match work(self.connection()?) {
            Err(DocumentsError::Index(error)) if is_damage(&error) => {
                self.connection = None;
                if let Some(file) = &self.file {
                    warn!(file = %file.display(), %error, "the index of documents is damaged and is made anew");
                    if let Err(error) = delete(file) {
                        warn!(file = %file.display(), %error, "the index of documents can not be deleted and is kept in memory");
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
            return in_memory();
        };
        let opened = match open(file) {
            Err(Unusable::Foreign) => renew(file, &Unusable::Foreign),
            Err(Unusable::Sqlite(error)) if is_damage(&error) => renew(file, &error.into()),
            result => result,
        };
        match opened {
            Ok(connection) => Ok(connection),
            Err(error) => {
                warn!(file = %file.display(), %error, "the index of documents can not be opened and is kept in memory");
                self.file = None;
                in_memory()
            }
        }
    }
}

fn in_memory() -> Result<Connection, DocumentsError> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(TABLES)?;
    Ok(connection)
}

fn renew(file: &Path, reason: &Unusable) -> Result<Connection, Unusable> {
    warn!(file = %file.display(), %reason, "the index of documents is made anew");
    delete(file)?;
    open(file)
}

fn open(file: &Path) -> Result<Connection, Unusable> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    // The index holds the documents' text: nobody else may read it, whatever the umask. SQLite's side files follow it.
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(file)?;
    let mut connection = Connection::open(file)?;
    connection.busy_timeout(BUSY)?;
    // Readers then never wait for a writer. Another process may be at it: what counts is that one of them succeeds.
    let mode = connection.pragma_update(None, "journal_mode", "wal");
    if let Err(error) = mode
        && error.sqlite_error_code() != Some(ErrorCode::DatabaseBusy)
    {
        return Err(error.into());
    }
    connection.pragma_update(None, "synchronous", "normal")?;
    if !is_ours(&connection)? {
        // Looks again inside the transaction: two processes may start on an empty file at once.
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if !is_ours(&transaction)? {
            transaction.execute_batch(TABLES)?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", FORM)?;
        }
        transaction.commit()?;
    }
    Ok(connection)
}

/// False if the file is empty.
fn is_ours(connection: &Connection) -> Result<bool, Unusable> {
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0));
    match (number("application_id")?, number("user_version")?, tables) {
        (APPLICATION_ID, FORM, _) => Ok(true),
        (0, 0, 0) => Ok(false),
        _ => Err(Unusable::Foreign),
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

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    )
}
