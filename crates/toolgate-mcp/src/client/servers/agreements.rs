//! Tools that aren't what was agreed to: agreements of this process, and of others.

use std::convert::Infallible;
use std::time::Duration;

use toolgate_core::escape;
use tracing::info;

use super::super::pinning::{AgreeError, ToolChanges};
use super::{Member, Servers};

/// How often it is looked whether somebody has agreed in another process, while something waits for it.
const LOOK: Duration = Duration::from_secs(2);

impl Servers {
    /// Agrees to the tools of a server as they are shown in its status under this hash, for good: those that were withheld are
    /// offered at once. Blocks until that is on the disk. Returns what it agreed to.
    ///
    /// # Errors
    ///
    /// If the server has listed other tools since, if there is no such server, or nothing can be written.
    pub fn agree_to_changes(&self, server: &str, hash: &str) -> Result<ToolChanges, AgreeError> {
        let members = self.inner.members();
        let mut all = members.list.iter();
        let member = all.find(|member| member.board.settings.name == server);
        let unknown = || AgreeError::UnknownServer(escape(server));
        let member = member.ok_or_else(unknown)?;
        let changes = member.pins.changes();
        let verdict = member.pins.agree(hash)?;
        member.apply_verdict(verdict);
        info!(server = %escape(server), "the changed tools of an MCP server are agreed to");
        changes.ok_or_else(unknown)
    }

    /// Offers what is agreed to in other processes, such as `toolgate trust`, for as long as it is polled.
    pub async fn follow_agreements(&self) -> Infallible {
        loop {
            self.until(|members| members.list.iter().any(has_changes))
                .await;
            tokio::time::sleep(LOOK).await;
            self.look_for_agreements();
        }
    }

    fn look_for_agreements(&self) {
        let members = self.inner.members();
        for member in members.list.iter().filter(|member| has_changes(member)) {
            if let Some(verdict) = member.pins.refresh() {
                let server = escape(&member.board.settings.name);
                info!(%server, "the changed tools of an MCP server were agreed to elsewhere");
                member.apply_verdict(verdict);
            }
        }
    }
}

fn has_changes(member: &Member) -> bool {
    member.board.has_changes()
}
