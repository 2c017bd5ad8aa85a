//! Signals that end a command which serves.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Exit;

/// Ctrl-C and SIGTERM, listened to before anything is started that they should end in an orderly way.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// How to end, once told to.
    pub(crate) async fn told(&mut self) -> Exit {
        tokio::select! {
            _ = self.interrupt.recv() => Exit::Interrupted,
            _ = self.terminate.recv() => Exit::Success,
        }
    }
}
