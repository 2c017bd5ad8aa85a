//! [`PollError`]: why a poll of a task failed, and whether another one may work.

use toolgate_core::ToolError;
use toolgate_core::text::escape;

use crate::client::call_result;
use crate::client::session::SessionError;

// What JSON-RPC and MCP have for requests that will fail every time.
const INVALID_PARAMS: i64 = -32602;
const PERMANENT: [i64; 4] = [-32600, -32601, INVALID_PARAMS, -32021];
const MAX_MESSAGE: usize = 500;

pub(super) enum PollError {
    /// The task may still run, so it is polled again.
    Transient(ToolError),
    Final(ToolError),
    /// The server doesn't know the task.
    Lost(ToolError),
}

impl PollError {
    pub(super) fn new(server: &str, tool: &str, failure: SessionError) -> Self {
        if let SessionError::Rpc(error) = &failure
            && error.code == INVALID_PARAMS
        {
            let server = escape(server);
            let text = format!("MCP server '{server}' does not know the task of '{tool}'");
            let said: String = error.message.chars().take(MAX_MESSAGE).collect();
            let details = format!("JSON-RPC error {}: {}", error.code, escape(&said));
            return Self::Lost(ToolError::failed(text).with_details(details));
        }
        let is_transient = match &failure {
            SessionError::NotSent(_) | SessionError::Stopped(_) | SessionError::Interrupted(_) => {
                true
            }
            SessionError::Refused { status, .. } => {
                matches!(status.0, 408 | 425 | 429 | 500..=599)
            }
            SessionError::Rpc(error) => !PERMANENT.contains(&error.code),
            SessionError::Unreadable(_) => false,
        };
        let error = call_result::to_tool_error(server, tool, failure);
        match is_transient {
            true => Self::Transient(error),
            false => Self::Final(error),
        }
    }

    /// For a failed `tasks/result`. Some servers refuse it while the task runs.
    pub(super) fn of_collecting(server: &str, tool: &str, failure: SessionError) -> Self {
        Self::Transient(call_result::to_tool_error(server, tool, failure))
    }

    pub(super) fn no_answer(tool: &str) -> Self {
        let reason = "its server does not say how its task is doing";
        Self::Transient(ToolError::unavailable(tool, reason))
    }
}
