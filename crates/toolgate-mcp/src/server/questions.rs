//! Asks clients what a running call's server wants to know.
//!
//! A client with a session is asked by a request of ours while its own request runs. A client of
//! 2026-07-28 gets the questions as the result of its request, and answers them with the next one.
//! Either way the call goes on where it stopped.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use toolgate_core::{
    Question, QuestionError, QuestionHandler, ToolCall, ToolExecutor, ToolOutcome,
};

use super::jsonrpc::RequestId;
use super::methods::ClientSink;
use super::progress::ProgressReports;

// Rounds of questions that wait to be sent to one client; a call asks one at a time.
const MAX_ROUNDS: usize = 4;

/// The answers to one round of questions.
pub(super) type Answers = Result<Vec<Value>, QuestionError>;

/// Questions that a call waits for.
pub(super) struct QuestionRound {
    pub(super) questions: Vec<Question>,
    pub(super) answers: oneshot::Sender<Answers>,
}

/// Hands the questions of one call to whoever runs it.
struct QuestionQueue {
    capabilities: Arc<Value>,
    rounds: mpsc::Sender<QuestionRound>,
}

impl QuestionHandler for QuestionQueue {
    fn capabilities(&self) -> &Value {
        &self.capabilities
    }

    fn ask<'a>(&'a self, questions: Vec<Question>) -> BoxFuture<'a, Answers> {
        Box::pin(async move {
            let (answers, given) = oneshot::channel();
            let round = QuestionRound { questions, answers };
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
    kinds.iter().any(|kind| capabilities[kind].is_object())
}

/// A call that may ask questions. It owns all it needs, so it can outlive the request that began it.
pub(super) struct AskingCall {
    outcome: BoxFuture<'static, ToolOutcome>,
    rounds: mpsc::Receiver<QuestionRound>,
    pub(super) stop: CancellationToken,
    pub(super) reports: Arc<ProgressReports>,
    // What `proceed` returns first, if it is known already.
    pub(super) next: Option<CallStage>,
}

/// How far a call came.
pub(super) enum CallStage {
    Finished(ToolOutcome),
    Asks(QuestionRound),
}

impl AskingCall {
    pub(super) fn new(executor: ToolExecutor, call: ToolCall, capabilities: Arc<Value>) -> Self {
        let (rounds, waiting) = mpsc::channel(MAX_ROUNDS);
        let stop = CancellationToken::new();
        let reports = Arc::new(ProgressReports::default());
        let added = Arc::clone(&reports);
        let call = call
            .cancellation(stop.clone())
            .on_progress(move |progress| added.add(progress))
            .on_question(Arc::new(QuestionQueue {
                capabilities,
                rounds,
            }));
        Self {
            outcome: Box::pin(async move { executor.execute(call).await }),
            rounds: waiting,
            stop,
            reports,
            next: None,
        }
    }

    /// Runs the call until it ends or asks. Cancel safe.
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
}

/// The questions that a client with a session was asked and has not answered.
#[derive(Default)]
pub(super) struct SessionQuestions {
    capabilities: Mutex<Arc<Value>>,
    pending: Mutex<HashMap<u64, oneshot::Sender<Result<Value, QuestionError>>>>,
    last_id: AtomicU64,
}

impl SessionQuestions {
    pub(super) fn set_capabilities(&self, capabilities: Value) {
        *self.capabilities.lock() = Arc::new(capabilities);
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

    /// Runs a call to its end, and asks its questions by requests of our own.
    pub(super) async fn run(
        &self,
        mut call: AskingCall,
        stopped: impl Future<Output = ()>,
        limit: Duration,
        sink: &dyn ClientSink,
    ) -> ToolOutcome {
        let stop = call.stop.clone();
        let running = self.run_to_end(&mut call, limit, sink);
        let mut running = std::pin::pin!(running);
        tokio::select! {
            outcome = &mut running => return outcome,
            () = stopped => stop.cancel(),
        }
        running.await
    }

    async fn run_to_end(
        &self,
        call: &mut AskingCall,
        limit: Duration,
        sink: &dyn ClientSink,
    ) -> ToolOutcome {
        loop {
            let round = match call.proceed().await {
                CallStage::Finished(outcome) => return outcome,
                CallStage::Asks(round) => round,
            };
            let asking = join_all(round.questions.iter().map(|it| self.ask(it, sink)));
            let asking = tokio::time::timeout(limit, asking);
            // The call runs on, since its server may end while a person thinks.
            let answers = tokio::select! {
                stage = call.proceed() => match stage {
                    CallStage::Finished(outcome) => return outcome,
                    // A call asks one round at a time, so there is no other.
                    CallStage::Asks(other) => {
                        drop(other.answers.send(Err(QuestionError::Overloaded)));
                        continue;
                    }
                },
                answers = asking => answers,
            };
            let answers = match answers {
                Ok(answers) => answers.into_iter().collect(),
                Err(_) => Err(QuestionError::TimedOut),
            };
            drop(round.answers.send(answers));
        }
    }

    async fn ask(
        &self,
        question: &Question,
        sink: &dyn ClientSink,
    ) -> Result<Value, QuestionError> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let (answer, given) = oneshot::channel();
        self.pending.lock().insert(id, answer);
        let _forgotten = ForgetOnDrop {
            questions: self,
            id,
        };
        let mut request = json!({ "jsonrpc": "2.0", "id": id, "method": question.method });
        if !question.params.is_null() {
            request["params"] = question.params.clone();
        }
        if !sink.send(request.to_string().into_bytes()).await {
            return Err(QuestionError::Gone);
        }
        given.await.unwrap_or(Err(QuestionError::Gone))
    }
}

/// Removes an unanswered question, so that a late answer is ignored.
struct ForgetOnDrop<'a> {
    questions: &'a SessionQuestions,
    id: u64,
}

impl Drop for ForgetOnDrop<'_> {
    fn drop(&mut self) {
        self.questions.pending.lock().remove(&self.id);
    }
}
