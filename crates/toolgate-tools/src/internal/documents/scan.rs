//! [`FolderScan`]: finds the files to index, within limits, and never outside the given folders.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use tracing::debug;

use super::{DocumentsError, TaskControl};

// Bounds the time and memory that a folder can take, whatever is in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScanLimits {
    /// Maximum bytes of a file.
    pub(super) file: u64,
    /// Maximum bytes of all files together.
    pub(super) total: u64,
    pub(super) files: usize,
    /// Maximum directory entries of any kind.
    pub(super) entries: usize,
    pub(super) depth: usize,
}

impl Default for ScanLimits {
    fn default() -> Self {
        Self {
            file: 4 << 20,
            total: 2 << 30,
            files: 50_000,
            entries: 1_000_000,
            depth: 32,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct FolderScan {
    /// Keyed by the path as bytes, which is also the key in the index.
    pub(super) files: BTreeMap<Vec<u8>, ScannedFile>,
    /// The folders that were scanned, with symbolic links resolved.
    pub(super) folders: Vec<PathBuf>,
    /// Configured folders that don't exist or can't be read.
    pub(super) missing: Vec<PathBuf>,
    pub(super) too_large: usize,
    /// True if a limit on number, depth or total size left files out.
    pub(super) incomplete: bool,
}

#[derive(Debug)]
pub(super) struct ScannedFile {
    pub(super) path: PathBuf,
    /// The folder's index in [`FolderScan::folders`].
    pub(super) folder: usize,
    pub(super) stamp: FileStamp,
}

/// Tells whether a file has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileStamp {
    /// The modification time, in nanoseconds since 1970.
    pub(super) modified: i64,
    pub(super) size: u64,
}

impl FileStamp {
    pub(super) fn from_metadata(metadata: &fs::Metadata) -> Self {
        let modified = metadata.modified().unwrap_or(UNIX_EPOCH);
        Self {
            modified: nanos_since_1970(modified),
            size: metadata.len(),
        }
    }
}

pub(super) fn nanos_since_1970(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |nanos| -nanos),
    }
}

impl FolderScan {
    /// Scans the folders in order. A file in two of them belongs to the first.
    pub(super) fn new(
        folders: &[PathBuf],
        limits: ScanLimits,
        control: &TaskControl<'_>,
    ) -> Result<Self, DocumentsError> {
        let mut walk = FolderWalk {
            scan: Self::default(),
            limits,
            entries: 0,
            bytes: 0,
        };
        for folder in folders {
            match fs::canonicalize(folder).and_then(|root| fs::read_dir(&root).map(|_| root)) {
                Ok(root) if walk.scan.folders.contains(&root) => {}
                Ok(root) => walk.walk_tree(root, control)?,
                Err(error) => {
                    debug!(folder = %folder.display(), %error, "a document folder is missing");
                    walk.scan.missing.push(folder.clone());
                }
            }
        }
        Ok(walk.scan)
    }
}

struct FolderWalk {
    scan: FolderScan,
    limits: ScanLimits,
    entries: usize,
    bytes: u64,
}

impl FolderWalk {
    fn walk_tree(
        &mut self,
        root: PathBuf,
        control: &TaskControl<'_>,
    ) -> Result<(), DocumentsError> {
        let folder = self.scan.folders.len();
        let mut waiting = vec![(root.clone(), 0)];
        self.scan.folders.push(root);
        while let Some((path, depth)) = waiting.pop() {
            control.check()?;
            for entry in self.read_entries(&path) {
                let Ok(kind) = entry.file_type() else {
                    continue;
                };
                if entry.file_name().as_encoded_bytes().starts_with(b".") {
                    continue;
                }
                // Symbolic links are skipped: a target inside the folder is found anyway, and one
                // outside must not be read.
                if kind.is_file() && has_text_name(&entry.path()) {
                    self.add_file(folder, &entry);
                } else if kind.is_dir() && depth < self.limits.depth {
                    waiting.push((entry.path(), depth + 1));
                } else if kind.is_dir() {
                    self.scan.incomplete = true;
                }
            }
        }
        Ok(())
    }

    // Sorted, so that the limits leave out the same files every time.
    fn read_entries(&mut self, folder: &Path) -> Vec<fs::DirEntry> {
        let room = self.limits.entries - self.entries;
        let mut entries: Vec<_> = match fs::read_dir(folder) {
            Ok(entries) => entries.flatten().take(room + 1).collect(),
            Err(error) => {
                debug!(folder = %folder.display(), %error, "can't read folder");
                Vec::new()
            }
        };
        entries.sort_by_key(fs::DirEntry::file_name);
        if entries.len() > room {
            self.scan.incomplete = true;
            entries.truncate(room);
        }
        self.entries += entries.len();
        entries
    }

    fn add_file(&mut self, folder: usize, entry: &fs::DirEntry) {
        // Fails if the file was deleted since its folder was read.
        let Ok(metadata) = entry.metadata() else {
            return;
        };
        let (path, stamp) = (entry.path(), FileStamp::from_metadata(&metadata));
        let key = path.as_os_str().as_encoded_bytes().to_vec();
        if self.scan.files.contains_key(&key) {
            return;
        }
        if stamp.size > self.limits.file {
            self.scan.too_large += 1;
        } else if self.scan.files.len() == self.limits.files
            || self.bytes + stamp.size > self.limits.total
        {
            self.scan.incomplete = true;
        } else {
            self.bytes += stamp.size;
            self.scan.files.insert(
                key,
                ScannedFile {
                    path,
                    folder,
                    stamp,
                },
            );
        }
    }
}

// Goes by the name only: the usual text formats, and common files without an extension.
fn has_text_name(path: &Path) -> bool {
    const EXTENSIONS: &str = "md markdown txt text rst org adoc";
    const PLAIN_NAMES: &str = "readme authors changelog changes contributing copying history install \
                               licence license news notes todo";
    let (known, part) = match path.extension() {
        Some(extension) => (EXTENSIONS, Some(extension)),
        None => (PLAIN_NAMES, path.file_name()),
    };
    part.and_then(|part| part.to_str()).is_some_and(|part| {
        let mut known = known.split_whitespace();
        known.any(|known| part.eq_ignore_ascii_case(known))
    })
}

#[cfg(test)]
mod tests;
