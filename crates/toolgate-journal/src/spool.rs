//! Rows on their way into the database, where they survive `kill -9`: a call waits for one append to a file of its run, not
//! for SQLite.
//!
//! There are two such files. Calls append to one; what stands in the other is being moved into the database, and when that is
//! done it is emptied and they change places. So nothing is ever cut from a file that somebody appends to.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::line;
use crate::row::Row;
use crate::store::suffixed;

/// A file takes no more.
const MOST: u64 = 8 << 20;
/// Longer rows are not for this: their calls wait for the database.
pub(crate) const LONGEST: usize = 256 << 10;
/// An append that takes longer was held up: once, that may be the scheduler; twice in a row, it is a disk on which no call
/// should wait.
const SLOW: Duration = Duration::from_millis(5);
/// So many times as long it is left alone after that, and at most so long.
const REST: u32 = 20;
const LONGEST_REST: Duration = Duration::from_secs(10);
/// How long it is left alone after an error.
const RETRY: Duration = Duration::from_secs(2);
/// How often whoever finds it in use tries again: for some ten microseconds.
const TRIES: usize = 20;
/// The names of both files begin with that of the run.
pub(crate) const SUFFIXES: [&str; 2] = [".0", ".1"];

/// The file that calls append to. Nothing once the journal is closed, or where no call waits for a row.
pub(crate) type SharedSpool = Mutex<Option<Spool>>;

pub(crate) struct Spool {
    file: Segment,
    /// Not used until then.
    rests_until: Option<Instant>,
    was_slow: bool,
    /// It was said that it can not be written.
    is_said: bool,
}

/// The spool, unless others have it for longer than a moment: then one of them waits for the disk.
pub(crate) fn lock(spool: &SharedSpool) -> Option<MutexGuard<'_, Option<Spool>>> {
    for _ in 0..TRIES {
        match spool.try_lock() {
            Some(guard) => return Some(guard),
            None => std::thread::yield_now(),
        }
    }
    None
}

/// Both files of a run, given the path of its lock. They are made when they are needed.
pub(crate) fn files(lock: &Path) -> (Spool, Segment) {
    let [one, other] = SUFFIXES.map(|suffix| Segment::new(suffixed(lock, suffix)));
    let spool = Spool {
        file: one,
        rests_until: None,
        was_slow: false,
        is_said: false,
    };
    (spool, other)
}

impl Spool {
    /// True if the line will survive this process. If not, its call has to wait for the database.
    pub(crate) fn append(&mut self, line: &[u8]) -> bool {
        let begin = Instant::now();
        let is_resting = self.rests_until.is_some_and(|end| begin < end);
        if is_resting || line.len() > LONGEST || self.file.bytes + line.len() as u64 > MOST {
            return false;
        }
        let appended = self.file.append(line);
        self.took(begin.elapsed());
        match appended {
            Ok(()) => {
                self.is_said = false;
                true
            }
            Err(error) => {
                self.rests_until = Some(Instant::now() + RETRY);
                if !std::mem::replace(&mut self.is_said, true) {
                    let file = self.file.path.display();
                    warn!(%file, %error, "the journal's spool can not be written; calls wait for the database instead");
                }
                false
            }
        }
    }

    fn took(&mut self, time: Duration) {
        let was_slow = std::mem::replace(&mut self.was_slow, time > SLOW);
        let rest = (time * REST).min(LONGEST_REST);
        self.rests_until = (was_slow && self.was_slow).then(|| Instant::now() + rest);
    }

    /// Something that was appended is nowhere else.
    pub(crate) fn has_more(&mut self) {
        self.file.has_more = true;
    }

    /// Changes places with the other file if that is empty: what stands here goes into the database next.
    pub(crate) fn turn(&mut self, other: &mut Segment) {
        if other.bytes == 0 {
            std::mem::swap(&mut self.file, other);
        }
    }

    /// A file that is gone from its folder is made anew when it is needed: nobody would find what is appended to it.
    pub(crate) fn renew(&mut self, other: &mut Segment) {
        for segment in [&mut self.file, other] {
            if segment.is_gone() {
                *segment = Segment::new(std::mem::take(&mut segment.path));
            }
        }
    }

    /// The journal is closed, and everything is in the database.
    pub(crate) fn remove(self, other: &Segment) {
        for segment in [&self.file, other] {
            if segment.file.is_some()
                && let Err(error) = fs::remove_file(&segment.path)
            {
                debug!(%error, "a spool of the journal can not be removed");
            }
        }
    }
}

pub(crate) struct Segment {
    path: PathBuf,
    file: Option<File>,
    bytes: u64,
    /// It ends with part of a line.
    is_torn: bool,
    /// It has rows that never came into the queue.
    pub(crate) has_more: bool,
}

impl Segment {
    fn new(path: PathBuf) -> Self {
        Self {
            path,
            file: None,
            bytes: 0,
            is_torn: false,
            has_more: false,
        }
    }

    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(
                OpenOptions::new()
                    .append(true)
                    .create(true)
                    .mode(0o600)
                    .open(&self.path)?,
            ),
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
            // What there is of it would make the next line look damaged.
            Err(_) => self.is_torn = file.set_len(self.bytes).is_err(),
        }
        written
    }

    /// What stands in it is in the database.
    pub(crate) fn clear(&mut self) {
        if self.bytes == 0 {
            return;
        }
        match self.file.as_ref().map(|file| file.set_len(0)) {
            Some(Err(error)) => debug!(%error, "a spool of the journal can not be emptied"),
            _ => {
                self.bytes = 0;
                (self.is_torn, self.has_more) = (false, false);
            }
        }
    }

    /// All rows that stand in it, where not all came into the queue.
    pub(crate) fn more(&self) -> Vec<Row> {
        let mut left = Left::default();
        if self.has_more
            && let Err(error) = left.read(&self.path)
        {
            warn!(%error, "the journal's spool can not be read; calls are missing");
        }
        left.rows
    }

    fn is_gone(&self) -> bool {
        let metadata = self.file.as_ref().map(File::metadata);
        matches!(metadata, Some(Ok(metadata)) if metadata.nlink() == 0)
    }
}

