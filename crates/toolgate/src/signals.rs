//! Signals that stop a serving command, or make it reload.

use std::io::IsTerminal;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Exit;

/// Registered before anything starts that a signal should stop in an orderly way. SIGHUP stops the
/// command only if its terminal is gone, SIGUSR1 never does.
pub(crate) struct CommandSignals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    /// SIGHUP as a request to reload, to be taken once.
    pub(crate) reload: Option<Signal>,
    /// SIGUSR1 as a request for a new sign-in link, to be taken once.
    pub(crate) new_link: Option<Signal>,
    has_terminal: bool,
}

impl CommandSignals {
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            reload: Some(signal(SignalKind::hangup())?),
            new_link: Some(signal(SignalKind::user_defined1())?),
            has_terminal: is_on_terminal(),
        })
    }

    pub(crate) async fn shutdown_requested(&mut self) -> Exit {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return Exit::Interrupted,
                _ = self.terminate.recv() => return Exit::Success,
                _ = self.hangup.recv() => {
                    // A person who closes a window or a connection expects what runs in it to end.
                    if self.has_terminal && !is_on_terminal() {
                        return Exit::Success;
                    }
                }
            }
        }
    }
}

fn is_on_terminal() -> bool {
    std::io::stdin().is_terminal() || std::io::stderr().is_terminal()
}
