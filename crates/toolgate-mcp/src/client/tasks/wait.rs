//! [`TaskWait`]: waits for the result of a task.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{sleep, timeout};
use toolgate_core::text::escape;
use toolgate_core::{CallContext, RemoteTask, ToolError};
use tracing::{debug, info};

use super::cancel::{cancel_at, cancel_through};
use super::input::TaskInput;
use super::pacing::{MIN_INTERVAL, TaskPacing};
use super::poll::TaskStep;
use super::poll_error::PollError;
use super::state::{TaskState, TaskStatus};
use super::{TaskProtocol, is_usable_id};
use crate::client::call_result::unreadable_error;
use crate::client::link::ServerLink;
use crate::client::server_request::StartedTask;
use crate::client::session::{SessionError, TaskRegistration};

pub(super) type ResultRequest = BoxFuture<'static, Result<Value, SessionError>>;

/// Cancels the task on drop, unless it is over.
pub(crate) struct TaskWait<'a> {
    pub(super) server: &'a str,
    pub(super) link: &'a ServerLink,
    pub(super) context: &'a CallContext,
    pub(super) protocol: TaskProtocol,
    pub(super) task: RemoteTask,
    pub(super) pacing: TaskPacing,
    first_delay: Duration,
    // The session that the task was last polled in.
    pub(super) registration: Option<TaskRegistration>,
    // The open `tasks/result` of 2025-11-25, which blocks until the task is over.
    pub(super) collecting: Option<ResultRequest>,
    pub(super) input: TaskInput,
    pub(super) last_message: Option<String>,
    pub(super) messages: u32,
    pub(super) is_over: bool,
    // The task goes on without this process.
    is_left: bool,
    permit: Option<OwnedSemaphorePermit>,
}

impl<'a> TaskWait<'a> {
    /// For a call that has just become a task.
    pub(crate) fn start(
        server: &'a str,
        link: &'a ServerLink,
        context: &'a CallContext,
        started: StartedTask,
    ) -> Result<Self, ToolError> {
        let id = started.state["taskId"].as_str().unwrap_or_default();
        let id = is_usable_id(id).then(|| id.to_owned());
        let state = match TaskState::parse(started.state, started.protocol) {
            Ok(state) => state,
            Err(problem) => {
                // Nobody will wait for it.
                if let Some(id) = id {
                    let session = started.session;
                    tokio::spawn(async move { cancel_at(&session, &id).await });
                }
                return Err(unreadable_error(context.tool_name(), problem.to_owned()));
            }
        };
        let mut pacing = TaskPacing::new(&state);
        let task = RemoteTask {
            server: server.to_owned(),
            task_id: state.id.clone(),
            revision: started.session.revision().unwrap_or_default(),
            expires: pacing.expiry_time(),
        };
        let first_delay = match state.status {
            TaskStatus::Working => pacing.interval(state.interval),
            _ => Duration::ZERO,
        };
        info!(server = %escape(server), tool = %escape(context.tool_name()), "the call goes on as a task of its server");
        let mut wait = Self::new(server, link, context, started.protocol, task, pacing);
        let token = Some(started.request_id);
        let task_id = &wait.task.task_id;
        let registration = started.session.register_task(task_id, token, context);
        wait.first_delay = first_delay;
        wait.registration = Some(registration);
        wait.show_message(&started.session, &state);
        Ok(wait)
    }

    /// For a task that an earlier call left behind.
    pub(crate) fn resume(
        server: &'a str,
        link: &'a ServerLink,
        context: &'a CallContext,
        task: &RemoteTask,
    ) -> Result<Self, ToolError> {
        let protocol = TaskProtocol::of_revision(&task.revision);
        let protocol = protocol.ok_or_else(|| {
            ToolError::failed(format!(
                "The task can't be continued: MCP {} has no tasks",
                escape(&task.revision)
            ))
        })?;
        let pacing = TaskPacing::of_resumed(task.expires);
        Ok(Self::new(
            server,
            link,
            context,
            protocol,
            task.clone(),
            pacing,
        ))
    }

    fn new(
        server: &'a str,
        link: &'a ServerLink,
        context: &'a CallContext,
        protocol: TaskProtocol,
        task: RemoteTask,
        pacing: TaskPacing,
    ) -> Self {
        context.announce_task(&task);
        Self {
            server,
            link,
            context,
            protocol,
            task,
            pacing,
            first_delay: Duration::ZERO,
            registration: None,
            collecting: None,
            input: TaskInput::default(),
            last_message: None,
            messages: 0,
            is_over: false,
            is_left: false,
            permit: link.tasks().count(),
        }
    }

