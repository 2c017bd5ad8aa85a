//! `server_health`: an internal service that says how the MCP servers are.

use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use toolgate_core::{CallContext, Handler, ToolFuture, ToolOutput, ValidArguments};

use super::status::{Roster, ServerStatus};

/// The handler behind `server_health`. Made before the servers, since tools are, and told of them by
/// [`ServersOptions::health`](crate::ServersOptions); clones are the same service.
///
/// It answers `{"servers": [{"name", "state", "era", "tools", "restarts", "polluted", "error", "health"}]}`, without parameters.
#[derive(Clone, Default)]
pub struct ServerHealth {
    roster: Arc<OnceLock<Roster>>,
}

impl ServerHealth {
    /// What definitions of type `internal` call it.
    pub const NAME: &str = "server_health";

    /// The JSON Schema of what it takes: nothing.
    pub fn parameters() -> Value {
        json!({ "type": "object" })
    }

    pub(crate) fn reports_on(&self, roster: Roster) {
        drop(self.roster.set(roster));
    }
}

impl Handler for ServerHealth {
    fn call<'a>(&'a self, _: ValidArguments, _: &'a CallContext) -> ToolFuture<'a> {
        let boards = self.roster.get().map(Roster::boards).unwrap_or_default();
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
        "health": status.health,
    })
}
