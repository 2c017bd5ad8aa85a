//! Calls whose servers continue them as tasks, while their callers wait.

use std::collections::BTreeMap;
use std::time::SystemTime;

use parking_lot::Mutex;
use toolgate_core::{CallContext, CallId, RemoteTask, TaskReport};

/// The running calls of this process that are tasks of their servers. Their number is bounded by
/// what each server may have.
#[derive(Default)]
pub(crate) struct ServerTasks(Mutex<BTreeMap<CallId, ServerTask>>);

/// One of these calls.
#[derive(Clone)]
pub(crate) struct ServerTask {
    pub(crate) call: CallContext,
    /// The server's name in the configuration.
    pub(crate) server: String,
    pub(crate) created: SystemTime,
}

impl ServerTasks {
    pub(crate) fn add(&self, call: &CallContext, task: &RemoteTask) {
        let added = ServerTask {
            call: call.clone(),
            server: task.server.clone(),
            created: SystemTime::now(),
        };
        self.0.lock().insert(call.id(), added);
    }

    pub(crate) fn remove(&self, call: CallId) {
        let removed = self.0.lock().remove(&call);
        // Dropped without the lock, because the context may be the last of its executor.
        drop(removed);
    }

    /// The oldest first.
    pub(crate) fn list(&self) -> Vec<ServerTask> {
        self.0.lock().values().cloned().collect()
    }

    /// Cancels a call, and with it the task. False if it doesn't run.
    pub(crate) fn cancel(&self, call: &str) -> bool {
        let id = call.parse::<CallId>().ok();
        let task = id.and_then(|id| self.0.lock().get(&id).cloned());
        let Some(task) = task else { return false };
        task.call.cancellation().cancel();
        true
    }
}

impl ServerTask {
    /// Like a task of a client: `input_required` while somebody is asked.
    pub(crate) fn status(&self) -> &'static str {
        match self.call.is_paused() {
            true => "input_required",
            false => "working",
        }
    }

    pub(crate) fn report(&self) -> Option<TaskReport> {
        self.call.task_report()
    }
}
