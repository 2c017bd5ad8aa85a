//! The interface between supervision and connections, so that supervision can be tested alone.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;
use toolgate_core::Tool;

use super::connect::ConnectError;
use super::content::ListedContent;
use super::link::ServerLink;
use super::sampling::SamplingUsage;
use super::transport::SessionEnd;
use crate::{ProtocolEra, ServerSettings};

// `ServerDialer` is the only implementation outside tests, which use scripted
// servers in paused time.
pub(crate) trait ServerConnector: Send + Sync + 'static {
    /// Makes one attempt: start, handshake and first listing, within `limit`. A failed attempt
    /// has cleaned up when it returns; a dropped one cleans up in the background.
    fn connect<'a>(
        &'a self,
        settings: &'a ServerSettings,
        link: &'a ServerLink,
        limit: Duration,
    ) -> BoxFuture<'a, Result<ConnectedServer, ConnectError>>;

    /// Returns once no process of an earlier attempt is left.
    fn wait_for_exit<'a>(&'a self, server: &'a str) -> BoxFuture<'a, ()>;

    /// The server's stray output and stderr, including those of failed attempts.
    fn output(&self, server: &str) -> ServerOutput;
}

pub(crate) struct ConnectedServer {
    pub(crate) connection: Arc<dyn SupervisedConnection>,
    pub(crate) offer: ToolOffer,
}

#[derive(Default)]
pub(crate) struct ToolOffer {
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    // The definitions as they were listed, to be stored and compared.
    pub(crate) listed: Vec<Value>,
    // Why entries of the list were skipped.
    pub(crate) refused: Vec<String>,
    pub(crate) content: ListedContent,
    // The lists were fetched again because their TTL had run out, not because the server announced
    // a change.
    pub(crate) is_ttl_refresh: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ServerOutput {
    pub(crate) stray_line_count: u64,
    pub(crate) stray_lines: Vec<String>,
    pub(crate) stderr: Vec<String>,
    pub(crate) sampling: Option<SamplingUsage>,
}

// A trait for the same reason: a scripted server in tests has no session.
pub(crate) trait SupervisedConnection: Send + Sync + 'static {
    fn era(&self) -> ProtocolEra;
    fn revision(&self) -> Option<String>;
    fn pid(&self) -> Option<u32>;
    /// Lets the server's tools use this connection.
    fn attach(&self, link: &ServerLink);
    fn list_everything(&self) -> BoxFuture<'_, Result<ToolOffer, String>>;
    /// Returns once the lists must be fetched again: the server announced a change, or their TTL
    /// ran out. Also returns if that happened before this call.
    fn lists_changed(&self) -> BoxFuture<'_, ()>;
    fn ended(&self) -> BoxFuture<'_, SessionEnd>;
    fn close(&self) -> BoxFuture<'_, ()>;
}
