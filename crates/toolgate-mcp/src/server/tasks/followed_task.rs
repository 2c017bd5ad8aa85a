//! [`FollowedTask`]: a task whose client is told of every change, on the stream of its session.

use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;

use super::runner::StartedTask;
use super::task::ClientTask;
use super::task_end::TaskStatus;
use crate::server::call_reports::progress_message;
use crate::server::jsonrpc::{RequestId, notification};
use crate::task_fields::RELATED_TASK;

// Changes within this time are announced once.
const COALESCE: Duration = Duration::from_millis(100);
// A longer token isn't kept.
const MAX_TOKEN_LEN: usize = 256;

pub(in crate::server) struct FollowedTask {
    id: String,
    // Only the table decides how long a task is kept.
    task: Weak<ClientTask>,
    // The client's token for progress, which stays valid until the task ends.
    token: Option<RequestId>,
    // What the client knows.
    status: TaskStatus,
    message: Option<String>,
    done: f64,
    // No earlier than this, so that no message overtakes the answer with the task's id.
    next: Instant,
}

/// What there is to tell about a task.
pub(in crate::server) enum TaskNotice {
    Message(Vec<u8>),
    /// There is something, but not before this time.
    At(Instant),
    AfterChange(watch::Receiver<()>),
    /// Nothing will ever follow.
    Over,
}

impl FollowedTask {
    pub(in crate::server) fn new(started: &StartedTask, token: Option<RequestId>) -> Self {
        let is_short = |token: &RequestId| match token {
            RequestId::Number(_) => true,
            RequestId::Text(text) => text.len() <= MAX_TOKEN_LEN,
        };
        Self {
            id: started.id.clone(),
            task: Arc::downgrade(&started.task),
            token: token.filter(is_short),
            status: TaskStatus::Working,
            message: None,
            done: f64::NEG_INFINITY,
            next: Instant::now() + COALESCE,
        }
    }

    /// False if there is nothing more to tell.
    pub(in crate::server) fn is_kept(&self) -> bool {
        !self.status.is_end() && self.task.strong_count() > 0
    }

    pub(in crate::server) fn next_notice(&mut self) -> TaskNotice {
        let Some(task) = self.task.upgrade().filter(|_| self.is_kept()) else {
            return TaskNotice::Over;
        };
        // Before the state is read, so that no change is missed.
        let changes = task.watch();
        let (status, message, _) = task.status();
        let progress = self.token.as_ref().and_then(|token| {
            let is_new = |done: f64| done.is_finite() && done > self.done;
            let progress = task.progress().filter(|progress| is_new(progress.done));
            // None may follow the end.
            Some((token, progress.filter(|_| !status.is_end())?))
        });
        // Messages come with the progress, if the client wants that.
        let has_new_message = self.token.is_none() && message != self.message;
        if progress.is_none() && status == self.status && !has_new_message {
            return TaskNotice::AfterChange(changes);
        }
        if Instant::now() < self.next {
            return TaskNotice::At(self.next);
        }
        if let Some((token, mut progress)) = progress {
            let related = json!({ "taskId": self.id });
            let meta = progress.meta.get_or_insert_default();
            meta.insert(RELATED_TASK.to_owned(), related);
            self.done = progress.done;
            // A changed status follows at once.
            let message = progress_message(token, progress);
            if status == self.status {
                self.next = Instant::now() + COALESCE;
            }
            return TaskNotice::Message(message);
        }
        (self.status, self.message) = (status, message);
        self.next = Instant::now() + COALESCE;
        let params = task.to_seed(&self.id);
        TaskNotice::Message(notification("notifications/tasks/status", params.into()))
    }
}