/// One call of the operating system; less than all of it means that the disk is full.
fn write_at_once(file: &mut File, line: &[u8]) -> io::Result<()> {
    match file.write(line)? {
        written if written == line.len() => Ok(()),
        _ => Err(io::ErrorKind::StorageFull.into()),
    }
}

#[derive(Default)]
pub(crate) struct Left {
    pub(crate) rows: Vec<Row>,
    pub(crate) damaged: usize,
}

impl Left {
    /// Whatever follows the last whole line was not completely written, and nobody was told that it was.
    fn read(&mut self, path: &Path) -> io::Result<()> {
        let mut bytes = Vec::new();
        let file = File::open(path)?;
        file.take(MOST + LONGEST as u64).read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
        for line in bytes[..whole].split(|byte| *byte == b'\n') {
            match line::parsed(line) {
                Some(row) => self.rows.push(row),
                None => self.damaged += usize::from(!line.is_empty()),
            }
        }
        Ok(())
    }
}

/// Reads both files of a run that is over, given the path of its lock.
pub(crate) fn left_in(lock: &Path) -> io::Result<Left> {
    let mut left = Left::default();
    for suffix in SUFFIXES {
        match left.read(&suffixed(lock, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(left)
}

/// True if a run left something.
pub(crate) fn is_left(lock: &Path) -> bool {
    let has_bytes = |suffix| fs::metadata(suffixed(lock, suffix)).is_ok_and(|file| file.len() > 0);
    SUFFIXES.into_iter().any(has_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lock of a run, a spool that is appended to, and the one that is moved into the database.
    struct Files {
        _folder: tempfile::TempDir,
        lock: PathBuf,
        spool: Spool,
        other: Segment,
    }

    impl Files {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let lock = folder.path().join("run");
            let (spool, other) = files(&lock);
            Self {
                _folder: folder,
                lock,
                spool,
                other,
            }
        }

        fn append(&mut self) -> bool {
            self.spool.append(&line::of(&Row::sample()))
        }

        fn turn(&mut self) {
            self.spool.turn(&mut self.other);
        }

        fn left(&self) -> usize {
            let left = left_in(&self.lock).unwrap();
            assert_eq!(left.damaged, 0);
            left.rows.len()
        }
    }

    #[test]
    fn what_is_appended_while_the_rest_is_moved_is_never_cut() {
        let mut files = Files::new();
        assert!(!is_left(&files.lock));
        assert!(files.append() && files.append());
        files.turn();
        assert!(files.append());
        assert_eq!(files.left(), 3);
        files.turn();
        assert!(
            files.append(),
            "moving takes long: they do not change places"
        );
        assert_eq!(files.left(), 4);
        files.other.clear();
        assert_eq!(files.left(), 2);
        files.turn();
        assert!(files.append());
        files.other.clear();
        assert_eq!(files.left(), 1);
        files.turn();
        files.other.clear();
        assert!(!is_left(&files.lock));
        files.spool.remove(&files.other);
        assert_eq!(
            fs::read_dir(files.lock.parent().unwrap()).unwrap().count(),
            0
        );
    }

    #[test]
    fn it_has_an_end() {
        let mut files = Files::new();
        assert!(!files.spool.append(&vec![b'x'; LONGEST + 1]));
        let line = vec![b'x'; LONGEST];
        let lines = (0..100).take_while(|_| files.spool.append(&line)).count();
        assert_eq!(lines as u64 * LONGEST as u64, MOST);
        files.turn();
        assert!(files.append());
    }

    #[tokio::test(start_paused = true)]
    async fn a_disk_that_holds_up_appends_is_left_alone_for_a_while() {
        let mut files = Files::new();
        files.spool.took(SLOW * 2);
        assert!(files.append(), "once is nothing");
        files.spool.took(SLOW * 2);
        files.spool.took(SLOW * 3);
        assert!(!files.append());
        tokio::time::advance(SLOW * 3 * REST - SLOW).await;
        assert!(!files.append());
        tokio::time::advance(SLOW).await;
        assert!(files.append());
    }

    #[tokio::test(start_paused = true)]
    async fn a_spool_that_can_not_be_written_is_tried_again() {
        let mut files = Files::new();
        let path = suffixed(&files.lock, SUFFIXES[0]);
        fs::create_dir(&path).unwrap();
        assert!(!files.append());
        fs::remove_dir(&path).unwrap();
        assert!(!files.append(), "not at once");
        tokio::time::advance(RETRY).await;
        assert!(files.append());
        assert_eq!(files.left(), 1);
    }

    #[test]
    fn part_of_a_line_does_not_spoil_the_next() {
        let mut files = Files::new();
        assert!(files.append());
        // As a disk without space leaves it, where it can not even be cut.
        let mut file = files.spool.file.file.as_ref().unwrap();
        file.write_all(&line::of(&Row::sample())[..50]).unwrap();
        files.spool.file.is_torn = true;
        assert!(files.append());
        let left = left_in(&files.lock).unwrap();
        assert_eq!((left.rows.len(), left.damaged), (2, 1));
    }
}
