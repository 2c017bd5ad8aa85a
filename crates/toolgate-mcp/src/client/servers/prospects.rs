//! Which of the servers that are still starting may bring a tool.

use super::super::status::ServerState;
use super::super::tool;
use super::{Member, Servers};

impl Servers {
    /// The servers whose tools aren't known yet, and are expected soon.
    pub fn expected(&self) -> Vec<String> {
        let members = self.inner.members();
        let expected = members.list.iter();
        let expected = expected.filter(|member| member.board.is_expected());
        expected
            .map(|member| member.board.settings.name.clone())
            .collect()
    }

    /// Returns once no server that is still starting may offer a tool of this name: each is settled, or its `allowedTools` and
    /// `excludedTools` leave that tool out. Never, if there is such a tool.
    pub async fn out_of_reach(&self, name: &str) {
        let tools = || self.inner.shared.manager.tools();
        let is_found = || tools().find(name).is_some() || tools().sharing(name).next().is_some();
        self.until(|members| !is_found() && !members.list.iter().any(|one| one.may_bring(name)))
            .await;
    }
}

impl Member {
    fn may_bring(&self, name: &str) -> bool {
        let board = &self.board;
        let is_idle = || board.status().state == ServerState::Idle;
        !board.is_settled() && !is_idle() && tool::may_be_offered(&board.settings, name)
    }
}
