//! One request and its answer.
//!
//! ```text
//!  hear ──▶ queue ──▶ listening ──▶ answering ──▶ VoiceTurn
//!           bounded   Transcribe,   converse: a Conversation whose words
//!                     filters       go into a Speech as they come
//! ```
//!
//! Two tasks: while one request is answered, the next is already made text of, so that a "stop" is understood at once. A request
//! has a number; whoever interrupts gives up all that came before.

mod answering;
mod brief;
mod consent;
mod conversations;
mod converse;
mod engines;
mod line;
mod listening;
mod progress;
mod reason;
mod sorry;
mod stages;

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
use toolgate_models::{Chosen, ModelSettings, SentenceRouter, Toolbox};
use tracing::{debug, error, warn};

pub use consent::SpokenApprovals;
pub(crate) use engines::Engines;
pub(crate) use reason::Overrun;
pub use reason::Reason;

use consent::Consent;
use conversations::Conversations;
use converse::Filler;
use line::Line;
use reason::Counts;

use crate::listen::Utterance;
use crate::services::{Answered, Asked, Respond};
use crate::speak::{Script, Speaker};
use crate::transcribe::Transcribe;
use crate::{Event, State, VoiceSettings, Watcher};

/// Where requests in writing come from, for the record.
pub(crate) const HANDLE: &str = "handle";

/// How many may ask at the same time.
const MOST_ASKS: usize = 16;

/// How long a tool that must not be stopped has when the program ends.
const LAST_CALL: Duration = Duration::from_secs(10);

pub(crate) struct Equipment {
    /// Who answers: a model, sentences, or one in front of the other.
    pub(crate) router: SentenceRouter,
    pub(crate) model_settings: ModelSettings,
    /// The executor that every call goes through, with a choice of its tools.
    pub(crate) toolbox: Toolbox,
    pub(crate) transcribe: Arc<dyn Transcribe>,
    pub(crate) speaker: Speaker,
    pub(crate) watcher: Arc<dyn Watcher>,
    pub(crate) journal: Option<Journal>,
}

/// A request in words, of somebody who reads the answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Question {
    pub(crate) text: String,
    pub(crate) source: String,
    pub(crate) room: Option<String>,
    /// The conversation it belongs to; without, all of a source are one.
    pub(crate) conversation: Option<String>,
}

/// Answers what it hears, in the background: capture never waits for it.
///
/// It has no tools of its own: all calls go through the executor it was given.
pub(crate) struct BackgroundTranscriber {
    shared: Arc<Shared>,
    queue: mpsc::Sender<Job>,
    tasks: TaskTracker,
    /// Ends it, whatever it does.
    cut: CancellationToken,
}

struct Shared {
    conversations: Conversations,
    transcribe: Arc<dyn Transcribe>,
    asr_timeout: Duration,
    speaker: Speaker,
    filler: Filler,
    watcher: Arc<dyn Watcher>,
    journal: Option<Journal>,
    engines: Arc<Engines>,
    source: String,
    counts: Counts,
    next: AtomicU64,
    /// All requests with a smaller number are given up.
    given_up: watch::Sender<u64>,
    /// One permit for each request that may wait.
    waiting: Arc<Semaphore>,
    /// Those that are text and wait for their answer.
    line: Line,
    asks: Semaphore,
    /// The number of the request that is being answered.
    answering: Mutex<Option<u64>>,
    closed: CancellationToken,
    consent: Consent,
}

struct Job {
    number: u64,
    utterance: Utterance,
    place: OwnedSemaphorePermit,
}

impl BackgroundTranscriber {
    /// Begins. The source is what records of turns say of where they were heard, such as `microphone`.
    pub(crate) fn start(
        engines: Arc<Engines>,
        equipment: Equipment,
        settings: &VoiceSettings,
        source: &str,
    ) -> Self {
        let queue_length = settings.queue.max(1);
        let shared = Arc::new(Shared::new(engines, equipment, settings, source));
        let (queue, jobs) = mpsc::channel(queue_length);
        let listening = Arc::clone(&shared).listen(jobs);
        let answering = Arc::clone(&shared).answer_all();
        let (tasks, cut) = (TaskTracker::new(), CancellationToken::new());
        tasks.spawn(cut.clone().run_until_cancelled_owned(listening));
        tasks.spawn(cut.clone().run_until_cancelled_owned(answering));
        Self {
            shared,
            queue,
            tasks,
            cut,
        }
    }

    /// Takes an utterance. Never waits: where too many requests wait already, it is dropped, counted and told.
    pub(crate) fn hear(&self, utterance: Utterance) -> Result<(), Overrun> {
        let shared = &self.shared;
        let Ok(place) = Arc::clone(&shared.waiting).try_acquire_owned() else {
            shared.drop_request(Reason::Overrun, "");
            let waiting = self.queue.max_capacity();
            warn!(waiting, "a request is dropped: too many wait already");
            return Err(Overrun { waiting });
        };
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        let job = Job {
            number,
            utterance,
            place,
        };
        // There is room for everybody who has a place, so it fails only at the end.
        if self.queue.try_send(job).is_err() {
            shared.drop_request(Reason::GivenUp, "");
        }
        Ok(())
    }

    /// Answers somebody who reads, beside everything that is spoken: the words go into the script as they come. Those of a call
    /// that failed afterwards may be among them. Dropping it breaks the answer off, but a call of a tool that must not be stopped
    /// goes on to its end.
    pub(crate) async fn ask_into(&self, question: Question, script: Arc<Script>) -> Answered {
        let stop = self.shared.closed.child_token();
        let _guard = stop.clone().drop_guard();
        let shared = Arc::clone(&self.shared);
        let reply = async move { shared.reply(question, &script, &stop).await };
        let work = self
            .tasks
            .spawn(self.cut.clone().run_until_cancelled_owned(reply));
        match work.await {
            Ok(Some(answered)) => answered,
            Ok(None) => Answered::failed(sorry::ENDING),
            Err(_) => Answered::failed(sorry::BROKEN),
        }
    }

