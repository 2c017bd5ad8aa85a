//! One poll of a task, and what its status leads to.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;
use toolgate_core::text::escape;
use toolgate_core::{Progress, ToolError};

use super::TaskProtocol;
use super::poll_error::PollError;
use super::state::{TaskState, TaskStatus};
use super::wait::{ResultRequest, TaskWait};
use crate::client::call_result::{self, ServerAnswer, unreadable_error};
use crate::client::message::RpcError;
use crate::client::session::{ClientSession, SessionError, SessionRequest, TaskUse};
use crate::task_fields::RELATED_TASK;

pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_STATUS_MESSAGE: usize = 1000;

pub(super) enum TaskStep {
    Done(Result<Value, ToolError>),
    NotYet(Duration),
}

impl<'a> TaskWait<'a> {
    pub(super) async fn poll(&mut self) -> Result<TaskStep, PollError> {
        let session = self.attach().await?;
        self.send_answers(&session).await?;
        let params = json!({ "taskId": self.task.task_id });
        let answer = self.request(&session, "tasks/get", params).await;
        let answer = answer.map_err(|failure| self.poll_error(failure))?;
        let state = self.parse(answer).map_err(PollError::Final)?;
        if state.is_terminal() {
            self.mark_over();
        }
        self.pacing.set_lifetime(state.lifetime);
        self.show_message(&session, &state);
        let legacy = self.protocol != TaskProtocol::Extension;
        match state.status {
            TaskStatus::Working => Ok(self.not_yet(&state)),
            TaskStatus::InputRequired if legacy => {
                // The server asks while this request is open.
                if self.collecting.is_none() {
                    self.collecting = Some(self.result_request(&session));
                }
                Ok(self.not_yet(&state))
            }
            TaskStatus::InputRequired => self.provide_input(&session, state).await,
            TaskStatus::Cancelled => {
                let problem = "The server cancelled the task of";
                Ok(TaskStep::Done(Err(self.ended_error(problem, &state))))
            }
            TaskStatus::Completed | TaskStatus::Failed if legacy => {
                self.fetch_result(&session).await.map(TaskStep::Done)
            }
            TaskStatus::Completed => Ok(TaskStep::Done(self.inner_result(state.body))),
            TaskStatus::Failed => Ok(TaskStep::Done(Err(self.failure(state)))),
        }
    }

    pub(super) fn not_yet(&mut self, state: &TaskState) -> TaskStep {
        TaskStep::NotYet(self.pacing.interval(state.interval))
    }

    /// The result that a `tasks/result` gave.
    pub(super) fn collected(&mut self, result: Value) -> Result<Value, ToolError> {
        self.mark_over();
        Ok(without_related_task(result))
    }

    pub(super) fn show_message(&mut self, session: &ClientSession, state: &TaskState) {
        let Some(message) = &state.message else {
            return;
        };
        let message = session.redactor().line(message, MAX_STATUS_MESSAGE);
        if self.last_message.as_ref() == Some(&message) {
            return;
        }
        self.messages += 1;
        self.context.report(&Progress {
            done: f64::from(self.messages),
            total: None,
            message: Some(message.clone()),
            meta: None,
        });
        self.last_message = Some(message);
    }

