//! What the servers of one program have in common.

use std::path::PathBuf;
use std::sync::Arc;

use toolgate_core::Redactor;

use super::super::catalogue::Catalogue;
use super::super::health::ServerHealth;
use super::super::questions::Elicitor;
use super::super::stdio::MAX_MESSAGE;
use super::super::stdio::guard::Guard;
use super::super::stdio::sandbox::Launcher;
use crate::RetryPolicy;

/// What all servers have in common.
#[derive(Clone)]
#[non_exhaustive]
pub struct ServersOptions {
    /// When a server that does not connect is tried again.
    pub retry: RetryPolicy,
    /// Takes secrets out of what servers say.
    pub redactor: Redactor,
    /// Where the servers are configured, for a person to look.
    pub file: Option<PathBuf>,
    /// Ends the servers if this program is killed.
    pub guard: Guard,
    /// Confines servers that have a sandbox; without one they aren't started.
    pub launcher: Launcher,
    /// Answers what servers ask of a person; without one, such questions are declined.
    pub elicitor: Option<Arc<dyn Elicitor>>,
    /// Folders that servers may ask for.
    pub roots: Vec<PathBuf>,
    /// The largest message that is read from a server, in bytes.
    pub max_message: usize,
    /// The service that reports on these servers.
    pub health: ServerHealth,
    /// Remembers what servers offered in earlier runs.
    pub catalogue: Catalogue,
    /// True starts a server only once it is needed: when one of its tools is called, when a name is
    /// looked up that no server is known to have, or when [`settled`](crate::Servers::settled) or
    /// [`start_unseen`](crate::Servers::start_unseen) asks for it. False starts all at once.
    pub on_demand: bool,
}

impl ServersOptions {
    /// The usual ones.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Default for ServersOptions {
    fn default() -> Self {
        Self {
            retry: RetryPolicy::default(),
            redactor: Redactor::default(),
            file: None,
            guard: Guard::none(),
            launcher: Launcher::none(),
            elicitor: None,
            roots: Vec::new(),
            max_message: MAX_MESSAGE,
            health: ServerHealth::default(),
            catalogue: Catalogue::default(),
            on_demand: false,
        }
    }
}
