//! What a call's caller says about extensions of MCP.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::CallContext;
use crate::ExtensionListener;

impl CallContext {
    /// The extensions of MCP that the caller declares; `None` for a caller that doesn't speak MCP.
    pub fn extensions(&self) -> Option<&Map<String, Value>> {
        self.0.extensions.as_deref()
    }

    /// Takes notifications of extensions for the caller; `None` if it gets none.
    pub fn extension_listener(&self) -> Option<&Arc<dyn ExtensionListener>> {
        self.0.extension_listener.as_ref()
    }
}
