//! Replaces files atomically: a reader sees the old text or the new one, never a part.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{Error, ErrorKind, Result, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

// What we write may contain secrets.
const PRIVATE: u32 = 0o600;
const PRIVATE_FOLDER: u32 = 0o700;
const OTHERS_WRITE: u32 = 0o022;

pub(crate) fn create_parent_folder(path: &Path) -> Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(PRIVATE_FOLDER)
        .create(folder(path))
}

/// Writes a temporary file and renames it into place. A link stays a link. The mode is kept, except
/// that only the owner may write. A new file is private.
pub(crate) fn replace(path: &Path, text: &str) -> Result<()> {
    let target = ReplacementTarget::find(path)?;
    let written = write_new(&target.new, text, target.permissions)
        .and_then(|()| fs::rename(&target.new, &target.real));
    if written.is_err() {
        // It may not have been created.
        drop(fs::remove_file(&target.new));
    }
    written
}

pub(crate) fn check_replaceable(path: &Path) -> Result<()> {
    let target = ReplacementTarget::find(path)?;
    write_new(&target.new, "", target.permissions).and_then(|()| fs::remove_file(&target.new))
}

struct ReplacementTarget {
    real: PathBuf,
    new: PathBuf,
    permissions: Permissions,
}

impl ReplacementTarget {
    fn find(path: &Path) -> Result<Self> {
        let real = match fs::canonicalize(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => path.to_owned(),
            found => found?,
        };
        let permissions = match fs::metadata(&real) {
            Err(error) if error.kind() == ErrorKind::NotFound => Permissions::from_mode(PRIVATE),
            Ok(found) if !found.is_file() => {
                return Err(Error::other(
                    "it is a folder, a device or a pipe, and can't be replaced",
                ));
            }
            // A configuration that others can write would be refused.
            found => Permissions::from_mode(found?.permissions().mode() & !OTHERS_WRITE),
        };
        let name = real.file_name().unwrap_or_default().to_string_lossy();
        let new = folder(&real).join(format!(".{name}.{}.new", std::process::id()));
        Ok(Self {
            real,
            new,
            permissions,
        })
    }
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn write_new(path: &Path, text: &str, permissions: Permissions) -> Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(PRIVATE)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    file.set_permissions(permissions)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_new_file_is_private_and_an_old_one_keeps_its_mode_and_its_link() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("deep/er/a.json");
        assert!(replace(&file, "1").is_err(), "its folder is not there");
        create_parent_folder(&file).unwrap();
        replace(&file, "1").unwrap();
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        let link = folder.path().join("link.json");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&link, "2").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "2");
        assert_eq!(mode(&file), 0o644);
        assert!(link.symlink_metadata().unwrap().is_symlink());
        let entries = fs::read_dir(file.parent().unwrap()).unwrap().count();
        assert_eq!(entries, 1, "nothing is left beside it");
    }

    #[test]
    fn a_failed_write_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        assert!(replace(folder.path(), "x").is_err(), "it is a folder");
        let socket = folder.path().join("socket");
        let _listening = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for other in [socket.as_path(), Path::new("/dev/null")] {
            let text = check_replaceable(other).unwrap_err().to_string();
            assert!(text.contains("and can't be replaced"), "{text}");
            assert!(replace(other, "x").is_err());
            assert!(!fs::metadata(other).unwrap().is_file());
        }
        let file = folder.path().join("new.json");
        check_replaceable(&file).unwrap();
        assert!(!file.exists(), "asking writes nothing");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let beside = fs::read_dir(folder.path().parent().unwrap()).unwrap();
        let left = beside.flatten().any(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            name.contains(&*folder.path().file_name().unwrap().to_string_lossy())
                && name.ends_with(".new")
        });
        assert!(!left);
    }
}
