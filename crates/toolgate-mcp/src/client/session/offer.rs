//! [`ServerOffer`]: what the server said about itself in the handshake.

use serde_json::{Map, Value};

use crate::client::content::ContentCapabilities;
use crate::client::tasks::TaskOffer;
use crate::extensions::forwarded_extensions;

#[derive(Debug, Clone, Default)]
pub(crate) struct ServerOffer {
    pub(crate) capabilities: ContentCapabilities,
    /// The extensions that clients may hear of, with the server's settings.
    pub(crate) extensions: Map<String, Value>,
    pub(crate) instructions: Option<String>,
    pub(crate) logging: bool,
    pub(crate) tasks: TaskOffer,
}

impl ServerOffer {
    /// Reads it from the result of `initialize` or `server/discover`.
    pub(super) fn from_handshake(result: &Value) -> Self {
        let capabilities = &result["capabilities"];
        Self {
            capabilities: ContentCapabilities::from_json(capabilities),
            extensions: forwarded_extensions(capabilities),
            instructions: result["instructions"].as_str().map(str::to_owned),
            logging: capabilities["logging"].is_object(),
            tasks: TaskOffer::from_json(capabilities),
        }
    }
}
