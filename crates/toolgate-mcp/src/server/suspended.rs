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
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_core::{Question, QuestionError, ToolOutcome};

use super::jsonrpc::RequestError;
use super::questions::{AskingCall, CallStage, QuestionRound};

// Calls of all clients that may wait at once.
const MAX_SUSPENDED: usize = 1000;
// A key that nobody can guess.
const KEY_BYTES: usize = 32;
pub(super) const KEY_TEXT_LEN: usize = 43;

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
    ended: Option<ToolOutcome>,
}

/// Where a call waits: as long as its client may come back.
pub(super) struct SuspensionScope<'a> {
    // How long a client may take to answer.
    pub(super) limit: Duration,
    // Cancelled when no more requests are accepted, so that nobody can answer.
    pub(super) ending: &'a CancellationToken,
    // A shutdown waits for these, so that every call goes on record.
    pub(super) tasks: &'a TaskTracker,
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
        mut round: QuestionRound,
        binding: RequestBinding,
        scope: &SuspensionScope<'_>,
    ) -> Result<Value, Box<AskingCall>> {
        let (resume, resumed) = oneshot::channel();
        let mut calls = self.0.lock();
        let Some(key) = random_key().filter(|_| calls.len() < MAX_SUSPENDED) else {
            drop(calls);
            drop(round.answers.send(Err(QuestionError::Overloaded)));
            return Err(Box::new(call));
        };
        calls.insert(key.clone(), SuspendedCall { binding, resume });
        drop(calls);
        let requests = round.questions.iter();
        let requests = requests.map(|asked| (asked.key.clone(), input_request(asked)));
        let requests: Map<String, Value> = requests.collect();
        let expires = *(round.expires).get_or_insert_with(|| Instant::now() + scope.limit);
        let waiting = WaitingCall {
            call,
            round,
            ended: None,
        };
        let listed = ListedState {
            table: Arc::clone(self),
            key: key.clone(),
        };
        let ending = scope.ending.clone();
        (scope.tasks).spawn(waiting.run_until_resumed(resumed, listed, expires, ending));
        Ok(json!({ "resultType": INPUT_REQUIRED, "inputRequests": requests, "requestState": key }))
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.lock().len()
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
    pub(super) fn answer(self, responses: Map<String, Value>) -> AskingCall {
        let Self {
            mut call,
            round,
            ended,
        } = self;
        if let Some(outcome) = ended {
            call.next = Some(CallStage::Finished(outcome));
        } else if let Err(round) = round.answer(responses) {
            call.next = Some(CallStage::Asks(round));
        }
        call
    }

    /// Runs the call while its client thinks. Returns when the client has it back, or gave up.
    async fn run_until_resumed(
        mut self,
        mut resumed: oneshot::Receiver<oneshot::Sender<Self>>,
        listed: ListedState,
        expires: Instant,
        ending: CancellationToken,
    ) {
        let mut expired = std::pin::pin!(tokio::time::sleep_until(expires));
        let error = loop {
            tokio::select! {
                biased;
                taker = &mut resumed => {
                    // Without a taker the client is gone, and dropping the call cancels it.
                    if let Ok(taker) = taker {
                        drop(taker.send(self));
                    }
                    return;
                }
                () = ending.cancelled() => break QuestionError::Gone,
                () = &mut expired => break QuestionError::TimedOut,
                outcome = self.call.finish(), if self.ended.is_none() => self.ended = Some(outcome),
            }
        };
        // A client that comes back now has to hear at once that it is too late.
        drop((listed, resumed));
        self.run_unanswered(error, ending).await;
    }

    /// Runs the call to its end without answers, because whatever it does goes on record.
    async fn run_unanswered(mut self, error: QuestionError, ending: CancellationToken) {
        if self.ended.is_some() {
            return;
        }
        drop(self.round.answers.send(Err(error.clone())));
        let stop = self.call.stop.clone();
        loop {
            tokio::select! {
                stage = self.call.proceed() => match stage {
                    CallStage::Finished(_) => return,
                    CallStage::Asks(round) => drop(round.answers.send(Err(error.clone()))),
                },
                () = ending.cancelled(), if !stop.is_cancelled() => stop.cancel(),
            }
        }
    }
}

/// Removes a state from the table, even if its call panics.
struct ListedState {
    table: Arc<SuspendedCalls>,
    key: String,
}

impl Drop for ListedState {
    fn drop(&mut self) {
        let removed = self.table.0.lock().remove(&self.key);
        // Wakes the one that waits for it, which must not happen under the lock.
        drop(removed);
    }
}

pub(super) fn input_request(question: &Question) -> Value {
    let mut request = json!({ "method": question.method });
    if !question.params.is_null() {
        request["params"] = question.params.clone();
    }
    request
}

pub(crate) fn random_key() -> Option<String> {
    let mut bytes = [0; KEY_BYTES];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(URL_SAFE_NO_PAD.encode(bytes))
}
