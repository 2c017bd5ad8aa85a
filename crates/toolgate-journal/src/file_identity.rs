//! Detects that the database file was replaced.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The device and inode of the open database. SQLite doesn't notice when the file
/// is moved or deleted.
pub(crate) struct FileIdentity {
    device_and_inode: Option<(u64, u64)>,
}

impl FileIdentity {
    pub(crate) fn read(file: &Path) -> Self {
        let file = fs::metadata(file).ok();
        Self {
            device_and_inode: file.map(|file| (file.dev(), file.ino())),
        }
    }

    pub(crate) fn still_matches(&self, file: &Path) -> bool {
        self.device_and_inode == Self::read(file).device_and_inode
    }
}
