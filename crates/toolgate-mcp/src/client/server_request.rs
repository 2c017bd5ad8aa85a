//! One request to a server on behalf of a call: waits for the server, answers its questions, and
//! retries where that can do no harm.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};
use toolgate_core::{CallContext, Question, ToolError};

use super::call_result::{self, ServerAnswer};
use super::extension_access::shares_extension;
use super::link::ServerLink;
use super::session::{ClientSession, SessionError, SessionRequest, TaskUse};
use super::tasks::{MAX_TASKS, TaskProtocol, TaskSupport, take_created_task};

// How often a server may ask for input before it answers a call.
pub(super) const MAX_QUESTION_ROUNDS: usize = 8;
// Questions that one result may ask.
const MAX_QUESTIONS: usize = 16;
// The server wants other headers than the tool's schema said, so its tools have changed.
const HEADER_MISMATCH: i64 = -32020;
// JSON numbers are exact up to here.
const MAX_TTL: u64 = (1 << 53) - 1;

/// A request that runs as part of a call.
pub(super) struct ServerRequest<'a, P> {
    pub(super) server: &'a str,
    pub(super) link: &'a ServerLink,
    pub(super) method: Cow<'static, str>,
    /// The tool, prompt or URI, which modern HTTP servers also want in a header.
    pub(super) name: Option<&'a str>,
    pub(super) params: P,
    pub(super) headers: Vec<(String, String)>,
    /// A second request can do no harm.
    pub(super) is_repeatable: bool,
    /// A tool that must not have been withheld in the meantime.
    pub(super) pinned_tool: Option<&'a str>,
    /// What the tool says about tasks; `None` if the method can't become one.
    pub(super) task_support: Option<TaskSupport>,
}

/// What a request came to.
pub(super) enum RequestOutcome {
    Complete(Value),
    /// A result of a kind that an extension defines.
    Extension(Value),
    Task(StartedTask),
}

/// A task that a call became.
pub(crate) struct StartedTask {
    pub(crate) session: Arc<ClientSession>,
    pub(crate) protocol: TaskProtocol,
    /// The id of the request, which is also the token of its progress.
    pub(crate) request_id: u64,
    pub(crate) state: Value,
}

#[derive(Serialize)]
struct AnsweredParams<'a, P> {
    #[serde(flatten)]
    params: &'a P,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<TaskParams>,
    #[serde(rename = "inputResponses", skip_serializing_if = "Option::is_none")]
    responses: Option<Map<String, Value>>,
    #[serde(rename = "requestState", skip_serializing_if = "Value::is_null")]
    state: Value,
}

/// Asks a server of 2025-11-25 for a task.
#[derive(Serialize)]
struct TaskParams {
    // Milliseconds.
    ttl: u64,
}

