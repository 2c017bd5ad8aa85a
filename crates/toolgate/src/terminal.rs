//! The terminal as it was found: whoever changes it gives it back.

use std::io::IsTerminal;

use rustix::process::getpgrp;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};

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
            let mut changed = found.clone();
            changed.local_modes.set(LocalModes::ECHO, wanted);
            set(&changed);
        }
        terminal
    }

    /// At once, where nothing is dropped any more.
    pub(crate) fn give_back(&self) {
        if let Some(found) = &self.0 {
            set(found);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.give_back();
    }
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
