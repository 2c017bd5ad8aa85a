//! Answers the server's questions: by the client whose call made it ask, by a person here, or with
//! a refusal that says why.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_core::{
    CallContext, ClientId, PausedClock, Progress, Question, QuestionError, QuestionHandler,
};

use super::ClientSession;
use crate::client::diagnostics::NoiseKind;
use crate::client::message::RpcError;
use crate::client::tasks::RELATED_TASK;

// How long a server may go on with a cancelled call that it doesn't answer, and ask on its behalf.
const STILL_ASKING: Duration = Duration::from_secs(120);

impl ClientSession {
    /// Answers a request that the server sent by itself. It doesn't say which call it is about,
    /// unless it is about a task.
    pub(super) async fn answer_request(
        &self,
        method: String,
        mut params: Value,
    ) -> Result<Value, RpcError> {
        let task = take_related_task(&mut params);
        let question = Question {
            key: "question".to_owned(),
            server: self.server.clone(),
            method,
            params,
        };
        let (calls, handler) = match task {
            // A task that no call waits for has nobody behind it.
            Some(task) => {
                let call = self.find_task_call(&task).await;
                let handler = call.as_ref().and_then(|call| call.questions().cloned());
                (call.into_iter().collect(), handler)
            }
            None => {
                let calls = self.pending_calls();
                let handler = only_handler(&calls);
                let handler = handler.filter(|it| self.can_only_be_asked_by(it.client()));
                (calls, handler)
            }
        };
        let mut answers = self.answer(vec![question], handler, &calls).await?;
        Ok(answers.pop().unwrap_or_default())
    }

    /// Answers what a call needs to go on, in the order of the questions.
    pub(crate) async fn answer_questions(
        &self,
        questions: Vec<Question>,
        call: &CallContext,
    ) -> Result<Vec<Value>, RpcError> {
        let calls = std::slice::from_ref(call);
        self.answer(questions, call.questions().cloned(), calls)
            .await
    }

    /// The clocks of `calls` stop meanwhile, because a person takes longer than a tool may.
    async fn answer(
        &self,
        questions: Vec<Question>,
        handler: Option<Arc<dyn QuestionHandler>>,
        calls: &[CallContext],
    ) -> Result<Vec<Value>, RpcError> {
        let needs_person = questions.iter().any(|question| question.method != "ping");
        let calls = if needs_person { calls } else { &[] };
        let _paused: Vec<PausedClock> = calls.iter().map(CallContext::pause_clock).collect();
        for call in calls {
            call.report(&waiting());
        }
        let is_for_client = |question: &Question| {
            let handler = handler.as_ref();
            handler.is_some_and(|handler| question.is_supported_by(handler.capabilities()))
        };
        let mut answers: Vec<Option<Value>> = vec![None; questions.len()];
        let mut relayed = Vec::new();
        for (place, question) in questions.into_iter().enumerate() {
            match is_for_client(&question) {
                true => relayed.push((place, question)),
                false => answers[place] = Some(self.answer_here(&question).await?),
            }
        }
        if let Some(handler) = handler.filter(|_| !relayed.is_empty()) {
            let (places, questions): (Vec<_>, Vec<_>) = relayed.into_iter().unzip();
            let given = match handler.ask(questions.clone()).await {
                Ok(given) => given,
                Err(error) => questions
                    .iter()
                    .map(|question| unanswered(question, &error))
                    .collect::<Result<_, _>>()?,
            };
            for (place, answer) in places.into_iter().zip(given) {
                answers[place] = Some(answer);
            }
        }
        Ok(answers.into_iter().map(Option::unwrap_or_default).collect())
    }

    async fn answer_here(&self, question: &Question) -> Result<Value, RpcError> {
        let method = &*question.method;
        match method {
            "sampling/createMessage" => self.diagnostics.log_ignored(NoiseKind::Sampling, method),
            "elicitation/create" if self.questions.elicitor.is_none() => {
                self.diagnostics.log_ignored(NoiseKind::Elicitation, method);
            }
            _ => {}
        }
        self.questions
            .answer(&self.server, method, &question.params)
            .await
    }

    /// The calls that the server works on, the newest last.
    pub(super) fn pending_calls(&self) -> Vec<CallContext> {
        let mut calls = self.task_calls();
        let pending = self.pending.lock();
        let requests = pending.requests.iter();
        let open = requests.filter_map(|(id, request)| Some((*id, request.call.clone()?)));
        calls.extend(open);
        drop(pending);
        calls.sort_unstable_by_key(|(id, _)| *id);
        calls.into_iter().map(|(_, call)| call).collect()
    }

    /// False if the server may still work on a call of another client, which was cancelled.
    fn can_only_be_asked_by(&self, client: ClientId) -> bool {
        let pending = self.pending.lock();
        let mut abandoned = pending.abandoned.iter();
        abandoned.all(|request| match &request.call {
            Some(abandoned) if abandoned.at.elapsed() < STILL_ASKING => {
                abandoned.client == Some(client)
            }
            _ => true,
        })
    }
}

/// Returns the task that a message is about. Callers don't know the task, so its id is taken out.
fn take_related_task(params: &mut Value) -> Option<String> {
    let related = params.get_mut("_meta")?.as_object_mut()?;
    let related = related.shift_remove(RELATED_TASK)?;
    Some(related["taskId"].as_str()?.to_owned())
}

/// The client that made all of these calls, through its newest one. If there are several clients,
/// nobody knows whose call made the server ask, and a question must not reach a stranger.
fn only_handler(calls: &[CallContext]) -> Option<Arc<dyn QuestionHandler>> {
    let (newest, others) = calls.split_last()?;
    let handler = newest.questions()?;
    let is_same = |call: &CallContext| {
        let other = call.questions();
        other.is_some_and(|other| other.client() == handler.client())
    };
    others.iter().all(is_same).then(|| Arc::clone(handler))
}

/// A form that nobody filled in counts as dismissed. Nothing else has an answer of that kind.
fn unanswered(question: &Question, error: &QuestionError) -> Result<Value, RpcError> {
    match (&*question.method, error) {
        (_, QuestionError::Refused { code, message }) => Err(RpcError::new(*code, message)),
        ("elicitation/create", _) => Ok(json!({ "action": "cancel" })),
        (_, error) => Err(RpcError::new(-32603, &error.to_string())),
    }
}

fn waiting() -> Progress {
    Progress {
        done: 0.0,
        total: None,
        message: Some("waiting for a person's answer".to_owned()),
    }
}
