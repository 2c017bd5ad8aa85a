//! Whether connected servers can do their work: who asks, and who waits for the first answers.

use toolgate_core::{Limits, Policy, ToolExecutor};

use super::Servers;

impl Servers {
    /// From now on, connected servers are asked whether they can do their work: by their health tool, through this executor. It
    /// should neither log nor record its calls, which come every few seconds.
    pub fn watch_health(&self, executor: ToolExecutor) {
        let shared = &self.inner.shared;
        shared.health_executor.send_replace(Some(executor));
    }

    /// Asks health tools under these rules from now on, if they are asked at all.
    pub fn set_health_rules(&self, limits: Limits, policy: Policy) {
        let executor = self.inner.shared.health_executor.borrow();
        if let Some(executor) = &*executor {
            executor.set_rules(limits, policy);
        }
    }

    /// Returns when every server is connected or has failed its first round, and what is connected was asked for its health.
    /// Without [`watch_health`](Self::watch_health) nobody asks, and that is never so for a server with a health tool.
    pub async fn checked(&self) {
        self.until(|members| {
            let mut boards = members.list.iter().map(|member| &member.board);
            boards.all(|board| board.is_settled() && board.is_checked())
        })
        .await;
    }
}
