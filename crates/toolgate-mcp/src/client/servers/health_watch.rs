//! Health checks of connected servers.

use toolgate_core::{Limits, Policy, ToolExecutor};

use super::Servers;

impl Servers {
    /// Starts health checks: each server's health tool is called through this executor every few
    /// seconds, so it should neither log nor record its calls.
    pub fn watch_health(&self, executor: ToolExecutor) {
        let shared = &self.inner.shared;
        shared.health_executor.send_replace(Some(executor));
    }

    /// Replaces the limits and the policy of health checks.
    pub fn set_health_rules(&self, limits: Limits, policy: Policy) {
        let executor = self.inner.shared.health_executor.borrow();
        if let Some(executor) = &*executor {
            executor.set_rules(limits, policy);
        }
    }

    /// Returns once every server is settled and every connected one has a health report.
    /// Never returns if a server has a health tool but
    /// [`watch_health`](Self::watch_health) was not called.
    pub async fn wait_for_health_checks(&self) {
        self.wait_for_all(|board| board.is_settled() && board.is_health_known())
            .await;
    }
}
