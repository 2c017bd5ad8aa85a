//! What is known of a turn while it goes on.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;
use toolgate_core::{CallId, ToolExecutor};
use toolgate_models::{
    AnswerSource, CallArguments, Event as ModelEvent, Listener, ModelCall, Turn, TurnEnd,
};

use super::Engines;
use super::brief::{brief, reason};
use crate::speak::Script;
use crate::{Event, Role, State, Watcher};

/// Hears the model, and is asked by whoever runs the turn. Clones are the same.
#[derive(Clone)]
pub(super) struct Progress {
    engines: Arc<Engines>,
    watcher: Arc<dyn Watcher>,
    executor: ToolExecutor,
    way: Way,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// It is spoken here: its states are those of the gateway.
    Aloud,
    InWriting,
}

#[derive(Default)]
struct Inner {
    /// What is still to be said or taken back, in order.
    words: Vec<Words>,
    running: Vec<Running>,
    calls: Vec<String>,
    first_token: Option<Instant>,
    has_asked: bool,
    is_speaking: bool,
    has_told: bool,
    is_over: bool,
    /// Since when a tool is at work, or waited for.
    working: Option<Instant>,
    /// Tools of servers that are still starting are waited for.
    is_waiting: bool,
    is_asking: bool,
}

enum Words {
    Said(String),
    TakenBack,
    /// The round is over: what it said stays said.
    Round,
}

struct Running {
    id: CallId,
    name: String,
}

impl Progress {
    pub(super) fn new(
        engines: Arc<Engines>,
        watcher: Arc<dyn Watcher>,
        executor: ToolExecutor,
        way: Way,
    ) -> Self {
        Self {
            engines,
            watcher,
            executor,
            way,
            inner: Arc::default(),
        }
    }

    /// True once the model was asked: only then does history know of this turn.
    pub(super) fn has_asked(&self) -> bool {
        self.inner.lock().has_asked
    }

    /// Whoever listens is told of something else now: only what its tools do is still told.
    pub(super) fn hush(&self) {
        self.inner.lock().is_over = true;
    }

    pub(super) fn first_token(&self) -> Option<Instant> {
        self.inner.lock().first_token
    }

    pub(super) fn calls(&self) -> Vec<String> {
        self.inner.lock().calls.clone()
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.inner.lock().is_waiting
    }

    pub(super) fn has_call(&self, id: CallId) -> bool {
        self.inner
            .lock()
            .running
            .iter()
            .any(|running| running.id == id)
    }

    /// True if words came that nobody has said or sent yet.
    pub(super) fn has_words(&self) -> bool {
        !self.inner.lock().words.is_empty()
    }

    pub(super) fn is_asking(&self) -> bool {
        self.inner.lock().is_asking
    }

    /// The person is asked about a call until the guard is dropped.
    pub(super) fn asks(&self) -> impl Drop + use<> {
        self.inner.lock().is_asking = true;
        AsksGuard(self.clone())
    }

    pub(super) fn working(&self) -> Option<Instant> {
        self.inner.lock().working
    }

    /// True if a tool is at work that must not be stopped: nobody would know what it has done.
    pub(super) fn must_go_on(&self) -> bool {
        // Looked up now: what was not there when it was called may have come, and be at work.
        let may_stop = |running: &Running| {
            let tool = self.executor.find(&running.name);
            tool.map_or(true, |tool| {
                let says = tool.definition().annotations();
                says.read_only == Some(true) || says.idempotent == Some(true)
            })
        };
        !self.inner.lock().running.iter().all(may_stop)
    }

