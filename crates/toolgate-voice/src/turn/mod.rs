//! The turn engine: one request and its answer.
//!
//! ```text
//!  submit ──▶ queue ──▶ transcribing ──▶ answering ──▶ VoiceTurn
//!             bounded   SpeechToText,    converse: a Conversation whose words
//!                       filters          go into an ActiveSpeech as they arrive
//! ```
//!
//! Two tasks: while one request is answered, the next is already transcribed, so that a "stop"
//! takes effect at once. Requests are numbered, and an interruption gives up all earlier ones.

mod answer_queue;
mod answering;
mod apologies;
mod consent;
mod conversation_store;
mod converse;
mod drop_reason;
mod engine_health;
mod progress;
mod shorten;
mod transcribing;
mod turn_record;

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_journal::{Journal, VoiceTurn};
use toolgate_models::{ConnectedModel, ModelSettings, SentenceRouter, Toolbox};
use tracing::{debug, error, warn};

pub use consent::SpokenApprovals;
pub use drop_reason::DropReason;
pub(crate) use drop_reason::QueueFullError;
pub(crate) use engine_health::EngineHealth;

use answer_queue::AnswerQueue;
use consent::ConsentState;
use conversation_store::ConversationStore;
use converse::FillerOptions;

use crate::segment::Utterance;
use crate::services::{HandleRequest, HandleResponse, RequestHandler};
use crate::speak::{AnswerScript, Speaker};
use crate::transcribe::SpeechToText;
use crate::{VoiceEvent, VoiceObserver, VoiceSettings, VoiceState};

pub(crate) const HANDLE: &str = "handle";
const MAX_WRITTEN_REQUESTS: usize = 16;
// A tool that must not be interrupted gets this long at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) struct TranscriberParts {
    pub(crate) router: SentenceRouter,
    pub(crate) model_settings: ModelSettings,
    pub(crate) toolbox: Toolbox,
    pub(crate) transcribe: Arc<dyn SpeechToText>,
    pub(crate) speaker: Speaker,
    pub(crate) observer: Arc<dyn VoiceObserver>,
    pub(crate) journal: Option<Journal>,
}

/// The turn engine: transcribes utterances in the background, answers them and speaks the
/// answers, so that capture never waits. The name is the specification's, although transcription
/// is only its first step.
///
/// It has no tools of its own: all calls go through the executor it was given.
pub(crate) struct BackgroundTranscriber {
    shared: Arc<TurnEngine>,
    queue: mpsc::Sender<TranscriptionJob>,
    tasks: TaskTracker,
    /// Cancels the tasks, even in the middle of a call.
    abort: CancellationToken,
}

struct TurnEngine {
    conversations: ConversationStore,
    transcribe: Arc<dyn SpeechToText>,
    asr_timeout: Duration,
    speaker: Speaker,
    filler: FillerOptions,
    observer: Arc<dyn VoiceObserver>,
    journal: Option<Journal>,
    engines: Arc<EngineHealth>,
    source: String,
    next: AtomicU64,
    given_up: watch::Sender<u64>,
    permits: Arc<Semaphore>,
    answer_queue: AnswerQueue,
    written_permits: Semaphore,
    answering: Mutex<Option<u64>>,
    closed: CancellationToken,
    consent: ConsentState,
}

struct TranscriptionJob {
    number: u64,
    utterance: Utterance,
    permit: OwnedSemaphorePermit,
}

impl BackgroundTranscriber {
    /// `source` is where turns come from in the record, such as `microphone`.
    pub(crate) fn start(
        engines: Arc<EngineHealth>,
        parts: TranscriberParts,
        settings: &VoiceSettings,
        source: &str,
    ) -> Self {
        let queue_length = settings.queue.max(1);
        let shared = Arc::new(TurnEngine::new(engines, parts, settings, source));
        let (queue, jobs) = mpsc::channel(queue_length);
        let transcribing = Arc::clone(&shared).transcribe_all(jobs);
        let answering = Arc::clone(&shared).answer_all();
        let (tasks, abort) = (TaskTracker::new(), CancellationToken::new());
        tasks.spawn(abort.clone().run_until_cancelled_owned(transcribing));
        tasks.spawn(abort.clone().run_until_cancelled_owned(answering));
        Self {
            shared,
            queue,
            tasks,
            abort,
        }
    }

    /// Queues an utterance. Never waits: if the queue is full, the utterance is
    /// dropped, counted and reported.
    pub(crate) fn submit(&self, utterance: Utterance) -> Result<(), QueueFullError> {
        let shared = &self.shared;
        let Ok(permit) = Arc::clone(&shared.permits).try_acquire_owned() else {
            shared.drop_request(DropReason::QueueFull, "");
            let waiting = self.queue.max_capacity();
            warn!(waiting, "dropped a request: the queue is full");
            return Err(QueueFullError { waiting });
        };
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        let job = TranscriptionJob {
            number,
            utterance,
            permit,
        };
        // The channel has room for every permit, so this fails only at shutdown.
        if self.queue.try_send(job).is_err() {
            shared.drop_request(DropReason::GivenUp, "");
        }
        Ok(())
    }