    /// Somebody speaks, or pressed a key: silence at once, and everything asked aloud so far is given up. A call of a tool that
    /// must not be stopped goes on to its end; of an answer that broke off, history keeps what was spoken. Only a question
    /// that was just asked waits: what is said now may be the answer to it.
    pub(crate) fn interrupt(&self) {
        if self.shared.consent.is_open() {
            self.shared.speaker.stop();
            return;
        }
        let next = self.shared.next.load(Ordering::Relaxed);
        self.shared.give_up(next);
    }

    /// Changes when a question was asked aloud: what is said next is its answer, without a wake word.
    pub(crate) fn expects_answer(&self) -> watch::Receiver<u64> {
        self.shared.consent.expected()
    }

    /// The model is there, for the first time or again. False if it is not the one that is missed.
    pub(crate) fn use_model(&self, chosen: Chosen) -> bool {
        self.shared.conversations.use_model(chosen)
    }

    /// Ends. What goes on is interrupted; what must not be stopped has ten seconds.
    pub(crate) async fn close(&self) {
        self.end();
        self.tasks.close();
        if timeout(LAST_CALL, self.tasks.wait()).await.is_err() {
            warn!("a tool that must not be stopped took too long, and is stopped");
            self.cut.cancel();
            self.tasks.wait().await;
        }
    }

    fn end(&self) {
        self.shared.give_up(u64::MAX);
        self.shared.closed.cancel();
    }
}

/// What Home Assistant asks.
impl Respond for BackgroundTranscriber {
    fn respond(&self, asked: Asked, script: Arc<Script>) -> BoxFuture<'_, Answered> {
        let place = asked.satellite_id.or(asked.device_id);
        // Two who do not say who they are must not mean each other's "it".
        let connection = || format!("connection {}", asked.connection);
        let conversation = asked.conversation_id.or_else(|| place.clone());
        let question = Question {
            text: asked.text,
            source: HANDLE.to_owned(),
            conversation: Some(conversation.unwrap_or_else(connection)),
            room: place,
        };
        self.ask_into(question, script).boxed()
    }
}

impl Drop for BackgroundTranscriber {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn new(
        engines: Arc<Engines>,
        equipment: Equipment,
        settings: &VoiceSettings,
        source: &str,
    ) -> Self {
        let is_english = settings.language.is_empty() || settings.language.starts_with("en");
        Self {
            conversations: Conversations::new(
                equipment.router,
                equipment.toolbox,
                equipment.model_settings,
                settings.forget_after,
            ),
            transcribe: equipment.transcribe,
            asr_timeout: settings.asr_timeout,
            speaker: equipment.speaker,
            filler: Filler {
                after: settings.filler_after,
                words: is_english,
                tone: settings.tones,
            },
            engines,
            watcher: equipment.watcher,
            journal: equipment.journal,
            source: source.to_owned(),
            counts: Counts::default(),
            next: AtomicU64::new(0),
            given_up: watch::Sender::new(0),
            waiting: Arc::new(Semaphore::new(settings.queue.max(1))),
            asks: Semaphore::new(MOST_ASKS),
            line: Line::default(),
            answering: Mutex::default(),
            closed: CancellationToken::new(),
            consent: Consent::default(),
        }
    }

    /// Gives up all requests before this number, and falls silent.
    fn give_up(&self, before: u64) {
        self.given_up.send_if_modified(|given_up| {
            let is_more = *given_up < before;
            *given_up = before.max(*given_up);
            is_more
        });
        self.speaker.stop();
        self.leave();
    }

    /// What is given up does not wait any more: its place is free for what is said now.
    fn leave(&self) {
        let given_up = *self.given_up.borrow();
        for request in self.line.leave(given_up) {
            self.drop_request(Reason::GivenUp, &request.asked.heard);
        }
    }

    fn answering(&self) -> Option<u64> {
        *self.answering.lock()
    }

    fn answers(&self, number: Option<u64>) {
        *self.answering.lock() = number;
    }

    fn is_given_up(&self, number: u64) -> bool {
        *self.given_up.borrow() > number
    }

    async fn until_given_up(&self, number: u64) {
        let mut given_up = self.given_up.subscribe();
        // Fails only without a sender, which is held here.
        if given_up
            .wait_for(|given_up| *given_up > number)
            .await
            .is_err()
        {
            std::future::pending::<()>().await;
        }
    }

    /// What was heard is not answered; `heard` are its words, if they are known.
    fn drop_request(&self, reason: Reason, heard: &str) {
        let count = self.counts.add(reason);
        debug!(%reason, count, "what was heard is dropped");
        self.watcher.event(Event::Dropped {
            source: &self.source,
            heard,
            why: &reason.to_string(),
        });
    }

    fn state(&self, state: &State) {
        self.watcher.event(Event::State(state));
    }

    fn over(&self, turn: &VoiceTurn) {
        if let Some(journal) = &self.journal {
            journal.keep_turn(turn);
        }
        self.watcher.event(Event::Turn(turn));
    }
}

/// What becomes of work; nothing if it panics, which must not end the gateway.
async fn survive<T>(work: impl Future<Output = T>) -> Option<T> {
    let done = AssertUnwindSafe(work).catch_unwind().await;
    done.inspect_err(|_| error!("a request broke the gateway; it goes on with the next"))
        .ok()
}

#[cfg(test)]
mod tests;
