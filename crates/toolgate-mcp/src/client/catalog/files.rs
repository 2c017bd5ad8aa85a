//! Reads, replaces and prunes the files of the catalog.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::NamedTempFile;

use super::super::listing;

// A list may hold 16 MiB of definitions, plus hashes and the surrounding JSON.
pub(super) const MAX_FILE_BYTES: u64 = listing::MAX_LIST_BYTES as u64 + (4 << 20);
// Entries of servers that weren't listed for this long are deleted.
const MAX_AGE: Duration = Duration::from_secs(180 * 24 * 3600);
pub(super) const MAX_ENTRIES: usize = 2000;
// A temporary file this old was left by a process that was killed.
const MAX_UNFINISHED_AGE: Duration = Duration::from_secs(3600);

pub(super) const LISTED: &str = "json";
pub(super) const AGREED: &str = "agreed";
pub(super) const FAILED: &str = "failed";
const UNFINISHED: &str = "new";
pub(super) const LOCK: &str = "lock";

/// The content of a file and when it was last written or confirmed; `None` if there
/// is no such file.
pub(super) fn read_bounded(
    path: &Path,
    max_bytes: u64,
) -> io::Result<Option<(Vec<u8>, SystemTime)>> {
    let metadata = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        metadata => metadata?,
    };
    // Reading anything but a file, such as a named pipe, could block forever.
    if !metadata.is_file() || metadata.len() > max_bytes {
        return Err(io::Error::other(
            "it is not a regular file, or it is too large",
        ));
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    File::open(path)?.take(max_bytes).read_to_end(&mut bytes)?;
    Ok(Some((bytes, metadata.modified()?)))
}

/// Sets the modification time, which confirms that the content is still current.
pub(super) fn touch(path: &Path) -> io::Result<()> {
    let file = File::options().append(true).open(path)?;
    file.set_modified(SystemTime::now())
}

/// Replaces the file atomically, so readers see the old or the new content. Only the
/// owner may read it.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let file = write_temporary(path, bytes)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

pub(super) fn write_temporary(path: &Path, bytes: &[u8]) -> io::Result<NamedTempFile> {
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::other("they are too large"));
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    make_folder(folder)?;
    let suffix = format!(".{UNFINISHED}");
    let mut file = tempfile::Builder::new()
        .suffix(&suffix)
        .tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    Ok(file)
}

pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder)
}

/// Deletes files that are too old, and the oldest ones beyond [`MAX_ENTRIES`].
pub(super) fn prune(folder: &Path, now: SystemTime) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<(Duration, PathBuf)> = entries
        .filter_map(|entry| {
            let written = entry.metadata().ok()?.modified().ok()?;
            let age = now.duration_since(written).unwrap_or_default();
            Some((age, entry.path()))
        })
        .collect();
    files.sort();
    for (index, (age, path)) in files.into_iter().enumerate() {
        let max_age = match path.extension().and_then(|name| name.to_str()) {
            Some(LISTED | AGREED | FAILED | LOCK) => MAX_AGE,
            Some(UNFINISHED) => MAX_UNFINISHED_AGE,
            _ => continue,
        };
        if age > max_age || index >= MAX_ENTRIES {
            // Another process may have deleted it already.
            drop(fs::remove_file(path));
        }
    }
}
