//! Agreements to changed tools, made in this process or in another one.

use std::convert::Infallible;
use std::time::Duration;

use toolgate_core::text::escape;
use tracing::info;

use super::super::pinning::{AgreementError, ToolChanges};
use super::Servers;

const AGREEMENT_POLL_INTERVAL: Duration = Duration::from_secs(2);

impl Servers {
    /// Agrees to the changed tools of a server, and offers the withheld ones at once. `hash` is
    /// that of the changes in its status. Blocks until the agreement is on disk. Returns the
    /// changes. Fails if the server is unknown or has listed other tools since.
    pub fn agree_to_changes(
        &self,
        server: &str,
        hash: &str,
    ) -> Result<ToolChanges, AgreementError> {
        let members = self.inner.members.lock();
        let unknown = || AgreementError::UnknownServer(escape(server));
        let member = members.find(server).ok_or_else(unknown)?;
        let changes = member.pins.changes();
        let verdict = member.pins.agree(hash)?;
        member.apply_verdict(verdict);
        info!(server = %escape(server), "the changed tools of an MCP server are agreed to");
        changes.ok_or_else(unknown)
    }

    /// Applies agreements that other processes make, such as `toolgate trust`. Runs until dropped.
    pub async fn follow_agreements(&self) -> Infallible {
        loop {
            self.wait_until(|members| members.list.iter().any(|one| one.board.has_changes()))
                .await;
            tokio::time::sleep(AGREEMENT_POLL_INTERVAL).await;
            self.refresh_agreements();
        }
    }

    fn refresh_agreements(&self) {
        let members = self.inner.members.lock();
        for member in &members.list {
            if member.board.has_changes()
                && let Some(verdict) = member.pins.refresh()
            {
                let server = escape(member.name());
                info!(%server, "the changed tools of an MCP server were agreed to elsewhere");
                member.apply_verdict(verdict);
            }
        }
    }
}
