//! Waiting for tools whose servers are still starting.
//!
//! A request waits only for what it needs. A sentence that needs one tool waits for that tool
//! ([`Toolbox::wait_for_tool`]). A model gets the list of tools with its request, before anyone
//! knows which ones it needs, so that request waits until all are there or a few seconds have
//! passed ([`Toolbox::wait_for_all`]). Both waits are bounded and reported, so that the voice can
//! say that it takes a moment.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::time::timeout;

use crate::Toolbox;

const TOOL_WAIT: Duration = Duration::from_secs(15);
// After a timeout, later requests don't wait for the same servers again, until one of them is ready
// or gives up, or another one starts.
const ALL_TOOLS_WAIT: Duration = Duration::from_secs(5);

/// Knows which servers are still starting, so that requests can wait for their tools.
pub trait ToolReadiness: Send + Sync {
    /// Resolves once no further tools are expected.
    fn wait_until_complete(&self) -> BoxFuture<'_, ()>;

    /// The servers that are still starting, in a stable order.
    fn starting_servers(&self) -> Vec<String>;

    /// Resolves once it is known whether a tool of this name can be called; immediately if
    /// it is known already.
    fn wait_until_known<'a>(&'a self, tool: &'a str) -> BoxFuture<'a, ()>;
}

/// The start or the end of a wait for tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolWait<'a> {
    /// A request waits for this tool, or for all tools if `None`.
    Started(Option<&'a str>),
    /// The request continues, with or without the tool.
    Ended,
}

/// Called when a wait for tools starts and when it ends. Not called if there is
/// nothing to wait for.
pub type ToolWaitListener<'a> = &'a mut (dyn FnMut(ToolWait<'_>) + Send);

#[derive(Clone, Default)]
pub(crate) struct ToolStartup {
    readiness: Arc<OnceLock<Arc<dyn ToolReadiness>>>,
    // The servers that were still starting when the last wait timed out.
    timed_out: Arc<Mutex<Vec<String>>>,
}

impl Toolbox {
    /// Sets where this toolbox and its clones learn which servers are starting. Only the first
    /// call has an effect.
    pub fn set_readiness(&self, readiness: Arc<dyn ToolReadiness>) {
        self.startup().readiness.get_or_init(|| readiness);
    }

    /// False while further tools are expected.
    pub fn is_complete(&self) -> bool {
        let readiness = self.startup().readiness.get();
        readiness.is_none_or(|readiness| readiness.wait_until_complete().now_or_never().is_some())
    }

    /// False while it is unknown whether a tool of this name can be called.
    pub fn is_availability_known(&self, tool: &str) -> bool {
        let readiness = self.startup().readiness.get();
        readiness.is_none_or(|readiness| readiness.wait_until_known(tool).now_or_never().is_some())
    }

    /// Waits up to 15 seconds for a tool of this name.
    pub async fn wait_for_tool(&self, tool: &str, listener: ToolWaitListener<'_>) {
        let Some(readiness) = self.startup().readiness.get() else {
            return;
        };
        let wait = timeout(TOOL_WAIT, readiness.wait_until_known(tool));
        if wait_with_notice(Some(tool), wait, listener).await.is_err() {
            tracing::warn!(
                tool = %crate::text::escape(tool),
                waited_s = TOOL_WAIT.as_secs(),
                "a request continues without a tool, because its server is still starting"
            );
        }
    }

    /// Waits up to five seconds until no further tools are expected.
    pub async fn wait_for_all(&self, listener: ToolWaitListener<'_>) {
        let startup = self.startup();
        let Some(readiness) = startup.readiness.get() else {
            return;
        };
        let starting = readiness.starting_servers();
        if !starting.is_empty() && *startup.timed_out.lock() == starting {
            return;
        }
        let wait = timeout(ALL_TOOLS_WAIT, readiness.wait_until_complete());
        if wait_with_notice(None, wait, listener).await.is_err() {
            *startup.timed_out.lock() = readiness.starting_servers();
            tracing::warn!("servers are still starting; the model is asked without their tools");
        }
    }
}

async fn wait_with_notice<T>(
    tool: Option<&str>,
    wait: impl Future<Output = T>,
    listener: ToolWaitListener<'_>,
) -> T {
    let mut wait = std::pin::pin!(wait);
    if let Some(result) = wait.as_mut().now_or_never() {
        return result;
    }
    listener(ToolWait::Started(tool));
    let result = wait.await;
    listener(ToolWait::Ended);
    result
}
