//! [`ExtensionListener`]: takes what servers send a caller by notifications of extensions of MCP.

use std::sync::Arc;

use serde_json::Value;

use crate::ClientId;

/// Takes the notifications of extensions for one caller.
pub trait ExtensionListener: Send + Sync {
    /// Who gets them. Listeners of the same client reach the same program.
    fn client(&self) -> ClientId;

    /// Takes a notification, and must not block. Returns false if it was dropped, because
    /// too many are waiting.
    fn notify(&self, notification: ExtensionNotification) -> bool;

    /// Takes notifications that are about no call, for as long as the caller keeps it. `None` if
    /// the caller gets none.
    fn outside_calls(&self) -> Option<Arc<dyn ExtensionListener>>;
}

/// A notification that an extension of MCP defines. It is untrusted.
#[derive(Debug, Clone, PartialEq)]
pub struct ExtensionNotification {
    /// The server's name in the configuration.
    pub server: String,
    pub method: String,
    pub params: Value,
}
