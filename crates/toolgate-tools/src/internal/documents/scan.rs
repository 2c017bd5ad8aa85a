//! Finds the files worth indexing, within bounds, and never leaves the folders it was given.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use tracing::debug;

use super::{DocumentsError, Watch};

/// What is not looked at, so that a strange folder costs a bounded time.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScanLimits {
    /// Bytes of one file.
    pub(super) file: u64,
    /// Bytes of all files.
    pub(super) total: u64,
    pub(super) files: usize,
    /// Names of any kind met on the way.
    pub(super) entries: usize,
    /// Folders within folders.
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

/// The files there are at this moment.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// By their path as bytes, which is also their name in the index.
    pub(super) files: BTreeMap<Vec<u8>, Found>,
    /// The folders that were looked at, links in their own path resolved.
    pub(super) folders: Vec<PathBuf>,
    /// Folders as configured that do not exist or can not be entered.
    pub(super) missing: Vec<PathBuf>,
    /// Files bigger than the limit.
    pub(super) too_large: usize,
    /// True if a limit on number, depth or total size left files out.
    pub(super) incomplete: bool,
}

/// One file, as the index compares it.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    /// Position in [`Scan::folders`].
    pub(super) folder: usize,
    pub(super) stamp: Stamp,
}

/// Tells whether a file has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Nanoseconds since 1970.
    pub(super) modified: i64,
    pub(super) size: u64,
}

impl Stamp {
    pub(super) fn of(metadata: &fs::Metadata) -> Self {
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

impl Scan {
    /// Looks through the folders in their order; a file in two of them counts for the first.
    pub(super) fn new(
        folders: &[PathBuf],
        limits: ScanLimits,
        watch: &Watch<'_>,
    ) -> Result<Self, DocumentsError> {
        let mut walk = Walk {
            scan: Self::default(),
            limits,
            entries: 0,
            bytes: 0,
        };
        for folder in folders {
            match fs::canonicalize(folder).and_then(|root| fs::read_dir(&root).map(|_| root)) {
                Ok(root) if walk.scan.folders.contains(&root) => {}
                Ok(root) => walk.tree(root, watch)?,
                Err(error) => {
                    debug!(folder = %folder.display(), %error, "folder of documents is missing");
                    walk.scan.missing.push(folder.clone());
                }
            }
        }
        Ok(walk.scan)
    }
}

struct Walk {
    scan: Scan,
    limits: ScanLimits,
    entries: usize,
    bytes: u64,
}

impl Walk {
    fn tree(&mut self, root: PathBuf, watch: &Watch<'_>) -> Result<(), DocumentsError> {
        let folder = self.scan.folders.len();
        let mut waiting = vec![(root.clone(), 0)];
        self.scan.folders.push(root);
        while let Some((path, depth)) = waiting.pop() {
            watch.check()?;
            for entry in self.entries(&path) {
                let Ok(kind) = entry.file_type() else {
                    continue;
                };
                if entry.file_name().as_encoded_bytes().starts_with(b".") {
                    continue;
                }
                // Links are neither: inside the folder their target is found by itself, outside it is not ours.
                if kind.is_file() && is_text(&entry.path()) {
                    self.file(folder, &entry);
                } else if kind.is_dir() && depth < self.limits.depth {
                    waiting.push((entry.path(), depth + 1));
                } else if kind.is_dir() {
                    self.scan.incomplete = true;
                }
            }
        }
        Ok(())
    }

    /// The entries of one folder by name, so that the limits leave out the same files every time.
    fn entries(&mut self, folder: &Path) -> Vec<fs::DirEntry> {
        let room = self.limits.entries - self.entries;
        let mut entries: Vec<_> = match fs::read_dir(folder) {
            Ok(entries) => entries.flatten().take(room + 1).collect(),
            Err(error) => {
                debug!(folder = %folder.display(), %error, "folder can not be read");
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

    fn file(&mut self, folder: usize, entry: &fs::DirEntry) {
        // Gone since its folder was read: then it is not there.
        let Ok(metadata) = entry.metadata() else {
            return;
        };
        let (path, stamp) = (entry.path(), Stamp::of(&metadata));
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
                Found {
                    path,
                    folder,
                    stamp,
                },
            );
        }
    }
}

/// By its name: the kinds of text people write, and the files that go without an extension.
fn is_text(path: &Path) -> bool {
    const EXTENSIONS: [&str; 7] = ["md", "markdown", "txt", "text", "rst", "org", "adoc"];
    const PLAIN_NAMES: [&str; 13] = [
        "readme",
        "authors",
        "changelog",
        "changes",
        "contributing",
        "copying",
        "history",
        "install",
        "licence",
        "license",
        "news",
        "notes",
        "todo",
    ];
    let (known, part) = match path.extension() {
        Some(extension) => (&EXTENSIONS[..], Some(extension)),
        None => (&PLAIN_NAMES[..], path.file_name()),
    };
    part.and_then(|part| part.to_str())
        .is_some_and(|part| known.iter().any(|known| part.eq_ignore_ascii_case(known)))
}

#[cfg(test)]
mod tests;
