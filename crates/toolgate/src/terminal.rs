//! The terminal as it was found: whoever changes it gives it back.

use std::fs::File;
use std::io::{IsTerminal, Stdin};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

use rustix::process::getpgrp;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};

/// How it was found by the first who changed it, for whoever has to end the program at once.
static FOUND: Mutex<Option<Termios>> = Mutex::new(None);

static STDIN: LazyLock<Stdin> = LazyLock::new(std::io::stdin);
/// The terminal itself, where stdin carries something else.
static TTY: OnceLock<File> = OnceLock::new();

/// Where a person types.
pub(crate) fn keyboard() -> BorrowedFd<'static> {
    tty().map_or_else(|| STDIN.as_fd(), File::as_fd)
}

/// The terminal, if that is not stdin.
pub(crate) fn tty() -> Option<&'static File> {
    TTY.get()
}

/// What a person types comes from the terminal itself from now on, since stdin carries something else. Whoever does not look
/// at the terminal types nothing.
pub(crate) fn leave_stdin() {
    if std::io::stderr().is_terminal()
        && let Ok(tty) = File::open("/dev/tty")
    {
        TTY.get_or_init(|| tty);
    }
}

/// True if a person can be asked something, and can answer.
pub(crate) fn can_ask() -> bool {
    keyboard().is_terminal() && std::io::stderr().is_terminal()
}

/// Gives the terminal back as it was when this is dropped.
pub(crate) struct Terminal(Option<Termios>);

impl Terminal {
    pub(crate) fn remember() -> Self {
        Self(tcgetattr(keyboard()).ok())
    }

    /// Shows what is typed, or does not.
    pub(crate) fn echoing(wanted: bool) -> Self {
        let terminal = Self::remember();
        if let Some(found) = &terminal.0
            && found.local_modes.contains(LocalModes::ECHO) != wanted
        {
            first_found().get_or_insert_with(|| found.clone());
            let mut changed = found.clone();
            changed.local_modes.set(LocalModes::ECHO, wanted);
            set(&changed);
        }
        terminal
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(found) = &self.0 {
            set(found);
        }
    }
}

/// Gives back what was changed, where nothing is dropped any more.
pub(crate) fn give_back() {
    if let Some(found) = first_found().take() {
        set(&found);
    }
}

fn first_found() -> std::sync::MutexGuard<'static, Option<Termios>> {
    FOUND.lock().unwrap_or_else(PoisonError::into_inner)
}

fn set(wanted: &Termios) {
    // If it is gone, there is nothing to change.
    let _gone = tcsetattr(keyboard(), OptionalActions::Now, wanted);
}

/// True if what a person types comes here: a program in the background would be stopped if it read that.
pub(crate) fn is_ours() -> bool {
    keyboard().is_terminal() && tcgetpgrp(keyboard()).is_ok_and(|group| group == getpgrp())
}