    /// Returns the complete result of the call.
    pub(crate) async fn run(mut self) -> Result<Value, ToolError> {
        let (link, server, context) = (self.link, self.server, self.context);
        tokio::select! {
            biased; // What is left alone isn't cancelled, even if its server stops too.
            () = context.leave_requested() => Err(self.leave()),
            result = self.follow() => result,
            () = link.closed() => {
                let reason = format!("its server '{}' was stopped", escape(server));
                Err(ToolError::unavailable(context.tool_name(), reason))
            }
        }
    }

    /// Leaves the task to the process that continues the call.
    fn leave(&mut self) -> ToolError {
        self.is_left = true;
        self.context.leave_to_server();
        let (server, tool) = (self.server, self.context.tool_name());
        let call = self.context.id();
        info!(server = %escape(server), tool = %escape(tool), %call, "the call goes on at its server while Toolgate is stopped");
        let reason = format!(
            "Toolgate is stopping; its server '{}' goes on with the call, which is continued after a restart",
            escape(server)
        );
        ToolError::unavailable(tool, reason)
    }

    async fn follow(&mut self) -> Result<Value, ToolError> {
        let mut delay = self.first_delay;
        loop {
            let step = match self.wait_until_due(delay).await {
                Some(Ok(result)) => return self.collected(result),
                // The next poll shows whether the task itself failed.
                Some(Err(failure)) => Err(PollError::of_collecting(
                    self.server,
                    self.context.tool_name(),
                    failure,
                )),
                None => self.poll().await,
            };
            let next = match step {
                Ok(TaskStep::Done(result)) => return result,
                Ok(TaskStep::NotYet(next)) => next,
                Err(PollError::Final(error)) => return Err(error),
                Err(PollError::Lost(error)) => {
                    self.mark_over();
                    return Err(error);
                }
                Err(PollError::Transient(error)) => match self.pacing.retry_delay() {
                    Some(next) => {
                        debug!(server = %escape(self.server), problem = %escape(&error.to_string()), "a task could not be polled; trying again");
                        next
                    }
                    None => return Err(error),
                },
            };
            delay = self
                .pacing
                .until_expiry(next)
                .map_err(|lifetime| self.expired_error(lifetime))?;
        }
    }

    /// Returns after the delay, or earlier if the server says that something changed. Returns the
    /// answer to an open `tasks/result`, if it comes first.
    async fn wait_until_due(&mut self, delay: Duration) -> Option<Result<Value, SessionError>> {
        let shortest = delay.min(MIN_INTERVAL);
        let registration = self.registration.as_ref();
        let due = async {
            sleep(shortest).await;
            let Some(registration) = registration else {
                return sleep(delay - shortest).await;
            };
            drop(timeout(delay - shortest, registration.changed()).await);
        };
        let Some(collecting) = &mut self.collecting else {
            due.await;
            return None;
        };
        let answer = tokio::select! {
            answer = collecting => answer,
            () = due => return None,
        };
        self.collecting = None;
        Some(answer)
    }

    pub(super) fn mark_over(&mut self) {
        self.is_over = true;
        if let Some(registration) = &mut self.registration {
            registration.mark_over();
        }
    }

    fn expired_error(&self, lifetime: Duration) -> ToolError {
        let tool = self.context.tool_name();
        let seconds = lifetime.as_secs_f64();
        ToolError::failed(format!(
            "The task of '{tool}' did not end within the {seconds} s that its server gives it"
        ))
    }
}

impl Drop for TaskWait<'_> {
    fn drop(&mut self) {
        if self.is_over || self.is_left {
            return;
        }
        if self.context.is_leave_requested() && !self.context.cancellation().is_cancelled() {
            // Its caller was cut off by the shutdown, and didn't cancel it.
            return drop(self.leave());
        }
        let Some(registration) = &self.registration else {
            return;
        };
        let session = Arc::clone(registration.session());
        let (link, task_id) = (self.link.clone(), std::mem::take(&mut self.task.task_id));
        let tool = self.context.tool_name().to_owned();
        let permit = self.permit.take();
        // A future may be dropped outside a runtime, where nothing can be spawned.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                cancel_through(&link, session, &tool, &task_id).await;
                // A shutdown waits for it.
                drop(permit);
            });
        }
    }
}
