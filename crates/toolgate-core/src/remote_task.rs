//! [`RemoteTask`]: a call that goes on at its server as a task, so that it can outlive us.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

/// Names a task of an MCP server. Whoever has it can ask for the result later, even after a
/// restart: see [`ToolCall::resume`](crate::ToolCall::resume).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteTask {
    /// The server's name in the configuration.
    pub server: String,
    /// The server's id for the task. A secret: who knows it may read the result.
    pub task_id: String,
    /// The MCP revision that the task was created in. Tasks can't be continued in another one.
    pub revision: String,
    /// When the server may forget the task; `None` if it keeps it without limit.
    pub expires: Option<SystemTime>,
}
