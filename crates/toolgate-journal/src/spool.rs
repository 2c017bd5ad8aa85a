//! The spool: two append-only files that hold rows until they are in the database, so that they
//! survive `kill -9`. A call waits for one append, not for SQLite.
//!
//! Calls append to one file while the rows of the other are moved into the database. Then the other
//! file is emptied and the two swap, so a file is never truncated while calls append to it.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::checksummed_line;
use crate::row::JournalRow;
use crate::store::{private_file, suffixed};

/// The limit for each of the two files.
const MAX_FILE_BYTES: u64 = 8 << 20;
/// Longer rows don't go into the spool; their calls wait for the database.
pub(crate) const MAX_ROW_BYTES: usize = 256 << 10;
// A single slower append may be due to the scheduler. Two in a row mean that the disk is slow, and
// no call should wait for it.
const SLOW_APPEND: Duration = Duration::from_millis(5);
// After slow appends the spool pauses this many times as long as the last one took, up to a limit.
const PAUSE_FACTOR: u32 = 20;
const MAX_PAUSE: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_secs(2);
// All tries take about ten microseconds.
const MAX_LOCK_TRIES: usize = 20;
/// Appended to the name of the run's lock.
pub(crate) const SUFFIXES: [&str; 2] = [".0", ".1"];

/// The spool that calls append to. `None` once the journal is closed, or if its
/// [`SyncMode`] needs no spool.
///
/// [`SyncMode`]: crate::SyncMode
pub(crate) type SharedSpool = Mutex<Option<Spool>>;

#[derive(Default)]
pub(crate) struct Spool {
    file: SpoolSegment,
    paused_until: Option<Instant>,
    was_slow: bool,
    is_error_logged: bool,
}

// Gives up after a moment: then the thread that holds the lock waits for the disk, and this call
// should not.
pub(crate) fn try_lock(spool: &SharedSpool) -> Option<MutexGuard<'_, Option<Spool>>> {
    for _ in 0..MAX_LOCK_TRIES {
        match spool.try_lock() {
            Some(guard) => return Some(guard),
            None => std::thread::yield_now(),
        }
    }
    None
}

/// Both files of a run, given the path of its lock. They are created when first needed.
pub(crate) fn create_pair(lock: &Path) -> (Spool, SpoolSegment) {
    let [one, other] = SUFFIXES.map(|suffix| SpoolSegment::new(suffixed(lock, suffix)));
    let spool = Spool {
        file: one,
        ..Spool::default()
    };
    (spool, other)
}

impl Spool {
    /// Returns true if the line will survive this process. If not, its call has to
    /// wait for the database.
    pub(crate) fn append(&mut self, line: &[u8]) -> bool {
        let begin = Instant::now();
        let is_paused = self.paused_until.is_some_and(|end| begin < end);
        if is_paused
            || line.len() > MAX_ROW_BYTES
            || self.file.bytes + line.len() as u64 > MAX_FILE_BYTES
        {
            return false;
        }
        let appended = self.file.append(line);
        self.pause_if_slow(begin.elapsed());
        match appended {
            Ok(()) => {
                self.is_error_logged = false;
                true
            }
            Err(error) => {
                self.paused_until = Some(Instant::now() + RETRY);
                if !std::mem::replace(&mut self.is_error_logged, true) {
                    let file = self.file.path.display();
                    warn!(%file, %error, "the journal's spool can't be written; calls wait for the database instead");
                }
                false
            }
        }
    }

    fn pause_if_slow(&mut self, append_time: Duration) {
        let was_slow = std::mem::replace(&mut self.was_slow, append_time > SLOW_APPEND);
        let pause = (append_time * PAUSE_FACTOR).min(MAX_PAUSE);
        self.paused_until = (was_slow && self.was_slow).then(|| Instant::now() + pause);
    }

    /// Notes that the queue was full for a row in the current file, so the writer has
    /// to read the file.
    pub(crate) fn mark_unqueued(&mut self) {
        self.file.has_unqueued = true;
    }

