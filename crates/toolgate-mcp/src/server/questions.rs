//! Asks clients what a running call's server wants to know.
//!
//! A client with a session is asked by a request of ours while its own request runs, in
//! `session_questions.rs`. A client of 2026-07-28 gets the questions as the result of its request,
//! and answers them with the next one. Either way the call goes on where it stopped.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use futures::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolgate_core::{
    CallId, ClientId, ElicitationListener, Question, QuestionError, QuestionHandler, TaskHandle,
    ToolCall, ToolExecutor, ToolOutcome,
};

use super::call_reports::CallReports;
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

/// The client that a call may ask.
pub(super) struct AskedClient {
    pub(super) id: ClientId,
    pub(super) capabilities: Arc<Value>,
    // Hears of pages that are done. Only in 2025-11-25.
    pub(super) listener: Option<Weak<dyn ElicitationListener>>,
}

/// Hands the questions of one call to whoever runs it.
struct QuestionQueue {
    client: AskedClient,
    rounds: mpsc::Sender<QuestionRound>,
    asked: AtomicUsize,
}

impl QuestionHandler for QuestionQueue {
    fn client(&self) -> ClientId {
        self.client.id
    }

    fn capabilities(&self) -> &Value {
        &self.client.capabilities
    }

    fn elicitation_listener(&self) -> Option<&Weak<dyn ElicitationListener>> {
        self.client.listener.as_ref()
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

/// A call that may ask questions. It owns all it needs, so it can outlive the
/// request that began it.
pub(super) struct AskingCall {
    pub(super) id: CallId,
    pub(super) capabilities: Arc<Value>,
    outcome: BoxFuture<'static, ToolOutcome>,
    has_begun: Arc<AtomicBool>,
    rounds: mpsc::Receiver<QuestionRound>,
    pub(super) stop: CancellationToken,
    pub(super) task_handle: TaskHandle,
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
        client: AskedClient,
        reports: CallReports,
    ) -> Self {
        let (rounds, waiting) = mpsc::channel(MAX_ROUNDS);
        let (id, stop) = (call.id(), CancellationToken::new());
        let capabilities = Arc::clone(&client.capabilities);
        let reports = Arc::new(reports);
        let task_handle = TaskHandle::default();
        let call = reports
            .listen(call)
            .cancellation(stop.clone())
            .task_handle(task_handle.clone())
            .on_question(Arc::new(QuestionQueue {
                client,
                rounds,
                asked: AtomicUsize::new(0),
            }));
        Self {
            id,
            capabilities,
            outcome: Box::pin(async move { executor.execute(call).await }),
            has_begun: Arc::new(AtomicBool::new(true)),
            rounds: waiting,
            stop,
            task_handle,
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
        let has_begun = Arc::clone(&self.has_begun);
        has_begun.store(false, Ordering::Relaxed);
        self.outcome = Box::pin(async move {
            ready.await;
            has_begun.store(true, Ordering::Relaxed);
            call.await
        });
    }

    /// False if nothing is on record yet, so that the call can be dropped.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
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