impl<P: Serialize> ServerRequest<'_, P> {
    /// Returns the complete result, or the task that the call became.
    pub(super) async fn run(&self, context: &CallContext) -> Result<RequestOutcome, ToolError> {
        let tool = context.tool_name();
        let mut may_retry = true;
        loop {
            let session = self.link.session(tool).await?;
            if let Some(pinned) = self.pinned_tool {
                self.link.check_not_withheld(pinned, tool)?;
            }
            let failure = match self.ask_until_complete(&session, context).await {
                Ok(answer) => return answer,
                Err(failure) => failure,
            };
            if matches!(&failure, SessionError::Rpc(error) if error.code == HEADER_MISMATCH) {
                session.mark_lists_changed();
            }
            // Retry at most once, and never if the call may have had an effect.
            let is_harmless = match &failure {
                SessionError::NotSent(_) => true,
                SessionError::Stopped(_) | SessionError::Interrupted(_) => self.is_repeatable,
                _ => false,
            };
            if !(may_retry && is_harmless) {
                return Err(call_result::to_tool_error(self.server, tool, failure));
            }
            may_retry = false;
            session.wait_briefly_for_end().await;
        }
    }

    async fn ask_until_complete(
        &self,
        session: &Arc<ClientSession>,
        context: &CallContext,
    ) -> Result<Result<RequestOutcome, ToolError>, SessionError> {
        let tool = context.tool_name();
        session.prepare_logging(context).await;
        let tasks = match self.task_request(session, context) {
            Ok(tasks) => tasks,
            Err(error) => return Ok(Err(error)),
        };
        let mut params = AnsweredParams {
            params: &self.params,
            task: tasks.params,
            responses: None,
            state: Value::Null,
        };
        for _ in 0..MAX_QUESTION_ROUNDS {
            let (request_id, mut result) = self
                .send_round(session, context, &params, tasks.declared)
                .await?;
            if let Some(protocol) = tasks.expected
                && let Some(state) = take_created_task(protocol, &mut result)
            {
                return Ok(Ok(RequestOutcome::Task(StartedTask {
                    session: Arc::clone(session),
                    protocol,
                    request_id,
                    state,
                })));
            }
            let is_shared = |kind: &str| shares_extension(context, self.server, kind);
            let (requests, state) = match call_result::parse_answer(tool, result, is_shared) {
                Ok(ServerAnswer::Complete(result)) => {
                    return Ok(Ok(RequestOutcome::Complete(result)));
                }
                Ok(ServerAnswer::Extension(result)) => {
                    return Ok(Ok(RequestOutcome::Extension(result)));
                }
                Ok(ServerAnswer::InputRequired { requests, state }) => (requests, state),
                // Nobody said that this may become a task.
                Ok(ServerAnswer::Task) => return Ok(Err(unexpected_task_error(tool))),
                Err(error) => return Ok(Err(error)),
            };
            match answer_questions(session, self.server, requests, context).await {
                Ok(responses) => params.responses = Some(responses),
                Err(problem) => return Ok(Err(ToolError::failed(problem))),
            }
            params.state = state;
        }
        let text = format!(
            "The server of '{tool}' asked for input {MAX_QUESTION_ROUNDS} times without completing the call"
        );
        Ok(Err(ToolError::failed(text)))
    }

    async fn send_round(
        &self,
        session: &Arc<ClientSession>,
        context: &CallContext,
        params: &AnsweredParams<'_, P>,
        tasks: TaskUse,
    ) -> Result<(u64, Value), SessionError> {
        let request = SessionRequest {
            name: self.name,
            headers: self.headers.clone(),
            call: Some(context),
            tasks,
            ..SessionRequest::new(self.method.clone(), params)
        };
        let result = session.numbered_request(request).await;
        result.map_err(|failure| match failure {
            // The server has seen the first request, so a restart would run the tool a second time.
            SessionError::NotSent(reason) if params.responses.is_some() => {
                SessionError::Interrupted(reason)
            }
            other => other,
        })
    }
}

/// What a request says about tasks.
struct TaskRequest {
    declared: TaskUse,
    // The kind of task that the answer may be.
    expected: Option<TaskProtocol>,
    params: Option<TaskParams>,
}

impl<P> ServerRequest<'_, P> {
    fn task_request(
        &self,
        session: &ClientSession,
        context: &CallContext,
    ) -> Result<TaskRequest, ToolError> {
        let mut request = TaskRequest {
            declared: TaskUse::Never,
            expected: None,
            params: None,
        };
        let (Some(support), Some(protocol)) = (self.task_support, session.task_protocol()) else {
            return Ok(request);
        };
        let has_room = self.link.tasks().has_room();
        let asks = match protocol {
            TaskProtocol::Extension => has_room,
            TaskProtocol::Legacy { .. } => match support {
                // A plain call brings its result, progress and log messages without polls.
                TaskSupport::Forbidden | TaskSupport::Optional => false,
                TaskSupport::Required if !has_room => {
                    return Err(ToolError::Overloaded {
                        tool: context.tool_name().to_owned(),
                        limit: MAX_TASKS,
                    });
                }
                TaskSupport::Required => true,
            },
        };
        if !asks {
            return Ok(request);
        }
        request.expected = Some(protocol);
        request.declared = TaskUse::MayBecome;
        if protocol != TaskProtocol::Extension {
            let ttl = context.executor().rules().limits.max_task.as_millis();
            request.params = Some(TaskParams {
                ttl: u64::try_from(ttl).unwrap_or(u64::MAX).min(MAX_TTL),
            });
        }
        Ok(request)
    }
}

pub(super) fn unexpected_task_error(tool: &str) -> ToolError {
    call_result::unreadable_error(tool, "a task that was not asked for".to_owned())
}

pub(super) async fn answer_questions(
    session: &Arc<ClientSession>,
    server: &str,
    requests: Value,
    context: &CallContext,
) -> Result<Map<String, Value>, String> {
    let Value::Object(requests) = requests else {
        return Ok(Map::new());
    };
    let question = |(key, mut request): (String, Value)| Question {
        key,
        server: server.to_owned(),
        method: request["method"].as_str().unwrap_or_default().to_owned(),
        params: request["params"].take(),
    };
    let questions: Vec<Question> = requests
        .into_iter()
        .take(MAX_QUESTIONS)
        .map(question)
        .collect();
    let keys: Vec<String> = questions
        .iter()
        .map(|question| question.key.clone())
        .collect();
    let answers = session.answer_questions(questions, context).await;
    let answers = answers.map_err(|error| error.message)?;
    Ok(keys.into_iter().zip(answers).collect())
}
