//! Who has a name: the servers that a lookup starts and waits for.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use toolgate_core::{Rank, Source};

use super::super::status::Board;
use super::{Inner, Member, Members, Servers};
use crate::Readiness;

/// How long servers whose tools are known are asked for one that they didn't have before.
const NEW_TOOL: Duration = Duration::from_secs(10);

impl Servers {
    /// Starts every server that isn't yet; returns when each is connected or has failed its first round.
    pub async fn settled(&self) {
        self.inner.wake(|_| true);
        self.until(|members| members.list.iter().all(|member| member.board.is_settled()))
            .await;
    }

    /// Starts the servers whose tools nobody knows, but for those that were tried in vain not long ago.
    pub fn start_unseen(&self) {
        self.inner.wake(|member| member.board.is_worth_a_start());
    }

    /// The same, but for those that may have to be downloaded first: for whoever won't wait that long, and would only stop
    /// them in the middle of it.
    pub fn start_unseen_installed(&self) {
        self.inner.wake(|member| member.board.is_quick_to_ask());
    }

    /// The servers that tools nobody knows are expected of soon: they are being started, or would be by
    /// [`start_unseen_installed`](Self::start_unseen_installed).
    pub fn unseen_installed(&self) -> Vec<String> {
        let members = self.inner.members();
        let boards = members.list.iter().map(|member| &member.board);
        let unseen = boards.filter(|board| board.is_expected() || board.is_quick_to_ask());
        unseen.map(|board| board.settings.name.clone()).collect()
    }

    /// Starts this server; returns when it is connected or has failed its first round.
    pub async fn settled_server(&self, name: &str) {
        let is_it = |member: &Member| member.board.settings.name == name;
        self.inner.wake(is_it);
        self.until(|members| {
            let mut its = members.list.iter().filter(|member| is_it(member));
            its.all(|member| member.board.is_settled())
        })
        .await;
    }

    /// Returns when the tools of every server are known, from a list or from memory, or can't be had. Servers that were tried
    /// in vain not long ago aren't waited for.
    pub async fn tools_known(&self) {
        self.until(|members| !members.list.iter().any(|member| member.board.is_expected()))
            .await;
    }

    /// Returns when no server that is being started may still bring tools that aren't known.
    pub async fn first_round_over(&self) {
        self.until(|members| !members.list.iter().any(|member| member.board.is_coming()))
            .await;
    }

    /// Whoever asked for the tools of servers never seen won't wait any longer: those that are late count as tried in vain, so
    /// that the next one doesn't wait for them again.
    pub fn give_up_late(&self) {
        let members = self.inner.members();
        let late = members
            .list
            .iter()
            .filter(|member| member.board.is_expected());
        for member in late {
            let catalogue = &self.inner.shared.options.catalogue;
            catalogue.remember_failure(&member.board.settings, "it did not answer in time");
        }
    }

    /// Returns when it is decided which tool this name finds, or that there is none. A name that is known, from a list or from
    /// memory, is decided at once, but for servers never seen that may override it. For another name servers that have never
    /// been seen are waited for until one of them has it; for `<server>__<tool>` only that server is.
    pub async fn settled_for(&self, name: &str) {
        let (asked, is_known) = self.inner.ask_for(name);
        self.until(|_| {
            let is_found = !is_known && self.inner.knows(name);
            is_found || asked.iter().all(|board| board.is_decided_for(name))
        })
        .await;
        let is_of_one = asked.iter().any(|board| board.is_named_by(name));
        if self.inner.shared.options.on_demand && !is_of_one && !self.inner.knows(name) {
            // A server may have grown a tool since it was last asked.
            self.inner.wake(|_| true);
            let found = self.until(|members| {
                let mut all = members.list.iter();
                self.inner.knows(name) || all.all(|member| member.board.is_decided_for(name))
            });
            drop(tokio::time::timeout(NEW_TOOL, found).await);
        }
    }

    /// Starts the server that has the tool of this name; returns when it is connected or has failed. Local tools need none.
    pub async fn connected_for(&self, name: &str) {
        let found = self.inner.shared.manager.find(name);
        let source = found.map(|tool| tool.definition().source().clone());
        let is_its = |member: &Member| match &source {
            Some(Source::Mcp(server)) => member.board.settings.name == *server,
            _ => false,
        };
        self.inner.wake(is_its);
        self.until(|members| {
            let mut its = members.list.iter().filter(|member| is_its(member));
            its.all(|member| member.board.is_settled())
        })
        .await;
    }

    pub(super) async fn until(&self, is_so: impl Fn(&Members) -> bool) {
        let mut changed = self.inner.shared.roster.changed();
        let mut tools = self.inner.shared.manager.subscribe();
        while !is_so(&self.inner.members()) {
            tokio::select! {
                _ = changed.changed() => {}
                _ = tools.changed() => {}
            }
        }
    }
}

impl Inner {
    fn wake(&self, which: impl Fn(&Member) -> bool) {
        let members = self.members();
        for member in members.list.iter().filter(|member| which(member)) {
            member.wake();
        }
    }

    /// True if a tool has this name, or several do on their servers.
    fn knows(&self, name: &str) -> bool {
        let tools = self.shared.manager.tools();
        tools.find(name).is_some() || tools.sharing(name).next().is_some()
    }

    /// Starts the servers that decide about a name, and tells which; and whether a tool has it already.
    fn ask_for(&self, name: &str) -> (Vec<Arc<Board>>, bool) {
        let tools = self.shared.manager.tools();
        let found = tools.find(name).map(|tool| tool.definition());
        let is_known = self.knows(name);
        let members = self.members();
        let rank_of = |source: &Source| {
            let mut all = members.list.iter();
            let owner =
                all.find(|member| *source == Source::Mcp(member.board.settings.name.clone()));
            owner.map_or(Rank::Local, |member| member.rank)
        };
        let rank = found.map(|tool| rank_of(tool.source()));
        let is_named = |member: &Member| member.board.is_named_by(name);
        let is_of_one = members.list.iter().any(is_named);
        let decides = |member: &&Member| match is_known {
            // Only one that overrides could take it.
            true => {
                let is_before = rank.is_some_and(|rank| member.rank < rank);
                let is_first = matches!(member.rank, Rank::Override(_)) && is_before;
                is_first && member.board.may_have_more()
            }
            false if is_of_one => is_named(member),
            false => member.board.may_have_more(),
        };
        let asked: Vec<&Member> = members.list.iter().filter(decides).collect();
        asked.iter().for_each(|member| member.wake());
        let boards = asked.iter().map(|member| Arc::clone(&member.board));
        (boards.collect(), is_known)
    }
}

impl Readiness for Servers {
    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.tools_known())
    }

    fn ready_for<'a>(&'a self, tool: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(self.settled_for(tool))
    }
}
