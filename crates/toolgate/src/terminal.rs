//! Changes the modes of the terminal, such as the echo, and restores them.

use std::convert::Infallible;
use std::fs::File;
use std::io::{IsTerminal, Stdin};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{LazyLock, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Signal, getpgrp, kill_current_process_group};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

use crate::spinner;

static ECHO_STATE: Mutex<EchoState> = Mutex::new(EchoState {
    shown: 0,
    hidden: 0,
    original: None,
});

static STDIN: LazyLock<Stdin> = LazyLock::new(std::io::stdin);
// The terminal itself, if stdin carries something else.
static TTY: OnceLock<File> = OnceLock::new();

pub(crate) fn keyboard() -> BorrowedFd<'static> {
    tty().map_or_else(|| STDIN.as_fd(), File::as_fd)
}

pub(crate) fn tty() -> Option<&'static File> {
    TTY.get()
}

/// Reads keys from the terminal itself from now on, because stdin carries something else. Does
/// nothing unless stderr is a terminal, where the questions appear.
pub(crate) fn read_keys_from_tty() {
    if std::io::stderr().is_terminal()
        && let Ok(tty) = File::open("/dev/tty")
    {
        TTY.get_or_init(|| tty);
    }
}

pub(crate) fn can_ask() -> bool {
    keyboard().is_terminal() && std::io::stderr().is_terminal()
}

pub(crate) struct TerminalGuard(Option<Termios>);

impl TerminalGuard {
    pub(crate) fn save_modes() -> Self {
        Self(tcgetattr(keyboard()).ok())
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        if let Some(found) = &self.0 {
            set_attributes(found);
        }
    }
}

/// A request that what is typed be shown, or hidden, until this is dropped. Requests may come and
/// go in any order. While any of them wants it shown, it is.
pub(crate) struct EchoRequest {
    shown: bool,
}

impl EchoRequest {
    pub(crate) fn shown() -> Self {
        Self::request(true)
    }

    pub(crate) fn hidden() -> Self {
        Self::request(false)
    }

    fn request(shown: bool) -> Self {
        let mut requests = ECHO_STATE.lock();
        *requests.count(shown) += 1;
        requests.apply();
        Self { shown }
    }
}

impl Drop for EchoRequest {
    fn drop(&mut self) {
        let mut requests = ECHO_STATE.lock();
        let count = requests.count(self.shown);
        *count = count.saturating_sub(1);
        requests.apply();
    }
}

/// All requests about the echo. Ctrl-C and Ctrl-Z keep their meaning.
struct EchoState {
    shown: usize,
    hidden: usize,
    original: Option<LocalModes>,
}

impl EchoState {
    fn count(&mut self, shown: bool) -> &mut usize {
        match shown {
            true => &mut self.shown,
            false => &mut self.hidden,
        }
    }

    fn apply(&mut self) {
        const ECHO: LocalModes = LocalModes::ECHO.union(LocalModes::ECHONL);
        let Ok(mut modes) = tcgetattr(keyboard()) else {
            return;
        };
        let is = modes.local_modes & ECHO;
        let found = *self.original.get_or_insert(is);
        let wanted = match (self.shown, self.hidden) {
            (0, 0) => self.original.take().unwrap_or(found),
            (0, _) => LocalModes::empty(),
            _ => found | LocalModes::ECHO,
        };
        // A process that changes it from the background would be stopped.
        if wanted != is && is_foreground() {
            modes.local_modes = (modes.local_modes - ECHO) | wanted;
            set_attributes(&modes);
        }
    }
}

pub(crate) fn restore() {
    let mut requests = ECHO_STATE.lock();
    (requests.shown, requests.hidden) = (0, 0);
    requests.apply();
}

/// Hides typing again whenever the program resumes after Ctrl-Z: the shell has turned the echo on,
/// and what was drawn is no longer at the end. An editor has the terminal to itself.
pub(crate) async fn keep_echo_hidden() -> Infallible {
    if let Ok(mut continued) = continue_signal() {
        while continued.recv().await.is_some() {
            spinner::forget_drawn();
            let mut requests = ECHO_STATE.lock();
            if requests.shown == 0 && requests.hidden > 0 {
                requests.apply();
            }
        }
    }
    std::future::pending().await
}

/// Suspends the program and everything it has started, as Ctrl-Z does, and returns when it resumes.
pub(crate) fn suspend(runtime: &Handle) {
    // Without a shell that could resume it, nothing stops.
    const STOP_TIMEOUT: Duration = Duration::from_secs(1);
    runtime.block_on(async {
        let Ok(mut continued) = continue_signal() else {
            return;
        };
        if kill_current_process_group(Signal::TSTP).is_ok() {
            let _nobody_stopped = timeout(STOP_TIMEOUT, continued.recv()).await;
        }
    });
}

fn continue_signal() -> std::io::Result<tokio::signal::unix::Signal> {
    signal(SignalKind::from_raw(Signal::CONT.as_raw()))
}

fn set_attributes(wanted: &Termios) {
    // Fails only if the terminal is gone.
    let _gone = tcsetattr(keyboard(), OptionalActions::Now, wanted);
}

/// True in the foreground. A program in the background would be stopped if it read the terminal.
pub(crate) fn is_foreground() -> bool {
    keyboard().is_terminal() && tcgetpgrp(keyboard()).is_ok_and(|group| group == getpgrp())
}
