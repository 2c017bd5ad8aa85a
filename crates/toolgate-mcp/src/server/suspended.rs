//! Calls of clients of 2026-07-28 that wait for answers between two requests.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use toolgate_core::{Question, QuestionError};

use super::jsonrpc::RequestError;
use super::questions::{AskingCall, CallStage, QuestionRound};

// Calls of all clients that may wait at once.
const MAX_SUSPENDED: usize = 1000;
// A key that nobody can guess.
const KEY_BYTES: usize = 32;

pub(super) const INPUT_REQUIRED: &str = "input_required";

/// The calls that wait, by the `requestState` that their clients hold. The state is a random key
/// that is valid once, for one client and one request, and for a limited time. It carries no data,
/// so there is nothing to tamper with.
#[derive(Default)]
pub(super) struct SuspendedCalls(Mutex<HashMap<String, SuspendedCall>>);

struct SuspendedCall {
    binding: RequestBinding,
    // Takes the call back from the task that runs it meanwhile.
    resume: oneshot::Sender<oneshot::Sender<WaitingCall>>,
}

/// The client and the request that a state is valid for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RequestBinding {
    pub(super) owner: u64,
    pub(super) caller: Option<String>,
    pub(super) request: Value,
}

/// A call that goes on once its questions are answered.
pub(super) struct WaitingCall {
    pub(super) call: AskingCall,
    round: QuestionRound,
    // The call ended without the answers, for example because its server did.
    ended: Option<CallStage>,
}

/// The client's answers, as they came with the repeated request.
#[derive(Debug, Default)]
pub(super) struct ClientAnswers {
    pub(super) state: Option<String>,
    pub(super) responses: Map<String, Value>,
}

impl ClientAnswers {
    /// Takes them from the parameters of a request.
    pub(super) fn take(params: &mut Map<String, Value>) -> Self {
        let state = match params.remove("requestState") {
            Some(Value::String(state)) => Some(state),
            _ => None,
        };
        let responses = match params.remove("inputResponses") {
            Some(Value::Object(responses)) => responses,
            _ => Map::new(),
        };
        Self { state, responses }
    }
}

impl SuspendedCalls {
    /// Keeps a call until its client answers, and returns the result that asks it. Gives the call
    /// back if too many wait already; its questions are then unanswered.
    pub(super) fn suspend(
        self: &Arc<Self>,
        call: AskingCall,
        round: QuestionRound,
        binding: RequestBinding,
        limit: Duration,
    ) -> Result<Value, Box<AskingCall>> {
        let (resume, resumed) = oneshot::channel();
        let mut calls = self.0.lock();
        let Some(key) = random_key().filter(|_| calls.len() < MAX_SUSPENDED) else {
            drop(round.answers.send(Err(QuestionError::Overloaded)));
            return Err(Box::new(call));
        };
        calls.insert(key.clone(), SuspendedCall { binding, resume });
        drop(calls);
        let requests: Map<String, Value> = round.questions.iter().map(input_request).collect();
        let waiting = WaitingCall {
            call,
            round,
            ended: None,
        };
        let (table, state) = (Arc::clone(self), key.clone());
        tokio::spawn(async move {
            waiting.run_until_resumed(resumed, limit).await;
            table.0.lock().remove(&state);
        });
        Ok(json!({ "resultType": INPUT_REQUIRED, "inputRequests": requests, "requestState": key }))
    }

    /// Takes the call that a client's state belongs to.
    pub(super) async fn resume(
        &self,
        state: &str,
        binding: &RequestBinding,
    ) -> Result<WaitingCall, RequestError> {
        let text = "requestState is not valid for this request: it has expired, was used before, or \
                    belongs to another request; send the request again without it";
        let unknown = || RequestError::invalid_params(text);
        let suspended = {
            let mut calls = self.0.lock();
            // Compared before it is taken, so that a stranger can't end the call.
            let is_theirs = calls
                .get(state)
                .is_some_and(|call| call.binding == *binding);
            is_theirs.then(|| calls.remove(state)).flatten()
        };
        let (hand_over, taken) = oneshot::channel();
        let suspended = suspended.ok_or_else(unknown)?;
        suspended.resume.send(hand_over).map_err(|_| unknown())?;
        taken.await.map_err(|_| unknown())
    }
}

impl WaitingCall {
    /// Gives the call its answers. If some are missing, the call asks again.
    pub(super) fn answer(self, mut responses: Map<String, Value>) -> AskingCall {
        let Self {
            mut call,
            round,
            ended,
        } = self;
        let is_answered = |question: &Question| {
            let response = responses.get(&question.key);
            response.is_some_and(|response| is_usable(question, response))
        };
        if ended.is_some() {
            call.next = ended;
        } else if round.questions.iter().all(is_answered) {
            let answers = round.questions.iter();
            let answers = answers.filter_map(|question| responses.remove(&question.key));
            drop(round.answers.send(Ok(answers.collect())));
        } else {
            call.next = Some(CallStage::Asks(round));
        }
        call
    }

    /// Runs the call while its client thinks. Returns when the client has it back, or gave up.
    async fn run_until_resumed(
        mut self,
        mut resumed: oneshot::Receiver<oneshot::Sender<Self>>,
        limit: Duration,
    ) {
        let mut expired = std::pin::pin!(tokio::time::sleep(limit));
        loop {
            tokio::select! {
                taker = &mut resumed => {
                    // Without a taker the client is gone, and dropping the call cancels it.
                    if let Ok(taker) = taker {
                        drop(taker.send(self));
                    }
                    return;
                }
                () = &mut expired => {
                    drop(self.round.answers.send(Err(QuestionError::TimedOut)));
                    // Whatever it does without answers goes on record.
                    drop(self.call.proceed().await);
                    return;
                }
                stage = self.call.proceed(), if self.ended.is_none() => self.ended = Some(stage),
            }
        }
    }
}

fn input_request(question: &Question) -> (String, Value) {
    let mut request = json!({ "method": question.method });
    if !question.params.is_null() {
        request["params"] = question.params.clone();
    }
    (question.key.clone(), request)
}

/// An answer of the wrong form counts as missing, so the client is asked again.
fn is_usable(question: &Question, response: &Value) -> bool {
    match &*question.method {
        "elicitation/create" => {
            matches!(
                response["action"].as_str(),
                Some("accept" | "decline" | "cancel")
            )
        }
        _ => response.is_object(),
    }
}

fn random_key() -> Option<String> {
    let mut bytes = [0; KEY_BYTES];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(URL_SAFE_NO_PAD.encode(bytes))
}
