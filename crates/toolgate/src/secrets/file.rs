//! `${file:…}`: a secret in a file, as systemd, Docker and Kubernetes provide them.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::{MAX_SECRET_BYTES, parse_secret, read_bounded};
use crate::config::{Environment, resolve_path};

// Where systemd puts the credentials of a service.
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";

/// Resolves a path that is absolute, below the home folder, below systemd's credentials,
/// or relative to `folder`.
pub(super) fn resolve(
    written: &str,
    folder: &Path,
    environment: Environment<'_>,
) -> Result<PathBuf, String> {
    let rest = written
        .strip_prefix('$')
        .and_then(|rest| rest.strip_prefix(CREDENTIALS)?.strip_prefix('/'));
    match rest {
        Some(name) => environment(CREDENTIALS)
            .filter(|path| !path.is_empty())
            .map(|path| Path::new(&path).join(name))
            .ok_or_else(|| {
                format!(
                    "{CREDENTIALS} is not set; systemd sets it for a service with LoadCredential="
                )
            }),
        None if written.is_empty() => Err("names no file".to_owned()),
        None => Ok(resolve_path(Path::new(written), folder, environment)),
    }
}

// Opened without blocking, because a pipe without a writer, or a device, would hang.
pub(super) fn read(path: &Path) -> Result<String, String> {
    let about = |problem: &str| format!("{} {problem}", path.display());
    let failed = |error: std::io::Error| about(&format!("cannot be read: {error}"));
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)
        .map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err(about("is not a file"));
    }
    if found.len() > MAX_SECRET_BYTES as u64 {
        return Err(about(&format!(
            "is larger than {} KiB",
            MAX_SECRET_BYTES >> 10
        )));
    }
    let bytes = read_bounded(file).map_err(failed)?;
    parse_secret(bytes).map_err(|problem| about(&problem))
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn a_path_starts_from_the_folder_home_or_the_credentials() {
        let environment = |name: &str| match name {
            "HOME" => Some("/home/ada".to_owned()),
            "CREDENTIALS_DIRECTORY" => Some("/run/credentials/t".to_owned()),
            _ => None,
        };
        for (written, expected) in [
            ("/etc/key", "/etc/key"),
            ("key", "/f/key"),
            ("~/key", "/home/ada/key"),
            ("$CREDENTIALS_DIRECTORY/key", "/run/credentials/t/key"),
            ("$OTHER/key", "/f/$OTHER/key"),
        ] {
            let found = resolve(written, Path::new("/f"), &environment).unwrap();
            assert_eq!(found, Path::new(expected), "{written}");
        }
        let error = resolve("$CREDENTIALS_DIRECTORY/k", Path::new("/f"), &|_| None).unwrap_err();
        assert!(error.contains("LoadCredential="), "{error}");
        assert!(resolve("", Path::new("/f"), &|_| None).is_err());
    }

    #[test]
    fn only_short_text_in_a_regular_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        mknodat(CWD, path("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        std::fs::create_dir(path("folder")).unwrap();
        for (name, bytes, expected) in [
            ("plain", &b"s3cret"[..], Ok("s3cret")),
            ("line", b"s3cret\n", Ok("s3cret")),
            ("lines", b" s3cret\n\n", Ok(" s3cret\n")),
            (
                "largest",
                &[b'x'; MAX_SECRET_BYTES],
                Ok(&*"x".repeat(MAX_SECRET_BYTES)),
            ),
            ("empty", b"", Err("is empty")),
            ("newline", b"\n", Err("is empty")),
            ("zero", b"a\0b", Err("contains a zero byte")),
            ("latin1", b"caf\xe9", Err("is not UTF-8")),
            (
                "large",
                &[b'x'; MAX_SECRET_BYTES + 1],
                Err("is larger than 64 KiB"),
            ),
        ] {
            std::fs::write(path(name), bytes).unwrap();
            let expected = expected
                .map(str::to_owned)
                .map_err(|problem| format!("{} {problem}", path(name).display()));
            assert_eq!(read(&path(name)), expected, "{name}");
        }
        for (path, expected) in [
            (path("fifo"), "is not a file"),
            (path("folder"), "is not a file"),
            ("/dev/zero".into(), "is not a file"),
            (path("nowhere"), "cannot be read: No such file"),
        ] {
            let error = read(&path).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
