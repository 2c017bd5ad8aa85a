//! [`SessionNotices`]: notifications for a client of 2025-11-25 outside of its requests, about the
//! status of its tasks and about completed URL elicitations.

use std::collections::VecDeque;

use futures::future::select_all;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use toolgate_core::ElicitationListener;

use super::jsonrpc::{RequestId, notification};
use super::methods::ClientSink;
use super::tasks::{FollowedTask, StartedTask, TaskNotice};

// Tasks with notifications per client. For any other task, the client has to poll.
const MAX_FOLLOWED: usize = 100;
// Pages that are done, for a client that doesn't read its stream.
const MAX_COMPLETED: usize = 100;

/// Keeps only the latest state of each task and at most `MAX_COMPLETED` ids, so a client that
/// doesn't read costs little memory.
#[derive(Default)]
pub(super) struct SessionNotices {
    tasks: Mutex<Vec<FollowedTask>>,
    completed: Mutex<VecDeque<String>>,
    added: Notify,
}

enum NoticeStep {
    Send(Vec<u8>),
    // Until one of these changes, or until it is time.
    Wait {
        changes: Vec<watch::Receiver<()>>,
        due: Option<Instant>,
    },
}

impl ElicitationListener for SessionNotices {
    fn elicitation_completed(&self, id: &str) {
        let mut completed = self.completed.lock();
        if completed.len() == MAX_COMPLETED {
            completed.pop_front();
        }
        completed.push_back(id.to_owned());
        drop(completed);
        self.added.notify_one();
    }
}

impl SessionNotices {
    /// Tells the client of changes of its new task, and of progress if it gave a token.
    pub(super) fn follow_task(&self, task: &StartedTask, token: Option<RequestId>) {
        let mut tasks = self.tasks.lock();
        tasks.retain(FollowedTask::is_kept);
        if tasks.len() < MAX_FOLLOWED {
            tasks.push(FollowedTask::new(task, token));
        }
        drop(tasks);
        self.added.notify_one();
    }

    /// The next message for the client. Cancel safe.
    pub(super) async fn next(&self) -> Vec<u8> {
        loop {
            let (mut changes, due) = match self.next_step() {
                NoticeStep::Send(message) => return message,
                NoticeStep::Wait { changes, due } => (changes, due),
            };
            let changed = async {
                match changes.is_empty() {
                    true => std::future::pending().await,
                    false => select_all(changes.iter_mut().map(|it| Box::pin(it.changed()))).await,
                }
            };
            let is_due = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.added.notified() => {}
                _ = changed => {}
                () = is_due => {}
            }
        }
    }

    fn next_step(&self) -> NoticeStep {
        if let Some(id) = self.completed.lock().pop_front() {
            let params = json!({ "elicitationId": id });
            let message = notification("notifications/elicitation/complete", params);
            return NoticeStep::Send(message);
        }
        let (mut changes, mut due) = (Vec::new(), None);
        let mut tasks = self.tasks.lock();
        tasks.retain(FollowedTask::is_kept);
        for task in tasks.iter_mut() {
            match task.next_notice() {
                TaskNotice::Message(message) => return NoticeStep::Send(message),
                TaskNotice::At(at) => due = due.into_iter().chain([at]).min(),
                TaskNotice::AfterChange(change) => changes.push(change),
                TaskNotice::Over => {}
            }
        }
        NoticeStep::Wait { changes, due }
    }
}

/// Sends notices until the client is gone.
pub(super) async fn send_notices(notices: &SessionNotices, sink: &dyn ClientSink) {
    while sink.send(notices.next().await).await {}
}
