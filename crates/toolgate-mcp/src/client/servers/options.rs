//! Options shared by all servers of a program.

use std::path::PathBuf;
use std::sync::Arc;

use toolgate_core::Redactor;

use super::super::catalog::ToolCatalog;
use super::super::health::ServerHealthHandler;
use super::super::questions::ElicitationHandler;
use super::super::sampling::SamplingHandler;
use super::super::stdio::MAX_MESSAGE;
use super::super::stdio::sandbox::SandboxLauncher;
use super::super::stdio::watcher::ServerWatcher;
use crate::{RetryPolicy, SoleClientLog};

/// Options that apply to all [`Servers`](crate::Servers), in addition to the settings of each.
#[derive(Clone)]
#[non_exhaustive]
pub struct ServersOptions {
    pub retry: RetryPolicy,
    /// Removes secrets from server output.
    pub redactor: Redactor,
    /// The configuration file, as named in messages to people.
    pub file: Option<PathBuf>,
    /// Ends child processes if this process dies.
    pub watcher: ServerWatcher,
    /// Confines servers that have a sandbox. Without a launcher they aren't started.
    pub launcher: SandboxLauncher,
    /// Puts questions of servers to a person. Without it, they are declined.
    pub elicitation_handler: Option<Arc<dyn ElicitationHandler>>,
    /// Answers requests of servers that may use the model. Without it, they are refused.
    pub sampling_handler: Option<Arc<dyn SamplingHandler>>,
    /// Tells servers that their questions can be answered, because clients that call their tools
    /// may be able to.
    pub relays_questions: bool,
    /// Takes what servers log outside of calls. Without it, nobody gets that.
    pub sole_client_log: Option<SoleClientLog>,
    /// Folders returned to servers that ask for roots.
    pub roots: Vec<PathBuf>,
    /// Largest message accepted from a server, in bytes.
    pub max_message: usize,
    /// Receives the servers, for the service `server_health`.
    pub health: ServerHealthHandler,
    /// Remembers tools between runs.
    pub catalog: ToolCatalog,
    /// If true, a server starts only once it is needed: one of its tools is called, a name is
    /// looked up that no server is known to have, or [`start_all`](crate::Servers::start_all) or
    /// [`start_servers_without_tools`](crate::Servers::start_servers_without_tools) is called. If false, all start at once.
    pub on_demand: bool,
}

impl ServersOptions {
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
            watcher: ServerWatcher::none(),
            launcher: SandboxLauncher::none(),
            elicitation_handler: None,
            sampling_handler: None,
            relays_questions: false,
            sole_client_log: None,
            roots: Vec::new(),
            max_message: MAX_MESSAGE,
            health: ServerHealthHandler::default(),
            catalog: ToolCatalog::default(),
            on_demand: false,
        }
    }
}
