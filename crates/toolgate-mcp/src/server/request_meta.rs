//! [`RequestMeta`]: what a client says about itself and its request, in `_meta`.

use serde::Deserialize;
use serde_json::{Map, Value};
use toolgate_core::LogLevel;

use super::client_log::parse_level;
use super::jsonrpc::{RequestError, RequestId};

#[derive(Debug, Default)]
pub(super) struct RequestMeta(pub(super) Map<String, Value>);

impl RequestMeta {
    pub(super) const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    pub(super) const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

    pub(super) fn protocol_version(&self) -> Option<&str> {
        self.text(Self::PROTOCOL_VERSION)
    }

    /// What the client supports, as a request of 2026-07-28 says.
    pub(super) fn capabilities(&self) -> Value {
        self.0
            .get(Self::CLIENT_CAPABILITIES)
            .cloned()
            .unwrap_or_default()
    }

    /// True if the client of 2026-07-28 supports this extension.
    pub(super) fn declares_extension(&self, name: &str) -> bool {
        let capabilities = self.0.get(Self::CLIENT_CAPABILITIES);
        capabilities.is_some_and(|all| all["extensions"][name].is_object())
    }

    pub(super) fn has_capabilities(&self) -> bool {
        let capabilities = self.0.get(Self::CLIENT_CAPABILITIES);
        capabilities.is_some_and(Value::is_object)
    }

    /// The keys that are the client's own business with the tool's server.
    pub(super) fn for_server(&self) -> Map<String, Value> {
        let is_own = |key: &str| {
            matches!(key, "progressToken" | "traceparent" | "tracestate")
                || key.starts_with("io.modelcontextprotocol/")
        };
        let others = self.0.iter().filter(|(key, _)| !is_own(key));
        others
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }

    // Set if the client wants progress notifications for its call.
    pub(super) fn progress_token(&self) -> Option<RequestId> {
        RequestId::deserialize(self.0.get("progressToken")?).ok()
    }

    pub(super) fn trace(&self) -> (Option<&str>, Option<&str>) {
        (self.text("traceparent"), self.text("tracestate"))
    }

    // Keeps the current `tracestate` if the request has none.
    pub(super) fn set_trace(&mut self, parent: String, state: Option<String>) {
        self.0.insert("traceparent".to_owned(), parent.into());
        if let Some(state) = state {
            self.0.insert("tracestate".to_owned(), state.into());
        }
    }

    /// The log messages that a request of 2026-07-28 wants.
    pub(super) fn log_level(&self) -> Result<Option<LogLevel>, RequestError> {
        self.0.get(Self::LOG_LEVEL).map(parse_level).transpose()
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(Value::as_str)
    }

    pub(super) fn take(params: &mut Map<String, Value>) -> Self {
        match params.remove("_meta") {
            Some(Value::Object(meta)) => Self(meta),
            _ => Self::default(),
        }
    }
}
