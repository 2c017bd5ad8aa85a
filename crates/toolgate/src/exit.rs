//! How the program ends.

use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

use crate::say;

/// The exit codes there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All went well.
    Success,
    /// The tool failed, or a check did.
    Failure,
    /// The command line or the configuration is wrong.
    Usage,
    /// Ctrl-C.
    Interrupted,
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failure => 1,
            Self::Usage => 2,
            Self::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Returns when the person, or whoever started the program, wants it to end: Ctrl-C, or a signal to terminate.
pub(crate) async fn interrupted() {
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminated() => {}
    }
}

/// Returns when whoever started the program wants it to end.
pub(crate) async fn terminated() {
    match signal(SignalKind::terminate()) {
        Ok(mut signal) => drop(signal.recv().await),
        Err(_) => std::future::pending().await,
    }
}

/// Help and version go to stdout and are a success; the rest is usage.
pub(crate) fn from_clap(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        say::line(error.render().ansi().to_string().trim_end());
        return Exit::Usage.into();
    }
    say::result(error.render().ansi().to_string().trim_end());
    Exit::Success.into()
}
