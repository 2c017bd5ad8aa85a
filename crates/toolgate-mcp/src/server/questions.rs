//! Asks clients what a running call's server wants to know.
//!
//! A client with a session is asked by a request of ours while its own request runs. A client of
//! 2026-07-28 gets the questions as the result of its request, and answers them with the next one.
//! Either way the call goes on where it stopped.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt;
use futures::future::{BoxFuture, join_all};
use futures::stream::FuturesUnordered;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolgate_core::{
    CallId, ClientId, Question, QuestionError, QuestionHandler, ToolCall, ToolExecutor, ToolOutcome,
};

use super::call_reports::CallReports;
use super::extension_notices::ExtensionNotices;
use super::jsonrpc::{RequestId, notification};
use super::methods::ClientSink;
use crate::era::LEGACY;
use crate::extensions::declares_messages;

// Rounds of questions of one call that wait to be taken.
const MAX_ROUNDS: usize = 4;
// Questions that one call may ask. The clock stops while it asks, so without a limit a server that
// asks again and again would never run out of time.
const MAX_QUESTIONS: usize = 128;

/// The answers to one round of questions.
pub(super) type Answers = Result<Vec<Value>, QuestionError>;

/// Questions that a call waits for.
#[derive(Debug)]
pub(super) struct QuestionRound {
    pub(super) questions: Vec<Question>,
    // Closed once nobody waits for the answers.
    pub(super) answers: oneshot::Sender<Answers>,
    // Set when the client is asked first, so that asking again doesn't buy more time.
    pub(super) expires: Option<Instant>,
}

impl QuestionRound {
    /// Passes the answers on, or returns the round if one is missing. An answer of the wrong form
    /// counts as missing, so the client is asked again.
    pub(super) fn answer(self, mut answers: Map<String, Value>) -> Result<(), Self> {
        let is_answered = |question: &Question| {
            let answer = answers.get(&question.key);
            answer.is_some_and(|answer| question.accepts(answer))
        };
        if !self.questions.iter().all(is_answered) {
            return Err(self);
        }
        let questions = self.questions.iter();
        let answers = questions.filter_map(|question| answers.remove(&question.key));
        drop(self.answers.send(Ok(answers.collect())));
        Ok(())
    }
}

/// Hands the questions of one call to whoever runs it.
struct QuestionQueue {
    client: ClientId,
    capabilities: Arc<Value>,
    rounds: mpsc::Sender<QuestionRound>,
    asked: AtomicUsize,
}

impl QuestionHandler for QuestionQueue {
    fn client(&self) -> ClientId {
        self.client
    }

    fn capabilities(&self) -> &Value {
        &self.capabilities
    }

    fn ask<'a>(&'a self, questions: Vec<Question>) -> BoxFuture<'a, Answers> {
        Box::pin(async move {
            let before = self.asked.fetch_add(questions.len(), Ordering::Relaxed);
            if before.saturating_add(questions.len()) > MAX_QUESTIONS {
                return Err(QuestionError::TooMany);
            }
            let (answers, given) = oneshot::channel();
            let round = QuestionRound {
                questions,
                answers,
                expires: None,
            };
            self.rounds
                .send(round)
                .await
                .map_err(|_| QuestionError::Gone)?;
            given.await.unwrap_or(Err(QuestionError::Gone))
        })
    }
}

/// True if a client with these capabilities can be asked anything.
pub(super) fn can_be_asked(capabilities: &Value) -> bool {
    let kinds = ["elicitation", "sampling", "roots"];
    kinds.iter().any(|kind| capabilities[kind].is_object()) || declares_messages(capabilities)
}

/// A call that may ask questions. It owns all it needs, so it can outlive the request that began it.
pub(super) struct AskingCall {
    pub(super) id: CallId,
    pub(super) capabilities: Arc<Value>,
    outcome: BoxFuture<'static, ToolOutcome>,
    rounds: mpsc::Receiver<QuestionRound>,
    pub(super) stop: CancellationToken,
    pub(super) reports: Arc<CallReports>,
    // What `proceed` returns first, if it is known already.
    pub(super) next: Option<CallStage>,
    /// Answers that came before any question.
    pub(super) early_answers: Map<String, Value>,
}

/// How far a call came.
pub(super) enum CallStage {
    Finished(ToolOutcome),
    Asks(QuestionRound),
}

impl AskingCall {
    pub(super) fn new(
        executor: ToolExecutor,
        call: ToolCall,
        client: ClientId,
        capabilities: Arc<Value>,
        reports: CallReports,
    ) -> Self {
        let (rounds, waiting) = mpsc::channel(MAX_ROUNDS);
        let (id, stop) = (call.id(), CancellationToken::new());
        let reports = Arc::new(reports);
        let call = reports
            .listen(call)
            .cancellation(stop.clone())
            .on_question(Arc::new(QuestionQueue {
                client,
                capabilities: Arc::clone(&capabilities),
                rounds,
                asked: AtomicUsize::new(0),
            }));
        Self {
            id,
            capabilities,
            outcome: Box::pin(async move { executor.execute(call).await }),
            rounds: waiting,
            stop,
            reports,
            next: None,
            early_answers: Map::new(),
        }
    }

    /// Answers the first round with what the client sent along. Returns the round if that isn't
    /// enough. Our own questions are for a person, who can't have seen them yet.
    pub(super) fn answer_early(&mut self, round: QuestionRound) -> Option<QuestionRound> {
        let answers = std::mem::take(&mut self.early_answers);
        let mut questions = round.questions.iter();
        if answers.is_empty() || questions.any(|question| question.server == Question::OWN) {
            return Some(round);
        }
        round.answer(answers).err()
    }

    /// Makes the call wait before it begins. Must not be called after that.
    pub(super) fn begin_after(&mut self, ready: impl Future<Output = ()> + Send + 'static) {
        let call = std::mem::replace(&mut self.outcome, Box::pin(std::future::pending()));
        self.outcome = Box::pin(async move {
            ready.await;
            call.await
        });
    }

    /// Runs the call until it ends or asks. Cancel safe. Must not be called after the end.
    pub(super) async fn proceed(&mut self) -> CallStage {
        if let Some(stage) = self.next.take() {
            return stage;
        }
        tokio::select! {
            biased;
            outcome = &mut self.outcome => CallStage::Finished(outcome),
            Some(round) = self.rounds.recv() => CallStage::Asks(round),
        }
    }

    /// Runs the call to its end; its questions wait meanwhile. Cancel safe. Must not
    /// be called after the end.
    pub(super) async fn finish(&mut self) -> ToolOutcome {
        (&mut self.outcome).await
    }
}

/// The questions that a client with a session was asked and has not answered.
pub(super) struct SessionQuestions {
    pub(super) client: ClientId,
    capabilities: Mutex<Arc<Value>>,
    // The revision has tasks.
    has_tasks: AtomicBool,
    pending: Mutex<HashMap<u64, oneshot::Sender<Result<Value, QuestionError>>>>,
    last_id: AtomicU64,
    // Notifications of extensions that are about no call.
    pub(super) notices: Arc<ExtensionNotices>,
}

impl Default for SessionQuestions {
    fn default() -> Self {
        let client = ClientId::unique();
        Self {
            client,
            notices: Arc::new(ExtensionNotices::new(client, None)),
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
