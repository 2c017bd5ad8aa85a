//! Checks who can write a configuration file. The file decides which programs run and where keys
//! are sent, so one that other users can write isn't used, even if `--config` names it.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::ConfigError;
use crate::command_words::quote_word;

const GROUP_MAY_WRITE: u32 = 0o020;
const EVERYBODY_MAY_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;
const ROOT: u32 = 0;

/// Fails if a user other than this one and root could have written the file. The error names the
/// command that fixes that.
pub(crate) fn check(path: &Path, found: &Metadata) -> Result<(), ConfigError> {
    let own = rustix::process::geteuid().as_raw();
    let refused = |text: &str| {
        let text = format!("is not read: {text}");
        Err(ConfigError::file(path, text))
    };
    let shown = quote_word(&path.to_string_lossy());
    if ![own, ROOT].contains(&found.uid()) {
        let owner = found.uid();
        return refused(&format!(
            "it belongs to another user (uid {owner}), who could make this program run anything; if you trust its contents: sudo chown {own} {shown}"
        ));
    }
    let by_group =
        found.mode() & GROUP_MAY_WRITE != 0 && !is_private_group(found.uid(), found.gid());
    if by_group || found.mode() & EVERYBODY_MAY_WRITE != 0 {
        return refused(&format!(
            "other users can write to it, and so make this program run anything; check its contents, then: chmod go-w {shown}"
        ));
    }
    match folders(path).into_iter().find(|folder| is_open(folder)) {
        Some(folder) => refused(&format!(
            "other users can replace it, because they can write to its folder; check its contents, then: chmod o-w {}",
            quote_word(&folder.to_string_lossy())
        )),
        None => Ok(()),
    }
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let found = [std::path::absolute(path), fs::canonicalize(path)];
    let found = found.iter().flatten().filter_map(|file| file.parent());
    found.map(Path::to_owned).collect()
}

/// True if everybody may replace files in the folder. That of a mounted Kubernetes ConfigMap has
/// mode 0777, but is read-only.
fn is_open(folder: &Path) -> bool {
    use rustix::fs::{StatVfsMountFlags, statvfs};
    let Ok(found) = fs::metadata(folder) else {
        return false;
    };
    let is_shared = found.mode() & (EVERYBODY_MAY_WRITE | STICKY) == EVERYBODY_MAY_WRITE;
    is_shared
        && !statvfs(folder).is_ok_and(|mount| mount.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// True if the group belongs to one user. Most distributions create such groups, with a umask of
/// 002 that makes files writable by the group.
fn is_private_group(owner: u32, group: u32) -> bool {
    let names_nobody_else = |text: String| {
        let mut lines = text.lines().map(|line| line.split(':').collect::<Vec<_>>());
        let number = group.to_string();
        !lines.any(|line| line.get(2) == Some(&number.as_str()) && line.get(3) != Some(&""))
    };
    owner == group && group != ROOT && fs::read_to_string("/etc/group").is_ok_and(names_nobody_else)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn files_writable_by_others_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("in");
        fs::create_dir(&inner).unwrap();
        let file = inner.join("t.json");
        fs::write(&file, "{}").unwrap();
        let shown = file.display();
        for (mode, folders_mode, expected) in [
            (0o600, 0o700, None),
            (0o644, 0o755, None),
            (0o644, 0o1777, None),
            (0o646, 0o755, Some(format!("then: chmod go-w {shown}"))),
            (
                0o644,
                0o777,
                Some(format!("then: chmod o-w {}", inner.display())),
            ),
        ] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            fs::set_permissions(&inner, fs::Permissions::from_mode(folders_mode)).unwrap();
            let found =
                check(&file, &fs::metadata(&file).unwrap()).map_err(|error| error.to_string());
            match expected {
                None => assert_eq!(found, Ok(()), "{mode:o} {folders_mode:o}"),
                Some(end) => assert!(
                    found.unwrap_err().ends_with(&end),
                    "{mode:o} {folders_mode:o}"
                ),
            }
        }
    }
}
