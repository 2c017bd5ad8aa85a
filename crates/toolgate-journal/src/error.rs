//! Why a journal can not be used.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::ErrorCode;

use crate::store;

/// Why the journal can not be opened or read. A call never sees one.
///
/// ```
/// use std::path::Path;
/// use toolgate_journal::{JournalError, Reader};
///
/// let error = Reader::open(Path::new("/nowhere/journal.db")).unwrap_err();
/// assert!(matches!(error, JournalError::Missing(_)));
/// assert_eq!(error.to_string(), "no call has been recorded yet: there is no file /nowhere/journal.db");
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// There is nothing to read.
    #[error("no call has been recorded yet: there is no file {}", .0.display())]
    Missing(PathBuf),
    /// A later version of the program wrote the file. It is left alone.
    #[error("the journal {} was written by a newer version (form {form}, this program knows {known}); upgrade, or set journal.file to another file", .file.display())]
    Newer {
        /// The file.
        file: PathBuf,
        /// The form it has.
        form: i64,
        /// The newest form this program knows.
        known: i64,
    },
    /// The file is an SQLite database, but of somebody else. It is left alone.
    #[error("{} is a database, but not a journal; set journal.file to another file", .0.display())]
    Foreign(PathBuf),
    /// Something in the file that isn't ours could keep calls from being recorded.
    #[error("the journal {} has the {kind} '{}', which this program did not make and which could hide calls; move the file away, or set journal.file to another file", .file.display(), toolgate_core::escape(.name))]
    Tampered {
        /// The file.
        file: PathBuf,
        /// A trigger, a view, a table or an index.
        kind: String,
        /// What it is called.
        name: String,
    },
    /// The file or its folder can not be made or opened.
    #[error("can not open the journal {}: {error}", .file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// SQLite can not work with the file.
    #[error("can not use the journal {}: {error}", .file.display())]
    Sqlite {
        /// The file.
        file: PathBuf,
        /// Why not.
        #[source]
        error: rusqlite::Error,
    },
    /// The file is damaged. The next process that writes sets it aside.
    #[error("the journal {} is damaged: {problem}", .file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// How.
        problem: String,
    },
    /// A question that would have to look at too many calls.
    #[error("the journal has more calls than can be looked through in {} s; ask for less, such as a tool, or calls since a time", .0.as_secs())]
    TooLong(Duration),
    /// What was read can't be written down.
    #[error("cannot write the export: {0}")]
    Export(#[source] io::Error),
    /// Several calls begin like this.
    #[error("'{0}' is the beginning of several calls; give more of it")]
    Ambiguous(String),
    /// No call can have this id.
    #[error("'{0}' is no id of a call; it has up to 32 digits from 0 to 9 and a to f")]
    NoId(String),
}

impl JournalError {
    /// True if the file is not what it should be.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::Damaged { .. } => true,
            Self::Sqlite { error, .. } => store::is_damage(error),
            _ => false,
        }
    }

    /// True if it may be over without anything being done about it: a disk without space, another process that writes.
    pub(crate) fn is_passing(&self) -> bool {
        let Self::Sqlite { error, .. } = self else {
            return false;
        };
        matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::DiskFull)
        )
    }
}