    /// Sends a request about the task. `None` as the error means that the server didn't answer.
    // Keeps no reference to `self`, which can't be shared between threads.
    pub(super) fn request<'s>(
        &self,
        session: &'s Arc<ClientSession>,
        method: &'static str,
        params: Value,
    ) -> impl Future<Output = Result<Value, Option<SessionError>>> + use<'a, 's> {
        let (task_id, context) = (self.task.task_id.clone(), self.context);
        async move {
            let request = SessionRequest {
                // Sends it to the instance of the server that has the task.
                name: Some(&task_id),
                call: Some(context),
                tasks: TaskUse::Manages,
                ..SessionRequest::new(method, params)
            };
            let answer = timeout(REQUEST_TIMEOUT, session.request(request)).await;
            answer.map_err(|_| None)?.map_err(Some)
        }
    }

    pub(super) fn poll_error(&self, failure: Option<SessionError>) -> PollError {
        let tool = self.context.tool_name();
        match failure {
            Some(failure) => PollError::new(self.server, tool, failure),
            None => PollError::no_answer(tool),
        }
    }

    /// The current session, after a reconnect another one than before.
    async fn attach(&mut self) -> Result<Arc<ClientSession>, PollError> {
        let session = self.link.session(self.context.tool_name()).await;
        let session = session.map_err(PollError::Transient)?;
        let attached = self.registration.as_ref();
        if attached.is_some_and(|attached| Arc::ptr_eq(attached.session(), &session)) {
            return Ok(session);
        }
        let revision = session.revision().unwrap_or_default();
        if revision != self.task.revision {
            let text = format!(
                "The task of '{}' can't be continued: it was created in MCP {}, \
                 and its server '{}' now uses {}",
                self.context.tool_name(),
                escape(&self.task.revision),
                escape(self.server),
                escape(&revision),
            );
            return Err(PollError::Lost(ToolError::failed(text)));
        }
        // An answer to a request of the old session will never come.
        self.collecting = None;
        let registration = session.register_task(&self.task.task_id, None, self.context);
        self.registration = Some(registration);
        Ok(session)
    }

    fn parse(&self, answer: Value) -> Result<TaskState, ToolError> {
        let unreadable =
            |problem: &str| unreadable_error(self.context.tool_name(), problem.to_owned());
        let state = TaskState::parse(answer, self.protocol).map_err(unreadable)?;
        match state.id == self.task.task_id {
            true => Ok(state),
            false => Err(unreadable("the state of another task")),
        }
    }

    fn result_request(&self, session: &Arc<ClientSession>) -> ResultRequest {
        let session = Arc::clone(session);
        let (task_id, context) = (self.task.task_id.clone(), self.context.clone());
        Box::pin(async move {
            let request = SessionRequest {
                name: Some(&task_id),
                call: Some(&context),
                tasks: TaskUse::Manages,
                ..SessionRequest::new("tasks/result", json!({ "taskId": task_id }))
            };
            session.request(request).await
        })
    }

    async fn fetch_result(
        &mut self,
        session: &Arc<ClientSession>,
    ) -> Result<Result<Value, ToolError>, PollError> {
        let collecting = self.collecting.take();
        let collecting = collecting.unwrap_or_else(|| self.result_request(session));
        match timeout(REQUEST_TIMEOUT, collecting).await {
            Ok(Ok(result)) => Ok(self.collected(result)),
            // It is the error of the call itself.
            Ok(Err(failure @ SessionError::Rpc(_))) => {
                let tool = self.context.tool_name();
                Ok(Err(call_result::to_tool_error(self.server, tool, failure)))
            }
            Ok(Err(failure)) => Err(self.poll_error(Some(failure))),
            Err(_) => Err(self.poll_error(None)),
        }
    }

    fn inner_result(&self, mut body: Value) -> Result<Value, ToolError> {
        let tool = self.context.tool_name();
        match call_result::parse_answer(tool, body["result"].take(), |_| false)? {
            ServerAnswer::Complete(result) => Ok(without_related_task(result)),
            _ => Err(unreadable_error(
                tool,
                "a result of a task that is not complete".to_owned(),
            )),
        }
    }

    fn failure(&self, mut state: TaskState) -> ToolError {
        match serde_json::from_value::<RpcError>(state.body["error"].take()) {
            Ok(error) => {
                let tool = self.context.tool_name();
                call_result::to_tool_error(self.server, tool, SessionError::Rpc(error))
            }
            Err(_) => self.ended_error("The server could not complete the task of", &state),
        }
    }

    fn ended_error(&self, problem: &str, state: &TaskState) -> ToolError {
        let tool = self.context.tool_name();
        let reason = state.message.as_deref().unwrap_or_default().trim();
        let reason: String = reason.chars().take(MAX_STATUS_MESSAGE).collect();
        ToolError::failed(match reason.is_empty() {
            true => format!("{problem} '{tool}'"),
            false => format!("{problem} '{tool}': {reason}"),
        })
    }
}

/// Clients of ours know nothing of the server's tasks.
fn without_related_task(mut result: Value) -> Value {
    if let Some(Value::Object(meta)) = result.get_mut("_meta") {
        meta.shift_remove(RELATED_TASK);
    }
    result
}
