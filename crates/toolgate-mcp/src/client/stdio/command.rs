//! From a configured command to a file that can be started, or a sentence that says why there is none.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use toolgate_core::escape;

use crate::Program;

/// Why a server could not be started: a sentence for a person, with what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct StartError(pub(crate) String);

#[derive(Debug, PartialEq)]
pub(super) struct Found {
    pub(super) file: PathBuf,
    pub(super) cwd: PathBuf,
}

/// Finds the program: a plain name on `path`, anything with a slash from the folder it will run in, as a shell there would.
pub(super) fn find(program: &Program, path: &OsStr) -> Result<Found, StartError> {
    if program.command.is_empty() {
        return Err(StartError(
            "no command is given: set 'command' to the program that is the server".to_owned(),
        ));
    }
    let cwd = folder(program)?;
    let file = if program.command.contains('/') {
        given(&cwd.join(&program.command))?
    } else {
        on_path(&program.command, path, &cwd)?
    };
    Ok(Found { file, cwd })
}

fn folder(program: &Program) -> Result<PathBuf, StartError> {
    let cwd = program.cwd.as_deref().unwrap_or(Path::new("."));
    let cwd = std::path::absolute(cwd).unwrap_or_else(|_| cwd.to_owned());
    if cwd.is_dir() {
        return Ok(cwd);
    }
    let problem = match cwd.try_exists() {
        Ok(true) => "is no folder",
        Ok(false) => "does not exist",
        Err(_) => "cannot be opened",
    };
    Err(StartError(format!(
        "command '{}' cannot run in {}, which {problem}: correct 'cwd'",
        program.command,
        cwd.display()
    )))
}

fn given(file: &Path) -> Result<PathBuf, StartError> {
    match standing(file) {
        Standing::Executable => Ok(file.to_owned()),
        Standing::NotExecutable => Err(not_executable(file)),
        Standing::Absent => Err(StartError(format!(
            "command {} does not exist: correct 'command', or install it",
            file.display()
        ))),
    }
}

fn on_path(command: &str, path: &OsStr, cwd: &Path) -> Result<PathBuf, StartError> {
    let mut refused = None;
    for folder in std::env::split_paths(path) {
        let file = cwd.join(folder).join(command);
        match standing(&file) {
            Standing::Executable => return Ok(file),
            Standing::NotExecutable => refused = refused.or(Some(file)),
            Standing::Absent => {}
        }
    }
    Err(match refused {
        Some(file) => not_executable(&file),
        None => StartError(format!(
            "command '{command}' was not found on the PATH: install it, or give its full path as 'command' (the PATH is {})",
            folders(path)
        )),
    })
}

/// One by one: a PATH is a single long word, which a terminal would break anywhere.
fn folders(path: &OsStr) -> String {
    let folders = std::env::split_paths(path).map(|folder| folder.display().to_string());
    folders.collect::<Vec<_>>().join(", ")
}

enum Standing {
    Executable,
    NotExecutable,
    Absent,
}

fn standing(file: &Path) -> Standing {
    match file.metadata() {
        Ok(data) if data.is_file() && data.permissions().mode() & 0o111 != 0 => {
            Standing::Executable
        }
        Ok(data) if data.is_file() => Standing::NotExecutable,
        _ => Standing::Absent,
    }
}

fn not_executable(file: &Path) -> StartError {
    let file = file.display();
    StartError(format!(
        "command {file} is not executable: run `chmod +x {file}`"
    ))
}

pub(super) fn refused(file: &Path, path: &OsStr, error: &io::Error) -> StartError {
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
    StartError(format!(
        "command {name} cannot be started: {reason} ({error}) (the PATH is {})",
        folders(path)
    ))
}

fn interpreter(file: &Path) -> Option<String> {
    let line = first_line(file)?;
    Some(escape(line.split_whitespace().next()?))
}

/// What stands behind the `#!` of a script.
pub(super) fn first_line(file: &Path) -> Option<String> {
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

    fn program(command: &str, cwd: Option<&Path>) -> Program {
        Program {
            command: command.to_owned(),
            cwd: cwd.map(Path::to_owned),
            ..Program::default()
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
            let found = find(&program(command, Some(home.path())), path).unwrap();
            assert!(found.file.ends_with("bin/tool"), "{command} {path:?}");
            assert_eq!(found.cwd, home.path());
            assert_eq!(
                found.file.canonicalize().unwrap(),
                tool.canonicalize().unwrap()
            );
        }
    }

    #[test]
    fn whatever_is_wrong_with_a_command_is_said_with_what_to_do() {
        let home = tempfile::tempdir().unwrap();
        let plain = script(home.path(), "plain", "", 0o644);
        let nowhere = home.path().join("nowhere");
        let path = home.path().as_os_str();
        for (program, expected) in [
            (
                program("", None),
                "no command is given: set 'command' to the program that is the server".to_owned(),
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
                    "command 'x' cannot run in {}, which is no folder: correct 'cwd'",
                    plain.display()
                ),
            ),
        ] {
            assert_eq!(find(&program, path), Err(StartError(expected)));
        }
    }

    #[test]
    fn folders_of_the_path_are_words_of_their_own() {
        let error = find(&program("absent", None), OsStr::new("/a b:/nowhere:/c"));
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
            let text = refused(&file, OsStr::new("/bin"), &error).to_string();
            assert!(
                text.contains(expected) && text.contains("the PATH is /bin"),
                "{text}"
            );
        }
    }
}
