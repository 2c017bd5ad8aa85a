//! The program on the screen of a terminal.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::Instant;

use crate::llm::HANG;

/// Columns and rows.
const USUAL: (usize, usize) = (80, 30);

/// The program in a terminal of its own.
pub(crate) struct TmuxTerminal {
    folder: TempDir,
}

impl TmuxTerminal {
    /// Runs the program with a command line in shell syntax, an environment variable and a
    /// configuration. `None` without tmux; a failure with `CI=true`.
    pub(crate) fn open(config: &str, variable: &str, command: &str) -> Option<Self> {
        Self::open_as("sh", config, variable, command, USUAL)
    }

    /// Like `open`, in a terminal of this size.
    pub(crate) fn open_sized(
        config: &str,
        variable: &str,
        command: &str,
        size: (usize, usize),
    ) -> Option<Self> {
        Self::open_as("sh", config, variable, command, size)
    }

    /// Like `open`, by a shell with job control, for Ctrl-Z.
    pub(crate) fn open_with_jobs(config: &str, variable: &str, command: &str) -> Option<Self> {
        Self::open_as("sh -m", config, variable, command, USUAL)
    }

    fn open_as(
        shell: &str,
        config: &str,
        variable: &str,
        command: &str,
        (columns, rows): (usize, usize),
    ) -> Option<Self> {
        if !thirdparty::has_programs(&["tmux"]) {
            return None;
        }
        let terminal = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        std::fs::write(terminal.home().join("toolgate.json"), config).unwrap();
        let command = terminal.command(variable, command);
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let size = ["-x", &columns, "-y", &rows];
        let session = [&["-f", "/dev/null", "new-session", "-d"][..], &size];
        let shell: Vec<&str> = shell.split(' ').collect();
        terminal.tmux(&[&session.concat()[..], &shell, &["-c", &command]].concat());
        Some(terminal)
    }

    /// Runs the program again in the same folder, on an empty screen.
    pub(crate) fn open_again(&self, variable: &str, command: &str) {
        let command = self.command(variable, command);
        self.tmux(&["respawn-pane", "-k", "sh", "-c", &command]);
    }

    /// The command of the terminal, which stays open when the program exits.
    fn command(&self, variable: &str, command: &str) -> String {
        let home = self.home().display();
        format!(
            "trap : INT; cd {home} && env -i HOME={home} PATH=/usr/bin:/bin TERM=$TERM LANG=C.UTF-8 TOOLGATE_CONFIG=toolgate.json {variable} {} {command}; echo left with $?; cat",
            env!("CARGO_BIN_EXE_toolgate"),
        )
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let socket = self.folder.path().join("tmux");
        let output = Command::new("tmux")
            .arg("-u")
            .arg("-S")
            .arg(socket)
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn resize(&self, columns: usize) {
        self.tmux(&["resize-window", "-x", &columns.to_string()]);
    }

    pub(crate) fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    pub(crate) fn line(&self, text: &str) {
        self.keys(&["-l", text]);
        self.keys(&["Enter"]);
    }

    pub(crate) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"]).trim_end().to_owned()
    }

    /// The screen with its colors.
    pub(crate) fn styled_screen(&self) -> String {
        self.tmux(&["capture-pane", "-e", "-p"])
            .trim_end()
            .to_owned()
    }

    /// Waits until the screen shows this text, and returns the screen.
    pub(crate) fn shows(&self, expected: &str) -> String {
        self.shows_what(expected, |screen| screen.contains(expected))
    }

    /// Waits until the screen ends with this text, which is the line being typed.
    pub(crate) fn ends_with(&self, expected: &str) -> String {
        self.shows_what(expected, |screen| screen.ends_with(expected))
    }

    /// Like `shows`, for a text that may be wrapped.
    pub(crate) fn shows_folded(&self, expected: &str) -> String {
        let letters = |text: &str| text.split_whitespace().collect::<String>();
        self.shows_what(expected, |screen| {
            letters(screen).contains(&letters(expected))
        })
    }

    fn shows_what(&self, expected: &str, is_there: impl Fn(&str) -> bool) -> String {
        let started = Instant::now();
        loop {
            let screen = self.screen();
            if is_there(&screen) {
                return screen;
            }
            assert!(
                started.elapsed() < HANG,
                "'{expected}' does not come:\n{screen}"
            );
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    pub(crate) fn home(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for TmuxTerminal {
    fn drop(&mut self) {
        let socket = self.folder.path().join("tmux");
        // It ends by itself with the program.
        drop(
            Command::new("tmux")
                .arg("-S")
                .arg(socket)
                .arg("kill-server")
                .output(),
        );
    }
}
