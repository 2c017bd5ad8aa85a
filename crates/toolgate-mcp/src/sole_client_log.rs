//! [`SoleClientLog`]: receives log messages of servers that belong to no call. The client half of
//! this crate fills it, the server half empties it.

use std::sync::Arc;

use tokio::sync::watch;
use toolgate_core::{LogHandler, LogLevel};

/// The log of the only client that a process has. Nobody else can have caused what its servers
/// log, so this client also gets the messages that are about no call.
/// [`McpServer::sole_client_log`](crate::McpServer::sole_client_log) makes one.
#[derive(Clone)]
pub struct SoleClientLog {
    pub(crate) handler: Arc<dyn LogHandler>,
    /// The level that the client wants.
    pub(crate) levels: watch::Receiver<Option<LogLevel>>,
}
