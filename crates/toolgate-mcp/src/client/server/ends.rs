//! How a server ends: stopped, or by an error of ours.

use tokio::time::timeout;
use toolgate_core::escape;
use tracing::{error, warn};

use super::super::status::ServerState;
use super::{CLEANUP, Server};

impl Server {
    pub(super) async fn panicked(&mut self, too_often: bool) {
        let name = escape(&self.settings().name);
        match too_often {
            true => {
                error!(server = %name, "MCP server failed: an error inside Toolgate, again and again; reconnect it or restart Toolgate");
            }
            false => {
                warn!(server = %name, "MCP server failed: an error inside Toolgate; it is started again");
            }
        }
        self.leave(
            ServerState::Failed,
            &format!("its server '{name}' failed inside Toolgate"),
        )
        .await;
        self.board
            .update(|facts| facts.error = Some("an error inside Toolgate".to_owned()));
    }

    pub(super) async fn end(&mut self) {
        let reason = self.stopped();
        self.leave(ServerState::Stopped, &reason).await;
    }

    pub(super) fn stopped_idle(&mut self) {
        self.link.down(self.stopped(), None);
        self.board.update(|facts| {
            facts.state = ServerState::Stopped;
            facts.settled = true;
        });
        self.answer(false);
    }

    fn stopped(&self) -> String {
        format!("its server '{}' was stopped", escape(&self.settings().name))
    }

    /// Tools first, so that no call comes any more; then those that wait; then the server.
    async fn leave(&mut self, state: ServerState, reason: &str) {
        // Only a server that was stopped is not known any more.
        let is_stopped = state == ServerState::Stopped;
        match is_stopped {
            true => self.shelf.clear(),
            false => self.shelf.fail(reason),
        }
        self.link.down(reason, None);
        let mut peer = None;
        self.board.update(|facts| {
            peer = facts.peer.take();
            facts.state = state;
            facts.settled = true;
            if is_stopped {
                facts.tools = 0;
            }
            facts.next_try = None;
        });
        self.answer(false);
        if let Some(peer) = peer {
            drop(timeout(CLEANUP, peer.close()).await);
        }
        self.shared.reach.cleared(&self.settings().name).await;
    }
}
