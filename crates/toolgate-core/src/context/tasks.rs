//! Calls that go on as tasks: of their server, or of a client that comes back for the result.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::{CallContext, nanos};
use crate::RemoteTask;
use crate::executor::panic_text;

/// Tells a call, even before it starts, that its caller no longer waits
/// for it: see [`ToolCall::task_handle`](crate::ToolCall::task_handle).
#[derive(Debug, Clone, Default)]
pub struct TaskHandle(Arc<TaskHandleState>);

#[derive(Debug, Default)]
struct TaskHandleState {
    is_task: AtomicBool,
    leaving: CancellationToken,
}

impl TaskHandle {
    /// The call is a task of its caller now: `limits.maxTask` is its hard limit instead of
    /// `limits.maxTotal`. Its timeout without progress stays.
    pub fn become_task(&self) {
        self.0.is_task.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_task(&self) -> bool {
        self.0.is_task.load(Ordering::Relaxed)
    }

    /// Like [`ToolExecutor::leave_tasks`](crate::ToolExecutor::leave_tasks), for this call.
    pub fn request_leave(&self) {
        self.0.leaving.cancel();
    }
}

impl CallContext {
    /// The task to wait for, if this call continues one. The tool must not run again.
    pub fn resumed_task(&self) -> Option<&RemoteTask> {
        self.0.resumed_task.as_ref()
    }

    /// Tells the observers that the server continues this call as a task, so that it can be resumed
    /// after a restart. From now on, `limits.maxTask` or the caller's own limit counts instead of
    /// the tool's, and the call's slot is free for others.
    pub fn announce_task(&self, task: &RemoteTask) {
        let limit = nanos(self.0.task_limit);
        self.0.hard_limit.fetch_max(limit, Ordering::Relaxed);
        self.0.deadline.fetch_max(limit, Ordering::Relaxed);
        // A slot bounds the requests that a server works on at the same time. Nothing is open while
        // a task runs, only short polls, and tasks of hours would keep all other calls out.
        self.release_slot();
        self.start_reports();
        for observer in self.0.executor.observers() {
            // An observer that panics must not end the call.
            let announced = AssertUnwindSafe(|| observer.became_task(self, task));
            if let Err(panic) = catch_unwind(announced) {
                warn!(panic = panic_text(&*panic), "an observer panicked");
            }
        }
    }

    /// Returns when this process stops and another one will continue calls that wait for tasks
    /// of servers. A tool that waits for one then [leaves](Self::leave_to_server) the task alone
    /// and returns an error.
    pub async fn leave_requested(&self) {
        let by_all = self.0.executor.leaving().cancelled();
        match &self.0.task_handle {
            None => by_all.await,
            Some(handle) => {
                tokio::select! {
                    () = by_all => {}
                    () = handle.0.leaving.cancelled() => {}
                }
            }
        }
    }

    pub fn is_leave_requested(&self) -> bool {
        let handle = self.0.task_handle.as_ref();
        self.0.executor.leaving().is_cancelled()
            || handle.is_some_and(|handle| handle.0.leaving.is_cancelled())
    }

    /// Records that the server goes on with the call while this process ends, so that its error
    /// isn't how the call ends.
    pub fn leave_to_server(&self) {
        self.0.is_left_to_server.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_left_to_server(&self) -> bool {
        self.0.is_left_to_server.load(Ordering::Relaxed)
    }
}
