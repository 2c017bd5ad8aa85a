//! Finds the server that owns a tool name: which servers a lookup starts and waits for.
//!
//! A server is *settled* once it is connected or its first round of attempts has failed. It is
//! *unseen* while its tools aren't known, neither from a list nor from the catalog.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use toolgate_core::{ToolRank, ToolSource};

use super::super::status::StatusBoard;
use super::{ManagedServer, ManagedServers, Servers, ServersInner};
use crate::ServerReadiness;

// How long to wait for known servers to list a tool that they didn't have before.
const NEW_TOOL_TIMEOUT: Duration = Duration::from_secs(10);

impl Servers {
    /// Starts every idle server, and returns once each is connected or has failed its first round.
    pub async fn start_all(&self) {
        self.inner.wake(|_| true);
        self.wait_for_all(StatusBoard::is_settled).await;
    }

    /// Starts the servers without known tools, that is without a list or a catalog entry, except
    /// those that failed recently.
    pub fn start_servers_without_tools(&self) {
        self.inner.wake(|member| member.board.is_worth_starting());
    }

    /// Like [`start_servers_without_tools`](Self::start_servers_without_tools), without
    /// servers that may have to be downloaded first: for callers that won't wait that long and
    /// would interrupt the download.
    pub fn start_installed_servers_without_tools(&self) {
        self.inner.wake(|member| member.board.is_quick_to_start());
    }

    /// Servers without known tools that are starting, or that
    /// [`start_installed_servers_without_tools`](Self::start_installed_servers_without_tools) would start.
    pub fn installed_servers_without_tools(&self) -> Vec<String> {
        let is_without_tools =
            |board: &StatusBoard| board.is_expected() || board.is_quick_to_start();
        self.inner.members.lock().names(is_without_tools)
    }

    /// Starts this server, and returns once it is connected or has failed its first round.
    pub async fn start_server(&self, name: &str) {
        self.inner.wake(|member| member.name() == name);
        self.wait_until(|members| {
            let found = members.find(name);
            found.is_none_or(|member| member.board.is_settled())
        })
        .await;
    }

    /// Returns once the tools of every server are known, from a list or from the catalog, or
    /// unavailable. Doesn't wait for servers that failed recently.
    pub async fn wait_for_known_tools(&self) {
        self.wait_for_all(|board| !board.is_expected()).await;
    }

    /// Returns once every starting server has either listed its tools or failed.
    pub async fn wait_for_first_listings(&self) {
        self.wait_for_all(|board| !board.is_first_listing_pending())
            .await;
    }

    /// Records that the servers that are still starting have failed, so that the next process
    /// doesn't wait for them.
    pub fn give_up_on_late_servers(&self) {
        let members = self.inner.members.lock();
        let late = members
            .list
            .iter()
            .filter(|member| member.board.is_expected());
        for member in late {
            let catalog = &self.inner.shared.options.catalog;
            catalog.remember_failure(&member.board.settings, "it did not respond in time");
        }
    }

    /// Starts the servers that may have a tool of this name. Returns once one offers it, or once it
    /// is certain that none does. A known name returns at once, unless an unseen server may
    /// override it. For an unknown name it waits for all unseen servers; for `<server>__<tool>`
    /// only for that one.
    pub async fn wait_for_tool(&self, name: &str) {
        let (candidates, is_known) = self.inner.wake_candidates(name);
        self.wait_until(|_| {
            let is_found = !is_known && self.inner.has_tool(name);
            is_found || candidates.iter().all(|board| board.is_decided_for(name))
        })
        .await;
        let names_server = candidates.iter().any(|board| board.is_named_by(name));
        if self.inner.shared.options.on_demand && !names_server && !self.inner.has_tool(name) {
            // A server may have gained the tool since its last list.
            self.inner.wake(|_| true);
            let found = self.wait_until(|members| {
                let mut all = members.list.iter();
                self.inner.has_tool(name) || all.all(|member| member.board.is_decided_for(name))
            });
            drop(tokio::time::timeout(NEW_TOOL_TIMEOUT, found).await);
        }
    }

