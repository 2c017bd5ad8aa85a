//! The internal service `server_health`, which reports the state of the MCP servers.

use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use toolgate_core::{CallContext, Handler, ToolFuture, ToolOutput, ValidArguments};

use super::status::{ServerRoster, ServerStatus};

/// Implements the tool `server_health`.
///
/// Tools are built before servers, so it starts empty and receives the servers through
/// [`ServersOptions::health`](crate::ServersOptions). Clones share state.
///
/// The tool takes no parameters and returns `{"servers": [{"name", "state", "era", "tools",
/// "restarts", "polluted", "error", "health"}]}`.
#[derive(Clone, Default)]
pub struct ServerHealthHandler {
    roster: Arc<OnceLock<ServerRoster>>,
}

impl ServerHealthHandler {
    /// The service name in tool definitions of type `internal`.
    pub const NAME: &str = "server_health";

    /// JSON Schema of the parameters: an empty object.
    pub fn parameters() -> Value {
        json!({ "type": "object" })
    }

    pub(crate) fn attach(&self, roster: ServerRoster) {
        drop(self.roster.set(roster));
    }
}

impl Handler for ServerHealthHandler {
    fn call<'a>(&'a self, _: ValidArguments, _: &'a CallContext) -> ToolFuture<'a> {
        let boards = self
            .roster
            .get()
            .map(ServerRoster::boards)
            .unwrap_or_default();
        let servers: Vec<Value> = boards
            .iter()
            .map(|board| status_entry(&board.status()))
            .collect();
        Box::pin(async move { Ok(ToolOutput::json(json!({ "servers": servers }))) })
    }
}

fn status_entry(status: &ServerStatus) -> Value {
    json!({
        "name": status.name,
        "state": status.state,
        "era": status.era,
        "tools": status.tools,
        "restarts": status.restarts,
        "polluted": status.stray_line_count,
        "error": status.error,
        "health": status.health,
    })
}
