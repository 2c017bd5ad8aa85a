//! Calls that became tasks: their clients ask for the result later, instead of waiting for it.
//!
//! ```text
//!  task.rs     one task: its state, its questions   table.rs    all tasks, limited in number
//!  runner.rs   runs the call behind a task          restore.rs  goes on after a restart
//!  methods.rs  answers tasks/get and the others     updates.rs  tells clients of changes
//!  wire.rs     tasks as clients see them            task_end.rs how a task ended
//!  followed_task.rs  tells a client with a session of changes
//! ```
//!
//! A task begins as the call of an ordinary request. The two eras differ in who decides: in
//! 2025-11-25 the client asks for a task, in 2026-07-28 we make one of each call that takes long.

mod followed_task;
mod methods;
mod restore;
mod runner;
mod table;
mod task;
mod task_end;
mod updates;
mod wire;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use schemars::JsonSchema;
use serde::Deserialize;
use toolgate_core::text::DurationText;

pub(super) use followed_task::{FollowedTask, TaskNotice};
pub(super) use runner::{StartedTask, TaskOffer, TaskScope};
pub(super) use table::TaskTable;
pub use task::TaskSummary;
pub(super) use updates::TaskWatch;
pub(super) use wire::missing_capability;

/// The name of the extension of 2026-07-28.
pub(super) const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// When calls of MCP clients become tasks, and how long results are kept for them.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(description = "Calls that MCP clients need not wait for")]
#[non_exhaustive]
pub struct TaskSettings {
    /// A call that takes longer becomes a task, if its client supports that.
    #[serde(deserialize_with = "toolgate_core::text::deserialize_duration")]
    #[schemars(with = "DurationText")]
    pub after: Duration,
    /// How long the result of a task is kept.
    #[serde(deserialize_with = "toolgate_core::text::deserialize_duration")]
    #[schemars(with = "DurationText")]
    pub keep: Duration,
}

impl Default for TaskSettings {
    fn default() -> Self {
        Self {
            after: Duration::from_secs(10),
            keep: Duration::from_secs(3600),
        }
    }
}

/// What stands for a task's id in memory and in the journal, where the id itself isn't kept.
fn task_key(id: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, id.as_bytes()))
}