    /// Swaps the files if the other one is empty. The rows of the current file go
    /// into the database next.
    pub(crate) fn swap_if_empty(&mut self, other: &mut SpoolSegment) {
        if other.bytes == 0 {
            std::mem::swap(&mut self.file, other);
        }
    }

    /// Replaces files that were deleted, because nobody would find the rows appended to them.
    pub(crate) fn recreate_missing(&mut self, other: &mut SpoolSegment) {
        for segment in [&mut self.file, other] {
            if segment.is_gone() {
                *segment = SpoolSegment::new(std::mem::take(&mut segment.path));
            }
        }
    }

    pub(crate) fn remove(self, other: &SpoolSegment) {
        for segment in [&self.file, other] {
            if segment.file.is_some()
                && let Err(error) = fs::remove_file(&segment.path)
            {
                debug!(%error, "a spool file of the journal can't be removed");
            }
        }
    }
}

#[derive(Default)]
pub(crate) struct SpoolSegment {
    path: PathBuf,
    file: Option<File>,
    bytes: u64,
    // The file ends with part of a line.
    is_torn: bool,
    pub(crate) has_unqueued: bool,
}

impl SpoolSegment {
    fn new(path: PathBuf) -> Self {
        Self {
            path,
            ..Self::default()
        }
    }

    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(private_file().append(true).create(true).open(&self.path)?),
        };
        let written = if self.is_torn {
            file.write_all(&[b"\n", line].concat())
        } else {
            write_at_once(file, line)
        };
        match written {
            Ok(()) => {
                self.bytes += line.len() as u64;
                self.is_torn = false;
            }
            // A partial line would make the next one look damaged.
            Err(_) => self.is_torn = file.set_len(self.bytes).is_err(),
        }
        written
    }

    pub(crate) fn clear(&mut self) {
        if self.bytes == 0 {
            return;
        }
        match self.file.as_ref().map(|file| file.set_len(0)) {
            Some(Err(error)) => debug!(%error, "a spool file of the journal can't be emptied"),
            _ => {
                self.bytes = 0;
                (self.is_torn, self.has_unqueued) = (false, false);
            }
        }
    }

    /// All rows of the file if the queue was full for some of them, or else none.
    pub(crate) fn unqueued_rows(&self) -> Vec<JournalRow> {
        let mut left = AbandonedRows::default();
        if self.has_unqueued
            && let Err(error) = left.read(&self.path)
        {
            warn!(%error, "the journal's spool can't be read; calls are missing");
        }
        left.rows
    }

    fn is_gone(&self) -> bool {
        let metadata = self.file.as_ref().map(File::metadata);
        matches!(metadata, Some(Ok(metadata)) if metadata.nlink() == 0)
    }
}

// A single system call. A short write means that the disk is full.
fn write_at_once(file: &mut File, line: &[u8]) -> io::Result<()> {
    match file.write(line)? {
        written if written == line.len() => Ok(()),
        _ => Err(io::ErrorKind::StorageFull.into()),
    }
}

#[derive(Default)]
pub(crate) struct AbandonedRows {
    pub(crate) rows: Vec<JournalRow>,
    pub(crate) damaged: usize,
}

impl AbandonedRows {
    /// Ignores a partial last line. Its write did not finish, so its call was not acknowledged.
    fn read(&mut self, path: &Path) -> io::Result<()> {
        let mut bytes = Vec::new();
        let file = File::open(path)?;
        file.take(MAX_FILE_BYTES + MAX_ROW_BYTES as u64)
            .read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
        for line in bytes[..whole].split(|byte| *byte == b'\n') {
            match checksummed_line::decode(line) {
                Some(row) => self.rows.push(row),
                None => self.damaged += usize::from(!line.is_empty()),
            }
        }
        Ok(())
    }
}

