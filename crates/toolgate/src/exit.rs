//! Exit codes, and the signals that interrupt a command.

use std::fmt::Display;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::output;

// Set on SIGTERM, since its sender expects to see that in the exit code.
static TERMINATED: AtomicBool = AtomicBool::new(false);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Success,
    Failure,
    Usage,
    Interrupted,
}

impl Exit {
    pub(crate) fn success_if(is_success: bool) -> Self {
        match is_success {
            true => Self::Success,
            false => Self::Failure,
        }
    }

    pub(crate) fn failure(text: impl Display) -> Self {
        output::print_error_text(&text.to_string());
        Self::Failure
    }

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

pub(crate) async fn wait_for_interrupt() {
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminated() => {}
    }
}

pub(crate) async fn terminated() {
    match signal(SignalKind::terminate()) {
        Ok(mut signal) => wait_for_termination(&mut signal).await,
        Err(_) => std::future::pending().await,
    }
}

/// Waits for SIGTERM on a stream that was registered earlier, so that none is missed.
pub(crate) async fn wait_for_termination(signal: &mut Signal) {
    signal.recv().await;
    TERMINATED.store(true, Ordering::Relaxed);
}

pub(crate) fn from_clap(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        output::print_to_stderr(error.render().ansi().to_string().trim_end());
        return Exit::Usage.into();
    }
    output::print_result(error.render().ansi().to_string().trim_end());
    Exit::Success.into()
}
