//! [`RemoteTask`]: a call that continues on its server as a task, so that it can outlive this
//! process.

use std::fmt;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

/// Identifies a task running on an MCP server; [`ToolCall::resume`](crate::ToolCall::resume)
/// fetches its result later, even after a restart.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
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

impl fmt::Debug for RemoteTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteTask")
            .field("server", &self.server)
            .field("revision", &self.revision)
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_task_is_not_shown() {
        let task = RemoteTask {
            server: "house".to_owned(),
            task_id: "s3cret".to_owned(),
            revision: "2026-07-28".to_owned(),
            expires: None,
        };
        let shown = format!("{task:?}");
        assert!(
            shown.contains("house") && !shown.contains("s3cret"),
            "{shown}"
        );
    }
}
