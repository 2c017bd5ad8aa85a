//! What supervision sees of a server: so little that a test can play it.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;
use toolgate_core::Tool;

use super::connect::ConnectError;
use super::link::Link;
use super::transport::End;
use crate::{Era, ServerSettings};

// A trait although only `Dialer` connects: supervision is tested with servers that are played, in paused time.
pub(crate) trait Reach: Send + Sync + 'static {
    /// One attempt: start, handshake and first listing, within `patience`. One that fails leaves nothing behind; one that is dropped
    /// does so once it is [`cleared`](Self::cleared).
    fn reach<'a>(
        &'a self,
        settings: &'a ServerSettings,
        link: &'a Link,
        patience: Duration,
    ) -> BoxFuture<'a, Result<Reached, ConnectError>>;

    /// Returns when nothing is left of earlier attempts.
    fn cleared<'a>(&'a self, server: &'a str) -> BoxFuture<'a, ()>;

    /// What a server has said besides answers, as of now, also in attempts that failed.
    fn vitals(&self, server: &str) -> Vitals;
}

pub(crate) struct Reached {
    pub(crate) peer: Arc<dyn Peer>,
    pub(crate) offer: Offer,
}

#[derive(Default)]
pub(crate) struct Offer {
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    /// What the server said of the tools that can be taken, word for word: this is what is remembered.
    pub(crate) listed: Vec<Value>,
    /// Those that could not be taken, each with the reason.
    pub(crate) refused: Vec<String>,
}

/// What a server has said besides answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Vitals {
    /// Lines on stdout that were no messages: how many since the beginning, and the latest.
    pub(crate) polluted: u64,
    pub(crate) polluted_lines: Vec<String>,
    /// The tail of stderr of its latest process, redacted.
    pub(crate) stderr: Vec<String>,
}

// A trait for the same reason as `Reach`, which hands it out.
pub(crate) trait Peer: Send + Sync + 'static {
    fn era(&self) -> Era;
    fn revision(&self) -> Option<String>;
    fn pid(&self) -> Option<u32>;
    fn open(&self, link: &Link);
    fn offer(&self) -> BoxFuture<'_, Result<Offer, String>>;
    /// Returns when it has said that its tools changed, also if it said so before.
    fn tools_changed(&self) -> BoxFuture<'_, ()>;
    /// Returns when the connection is over, also if it was before.
    fn ended(&self) -> BoxFuture<'_, End>;
    /// Ends the connection; returns when nothing of it is left.
    fn close(&self) -> BoxFuture<'_, ()>;
}
