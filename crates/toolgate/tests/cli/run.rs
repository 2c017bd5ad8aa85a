//! Runs the program in its own folder, isolated from the user of this machine.

use std::io::Write;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// One run of the program, written like its command line.
pub(crate) struct ProgramRun {
    folder: TempDir,
    command: Command,
    stdin: Vec<u8>,
}

/// The output and exit code of a run.
pub(crate) struct RunOutput {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: Option<i32>,
}

impl ProgramRun {
    pub(crate) fn new<const N: usize>(arguments: [&str; N]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate"));
        command
            .args(arguments)
            .current_dir(folder.path())
            .env_clear();
        command
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", folder.path());
        Self {
            folder,
            command,
            stdin: Vec::new(),
        }
    }

    /// Its home folder.
    pub(crate) fn home(&self) -> std::path::PathBuf {
        let mut variables = self.command.get_envs();
        let home = variables.find(|(name, _)| *name == "HOME");
        home.and_then(|(_, home)| home).unwrap().into()
    }

    /// Adds arguments.
    pub(crate) fn args(mut self, arguments: &[&str]) -> Self {
        self.command.args(arguments);
        self
    }

    /// A path in the folder.
    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// Puts a file into the folder before the program starts.
    pub(crate) fn file(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    /// The user's own configuration. A file that is only in the working folder
    /// isn't used: see `untrusted`.
    pub(crate) fn config(self, text: &str) -> Self {
        let named = self.file("toolgate.json", text);
        named.env("TOOLGATE_CONFIG", "toolgate.json")
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Starts the program with its input closed, and leaves it running.
    pub(crate) fn start(self) -> (Child, TempDir) {
        let (mut child, folder) = self.start_open();
        drop(child.stdin.take());
        (child, folder)
    }

    /// Starts the program with its input open, and leaves it running.
    pub(crate) fn start_open(mut self) -> (Child, TempDir) {
        self.command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = self.command.spawn().unwrap();
        let stdin = child.stdin.as_mut().unwrap();
        // A program that doesn't read its input may have ended already.
        drop(stdin.write_all(&self.stdin));
        (child, self.folder)
    }

    pub(crate) fn done(self) -> RunOutput {
        let (child, _folder) = self.start();
        child.wait_with_output().unwrap().into()
    }

    /// Like `done`, in an existing folder, for several commands in a row.
    pub(crate) fn within(mut self, folder: &std::path::Path) -> Self {
        self.command.current_dir(folder).env("HOME", folder);
        self
    }

    /// Runs it and reads stdout as JSON, whatever the exit code.
    pub(crate) fn json(self) -> Value {
        self.done().json()
    }
}

impl RunOutput {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl std::fmt::Debug for RunOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "exit {:?}\nstdout: {}\nstderr: {}",
            self.code, self.stdout, self.stderr
        )
    }
}

impl From<Output> for RunOutput {
    fn from(output: Output) -> Self {
        Self {
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code(),
        }
    }
}
