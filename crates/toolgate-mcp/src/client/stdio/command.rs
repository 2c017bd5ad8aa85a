//! Resolves a configured command to an executable file, or explains why there is none.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use toolgate_core::text::escape;

use crate::ServerProgram;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ServerStartError(pub(crate) String);

#[derive(Debug, PartialEq)]
pub(super) struct ResolvedProgram {
    pub(super) file: PathBuf,
    pub(super) cwd: PathBuf,
}

/// Resolves the command as a shell in the server's folder would: a name without a slash is looked
/// up on `path`, any other is relative to that folder.
pub(super) fn resolve(
    program: &ServerProgram,
    path: &OsStr,
) -> Result<ResolvedProgram, ServerStartError> {
    if program.command.is_empty() {
        return Err(ServerStartError(
            "no command is given: set 'command' to the server's program".to_owned(),
        ));
    }
    let cwd = working_folder(program)?;
    let file = if program.command.contains('/') {
        check_explicit_path(&cwd.join(&program.command))?
    } else {
        find_on_path(&program.command, path, &cwd)?
    };
    Ok(ResolvedProgram { file, cwd })
}

fn working_folder(program: &ServerProgram) -> Result<PathBuf, ServerStartError> {
    let cwd = program.cwd.as_deref().unwrap_or(Path::new("."));
    let cwd = std::path::absolute(cwd).unwrap_or_else(|_| cwd.to_owned());
    if cwd.is_dir() {
        return Ok(cwd);
    }
    let problem = match cwd.try_exists() {
        Ok(true) => "is not a folder",
        Ok(false) => "does not exist",
        Err(_) => "cannot be opened",
    };
    Err(ServerStartError(format!(
        "command '{}' cannot run in {}, which {problem}: correct 'cwd'",
        program.command,
        cwd.display()
    )))
}

fn check_explicit_path(file: &Path) -> Result<PathBuf, ServerStartError> {
    match file_status(file) {
        FileStatus::Executable => Ok(file.to_owned()),
        FileStatus::NotExecutable => Err(not_executable_error(file)),
        FileStatus::Absent => Err(ServerStartError(format!(
            "command {} does not exist: correct 'command', or install it",
            file.display()
        ))),
    }
}

fn find_on_path(command: &str, path: &OsStr, cwd: &Path) -> Result<PathBuf, ServerStartError> {
    let mut not_executable_file = None;
    for folder in std::env::split_paths(path) {
        let file = cwd.join(folder).join(command);
        match file_status(&file) {
            FileStatus::Executable => return Ok(file),
            FileStatus::NotExecutable => not_executable_file = not_executable_file.or(Some(file)),
            FileStatus::Absent => {}
        }
    }
    Err(match not_executable_file {
        Some(file) => not_executable_error(&file),
        None => ServerStartError(format!(
            "command '{command}' was not found on the PATH: install it, or give its full path as 'command' (the PATH is {})",
            path_folders_text(path)
        )),
    })
}

// Separates the folders by commas, so that a terminal can wrap the text between them.
fn path_folders_text(path: &OsStr) -> String {
    let folders = std::env::split_paths(path).map(|folder| folder.display().to_string());
    folders.collect::<Vec<_>>().join(", ")
}

enum FileStatus {
    Executable,
    NotExecutable,
    Absent,
}

fn file_status(file: &Path) -> FileStatus {
    match file.metadata() {
        Ok(data) if data.is_file() && data.permissions().mode() & 0o111 != 0 => {
            FileStatus::Executable
        }
        Ok(data) if data.is_file() => FileStatus::NotExecutable,
        _ => FileStatus::Absent,
    }
}

fn not_executable_error(file: &Path) -> ServerStartError {
    let file = file.display();
    ServerStartError(format!(
        "command {file} is not executable: run `chmod +x {file}`"
    ))
}

/// Explains why an existing file could not be started.
pub(super) fn spawn_error(file: &Path, path: &OsStr, error: &io::Error) -> ServerStartError {
    let name = file.display();
    let reason = match (error.kind(), interpreter(file)) {
        (io::ErrorKind::NotFound, Some(interpreter)) => format!(
            "its first line asks for {interpreter}, which does not exist: install that, or correct the line"
        ),
        (io::ErrorKind::NotFound, None) => {
            "it needs a loader or a library that does not exist: install it for this system"
                .to_owned()
        }
        (io::ErrorKind::PermissionDenied, _) => {
            "this user may not run it: check the permissions of the file, of the folders above it and of 'cwd'"
                .to_owned()
        }
        (io::ErrorKind::ArgumentListTooLong, _) => {
            "its arguments and variables are too long together: shorten 'args' or 'env'".to_owned()
        }
        _ => "it is neither a program for this system nor a script that begins with '#!'".to_owned(),
    };
    ServerStartError(format!(
        "command {name} cannot be started: {reason} ({error}) (the PATH is {})",
        path_folders_text(path)
    ))
}

