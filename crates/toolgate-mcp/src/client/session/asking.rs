//! Answers the server's questions: by the client whose call made it ask, by a person here, or with
//! a refusal that says why.

use std::sync::Arc;

use futures::future::join_all;
use serde_json::{Value, json};
use toolgate_core::{CallContext, PausedClock, Progress, Question, QuestionError, QuestionHandler};

use super::ClientSession;
use super::pending_calls::PendingCall;
use crate::client::diagnostics::NoiseKind;
use crate::client::extension_access::shares_extension;
use crate::client::message::RpcError;
use crate::client::questions::RequestingCall;
use crate::extensions::may_be_extension_method;
use crate::task_fields::RELATED_TASK;

impl ClientSession {
    /// Answers a request of the server. On the stream of a request of ours it is about that call,
    /// and a task names itself; otherwise nothing says which call it is about.
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
        let mut asking = self.find_asking_calls(task.as_deref(), on_stream_of).await;
        let calls: Vec<CallContext> = asking.calls.iter().map(|it| it.context.clone()).collect();
        let questions = vec![question.clone()];
        let answers = self.answer(questions, asking.handler, asking.call.as_ref(), &calls);
        let all_ended = join_all(asking.calls.iter_mut().map(PendingCall::wait_for_end));
        tokio::select! {
            answers = answers => Ok(answers?.pop().unwrap_or_default()),
            // Nobody should be asked for a call that is over.
            _ = all_ended, if !calls.is_empty() => unanswered(&question, &QuestionError::Gone),
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
            let is_extension = || self.is_extension_request(question, calls);
            handler.as_ref().is_some_and(|handler| {
                question.is_supported_by(handler.capabilities()) || is_extension()
            })
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
            self.note_pages(&questions, &*handler);
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

    /// True if the client of these calls may be asked this by an extension that it
    /// shares with the server.
    fn is_extension_request(&self, question: &Question, calls: &[CallContext]) -> bool {
        let method = &*question.method;
        let may_ask = |call: &CallContext| shares_extension(call, &self.server, method);
        may_be_extension_method(method) && !calls.is_empty() && calls.iter().all(may_ask)
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
            "elicitation/create" if self.questions.elicitation_handler.is_none() => {
                self.diagnostics.log_ignored(NoiseKind::Elicitation, method);
            }
            _ => {}
        }
        self.questions
            .answer(&self.server, method, &question.params, asking.cloned())
            .await
    }
}

/// Returns the task that a message is about. Callers don't know the task, so its id is taken out.
fn take_related_task(params: &mut Value) -> Option<String> {
    let related = params.get_mut("_meta")?.as_object_mut()?;
    let related = related.shift_remove(RELATED_TASK)?;
    Some(related["taskId"].as_str()?.to_owned())
}

/// A form that nobody filled in counts as dismissed. Nothing else has an answer of that kind.
fn unanswered(question: &Question, error: &QuestionError) -> Result<Value, RpcError> {
    match (&*question.method, error) {
        (
            _,
            QuestionError::Refused {
                code,
                message,
                data,
            },
        ) => Err(RpcError {
            code: *code,
            message: message.clone(),
            data: data.clone().unwrap_or_default(),
        }),
        ("elicitation/create", _) => Ok(json!({ "action": "cancel" })),
        (_, error) => Err(RpcError::new(-32603, &error.to_string())),
    }
}

fn waiting() -> Progress {
    Progress {
        done: 0.0,
        total: None,
        message: Some("waiting for a person's answer".to_owned()),
        meta: None,
    }
}
