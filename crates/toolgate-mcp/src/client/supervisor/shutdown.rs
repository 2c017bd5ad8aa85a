//! Ends the supervision of a server, on purpose or after a panic in this program.

use std::time::Duration;

use tokio::time::timeout;
use toolgate_core::text::escape;
use tracing::{error, warn};

use super::super::status::ServerState;
use super::{CLEANUP_TIMEOUT, ServerSupervisor};

// How long running tasks have to be cancelled before the connection is closed.
const TASK_CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

impl ServerSupervisor {
    pub(super) async fn handle_panic(&mut self, too_often: bool) {
        let name = escape(&self.settings().name);
        match too_often {
            true => {
                error!(server = %name, "MCP server failed repeatedly because of an internal error in Toolgate; reconnect it or restart Toolgate");
            }
            false => {
                warn!(server = %name, "MCP server failed because of an internal error in Toolgate; restarting it");
            }
        }
        self.take_down(
            ServerState::Failed,
            &format!("its server '{name}' failed because of an internal error in Toolgate"),
        )
        .await;
        self.board
            .update(|facts| facts.status.error = Some("an internal error in Toolgate".to_owned()));
    }

    pub(super) async fn shut_down(&mut self) {
        let reason = self.stopped_reason();
        self.link.close();
        self.take_down(ServerState::Stopped, &reason).await;
    }

    pub(super) fn shut_down_idle(&mut self) {
        self.link.close();
        self.link.set_down(self.stopped_reason(), None);
        self.board.update(|facts| {
            facts.status.state = ServerState::Stopped;
            facts.settled = true;
        });
        self.answer_reconnects(false);
    }

    fn stopped_reason(&self) -> String {
        format!("its server '{}' was stopped", escape(&self.settings().name))
    }

    // Removes the tools first so that no new call arrives, then fails waiting calls,
    // then closes the connection.
    async fn take_down(&mut self, state: ServerState, reason: &str) {
        // A failed server keeps its tool names, so that no other server can take them over.
        let is_stopped = state == ServerState::Stopped;
        match is_stopped {
            true => self.registration.clear(),
            false => self.registration.set_absent_reason(reason),
        }
        self.link.set_down(reason, None);
        let mut connection = None;
        self.board.update(|facts| {
            connection = facts.connection.take();
            facts.status.state = state;
            facts.settled = true;
            if is_stopped {
                facts.status.tools = 0;
            }
            facts.next_try = None;
        });
        self.answer_reconnects(false);
        if let Some(connection) = connection {
            if is_stopped {
                drop(timeout(TASK_CANCEL_TIMEOUT, self.link.tasks().ended()).await);
            }
            drop(timeout(CLEANUP_TIMEOUT, connection.close()).await);
        }
        self.shared
            .connector
            .wait_for_exit(&self.settings().name)
            .await;
    }
}
