//! The tasks that calls of this session wait for. Between two polls no request is open, so this is
//! where a message of the server finds the call that it is about.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Notify, watch};
use toolgate_core::{CallContext, Redactor};

use super::pending_calls::{AbandonedCall, PendingCall};
use super::{AbandonedRequest, ClientSession, MAX_ABANDONED_IDS};
use crate::client::tasks::{TaskProtocol, cancel_at, created_task_id};

pub(super) struct RunningTask {
    // Orders it among the requests of the session.
    number: u64,
    task_id: String,
    // The request that became the task. Progress of the task still has its id.
    progress_token: Option<u64>,
    call: CallContext,
    changed: Arc<Notify>,
    ended: watch::Sender<()>,
}

impl RunningTask {
    pub(super) fn has_id(&self, task_id: &str) -> bool {
        self.task_id == task_id
    }

    fn to_pending_call(&self) -> PendingCall {
        PendingCall::new(self.number, &self.call, &self.ended)
    }
}

/// Keeps a task in its session while a call waits for it.
pub(crate) struct TaskRegistration {
    session: Arc<ClientSession>,
    number: u64,
    changed: Arc<Notify>,
    is_over: bool,
}

impl TaskRegistration {
    pub(crate) fn session(&self) -> &Arc<ClientSession> {
        &self.session
    }

    /// Returns once the server has said that the task changed.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The server won't do anything more for the task.
    pub(crate) fn mark_over(&mut self) {
        self.is_over = true;
    }
}

impl Drop for TaskRegistration {
    fn drop(&mut self) {
        let mut tasks = self.session.tasks.lock();
        let place = tasks.iter().position(|task| task.number == self.number);
        let task = place.map(|place| tasks.swap_remove(place));
        drop(tasks);
        if let Some(task) = task.filter(|_| !self.is_over) {
            self.session.abandon_call(&task.call);
        }
    }
}

impl ClientSession {
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    pub(crate) fn redactor(&self) -> &Redactor {
        self.diagnostics.redactor()
    }

    /// How tasks work in this session; `None` if the server has none.
    pub(crate) fn task_protocol(&self) -> Option<TaskProtocol> {
        let revision = self.revision.get()?;
        self.offer.get()?.tasks.protocol(self.is_modern(), revision)
    }

    pub(crate) fn register_task(
        self: &Arc<Self>,
        task_id: &str,
        progress_token: Option<u64>,
        call: &CallContext,
    ) -> TaskRegistration {
        let number = self.new_id();
        let changed = Arc::new(Notify::new());
        self.tasks.lock().push(RunningTask {
            number,
            task_id: task_id.to_owned(),
            progress_token,
            call: call.clone(),
            changed: Arc::clone(&changed),
            ended: watch::Sender::new(()),
        });
        TaskRegistration {
            session: Arc::clone(self),
            number,
            changed,
            is_over: false,
        }
    }

    /// The calls that wait for tasks.
    pub(super) fn task_calls(&self) -> Vec<PendingCall> {
        let tasks = self.tasks.lock();
        tasks.iter().map(RunningTask::to_pending_call).collect()
    }

    /// The call that waits for a task. A server may ask right after it has created the task, so a
    /// task that isn't known yet is waited for.
    pub(super) async fn find_task_call(&self, task_id: &str) -> Option<PendingCall> {
        for _ in 0..20 {
            let call = self.find_task(|task| task.has_id(task_id));
            if call.is_some() {
                return call;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        None
    }

    pub(super) fn task_with_progress(&self, token: u64) -> Option<PendingCall> {
        self.find_task(|task| task.progress_token == Some(token))
    }

    pub(super) fn find_task(&self, is_match: impl Fn(&RunningTask) -> bool) -> Option<PendingCall> {
        let tasks = self.tasks.lock();
        let task = tasks.iter().find(|task| is_match(task));
        task.map(RunningTask::to_pending_call)
    }

    /// Has a task polled soon. What else the notification says isn't used: only the answer to a
    /// request is certain to be the latest.
    pub(super) fn mark_task_changed(&self, task_id: &str) {
        let tasks = self.tasks.lock();
        for task in tasks.iter().filter(|task| task.task_id == task_id) {
            task.changed.notify_one();
        }
    }

    /// Ends a task that began when its call was already cancelled.
    pub(super) fn cancel_unwanted_task(self: &Arc<Self>, answer: &Value) {
        let Some(protocol) = self.task_protocol() else {
            return;
        };
        if let Some(task_id) = created_task_id(protocol, answer) {
            let (session, task_id) = (Arc::clone(self), task_id.to_owned());
            tokio::spawn(async move { cancel_at(&session, &task_id).await });
        }
    }

    // The server may go on with the call for a while, and ask on its behalf.
    fn abandon_call(&self, call: &CallContext) {
        self.remember_abandoned(AbandonedCall::new(call, self.abandoned_log_caller(call)));
    }

    pub(super) fn remember_abandoned(&self, call: AbandonedCall) {
        let mut pending = self.pending.lock();
        if pending.abandoned.len() == MAX_ABANDONED_IDS {
            pending.abandoned.pop_front();
        }
        pending.abandoned.push_back(AbandonedRequest {
            id: self.new_id(),
            call: Some(call),
            may_become_task: false,
        });
    }
}
