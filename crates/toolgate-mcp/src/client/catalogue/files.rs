//! The files of the catalogue: read with a bound, replaced as a whole, forgotten when they are old.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::NamedTempFile;

use super::super::listing;

/// A listing may hold 16 MiB of definitions; their hashes and the frame come on top.
pub(super) const LARGEST_FILE: u64 = listing::BYTES as u64 + (4 << 20);
/// Entries are forgotten when their server wasn't listed for this long.
const KEPT_FOR: Duration = Duration::from_secs(180 * 24 * 3600);
/// More entries than this aren't kept: the oldest go first.
pub(super) const MOST_ENTRIES: usize = 2000;
/// A file that was never finished belongs to a process that was killed while it wrote.
const UNFINISHED_FOR: Duration = Duration::from_secs(3600);

pub(super) const LISTED: &str = "json";
pub(super) const AGREED: &str = "agreed";
pub(super) const FAILED: &str = "failed";
const UNFINISHED: &str = "new";
pub(super) const LOCK: &str = "lock";

/// The bytes of a file and when it was last written or confirmed; `None` if there is no such file.
pub(super) fn read_bounded(path: &Path, most: u64) -> io::Result<Option<(Vec<u8>, SystemTime)>> {
    let about = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        about => about?,
    };
    // Whatever else has the name, such as a pipe, could block for ever.
    if !about.is_file() || about.len() > most {
        return Err(io::Error::other("it is no file of ours, or too large"));
    }
    let mut bytes = Vec::with_capacity(about.len() as usize);
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(Some((bytes, about.modified()?)))
}

/// Says that what the file holds is still so.
pub(super) fn touch(path: &Path) -> io::Result<()> {
    let file = File::options().append(true).open(path)?;
    file.set_modified(SystemTime::now())
}

/// Replaces the file as a whole: whoever reads sees the old content or the new one. Only its owner may read it.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let file = unfinished(path, bytes)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// A file beside the one that is to be written, complete and on the disk.
pub(super) fn unfinished(path: &Path, bytes: &[u8]) -> io::Result<NamedTempFile> {
    if bytes.len() as u64 > LARGEST_FILE {
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

/// Forgets what nobody has used for long, and what processes that were killed left behind.
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
    for (place, (age, path)) in files.into_iter().enumerate() {
        let longest = match path.extension().and_then(|name| name.to_str()) {
            Some(LISTED | AGREED | FAILED | LOCK) => KEPT_FOR,
            Some(UNFINISHED) => UNFINISHED_FOR,
            // Not ours.
            _ => continue,
        };
        if age > longest || place >= MOST_ENTRIES {
            // Another process may have been faster.
            drop(fs::remove_file(path));
        }
    }
}
