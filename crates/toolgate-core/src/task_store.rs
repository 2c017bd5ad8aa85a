//! [`TaskStore`]: persists the tasks of clients across restarts.

use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;
use serde_json::Value;

use crate::{CallId, Origin, RemoteTask};

/// Persists background tasks, so that clients can fetch results after a restart.
///
/// A task is a call whose caller returns for the result later. The journal implements this.
pub trait TaskStore: Send + Sync {
    /// Stores a task in its present state. Returns once the record is as safe as it can be.
    fn save(&self, task: TaskRecord) -> BoxFuture<'_, ()>;

    /// Finds a task by its key, whichever process runs it.
    fn find(&self, key: &str) -> BoxFuture<'_, Option<TaskRecord>>;

    /// Takes over unfinished tasks whose process has ended, so that no other process does: the one
    /// with this key, or all.
    fn claim(&self, key: Option<&str>) -> BoxFuture<'_, Vec<TaskRecord>>;

    /// The server's task behind a running call of this process, if its server announced one.
    fn remote_task(&self, call: CallId) -> Option<RemoteTask>;
}

/// A stored task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRecord {
    pub call: CallId,
    /// A hash of the id that the task's client has, or `None` for a call whose caller is gone.
    pub key: Option<String>,
    /// Who may have the result. Compared as it is; stable over restarts.
    pub owner: String,
    /// The caller's name, for people.
    pub caller: Option<String>,
    pub origin: Origin,
    pub tool: String,
    /// The arguments, to continue the call. Null once it has ended.
    pub arguments: Value,
    /// What the protocol has to know about its client, in a form of its own.
    pub client: Value,
    pub remote: Option<RemoteTask>,
    pub created: SystemTime,
    /// How long the result is kept.
    pub keep: Duration,
    /// How the task ended, in a form of the protocol, and when.
    pub outcome: Option<(SystemTime, Value)>,
}

impl TaskRecord {
    /// True if the time for which the result was promised is over.
    pub fn is_expired(&self, now: SystemTime) -> bool {
        let end = self.outcome.as_ref().map(|(ended, _)| *ended + self.keep);
        end.is_some_and(|end| end < now)
    }
}
