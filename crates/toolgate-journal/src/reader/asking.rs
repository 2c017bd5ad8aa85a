//! How a question is put to the file, and for how long.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};
use tokio::time::Instant;

use super::Reader;
use crate::foreign;
use crate::store::{self, Unusable};
use crate::{JournalError, takeover};

/// How long to wait for another process.
const BUSY: Duration = Duration::from_secs(2);
/// How long to wait for what this process recorded.
const FLUSH: Duration = Duration::from_secs(1);
/// SQLite looks at the clock after so many of its steps: some milliseconds.
const LOOK_AT_CLOCK: i32 = 100_000;

impl Reader {
    pub(crate) fn ask<T>(
        &self,
        question: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, JournalError> {
        let answer = self.answer(question);
        if let (Err(error), Some(queue)) = (&answer, &self.queue)
            && error.is_damage()
        {
            queue.tell_of_damage();
        }
        answer
    }

    fn answer<T>(
        &self,
        question: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, JournalError> {
        if self.is_gone.load(Ordering::Relaxed) {
            return Err(JournalError::TooLong(self.patience));
        }
        if let Some(queue) = &self.queue {
            queue.flush(FLUSH);
        }
        let mut connection = self.connect()?;
        takeover::take_over_to_read(&self.file);
        let (end, is_gone) = (Instant::now() + self.patience, Arc::clone(&self.is_gone));
        let is_over = move || is_gone.load(Ordering::Relaxed) || Instant::now() > end;
        let answer = connection
            .progress_handler(LOOK_AT_CLOCK, Some(is_over))
            .and_then(|()| question(&connection));
        answer.map_err(|error| match error.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => JournalError::TooLong(self.patience),
            _ => Unusable::from(error).of(&self.file),
        })
    }

    pub(super) fn connect(&self) -> Result<Connection, JournalError> {
        let file = &self.file;
        if !file.exists() {
            return Err(JournalError::Missing(file.clone()));
        }
        let read_only = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = match self.connect_with(file, read_only) {
            // Where no file can be made SQLite can not share this one. If nobody has it open, it need not.
            Err(Unusable::Sqlite(error)) if is_not_allowed(&error) && !self.has_log() => {
                let alone = format!("file:{}?immutable=1", escaped(file));
                let flags = read_only | OpenFlags::SQLITE_OPEN_URI;
                self.connect_with(Path::new(&alone), flags)
            }
            opened => opened,
        };
        opened.map_err(|error| error.of(file))
    }

    fn connect_with(&self, path: &Path, flags: OpenFlags) -> Result<Connection, Unusable> {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY)?;
        match store::form(&connection, &self.file)? {
            Some(_) => {
                foreign::check(&connection, &self.file)?;
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

fn is_not_allowed(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(code, Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly))
}

/// A path as it stands in a URI.
fn escaped(path: &Path) -> String {
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

    /// Counts for ever.
    const ENDLESS: &str =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";

    #[tokio::test]
    async fn a_question_ends_when_its_time_is_over_or_nobody_waits_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("journal.db");
        let settings = JournalSettings::default();
        let journal = Journal::open(&file, &settings, Default::default(), "test").unwrap();
        let (short, long) = (Duration::from_millis(20), Duration::from_secs(3600));
        for (patience, leaves) in [(short, false), (long, true)] {
            let is_gone = Arc::<AtomicBool>::default();
            let reader = journal.reader().asked_by(patience, Arc::clone(&is_gone));
            let answer = reader.ask(|connection| {
                is_gone.store(leaves, Ordering::Relaxed);
                connection.query_row(ENDLESS, [], |_| Ok(()))
            });
            assert!(
                matches!(&answer, Err(JournalError::TooLong(time)) if *time == patience),
                "{answer:?}"
            );
        }
    }
}
