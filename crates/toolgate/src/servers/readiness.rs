//! Decides what a conversation waits for while servers are starting.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::{Instant, timeout_at};
use toolgate_core::ToolManager;
use toolgate_core::text::escape;
use toolgate_mcp::Servers;
use toolgate_models::ToolReadiness;
use tracing::warn;

use super::{ServerFleet, ServerStart};
use crate::wiring::ConfiguredTools;

// How long questions wait for servers that have never been seen, from the first wait on. A
// conversation stops waiting after five seconds. This is a little less, so that the warning that
// names the servers comes first.
const FIRST_TOOLS_TIMEOUT: Duration = Duration::from_millis(4_800);

pub(crate) struct StartingServers(pub(crate) Servers);

impl ToolReadiness for StartingServers {
    fn wait_until_complete(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.wait_for_first_listings())
    }

    fn starting_servers(&self) -> Vec<String> {
        self.0.pending_servers()
    }

    fn wait_until_known<'a>(&'a self, tool: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let callable = async {
                self.0.wait_for_tool(tool).await;
                self.0.start_owner_of(tool).await;
            };
            tokio::select! {
                biased; // It starts the servers that may have the tool.
                () = callable => {}
                () = self.0.wait_until_tool_ruled_out(tool) => {}
            }
        })
    }
}

/// Waits for servers that have never been seen, in a command that a person waits for. They start
/// only when their tools are awaited, so that local and remembered tools aren't delayed, not even
/// by stopping them again.
pub(crate) struct UnseenServers {
    servers: Servers,
    manager: Arc<ToolManager>,
    /// The tools of some server are known, so the model isn't kept waiting.
    knows_any_tools: bool,
    // Late servers count as failed, so that the next command doesn't wait for them again.
    gives_up: bool,
    until: OnceLock<Instant>,
    is_reported: AtomicBool,
}

impl UnseenServers {
    pub(crate) fn new(fleet: &ServerFleet, tools: &ConfiguredTools, start: ServerStart) -> Self {
        Self {
            servers: fleet.servers.clone(),
            manager: Arc::clone(&tools.manager),
            knows_any_tools: fleet.knows_any_tools(),
            gives_up: start == ServerStart::WhenNeeded,
            until: OnceLock::new(),
            is_reported: AtomicBool::new(false),
        }
    }

    /// Starts them and waits, unless the caller only checks whether there is something to wait for.
    async fn start_and_wait(&self, coming: impl Future<Output = ()>) {
        let until = self.until.get();
        let is_over = until.is_some_and(|until| *until <= Instant::now());
        if is_over || self.servers.installed_servers_without_tools().is_empty() {
            return;
        }
        // A caller that only checks polls once, and gets no further.
        tokio::task::yield_now().await;
        self.servers.start_installed_servers_without_tools();
        let until = self
            .until
            .get_or_init(|| Instant::now() + FIRST_TOOLS_TIMEOUT);
        let finished = timeout_at(*until, coming).await;
        if finished.is_ok() || self.is_reported.swap(true, Ordering::Relaxed) {
            return;
        }
        for server in self.servers.pending_servers() {
            warn!(server = %escape(&server), "MCP server has not answered yet: its tools are not offered; 'toolgate list' waits for it");
        }
        if self.gives_up {
            self.servers.give_up_on_late_servers();
        }
    }

    async fn wait_for_tool(&self, tool: &str) {
        let mut changed = self.manager.subscribe();
        while self.manager.find(tool).is_none() && changed.changed().await.is_ok() {}
    }
}

impl ToolReadiness for UnseenServers {
    fn wait_until_complete(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.start_and_wait(async move {
            if !self.knows_any_tools {
                self.servers.wait_for_known_tools().await;
            }
        }))
    }

    fn starting_servers(&self) -> Vec<String> {
        self.servers.pending_servers()
    }

    fn wait_until_known<'a>(&'a self, tool: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if self.manager.find(tool).is_some() {
                return;
            }
            let known = self.servers.wait_for_known_tools();
            self.start_and_wait(async move {
                tokio::select! {
                    () = self.wait_for_tool(tool) => {}
                    () = known => {}
                }
            })
            .await;
        })
    }
}