fn interpreter(file: &Path) -> Option<String> {
    let line = shebang_line(file)?;
    Some(escape(line.split_whitespace().next()?))
}

pub(super) fn shebang_line(file: &Path) -> Option<String> {
    // Linux doesn't read more of the line either.
    let mut head = [0; 256];
    let read = std::fs::File::open(file).ok()?.read(&mut head).ok()?;
    let line = head[..read].strip_prefix(b"#!")?;
    let line = line.split(|byte| *byte == b'\n').next()?;
    Some(String::from_utf8_lossy(line).into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn program(command: &str, cwd: Option<&Path>) -> ServerProgram {
        ServerProgram {
            command: command.to_owned(),
            cwd: cwd.map(Path::to_owned),
            ..ServerProgram::default()
        }
    }

    fn script(folder: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
        let file = folder.join(name);
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        file
    }

    #[test]
    fn a_command_is_found_on_the_path_of_the_server_or_from_its_folder() {
        let home = tempfile::tempdir().unwrap();
        let bin = home.path().join("bin");
        fs::create_dir(&bin).unwrap();
        script(home.path(), "plain", "", 0o644);
        let tool = script(&bin, "tool", "#!/bin/sh\n", 0o755);
        let path = std::env::join_paths([home.path(), &bin]).unwrap();
        for (command, path) in [
            ("tool", path.as_os_str()),
            ("tool", OsStr::new("bin")),
            ("bin/tool", OsStr::new("")),
            ("./bin/tool", OsStr::new("")),
        ] {
            let found = resolve(&program(command, Some(home.path())), path).unwrap();
            assert!(found.file.ends_with("bin/tool"), "{command} {path:?}");
            assert_eq!(found.cwd, home.path());
            assert_eq!(
                found.file.canonicalize().unwrap(),
                tool.canonicalize().unwrap()
            );
        }
    }

    #[test]
    fn command_errors_say_what_to_do() {
        let home = tempfile::tempdir().unwrap();
        let plain = script(home.path(), "plain", "", 0o644);
        let nowhere = home.path().join("nowhere");
        let path = home.path().as_os_str();
        for (program, expected) in [
            (
                program("", None),
                "no command is given: set 'command' to the server's program".to_owned(),
            ),
            (
                program("absent", None),
                format!(
                    "command 'absent' was not found on the PATH: install it, or give its full path as 'command' (the PATH is {})",
                    path.display()
                ),
            ),
            (
                program("plain", None),
                format!(
                    "command {0} is not executable: run `chmod +x {0}`",
                    plain.display()
                ),
            ),
            (
                program("/absent/x", None),
                "command /absent/x does not exist: correct 'command', or install it".to_owned(),
            ),
            (
                program("x", Some(&nowhere)),
                format!(
                    "command 'x' cannot run in {}, which does not exist: correct 'cwd'",
                    nowhere.display()
                ),
            ),
            (
                program("x", Some(&plain)),
                format!(
                    "command 'x' cannot run in {}, which is not a folder: correct 'cwd'",
                    plain.display()
                ),
            ),
        ] {
            assert_eq!(resolve(&program, path), Err(ServerStartError(expected)));
        }
    }

    #[test]
    fn folders_of_the_path_are_listed_with_commas() {
        let error = resolve(&program("absent", None), OsStr::new("/a b:/nowhere:/c"));
        let text = error.unwrap_err().to_string();
        assert!(text.ends_with("(the PATH is /a b, /nowhere, /c)"), "{text}");
    }

    #[test]
    fn a_broken_first_line_is_named() {
        let home = tempfile::tempdir().unwrap();
        let broken = script(home.path(), "broken", "#!/no/such/interpreter -x\n", 0o755);
        let nothing = script(home.path(), "nothing", "hello\n", 0o755);
        for (file, expected) in [
            (
                broken,
                "its first line asks for /no/such/interpreter, which does not exist",
            ),
            (
                nothing,
                "it is neither a program for this system nor a script that begins with '#!'",
            ),
        ] {
            let error = std::process::Command::new(&file).spawn().unwrap_err();
            let text = spawn_error(&file, OsStr::new("/bin"), &error).to_string();
            assert!(
                text.contains(expected) && text.contains("the PATH is /bin"),
                "{text}"
            );
        }
    }
}
