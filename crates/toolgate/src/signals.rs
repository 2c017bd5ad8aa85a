//! Signals that end a command which serves, or make it read its configuration again.

use std::io::IsTerminal;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Exit;

/// Ctrl-C and SIGTERM, listened to before anything is started that they should end in an orderly way; and SIGHUP, which ends
/// nothing unless it says that the terminal is gone; and SIGUSR1, which ends nothing.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    reload: Option<Signal>,
    new_link: Option<Signal>,
    has_terminal: bool,
}

impl Signals {
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

    /// SIGHUP as an order to read the configuration again, for whoever follows that first. None is missed that came since
    /// [`listen`](Self::listen).
    pub(crate) fn reload(&mut self) -> Option<Signal> {
        self.reload.take()
    }

    /// SIGUSR1 as an order to print a new link that signs a browser in, for whoever follows that first.
    pub(crate) fn new_link(&mut self) -> Option<Signal> {
        self.new_link.take()
    }

    /// How to end, once told to.
    pub(crate) async fn told(&mut self) -> Exit {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return Exit::Interrupted,
                _ = self.terminate.recv() => return Exit::Success,
                _ = self.hangup.recv() => {
                    // Whoever closes a window or a connection expects what runs in it to end.
                    if self.has_terminal && !is_on_terminal() {
                        return Exit::Success;
                    }
                }
            }
        }
    }
}

/// False once the terminal was closed: the system then knows it no longer.
fn is_on_terminal() -> bool {
    std::io::stdin().is_terminal() || std::io::stderr().is_terminal()
}
