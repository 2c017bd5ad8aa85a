//! The terminal as it was found: whoever changes it gives it back.

use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};

use rustix::process::getpgrp;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};

/// How it was found by the first who changed it, for whoever has to end the program at once.
static FOUND: Mutex<Option<Termios>> = Mutex::new(None);

/// Gives the terminal back as it was when this is dropped.
pub(crate) struct Terminal(Option<Termios>);

impl Terminal {
    pub(crate) fn remember() -> Self {
        Self(tcgetattr(std::io::stdin()).ok())
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
    let _gone = tcsetattr(std::io::stdin(), OptionalActions::Now, wanted);
}

/// True if what a person types comes here: a program in the background would be stopped if it read that.
pub(crate) fn is_ours() -> bool {
    let stdin = std::io::stdin();
    stdin.is_terminal() && tcgetpgrp(&stdin).is_ok_and(|group| group == getpgrp())
}
