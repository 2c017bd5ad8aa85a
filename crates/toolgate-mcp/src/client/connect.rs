//! From settings to a connection that is ready for calls.

use std::time::Duration;

use futures::future::BoxFuture;

use super::transport::End;
use crate::{Era, ServerSettings};

/// A connection after its handshake.
pub(crate) struct Connection {}

/// Makes connections; a trait, so that supervision is tested without processes.
pub(crate) trait Connect: Send + Sync + 'static {
    /// One attempt, start and handshake and first listing together, within `patience`. A failed one leaves nothing behind.
    fn connect<'a>(
        &'a self,
        settings: &'a ServerSettings,
        patience: Duration,
    ) -> BoxFuture<'a, Result<Connection, ConnectError>>;
}

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct ConnectError {
    /// For a person, with what to do.
    pub(crate) reason: String,
    /// The tail of stderr, redacted.
    pub(crate) stderr: Vec<String>,
    /// Trying again will not help until something is changed: 401, 403, 404.
    pub(crate) hopeless: bool,
}

impl Connection {
    /// How the server is spoken to.
    pub(crate) fn era(&self) -> Era {
        Era::Legacy
    }

    /// Returns when the connection is over, however it ended.
    pub(crate) async fn ended(&self) -> End {
        std::future::pending().await
    }

    /// Returns when the server has said that its tools changed.
    pub(crate) async fn tools_changed(&self) {
        std::future::pending().await
    }

    /// Ends the connection in an orderly way.
    pub(crate) async fn close(&self) {}
}