pub(crate) fn read_abandoned(lock: &Path) -> io::Result<AbandonedRows> {
    let mut left = AbandonedRows::default();
    for suffix in SUFFIXES {
        match left.read(&suffixed(lock, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(left)
}

pub(crate) fn has_abandoned(lock: &Path) -> bool {
    let has_bytes = |suffix| fs::metadata(suffixed(lock, suffix)).is_ok_and(|file| file.len() > 0);
    SUFFIXES.into_iter().any(has_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lock of a run, the spool, and the other file, whose rows move into the database.
    struct SpoolFiles {
        _folder: tempfile::TempDir,
        lock: PathBuf,
        spool: Spool,
        other: SpoolSegment,
    }

    impl SpoolFiles {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let lock = folder.path().join("run");
            let (spool, other) = create_pair(&lock);
            Self {
                _folder: folder,
                lock,
                spool,
                other,
            }
        }

        fn append(&mut self) -> bool {
            self.spool
                .append(&checksummed_line::encode(&JournalRow::sample()))
        }

        fn swap(&mut self) {
            self.spool.swap_if_empty(&mut self.other);
        }

        fn abandoned_rows(&self) -> usize {
            let left = read_abandoned(&self.lock).unwrap();
            assert_eq!(left.damaged, 0);
            left.rows.len()
        }
    }

    #[test]
    fn rows_appended_during_a_move_are_never_truncated() {
        let mut files = SpoolFiles::new();
        assert!(!has_abandoned(&files.lock));
        assert!(files.append() && files.append());
        files.swap();
        assert!(files.append());
        assert_eq!(files.abandoned_rows(), 3);
        files.swap();
        assert!(
            files.append(),
            "the files don't swap while rows are still being moved"
        );
        assert_eq!(files.abandoned_rows(), 4);
        files.other.clear();
        assert_eq!(files.abandoned_rows(), 2);
        files.swap();
        assert!(files.append());
        files.other.clear();
        assert_eq!(files.abandoned_rows(), 1);
        files.swap();
        files.other.clear();
        assert!(!has_abandoned(&files.lock));
        files.spool.remove(&files.other);
        assert_eq!(
            fs::read_dir(files.lock.parent().unwrap()).unwrap().count(),
            0
        );
    }

    #[test]
    fn a_spool_file_has_a_size_limit() {
        let mut files = SpoolFiles::new();
        assert!(!files.spool.append(&vec![b'x'; MAX_ROW_BYTES + 1]));
        let line = vec![b'x'; MAX_ROW_BYTES];
        let lines = (0..100).take_while(|_| files.spool.append(&line)).count();
        assert_eq!(lines as u64 * MAX_ROW_BYTES as u64, MAX_FILE_BYTES);
        files.swap();
        assert!(files.append());
    }

    #[tokio::test(start_paused = true)]
    async fn slow_appends_pause_the_spool() {
        let mut files = SpoolFiles::new();
        files.spool.pause_if_slow(SLOW_APPEND * 2);
        assert!(files.append(), "one slow append doesn't count");
        files.spool.pause_if_slow(SLOW_APPEND * 2);
        files.spool.pause_if_slow(SLOW_APPEND * 3);
        assert!(!files.append());
        tokio::time::advance(SLOW_APPEND * 3 * PAUSE_FACTOR - SLOW_APPEND).await;
        assert!(!files.append());
        tokio::time::advance(SLOW_APPEND).await;
        assert!(files.append());
    }

    #[tokio::test(start_paused = true)]
    async fn an_unwritable_spool_is_tried_again_later() {
        let mut files = SpoolFiles::new();
        let path = suffixed(&files.lock, SUFFIXES[0]);
        fs::create_dir(&path).unwrap();
        assert!(!files.append());
        fs::remove_dir(&path).unwrap();
        assert!(!files.append(), "not at once");
        tokio::time::advance(RETRY).await;
        assert!(files.append());
        assert_eq!(files.abandoned_rows(), 1);
    }

    #[test]
    fn a_partial_line_does_not_damage_the_next() {
        let mut files = SpoolFiles::new();
        assert!(files.append());
        // A full disk leaves this behind if the file can't even be truncated.
        let mut file = files.spool.file.file.as_ref().unwrap();
        file.write_all(&checksummed_line::encode(&JournalRow::sample())[..50])
            .unwrap();
        files.spool.file.is_torn = true;
        assert!(files.append());
        let left = read_abandoned(&files.lock).unwrap();
        assert_eq!((left.rows.len(), left.damaged), (2, 1));
    }
}
