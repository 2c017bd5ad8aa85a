//! [`ServerOffer`]: what the server said about itself in the handshake.

use serde_json::{Map, Value};

use crate::client::content::ContentCapabilities;
use crate::client::tasks::TaskOffer;
use crate::extensions::passed_to_clients;

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
    /// Takes it from the result of `initialize` or `server/discover`.
    pub(super) fn from_handshake(result: &Value) -> Self {
        let capabilities = &result["capabilities"];
        Self {
            capabilities: ContentCapabilities::from_json(capabilities),
            extensions: passed_to_clients(capabilities),
            instructions: result["instructions"].as_str().map(str::to_owned),
            logging: capabilities["logging"].is_object(),
            tasks: TaskOffer::from_json(capabilities),
        }
    }
}
