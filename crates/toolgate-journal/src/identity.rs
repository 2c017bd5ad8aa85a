//! Whether the file is still the one that was opened.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

const PERIOD: Duration = Duration::from_secs(1);

/// Which file it is that is written to: SQLite does not notice when it is moved or deleted.
pub(crate) struct Identity {
    device_and_inode: Option<(u64, u64)>,
    looked: Instant,
}

impl Identity {
    pub(crate) fn of(file: &Path) -> Self {
        let numbers = |file: Metadata| (file.dev(), file.ino());
        Self {
            device_and_inode: fs::metadata(file).ok().map(numbers),
            looked: Instant::now(),
        }
    }

    /// True if nobody has looked for a while.
    pub(crate) fn is_due(&self) -> bool {
        self.looked.elapsed() >= PERIOD
    }

    /// True if it is still the same file.
    pub(crate) fn is_still(&mut self, file: &Path) -> bool {
        let now = Self::of(file);
        self.looked = now.looked;
        self.device_and_inode == now.device_and_inode
    }
}
