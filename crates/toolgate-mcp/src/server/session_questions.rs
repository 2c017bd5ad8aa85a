//! Asks a client with a session, by requests of ours while its own request runs.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use toolgate_core::{ClientId, Question, QuestionError, ToolOutcome};

use super::extension_notices::ExtensionNotices;
use super::jsonrpc::{RequestId, notification};
use super::methods::ClientSink;
use super::questions::{AskingCall, CallStage, QuestionRound};
use super::suspended::random_key;
use crate::era::LEGACY;

/// The questions that a client with a session was asked and has not answered.
pub(super) struct SessionQuestions {
    pub(super) client: ClientId,
    capabilities: Mutex<Arc<Value>>,
    // The revision has tasks.
    has_tasks: AtomicBool,
    pending: Mutex<HashMap<u64, oneshot::Sender<Result<Value, QuestionError>>>>,
    last_id: AtomicU64,
    // Notifications of extensions that are about no call.
    pub(super) extension_notices: Arc<ExtensionNotices>,
}

impl Default for SessionQuestions {
    fn default() -> Self {
        let client = ClientId::unique();
        Self {
            client,
            extension_notices: Arc::new(ExtensionNotices::new(client, None)),
            capabilities: Mutex::default(),
            has_tasks: AtomicBool::new(false),
            pending: Mutex::default(),
            last_id: AtomicU64::new(0),
        }
    }
}

impl SessionQuestions {
    /// Sets what the client said in its handshake, and the revision that was agreed on.
    pub(super) fn set_client(&self, capabilities: Value, revision: &str) {
        *self.capabilities.lock() = Arc::new(capabilities);
        self.has_tasks.store(revision == LEGACY, Ordering::Relaxed);
    }

    pub(super) fn has_tasks(&self) -> bool {
        self.has_tasks.load(Ordering::Relaxed)
    }

    pub(super) fn capabilities(&self) -> Arc<Value> {
        Arc::clone(&self.capabilities.lock())
    }

    /// Takes the client's response to one of our requests. False if it wasn't asked.
    pub(super) fn resolve(&self, id: &RequestId, answer: Result<Value, QuestionError>) -> bool {
        let number = match id {
            RequestId::Number(number) => u64::try_from(*number).ok(),
            RequestId::Text(_) => None,
        };
        let waiting = number.and_then(|number| self.pending.lock().remove(&number));
        waiting.is_some_and(|waiting| waiting.send(answer).is_ok())
    }

    pub(super) fn asking<'a>(
        &'a self,
        limit: Duration,
        sink: &'a dyn ClientSink,
    ) -> AskedQuestions<'a> {
        AskedQuestions {
            session: self,
            sink,
            limit,
            abandoned: Mutex::default(),
        }
    }

    /// Runs a call to its end, and asks its questions by requests of our own.
    pub(super) async fn run(
        &self,
        mut call: AskingCall,
        stopped: impl Future<Output = ()>,
        limit: Duration,
        sink: &dyn ClientSink,
    ) -> ToolOutcome {
        let stop = call.stop.clone();
        let asked = self.asking(limit, sink);
        let outcome = {
            let mut running = std::pin::pin!(asked.run_to_end(&mut call));
            tokio::select! {
                outcome = &mut running => outcome,
                () = stopped => {
                    stop.cancel();
                    running.await
                }
            }
        };
        asked.withdraw_abandoned().await;
        outcome
    }
}

/// What one call asks a client with a session.
pub(super) struct AskedQuestions<'a> {
    session: &'a SessionQuestions,
    sink: &'a dyn ClientSink,
    limit: Duration,
    // Our requests that nobody waits for any more, though the client hasn't answered.
    abandoned: Mutex<Vec<u64>>,
}

impl AskedQuestions<'_> {
    async fn run_to_end(&self, call: &mut AskingCall) -> ToolOutcome {
        // A server up to 2025-11-25 may ask again before its last question is answered.
        let mut rounds = FuturesUnordered::new();
        loop {
            // The call runs on meanwhile, since its server may end while a person thinks.
            tokio::select! {
                stage = call.proceed() => match stage {
                    CallStage::Finished(outcome) => return outcome,
                    CallStage::Asks(round) => rounds.push(self.ask_round(round)),
                },
                Some(()) = rounds.next() => {}
            }
        }
    }

    async fn ask_round(&self, round: QuestionRound) {
        let QuestionRound {
            questions,
            mut answers,
            ..
        } = round;
        let given = {
            let asking = join_all(questions.iter().map(|question| self.ask(question)));
            tokio::select! {
                given = asking => Some(given),
                () = answers.closed() => None,
            }
        };
        if let Some(given) = given {
            drop(answers.send(given.into_iter().collect()));
        }
        self.withdraw_abandoned().await;
    }

    pub(super) async fn ask(&self, question: &Question) -> Result<Value, QuestionError> {
        let session = self.session;
        let id = session.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let (answer, given) = oneshot::channel();
        session.pending.lock().insert(id, answer);
        let _abandoned = AbandonOnDrop { asked: self, id };
        let mut request = json!({ "jsonrpc": "2.0", "id": id, "method": question.method });
        if !question.params.is_null() {
            request["params"] = question.params.clone();
        }
        if question.params["mode"] == "url" && question.params["elicitationId"].is_null() {
            // Servers of 2026-07-28 have none, but these clients insist on one.
            request["params"]["elicitationId"] = json!(random_key());
        }
        let asking = async {
            if !self.sink.send(request.to_string().into_bytes()).await {
                return Err(QuestionError::Gone);
            }
            given.await.unwrap_or(Err(QuestionError::Gone))
        };
        let answer = tokio::time::timeout(self.limit, asking).await;
        let answer = answer.map_err(|_| QuestionError::TimedOut)?;
        answer.and_then(|answer| match question.accepts(&answer) {
            true => Ok(answer),
            false => Err(QuestionError::Unusable),
        })
    }

    /// Lets the client close the forms that nobody waits for any more.
    pub(super) async fn withdraw_abandoned(&self) {
        let abandoned = std::mem::take(&mut *self.abandoned.lock());
        for id in abandoned {
            let params = json!({ "requestId": id, "reason": "the answer is no longer needed" });
            let message = notification("notifications/cancelled", params);
            if !self.sink.send(message).await {
                return;
            }
        }
    }
}

/// Removes an unanswered question, so that a late answer is ignored.
struct AbandonOnDrop<'a> {
    asked: &'a AskedQuestions<'a>,
    id: u64,
}

impl Drop for AbandonOnDrop<'_> {
    fn drop(&mut self) {
        let unanswered = self.asked.session.pending.lock().remove(&self.id);
        if unanswered.is_some() {
            self.asked.abandoned.lock().push(self.id);
        }
    }
}
