//! [`JournalError`], for everything that opens, reads or writes a journal.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::ErrorCode;

use crate::store;

/// Why the journal can't be opened or read. Calls themselves never fail with this error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    #[error("no call has been recorded yet: there is no file {}", .0.display())]
    Missing(PathBuf),
    /// Written by a later version of the program. The file is left alone.
    #[error("the journal {} was written by a newer version (format {format}; this program knows up to {known}); upgrade, or set journal.file to another file", .file.display())]
    Newer {
        file: PathBuf,
        format: i64,
        known: i64,
    },
    /// An SQLite database of another program. The file is left alone.
    #[error("{} is a database, but not a journal; set journal.file to another file", .0.display())]
    Foreign(PathBuf),
    /// Something foreign in the file could keep calls from being recorded.
    #[error("the journal {} has the {kind} '{}', which Toolgate did not create and which could hide calls; move the file away, or set journal.file to another file", .file.display(), toolgate_core::text::escape(.name))]
    Tampered {
        file: PathBuf,
        kind: String,
        name: String,
    },
    #[error("can't open the journal {}: {error}", .file.display())]
    Io {
        file: PathBuf,
        #[source]
        error: io::Error,
    },
    #[error("can't use the journal {}: {error}", .file.display())]
    Sqlite {
        file: PathBuf,
        #[source]
        error: rusqlite::Error,
    },
    /// The file is damaged. The next process that writes sets it aside.
    #[error("the journal {} is damaged: {problem}", .file.display())]
    Damaged { file: PathBuf, problem: String },
    #[error("the journal has more calls than can be searched in {} s; narrow the search, for example to a tool or a time", .0.as_secs())]
    QueryTimeout(Duration),
    #[error("can't write the export: {0}")]
    Export(#[source] io::Error),
    #[error("'{0}' matches several calls; give more digits")]
    Ambiguous(String),
    #[error("'{0}' is not a call id; an id has up to 32 digits from 0 to 9 and a to f")]
    InvalidId(String),
}

impl JournalError {
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::Damaged { .. } => true,
            Self::Sqlite { error, .. } => store::is_damage(error),
            _ => false,
        }
    }

    /// True if the cause may go away by itself: a full disk, or another process that writes.
    pub(crate) fn is_temporary(&self) -> bool {
        let Self::Sqlite { error, .. } = self else {
            return false;
        };
        matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::DiskFull)
        )
    }
}
