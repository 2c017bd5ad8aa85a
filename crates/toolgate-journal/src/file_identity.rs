//! Detects that the database file was replaced.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The device and inode of the open database. SQLite doesn't notice when the file
/// is moved or deleted.
pub(crate) struct FileIdentity {
    device_and_inode: Option<(u64, u64)>,
    checked_at: Instant,
}

impl FileIdentity {
    pub(crate) fn read(file: &Path) -> Self {
        let numbers = |file: Metadata| (file.dev(), file.ino());
        Self {
            device_and_inode: fs::metadata(file).ok().map(numbers),
            checked_at: Instant::now(),
        }
    }

    /// True if the last check is at least a second ago.
    pub(crate) fn is_check_due(&self) -> bool {
        self.checked_at.elapsed() >= CHECK_INTERVAL
    }

    pub(crate) fn still_matches(&mut self, file: &Path) -> bool {
        let now = Self::read(file);
        self.checked_at = now.checked_at;
        self.device_and_inode == now.device_and_inode
    }
}
