//! Answers what a task of the extension asks for.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolgate_core::ToolError;

use super::poll::TaskStep;
use super::poll_error::PollError;
use super::state::TaskState;
use super::wait::TaskWait;
use crate::client::call_result::unreadable_error;
use crate::client::server_request::answer_questions;
use crate::client::session::ClientSession;

// Questions that one task may ask in all.
const MAX_QUESTIONS: usize = 128;
const MAX_KEY_LEN: usize = 1024;

/// What a task has asked for.
#[derive(Default)]
pub(super) struct TaskInput {
    // A server repeats its questions until it has worked on the answers.
    answered: HashSet<String>,
    // Answers that have not reached the server.
    unsent: Option<Value>,
    refusal: Option<ToolError>,
}

impl TaskWait<'_> {
    /// Asks what wasn't asked before, and sends the answers.
    pub(super) async fn provide_input(
        &mut self,
        session: &Arc<ClientSession>,
        mut state: TaskState,
    ) -> Result<TaskStep, PollError> {
        let tool = self.context.tool_name();
        let Value::Object(requests) = state.body["inputRequests"].take() else {
            let problem = "its task needs input, and doesn't say which".to_owned();
            return Err(PollError::Final(unreadable_error(tool, problem)));
        };
        let is_new = |(key, _): &(String, Value)| !self.input.answered.contains(key);
        let requests: Map<String, Value> = requests.into_iter().filter(is_new).collect();
        if requests.is_empty() {
            return match self.input.refusal.take() {
                None => Ok(self.not_yet(&state)),
                Some(refusal) => Err(PollError::Final(refusal)),
            };
        }
        if self.input.answered.len() + requests.len() > MAX_QUESTIONS {
            let text = format!("The task of '{tool}' asked more than {MAX_QUESTIONS} questions");
            return Err(PollError::Final(ToolError::failed(text)));
        }
        if requests.keys().any(|key| key.len() > MAX_KEY_LEN) {
            let problem = "a question of its task has an overlong key".to_owned();
            return Err(PollError::Final(unreadable_error(tool, problem)));
        }
        let requests = Value::Object(requests);
        let answers = answer_questions(session, self.server, requests, self.context).await;
        let answers = answers.map_err(|problem| PollError::Final(ToolError::failed(problem)))?;
        self.input.answered.extend(answers.keys().cloned());
        self.input.unsent = Some(Value::Object(answers));
        self.send_answers(session).await?;
        Ok(self.not_yet(&state))
    }

    /// Sends answers until the server has them. Sending them twice does no harm, because the server
    /// uses each key only once.
    pub(super) async fn send_answers(
        &mut self,
        session: &Arc<ClientSession>,
    ) -> Result<(), PollError> {
        let Some(answers) = &self.input.unsent else {
            return Ok(());
        };
        let params = json!({ "taskId": self.task.task_id, "inputResponses": answers });
        let sent = self.request(session, "tasks/update", params).await;
        match sent.map_err(|failure| self.poll_error(failure)) {
            Ok(_) => {}
            // Perhaps the task has ended meanwhile. The next poll shows it.
            Err(PollError::Final(refusal) | PollError::Lost(refusal)) => {
                self.input.refusal = Some(refusal);
            }
            Err(transient) => return Err(transient),
        }
        self.input.unsent = None;
        Ok(())
    }
}
