//! Connects to the file and runs queries within their limits.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};
use tokio::time::Instant;

use super::JournalReader;
use crate::foreign_schema;
use crate::store::{self, StoreError};
use crate::{JournalError, takeover};

const BUSY_TIMEOUT: Duration = Duration::from_secs(2);
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);
// SQLite calls the progress handler after this many of its steps, every few milliseconds.
const STEPS_PER_CHECK: i32 = 100_000;

impl JournalReader {
    pub(crate) fn query<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, JournalError> {
        let result = self.run_query(work);
        if let (Err(error), Some(queue)) = (&result, &self.queue)
            && error.is_damage()
        {
            queue.report_damage();
        }
        result
    }

    fn run_query<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, JournalError> {
        if self.is_cancelled.load(Ordering::Relaxed) {
            return Err(JournalError::QueryTimeout(self.query_timeout));
        }
        if let Some(queue) = &self.queue {
            queue.flush(FLUSH_TIMEOUT);
        }
        let mut connection = self.connect()?;
        takeover::take_over_to_read(&self.file);
        let end = Instant::now() + self.query_timeout;
        let is_cancelled = Arc::clone(&self.is_cancelled);
        let is_over = move || is_cancelled.load(Ordering::Relaxed) || Instant::now() > end;
        let result = connection
            .progress_handler(STEPS_PER_CHECK, Some(is_over))
            .and_then(|()| work(&connection));
        result.map_err(|error| match error.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => JournalError::QueryTimeout(self.query_timeout),
            _ => StoreError::from(error).at_path(&self.file),
        })
    }

    pub(super) fn connect(&self) -> Result<Connection, JournalError> {
        let file = &self.file;
        if !file.exists() {
            return Err(JournalError::Missing(file.clone()));
        }
        let read_only = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = match self.connect_with(file, read_only) {
            // Where SQLite can't create its side files, it can't share the database with others.
            // Without a log nobody writes, so there is nobody to share it with.
            Err(StoreError::Sqlite(error)) if is_access_error(&error) && !self.has_log() => {
                let alone = format!("file:{}?immutable=1", escape_uri(file));
                let flags = read_only | OpenFlags::SQLITE_OPEN_URI;
                self.connect_with(Path::new(&alone), flags)
            }
            opened => opened,
        };
        opened.map_err(|error| error.at_path(file))
    }

    fn connect_with(&self, path: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        match store::read_format(&connection, &self.file)? {
            Some(_) => {
                foreign_schema::check(&connection, &self.file)?;
                Ok(connection)
            }
            None => Err(JournalError::Missing(self.file.clone()).into()),
        }
    }

    fn has_log(&self) -> bool {
        let log = store::suffixed(&self.file, "-wal");
        std::fs::metadata(log).is_ok_and(|log| log.len() > 0)
    }
}

fn is_access_error(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(code, Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly))
}

fn escape_uri(path: &Path) -> String {
    let mut text = String::new();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => text.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => text.push(char::from(*byte)),
            byte => text.push_str(&format!("%{byte:02x}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::{Journal, JournalSettings};

    /// Counts forever.
    const ENDLESS: &str =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";

    #[tokio::test]
    async fn a_query_ends_at_its_timeout_or_when_it_is_cancelled() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("journal.db");
        let settings = JournalSettings::default();
        let journal = Journal::open(&file, &settings, Default::default(), "test").unwrap();
        let (short, long) = (Duration::from_millis(20), Duration::from_secs(3600));
        for (timeout, cancels) in [(short, false), (long, true)] {
            let is_cancelled = Arc::<AtomicBool>::default();
            let reader = journal
                .reader()
                .with_limits(timeout, Arc::clone(&is_cancelled));
            let result = reader.query(|connection| {
                is_cancelled.store(cancels, Ordering::Relaxed);
                connection.query_row(ENDLESS, [], |_| Ok(()))
            });
            assert!(
                matches!(&result, Err(JournalError::QueryTimeout(time)) if *time == timeout),
                "{result:?}"
            );
        }
    }
}
