//! Answers the server's questions: by the client whose call made it ask, by a person here, or with
//! a refusal that says why.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::sync::watch;
use toolgate_core::{
    CallContext, ClientId, PausedClock, Progress, Question, QuestionError, QuestionHandler,
};

use super::ClientSession;
use crate::client::diagnostics::NoiseKind;
use crate::client::message::RpcError;
use crate::client::questions::RequestingCall;

// How long a server may go on with a cancelled call that it doesn't answer, and ask on its behalf.
const STILL_ASKING: Duration = Duration::from_secs(120);

impl ClientSession {
    /// Answers a request that the server sent by itself. It doesn't say which call it is about.
    pub(super) async fn answer_request(
        &self,
        method: String,
        params: Value,
    ) -> Result<Value, RpcError> {
        let question = Question {
            key: "question".to_owned(),
            server: self.server.clone(),
            method,
            params,
        };
        let (calls, ends) = self.pending_calls_with_ends();
        let handler = only_handler(&calls).filter(|it| self.can_only_be_asked_by(it.client()));
        let asking = self.requesting_call(&calls);
        let has_calls = !calls.is_empty();
        let all_ended = join_all(ends.into_iter().map(wait_until_closed));
        let answers = self.answer(vec![question.clone()], handler, asking.as_ref(), &calls);
        tokio::select! {
            answers = answers => Ok(answers?.pop().unwrap_or_default()),
            // Nobody should be asked for a call that is over.
            _ = all_ended, if has_calls => unanswered(&question, &QuestionError::Gone),
        }
    }

    /// Answers what a call needs to go on, in the order of the questions.
    pub(crate) async fn answer_questions(
        &self,
        questions: Vec<Question>,
        call: &CallContext,
    ) -> Result<Vec<Value>, RpcError> {
        let calls = std::slice::from_ref(call);
        let asking = RequestingCall::new(call);
        self.answer(questions, call.questions().cloned(), Some(&asking), calls)
            .await
    }

    /// The clocks of `calls` stop meanwhile, because a person takes longer than a tool may.
    async fn answer(
        &self,
        questions: Vec<Question>,
        handler: Option<Arc<dyn QuestionHandler>>,
        asking: Option<&RequestingCall>,
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
                false => answers[place] = Some(self.answer_here(&question, asking).await?),
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

    async fn answer_here(
        &self,
        question: &Question,
        asking: Option<&RequestingCall>,
    ) -> Result<Value, RpcError> {
        let method = &*question.method;
        match method {
            "sampling/createMessage" if !self.questions.can_sample(&self.server) => {
                self.diagnostics.log_ignored(NoiseKind::Sampling, method);
            }
            "elicitation/create" if self.questions.elicitor.is_none() => {
                self.diagnostics.log_ignored(NoiseKind::Elicitation, method);
            }
            _ => {}
        }
        self.questions
            .answer(&self.server, method, &question.params, asking.cloned())
            .await
    }

    /// The calls that the server works on, the newest last.
    pub(super) fn pending_calls(&self) -> Vec<CallContext> {
        self.pending_calls_with_ends().0
    }

    /// The same, with receivers that are closed when the calls have ended.
    fn pending_calls_with_ends(&self) -> (Vec<CallContext>, Vec<watch::Receiver<()>>) {
        let pending = self.pending.lock();
        let requests = pending.requests.iter();
        let mut calls: Vec<(u64, CallContext, watch::Receiver<()>)> = requests
            .filter_map(|(id, request)| {
                Some((*id, request.call.clone()?, request.ended.subscribe()))
            })
            .collect();
        drop(pending);
        calls.sort_unstable_by_key(|(id, ..)| *id);
        calls.into_iter().map(|(_, call, end)| (call, end)).unzip()
    }

    /// The newest of the calls, if all of them are the same caller's, and so are those that were
    /// cancelled and may still run.
    fn requesting_call(&self, calls: &[CallContext]) -> Option<RequestingCall> {
        let (newest, others) = calls.split_last()?;
        let asker = CallAsker::new(newest);
        let pending = self.pending.lock();
        let abandoned = pending.abandoned.iter().filter_map(|it| it.call.as_ref());
        let mut abandoned = abandoned.filter(|it| it.at.elapsed() < STILL_ASKING);
        let is_only = others.iter().all(|call| CallAsker::new(call) == asker)
            && abandoned.all(|it| it.asker == asker);
        is_only.then(|| RequestingCall::new(newest))
    }

    /// False if the server may still work on a call of another client, which was cancelled.
    fn can_only_be_asked_by(&self, client: ClientId) -> bool {
        let pending = self.pending.lock();
        let mut abandoned = pending.abandoned.iter();
        abandoned.all(|request| match &request.call {
            Some(abandoned) if abandoned.at.elapsed() < STILL_ASKING => {
                abandoned.asker.client == Some(client)
            }
            _ => true,
        })
    }
}

async fn wait_until_closed(mut end: watch::Receiver<()>) {
    while end.changed().await.is_ok() {}
}

/// Who could be asked about a call: a client, or a person by the name of the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CallAsker {
    client: Option<ClientId>,
    caller: Option<String>,
}

impl CallAsker {
    pub(super) fn new(call: &CallContext) -> Self {
        Self {
            client: call.questions().map(|questions| questions.client()),
            caller: call.scope().caller().map(str::to_owned),
        }
    }
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
