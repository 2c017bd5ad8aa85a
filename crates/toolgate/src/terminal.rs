//! The terminal as it was found: whoever changes it gives it back.

use std::convert::Infallible;
use std::fs::File;
use std::io::{IsTerminal, Stdin};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{LazyLock, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rustix::process::{Signal, getpgrp, kill_current_process_group};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

use crate::spinner;

static WISHES: Mutex<Wishes> = Mutex::new(Wishes {
    shown: 0,
    hidden: 0,
    found: None,
});

static STDIN: LazyLock<Stdin> = LazyLock::new(std::io::stdin);
/// The terminal itself, where stdin carries something else.
static TTY: OnceLock<File> = OnceLock::new();

pub(crate) fn keyboard() -> BorrowedFd<'static> {
    tty().map_or_else(|| STDIN.as_fd(), File::as_fd)
}

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

pub(crate) fn can_ask() -> bool {
    keyboard().is_terminal() && std::io::stderr().is_terminal()
}

/// Gives the terminal back as it was when this is dropped.
pub(crate) struct Terminal(Option<Termios>);

impl Terminal {
    pub(crate) fn remember() -> Self {
        Self(tcgetattr(keyboard()).ok())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(found) = &self.0 {
            set(found);
        }
    }
}

/// A wish that what is typed is shown, or is not, until this is dropped. Those who wish both may come and go in any order: it
/// is shown while anybody wants to see it.
pub(crate) struct Echo {
    shown: bool,
}

impl Echo {
    pub(crate) fn shown() -> Self {
        Self::wish(true)
    }

    pub(crate) fn hidden() -> Self {
        Self::wish(false)
    }

    fn wish(shown: bool) -> Self {
        let mut wishes = wishes();
        *wishes.count(shown) += 1;
        wishes.grant();
        Self { shown }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        let mut wishes = wishes();
        let count = wishes.count(self.shown);
        *count = count.saturating_sub(1);
        wishes.grant();
    }
}

/// What everybody wishes of the echo; Ctrl-C and Ctrl-Z stay what they are.
struct Wishes {
    shown: usize,
    hidden: usize,
    /// How it was found by the first who wished something.
    found: Option<LocalModes>,
}

impl Wishes {
    fn count(&mut self, shown: bool) -> &mut usize {
        match shown {
            true => &mut self.shown,
            false => &mut self.hidden,
        }
    }

    fn grant(&mut self) {
        const ECHO: LocalModes = LocalModes::ECHO.union(LocalModes::ECHONL);
        let Ok(mut modes) = tcgetattr(keyboard()) else {
            return;
        };
        let is = modes.local_modes & ECHO;
        let found = *self.found.get_or_insert(is);
        let wanted = match (self.shown, self.hidden) {
            (0, 0) => self.found.take().unwrap_or(found),
            (0, _) => LocalModes::empty(),
            _ => found | LocalModes::ECHO,
        };
        // Who changes it from the background would be stopped.
        if wanted != is && is_ours() {
            modes.local_modes = (modes.local_modes - ECHO) | wanted;
            set(&modes);
        }
    }
}

fn wishes() -> MutexGuard<'static, Wishes> {
    WISHES.lock()
}

/// Gives back what was changed, where nothing is dropped any more.
pub(crate) fn give_back() {
    let mut wishes = wishes();
    (wishes.shown, wishes.hidden) = (0, 0);
    wishes.grant();
}

/// Hides again what should be hidden, whenever the program goes on after Ctrl-Z: the shell has shown it meanwhile, and what was
/// drawn does not stand at the end any more. An editor has the terminal to itself.
pub(crate) async fn kept_hidden() -> Infallible {
    if let Ok(mut continued) = continued() {
        while continued.recv().await.is_some() {
            spinner::leave_drawn();
            let mut wishes = wishes();
            if wishes.shown == 0 && wishes.hidden > 0 {
                wishes.grant();
            }
        }
    }
    std::future::pending().await
}

/// Stops the program and everything that was started with it, as Ctrl-Z does, and returns when it goes on.
pub(crate) fn sleep(runtime: &Handle) {
    /// Where no shell could let it go on, nothing stops.
    const STOPPED_BY_THEN: Duration = Duration::from_secs(1);
    runtime.block_on(async {
        let Ok(mut continued) = continued() else {
            return;
        };
        if kill_current_process_group(Signal::TSTP).is_ok() {
            let _nobody_stopped = timeout(STOPPED_BY_THEN, continued.recv()).await;
        }
    });
}

fn continued() -> std::io::Result<tokio::signal::unix::Signal> {
    signal(SignalKind::from_raw(Signal::CONT.as_raw()))
}

fn set(wanted: &Termios) {
    // If it is gone, there is nothing to change.
    let _gone = tcsetattr(keyboard(), OptionalActions::Now, wanted);
}

/// True if what a person types comes here: a program in the background would be stopped if it read that.
pub(crate) fn is_ours() -> bool {
    keyboard().is_terminal() && tcgetpgrp(keyboard()).is_ok_and(|group| group == getpgrp())
}
