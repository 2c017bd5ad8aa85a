//! `server_health`: an internal service that says how the MCP servers are.

use serde_json::{Value, json};
use toolgate_core::{CallContext, Handler, ToolFuture, ToolOutput, ValidArguments};

use super::status::{Roster, ServerStatus};

/// The handler behind `server_health`; see [`Servers::health`](crate::Servers::health).
///
/// It answers `{"servers": [{"name", "state", "era", "tools", "restarts", "polluted", "error"}]}`, without parameters.
pub struct ServerHealth {
    roster: Roster,
}

impl ServerHealth {
    pub(crate) fn new(roster: Roster) -> Self {
        Self { roster }
    }
}

impl Handler for ServerHealth {
    fn call<'a>(&'a self, _: ValidArguments, _: &'a CallContext) -> ToolFuture<'a> {
        let boards = self.roster.boards();
        let servers: Vec<Value> = boards.iter().map(|board| entry(&board.status())).collect();
        Box::pin(async move { Ok(ToolOutput::json(json!({ "servers": servers }))) })
    }
}

fn entry(status: &ServerStatus) -> Value {
    json!({
        "name": status.name,
        "state": status.state,
        "era": status.era,
        "tools": status.tools,
        "restarts": status.restarts,
        "polluted": status.polluted,
        "error": status.error,
    })
}
