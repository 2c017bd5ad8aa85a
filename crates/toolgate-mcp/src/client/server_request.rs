//! One request to a server on behalf of a call: waits for the server, answers its questions, and
//! retries where that can do no harm.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};
use toolgate_core::{CallContext, Question, ToolError};

use super::call_result::{self, ServerAnswer};
use super::link::ServerLink;
use super::session::{ClientSession, SessionError, SessionRequest};

// How often a server may ask for input before it answers a call.
pub(super) const MAX_QUESTION_ROUNDS: usize = 8;
// Questions that one result may ask.
const MAX_QUESTIONS: usize = 16;
// The server wants other headers than the tool's schema said, so its tools have changed.
const HEADER_MISMATCH: i64 = -32020;

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
}

#[derive(Serialize)]
struct AnsweredParams<'a, P> {
    #[serde(flatten)]
    params: &'a P,
    #[serde(rename = "inputResponses", skip_serializing_if = "Option::is_none")]
    responses: Option<Map<String, Value>>,
    #[serde(rename = "requestState", skip_serializing_if = "Value::is_null")]
    state: Value,
}

impl<P: Serialize> ServerRequest<'_, P> {
    /// Returns the complete result.
    pub(super) async fn run(&self, context: &CallContext) -> Result<Value, ToolError> {
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
    ) -> Result<Result<Value, ToolError>, SessionError> {
        let tool = context.tool_name();
        session.prepare_logging(context).await;
        let mut params = AnsweredParams {
            params: &self.params,
            responses: None,
            state: Value::Null,
        };
        for _ in 0..MAX_QUESTION_ROUNDS {
            let request = SessionRequest {
                name: self.name,
                headers: self.headers.clone(),
                call: Some(context),
                ..SessionRequest::new(self.method.clone(), &params)
            };
            let result = session.request(request).await;
            let result = result.map_err(|failure| match failure {
                // The server has seen the first request, so a restart would run the
                // tool a second time.
                SessionError::NotSent(reason) if params.responses.is_some() => {
                    SessionError::Interrupted(reason)
                }
                other => other,
            })?;
            let (requests, state) = match call_result::parse_answer(tool, result) {
                Ok(ServerAnswer::Complete(result)) => return Ok(Ok(result)),
                Ok(ServerAnswer::InputRequired { requests, state }) => (requests, state),
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
}

async fn answer_questions(
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