    /// Gives the words that came to whoever says or sends them, in view of how the turn ended, if it did. True if there were any.
    pub(super) fn say(&self, script: Option<&Script>, ended: Option<&Turn>) -> bool {
        let mut words = std::mem::take(&mut self.inner.lock().words);
        let mut refusal = None;
        if let (Some(Words::Said(last)), Some(turn)) = (words.last(), ended)
            && turn.answer == *last
        {
            if turn.error.is_some() {
                // Words of ours about the model's failure, which are for an operator.
                words.pop();
            } else if turn.end == TurnEnd::Refusal {
                refusal = Some(last.clone());
            }
        }
        let Some(script) = script else {
            return false;
        };
        let mut has_said = false;
        for words in words {
            match words {
                Words::Said(text) => {
                    has_said |= !text.trim().is_empty();
                    self.speaking(&text);
                    script.push(&match (self.way, refusal.as_deref() == Some(&text)) {
                        (Way::InWriting, _) => text.as_str().into(),
                        (Way::Aloud, true) => reason(&text),
                        (Way::Aloud, false) => brief(&text),
                    });
                }
                Words::TakenBack => {
                    script.void();
                    let has_told = std::mem::take(&mut self.inner.lock().has_told);
                    if has_told {
                        self.watcher.event(Event::TakenBack);
                    }
                }
                Words::Round => {
                    script.flush();
                    self.inner.lock().has_told = false;
                }
            }
        }
        has_said
    }

    /// Words are told as they are said. Whoever reads them elsewhere is not looked over the shoulder.
    fn speaking(&self, words: &str) {
        if self.way == Way::InWriting {
            return;
        }
        self.inner.lock().has_told = true;
        let was = std::mem::replace(&mut self.inner.lock().is_speaking, true);
        if !was {
            self.state(&State::Speaking);
        }
        self.watcher.event(Event::Words(words));
    }

    fn state(&self, state: &State) {
        if self.way == Way::Aloud && !self.inner.lock().is_over {
            self.watcher.event(Event::State(state));
        }
    }

    fn calling(&self, call: &ModelCall, id: CallId) {
        let arguments = match &call.arguments {
            CallArguments::Object(object) => Value::Object(object.clone()).to_string(),
            CallArguments::Unusable(text) => text.clone(),
        };
        let mut inner = self.inner.lock();
        let now = Instant::now();
        inner.first_token.get_or_insert(now);
        inner.working.get_or_insert(now);
        let name = call.name.clone();
        inner.running.push(Running { id, name });
        inner.calls.push(id.to_string());
        inner.words.push(Words::Round);
        inner.is_speaking = false;
        drop(inner);
        self.state(&State::Calling(call.name.clone()));
        self.watcher.event(Event::Calling {
            id,
            name: &call.name,
            arguments: &arguments,
        });
    }

    fn called(&self, id: CallId) {
        let mut inner = self.inner.lock();
        inner.running.retain(|running| running.id != id);
        let is_over = inner.running.is_empty();
        if is_over {
            inner.working = None;
        }
        drop(inner);
        if is_over {
            self.state(&State::Thinking);
        }
    }

    fn waits(&self, is_waiting: bool) {
        let mut inner = self.inner.lock();
        inner.is_waiting = is_waiting;
        match is_waiting {
            true => drop(inner.working.get_or_insert_with(Instant::now)),
            false if inner.running.is_empty() => inner.working = None,
            false => {}
        }
    }
}

struct AsksGuard(Progress);

impl Drop for AsksGuard {
    fn drop(&mut self) {
        self.0.inner.lock().is_asking = false;
    }
}

impl Listener for Progress {
    fn event(&mut self, event: ModelEvent<'_>) {
        match event {
            ModelEvent::Text(text) => {
                let mut inner = self.inner.lock();
                inner.first_token.get_or_insert_with(Instant::now);
                inner.words.push(Words::Said(text.to_owned()));
            }
            ModelEvent::Void | ModelEvent::WasThinking => {
                self.inner.lock().words.push(Words::TakenBack);
            }
            ModelEvent::Asking { .. } => {
                let mut inner = self.inner.lock();
                inner.has_asked = true;
                inner.words.push(Words::Round);
            }
            ModelEvent::Waiting { .. } => self.waits(true),
            ModelEvent::Waited => self.waits(false),
            ModelEvent::Calling { call, id, .. } => self.calling(call, id),
            ModelEvent::Called { outcome, .. } => {
                self.watcher.event(Event::Called(outcome));
                self.called(outcome.call_id);
            }
            ModelEvent::ModelAway { error } => self.engines.lost(Role::Model, &error.to_string()),
            // Sentences in front of a model are no sign of life.
            ModelEvent::Replied {
                source: AnswerSource::Model(_),
                ..
            } => self.engines.worked(Role::Model),
            ModelEvent::Notice(text) => tracing::debug!("{text}"),
            _ => {}
        }
    }
}
