//! Finding the server that owns a tool name: which ones a lookup starts and waits for.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use toolgate_core::{ToolRank, ToolSource};

use super::super::status::StatusBoard;
use super::{ManagedServer, ManagedServers, Servers, ServersInner};
use crate::ServerReadiness;

/// How long to wait for known servers to list a tool they didn't have before.
const NEW_TOOL_TIMEOUT: Duration = Duration::from_secs(10);

impl Servers {
    /// Starts every idle server, and returns once each is connected or has failed its first round.
    pub async fn settled(&self) {
        self.inner.wake(|_| true);
        self.wait_for_all(StatusBoard::is_settled).await;
    }

    /// Starts the servers whose tools aren't known, except those that failed recently.
    pub fn start_unseen(&self) {
        self.inner.wake(|member| member.board.is_worth_a_start());
    }

    /// Like [`start_unseen`](Self::start_unseen), without servers that may have to be downloaded
    /// first: for callers that won't wait that long and would interrupt the download.
    pub fn start_unseen_installed(&self) {
        self.inner.wake(|member| member.board.is_quick_to_ask());
    }

    /// Servers whose unknown tools are expected soon: they are starting, or
    /// [`start_unseen_installed`](Self::start_unseen_installed) would start them.
    pub fn unseen_installed(&self) -> Vec<String> {
        let is_unseen = |board: &StatusBoard| board.is_expected() || board.is_quick_to_ask();
        self.inner.members.lock().names(is_unseen)
    }

    /// Starts this server, and returns once it is connected or has failed its first round.
    pub async fn settled_server(&self, name: &str) {
        self.inner.wake(|member| member.name() == name);
        self.wait_until(|members| {
            let found = members.find(name);
            found.is_none_or(|member| member.board.is_settled())
        })
        .await;
    }

    /// Returns once the tools of every server are known, from a list or from the catalogue, or
    /// unavailable. Doesn't wait for servers that failed recently.
    pub async fn tools_known(&self) {
        self.wait_for_all(|board| !board.is_expected()).await;
    }

    /// Returns once no starting server may bring unknown tools.
    pub async fn first_round_over(&self) {
        self.wait_for_all(|board| !board.is_coming()).await;
    }

    /// Records servers that are still starting as failed, so that the next caller doesn't
    /// wait for them again.
    pub fn give_up_on_late_servers(&self) {
        let members = self.inner.members.lock();
        let late = members
            .list
            .iter()
            .filter(|member| member.board.is_expected());
        for member in late {
            let catalogue = &self.inner.shared.options.catalogue;
            catalogue.remember_failure(&member.board.settings, "it did not answer in time");
        }
    }

    /// Returns once it is decided which tool this name means, or that there is none. A known name
    /// is decided at once, unless a server never seen may override it. An unknown name waits for
    /// servers never seen until one offers it; `<server>__<tool>` waits for that server only.
    pub async fn settled_for(&self, name: &str) {
        let (asked, is_known) = self.inner.wake_candidates(name);
        self.wait_until(|_| {
            let is_found = !is_known && self.inner.has_tool(name);
            is_found || asked.iter().all(|board| board.is_decided_for(name))
        })
        .await;
        let is_of_one = asked.iter().any(|board| board.is_named_by(name));
        if self.inner.shared.options.on_demand && !is_of_one && !self.inner.has_tool(name) {
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
    pub async fn connected_for(&self, name: &str) {
        let tool = self.inner.shared.manager.find(name);
        if let Some(ToolSource::Mcp(server)) = tool.map(|tool| tool.definition().source().clone()) {
            self.settled_server(&server).await;
        }
    }

    /// The servers whose tools aren't known yet but are expected soon.
    pub fn expected(&self) -> Vec<String> {
        self.inner.members.lock().names(StatusBoard::is_expected)
    }

    /// Returns once no starting server may offer a tool of this name: each is settled, or its
    /// `allowedTools` and `excludedTools` rule the tool out. Never returns if there is such a tool.
    pub async fn wait_unreachable(&self, name: &str) {
        self.wait_until(|members| {
            let may_bring = |member: &ManagedServer| member.board.may_bring(name);
            !self.inner.has_tool(name) && !members.list.iter().any(may_bring)
        })
        .await;
    }

    pub(super) async fn wait_for_all(&self, is_so: impl Fn(&StatusBoard) -> bool) {
        self.wait_until(|members| members.list.iter().all(|member| is_so(&member.board)))
            .await;
    }

    pub(super) async fn wait_until(&self, is_so: impl Fn(&ManagedServers) -> bool) {
        let mut changed = self.inner.shared.roster.changed();
        // Subscribed before the first check, so that no change is missed in between.
        let mut tools = self.inner.shared.manager.subscribe();
        while !is_so(&self.inner.members.lock()) {
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
    /// already has the name.
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
        let is_of_one = members.list.iter().any(is_named);
        let decides = |member: &&ManagedServer| match is_known {
            // Only a server that overrides with a higher rank could still take a known name.
            true => {
                let is_before = rank.is_some_and(|rank| member.rank < rank);
                let is_first = matches!(member.rank, ToolRank::Override(_)) && is_before;
                is_first && member.board.may_have_more()
            }
            false if is_of_one => is_named(member),
            false => member.board.may_have_more(),
        };
        let asked: Vec<&ManagedServer> = members.list.iter().filter(decides).collect();
        asked.iter().for_each(|member| member.wake());
        let boards = asked.iter().map(|member| Arc::clone(&member.board));
        (boards.collect(), is_known)
    }
}

impl ServerReadiness for Servers {
    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.tools_known())
    }

    fn ready_for<'a>(&'a self, tool: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(self.settled_for(tool))
    }
}
