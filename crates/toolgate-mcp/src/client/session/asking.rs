//! Answers the server's questions: by the client whose call made it ask, by a person here, or with
//! a refusal that says why.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_core::{CallContext, PausedClock, Progress, Question, QuestionError, QuestionHandler};

use super::{AbandonedCall, ClientSession};
use crate::client::diagnostics::NoiseKind;
use crate::client::message::RpcError;
use crate::client::tasks::RELATED_TASK;

// How long a server may go on with a cancelled call that it doesn't answer, and ask or log on its
// behalf.
const STILL_WORKING: Duration = Duration::from_secs(120);

impl ClientSession {
    /// Answers a request of the server. On the stream of a request of ours it is about that call, and
    /// a task names itself; otherwise nothing says which call it is about.
    pub(super) async fn answer_request(
        &self,
        method: String,
        mut params: Value,
        on_stream_of: Option<u64>,
    ) -> Result<Value, RpcError> {
        let task = take_related_task(&mut params);
        let question = Question {
            key: "question".to_owned(),
            server: self.server.clone(),
            method,
            params,
        };
        let (calls, handler) = match (task, on_stream_of) {
            // A task that no call waits for has nobody behind it.
            (Some(task), _) => sure_caller(self.task_call(&task)),
            (None, Some(id)) => sure_caller(self.pending_call(id)),
            (None, None) => {
                let calls = self.pending_calls();
                let handler = only_handler(&calls).filter(|handler| {
                    let client = Some(handler.client());
                    self.all_abandoned(|call| call.client == client)
                });
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

    pub(super) fn pending_call(&self, id: u64) -> Option<CallContext> {
        let pending = self.pending.lock();
        pending.requests.get(&id)?.call.clone()
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

    /// Returns true if the condition holds for all cancelled calls that the server may still work on.
    pub(super) fn all_abandoned(&self, condition: impl Fn(&AbandonedCall) -> bool) -> bool {
        let pending = self.pending.lock();
        let calls = pending.abandoned.iter();
        let mut calls = calls.filter_map(|request| request.call.as_ref());
        calls.all(|call| call.at.elapsed() >= STILL_WORKING || condition(call))
    }
}

/// Returns the task that a message is about. Callers don't know the task, so its id is taken out.
fn take_related_task(params: &mut Value) -> Option<String> {
    let related = params.get_mut("_meta")?.as_object_mut()?;
    let related = related.shift_remove(RELATED_TASK)?;
    Some(related["taskId"].as_str()?.to_owned())
}

type AskedCalls = (Vec<CallContext>, Option<Arc<dyn QuestionHandler>>);

fn sure_caller(call: Option<CallContext>) -> AskedCalls {
    let handler = call.as_ref().and_then(|call| call.questions().cloned());
    (Vec::from_iter(call), handler)
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
        message: Some("waiting for a person's answer".to_owned()),
        ..Progress::default()
    }
}
