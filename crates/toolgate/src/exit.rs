//! How the program ends.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::say;

/// A signal to terminate has come: whoever sent it wants to see that in the exit code.
static TERMINATED: AtomicBool = AtomicBool::new(false);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Success,
    Failure,
    Usage,
    Interrupted,
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failure => 1,
            Self::Usage => 2,
            Self::Interrupted if TERMINATED.load(Ordering::Relaxed) => 143,
            Self::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

pub(crate) async fn interrupted() {
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminated() => {}
    }
}

pub(crate) async fn terminated() {
    match signal(SignalKind::terminate()) {
        Ok(mut signal) => told(&mut signal).await,
        Err(_) => std::future::pending().await,
    }
}

/// The same for a signal that is listened to all the time, so that none is missed.
pub(crate) async fn told(signal: &mut Signal) {
    signal.recv().await;
    TERMINATED.store(true, Ordering::Relaxed);
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