    /// Answers a written request while others are spoken. Its words go into the script as they
    /// arrive, including words before a call that failed later. Dropping the future stops the
    /// answer, except that a tool that must not be interrupted is finished first.
    pub(crate) async fn answer_written(
        &self,
        request: HandleRequest,
        script: Arc<AnswerScript>,
    ) -> HandleResponse {
        let stop = self.shared.closed.child_token();
        let _guard = stop.clone().drop_guard();
        let shared = Arc::clone(&self.shared);
        let reply = async move { shared.answer_in_writing(request, &script, &stop).await };
        let reply = self.abort.clone().run_until_cancelled_owned(reply);
        match self.tasks.spawn(reply).await {
            Ok(Some(answered)) => answered,
            Ok(None) => HandleResponse::failed(apologies::ENDING),
            Err(_) => HandleResponse::failed(apologies::BROKEN),
        }
    }

    /// Stops the voice and gives up all spoken requests so far, because the wake word was heard or
    /// a key pressed. A tool that must not be interrupted is finished first, and history keeps what
    /// was spoken. An open question stays, because the next words may answer it.
    pub(crate) fn interrupt(&self) {
        if self.shared.consent.has_open_question() {
            self.shared.speaker.stop();
            return;
        }
        let next = self.shared.next.load(Ordering::Relaxed);
        self.shared.give_up(next);
    }

    /// Changes when a question was asked: the next words answer it without a wake word.
    pub(crate) fn subscribe_to_questions(&self) -> watch::Receiver<u64> {
        self.shared.consent.subscribe()
    }

    pub(crate) fn use_model(&self, chosen: ConnectedModel) -> bool {
        self.shared.conversations.use_model(chosen)
    }

    /// Shuts down. Turns are interrupted, but a tool that must not be gets ten seconds.
    pub(crate) async fn close(&self) {
        self.end();
        self.tasks.close();
        if timeout(SHUTDOWN_TIMEOUT, self.tasks.wait()).await.is_err() {
            warn!("stopped a tool that took too long at shutdown");
            self.abort.cancel();
            self.tasks.wait().await;
        }
    }

    fn end(&self) {
        self.shared.give_up(u64::MAX);
        self.shared.closed.cancel();
    }
}

// Requests from Home Assistant, over the `handle` service.
impl RequestHandler for BackgroundTranscriber {
    fn respond(
        &self,
        request: HandleRequest,
        script: Arc<AnswerScript>,
    ) -> BoxFuture<'_, HandleResponse> {
        self.answer_written(request, script).boxed()
    }
}

impl Drop for BackgroundTranscriber {
    fn drop(&mut self) {
        self.end();
    }
}

impl TurnEngine {
    fn new(
        engines: Arc<EngineHealth>,
        parts: TranscriberParts,
        settings: &VoiceSettings,
        source: &str,
    ) -> Self {
        let is_english = settings.language.is_empty() || settings.language.starts_with("en");
        Self {
            conversations: ConversationStore::new(
                parts.router,
                parts.toolbox,
                parts.model_settings,
                settings.forget_after,
            ),
            transcribe: parts.transcribe,
            asr_timeout: settings.asr_timeout,
            speaker: parts.speaker,
            filler: FillerOptions {
                after: settings.filler_after,
                words: is_english,
                tone: settings.tones,
            },
            engines,
            observer: parts.observer,
            journal: parts.journal,
            source: source.to_owned(),
            next: AtomicU64::new(0),
            given_up: watch::Sender::new(0),
            permits: Arc::new(Semaphore::new(settings.queue.max(1))),
            written_permits: Semaphore::new(MAX_WRITTEN_REQUESTS),
            answer_queue: AnswerQueue::default(),
            answering: Mutex::default(),
            closed: CancellationToken::new(),
            consent: ConsentState::default(),
        }
    }

    fn give_up(&self, before: u64) {
        self.given_up
            .send_modify(|given_up| *given_up = before.max(*given_up));
        self.speaker.stop();
        self.drop_given_up();
    }

    // Requests that were given up leave the queue at once, to make room for what is said now.
    fn drop_given_up(&self) {
        let given_up = *self.given_up.borrow();
        for request in self.answer_queue.remove_before(given_up) {
            self.drop_request(DropReason::GivenUp, &request.turn.heard);
        }
    }

    fn is_given_up(&self, number: u64) -> bool {
        *self.given_up.borrow() > number
    }

    async fn until_given_up(&self, number: u64) {
        let mut given_up = self.given_up.subscribe();
        // Fails only without a sender, and `self` holds it.
        let _is_open = given_up
            .wait_for(|given_up| *given_up > number)
            .await
            .is_ok();
    }

    fn drop_request(&self, reason: DropReason, heard: &str) {
        debug!(%reason, "dropped an utterance");
        self.observer.event(VoiceEvent::Dropped {
            source: &self.source,
            heard,
            why: &reason.to_string(),
        });
    }

    fn report_state(&self, state: &VoiceState) {
        self.observer.event(VoiceEvent::State(state));
    }

    fn record_turn(&self, turn: &VoiceTurn) {
        if let Some(journal) = &self.journal {
            journal.record_turn(turn);
        }
        self.observer.event(VoiceEvent::Turn(turn));
    }
}

// A panic in one request must not end the gateway.
async fn catch_panic<T>(work: impl Future<Output = T>) -> Option<T> {
    let done = AssertUnwindSafe(work).catch_unwind().await;
    done.inspect_err(|_| error!("a request panicked; continuing with the next one"))
        .ok()
}

#[cfg(test)]
mod tests;