    /// Starts the server that owns this tool, and returns once it is connected or has failed.
    /// Returns at once for local tools.
    pub async fn start_owner_of(&self, name: &str) {
        let tool = self.inner.shared.manager.find(name);
        if let Some(ToolSource::Mcp(server)) = tool.map(|tool| tool.definition().source().clone()) {
            self.start_server(&server).await;
        }
    }

    /// The servers that are starting and whose tools aren't known yet.
    pub fn pending_servers(&self) -> Vec<String> {
        self.inner.members.lock().names(StatusBoard::is_expected)
    }

    /// Returns once no starting server may offer a tool of this name: each is settled, or its
    /// `allowedTools` and `excludedTools` rule the tool out. Never returns if there is such a tool.
    pub async fn wait_until_tool_ruled_out(&self, name: &str) {
        self.wait_until(|members| {
            let may_offer = |member: &ManagedServer| member.board.may_still_offer(name);
            !self.inner.has_tool(name) && !members.list.iter().any(may_offer)
        })
        .await;
    }

    pub(super) async fn wait_for_all(&self, condition: impl Fn(&StatusBoard) -> bool) {
        self.wait_until(|members| members.list.iter().all(|member| condition(&member.board)))
            .await;
    }

    pub(super) async fn wait_until(&self, condition: impl Fn(&ManagedServers) -> bool) {
        let mut changed = self.inner.shared.roster.changed();
        // Subscribed before the first check, so that no change is missed in between.
        let mut tools = self.inner.shared.manager.subscribe();
        while !condition(&self.inner.members.lock()) {
            tokio::select! {
                _ = changed.changed() => {}
                _ = tools.changed() => {}
            }
        }
    }
}

impl ServersInner {
    fn wake(&self, which: impl Fn(&ManagedServer) -> bool) {
        let members = self.members.lock();
        for member in members.list.iter().filter(|member| which(member)) {
            member.wake();
        }
    }

    fn has_tool(&self, name: &str) -> bool {
        let tools = self.shared.manager.tools();
        tools.find(name).is_some() || tools.with_original_name(name).next().is_some()
    }

    /// Starts the servers that may own a name. Returns them, and whether a tool
    /// has the name already.
    fn wake_candidates(&self, name: &str) -> (Vec<Arc<StatusBoard>>, bool) {
        let tools = self.shared.manager.tools();
        let found = tools.find(name).map(|tool| tool.definition());
        let is_known = self.has_tool(name);
        let members = self.members.lock();
        let rank_of = |source: &ToolSource| {
            let owner = match source {
                ToolSource::Mcp(server) => members.find(server),
                _ => None,
            };
            owner.map_or(ToolRank::Local, |member| member.rank)
        };
        let rank = found.map(|tool| rank_of(tool.source()));
        let is_named = |member: &ManagedServer| member.board.is_named_by(name);
        let names_server = members.list.iter().any(is_named);
        let is_candidate = |member: &&ManagedServer| match is_known {
            // Only a server that overrides with a higher rank could still take a known name.
            true => {
                let is_before = rank.is_some_and(|rank| member.rank < rank);
                let is_first = matches!(member.rank, ToolRank::Override(_)) && is_before;
                is_first && member.board.may_have_unknown_tools()
            }
            false if names_server => is_named(member),
            false => member.board.may_have_unknown_tools(),
        };
        let candidates: Vec<&ManagedServer> = members.list.iter().filter(is_candidate).collect();
        candidates.iter().for_each(|member| member.wake());
        let boards = candidates.iter().map(|member| Arc::clone(&member.board));
        (boards.collect(), is_known)
    }
}

impl ServerReadiness for Servers {
    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.wait_for_known_tools())
    }

    fn ready_for<'a>(&'a self, tool: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(self.wait_for_tool(tool))
    }
}
