//! The state of a running turn.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::time::Instant;
use toolgate_core::{CallId, ToolExecutor};
use toolgate_models::{
    AnswerSource, CallArguments, ModelCall, ModelEvent, ModelListener, TurnEnd, TurnRecord,
};

use super::EngineHealth;
use super::shorten::{refusal_sentence, shorten};
use crate::speak::AnswerScript;
use crate::{EngineRole, VoiceEvent, VoiceObserver, VoiceState};

#[derive(Clone)]
pub(super) struct TurnProgress {
    engines: Arc<EngineHealth>,
    observer: Arc<dyn VoiceObserver>,
    executor: ToolExecutor,
    mode: AnswerMode,
    inner: Arc<Mutex<ProgressState>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerMode {
    /// Spoken here, so its states are the gateway's.
    Spoken,
    Written,
}

#[derive(Default)]
pub(super) struct ProgressState {
    pub(super) words: Vec<ProgressWords>,
    running: Vec<UnfinishedCall>,
    pub(super) calls: Vec<String>,
    pub(super) first_token: Option<Instant>,
    /// History contains this turn only after the model was asked.
    pub(super) model_was_asked: bool,
    is_speaking: bool,
    has_reported_words: bool,
    /// The user is already doing something else: no states are reported, only tool calls.
    pub(super) is_over: bool,
    pub(super) working: Option<Instant>,
    pub(super) is_waiting: bool,
    pub(super) is_asking_user: bool,
}

pub(super) enum ProgressWords {
    Said(String),
    TakenBack,
    /// The end of a round: its words can no longer be taken back.
    Round,
}

struct UnfinishedCall {
    id: CallId,
    name: String,
}

impl TurnProgress {
    pub(super) fn new(
        engines: Arc<EngineHealth>,
        observer: Arc<dyn VoiceObserver>,
        executor: ToolExecutor,
        mode: AnswerMode,
    ) -> Self {
        Self {
            engines,
            observer,
            executor,
            mode,
            inner: Arc::default(),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, ProgressState> {
        self.inner.lock()
    }

    pub(super) fn has_call(&self, id: CallId) -> bool {
        let state = self.state();
        state.running.iter().any(|running| running.id == id)
    }

    /// The user is being asked about a call until the guard is dropped.
    pub(super) fn begin_asking(&self) -> impl Drop + use<> {
        self.state().is_asking_user = true;
        AskingGuard(self.clone())
    }

    /// True if a running tool must not be interrupted, because nobody would know what it has done.
    pub(super) fn is_uninterruptible(&self) -> bool {
        // Looked up now: a tool that was missing when it was called may have
        // arrived and be running.
        let may_stop = |running: &UnfinishedCall| {
            let tool = self.executor.find(&running.name);
            tool.map_or(true, |tool| {
                let says = tool.definition().annotations();
                says.read_only == Some(true) || says.idempotent == Some(true)
            })
        };
        !self.state().running.iter().all(may_stop)
    }

    /// Passes waiting words to the script, depending on how the turn ended, if it did. True
    /// if there were any.
    pub(super) fn pass_words(
        &self,
        script: Option<&AnswerScript>,
        ended: Option<&TurnRecord>,
    ) -> bool {
        let mut words = std::mem::take(&mut self.state().words);
        let mut refusal = None;
        if let (Some(ProgressWords::Said(last)), Some(turn)) = (words.last(), ended)
            && turn.answer == *last
        {
            if turn.error.is_some() {
                // Our own words about a failure, which are for the operator.
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
                ProgressWords::Said(text) => {
                    has_said |= !text.trim().is_empty();
                    self.report_words(&text);
                    script.push(&match (self.mode, refusal.as_deref() == Some(&text)) {
                        (AnswerMode::Written, _) => text.as_str().into(),
                        (AnswerMode::Spoken, true) => refusal_sentence(&text),
                        (AnswerMode::Spoken, false) => shorten(&text),
                    });
                }
                ProgressWords::TakenBack => {
                    script.take_back();
                    let has_reported_words = std::mem::take(&mut self.state().has_reported_words);
                    if has_reported_words {
                        self.observer.event(VoiceEvent::TakenBack);
                    }
                }
                ProgressWords::Round => {
                    script.flush();
                    self.state().has_reported_words = false;
                }
            }
        }
        has_said
    }

    // Written answers are not shown here: they belong to the client that asked.
    fn report_words(&self, words: &str) {
        if self.mode == AnswerMode::Written {
            return;
        }
        self.state().has_reported_words = true;
        let was_speaking = std::mem::replace(&mut self.state().is_speaking, true);
        if !was_speaking {
            self.report_state(&VoiceState::Speaking);
        }
        self.observer.event(VoiceEvent::Words(words));
    }

    fn report_state(&self, state: &VoiceState) {
        if self.mode == AnswerMode::Spoken && !self.state().is_over {
            self.observer.event(VoiceEvent::State(state));
        }
    }

    fn call_started(&self, call: &ModelCall, id: CallId) {
        let arguments = match &call.arguments {
            CallArguments::Object(object) => Value::Object(object.clone()).to_string(),
            CallArguments::Unusable(text) => text.clone(),
        };
        let mut state = self.state();
        let now = Instant::now();
        state.first_token.get_or_insert(now);
        state.working.get_or_insert(now);
        let name = call.name.clone();
        state.running.push(UnfinishedCall { id, name });
        state.calls.push(id.to_string());
        state.words.push(ProgressWords::Round);
        state.is_speaking = false;
        drop(state);
        self.report_state(&VoiceState::Calling(call.name.clone()));
        self.observer.event(VoiceEvent::Calling {
            id,
            name: &call.name,
            arguments: &arguments,
        });
    }

    fn call_ended(&self, id: CallId) {
        let mut state = self.state();
        state.running.retain(|running| running.id != id);
        let is_over = state.running.is_empty();
        if is_over {
            state.working = None;
        }
        drop(state);
        if is_over {
            self.report_state(&VoiceState::Thinking);
        }
    }

    fn set_waiting(&self, is_waiting: bool) {
        let mut state = self.state();
        state.is_waiting = is_waiting;
        match is_waiting {
            true => drop(state.working.get_or_insert_with(Instant::now)),
            false if state.running.is_empty() => state.working = None,
            false => {}
        }
    }
}

struct AskingGuard(TurnProgress);

impl Drop for AskingGuard {
    fn drop(&mut self) {
        self.0.inner.lock().is_asking_user = false;
    }
}

impl ModelListener for TurnProgress {
    fn event(&mut self, event: ModelEvent<'_>) {
        match event {
            ModelEvent::Text(text) => {
                let mut state = self.state();
                state.first_token.get_or_insert_with(Instant::now);
                state.words.push(ProgressWords::Said(text.to_owned()));
            }
            ModelEvent::Void | ModelEvent::WasThinking => {
                self.state().words.push(ProgressWords::TakenBack);
            }
            ModelEvent::Asking { .. } => {
                let mut state = self.state();
                state.model_was_asked = true;
                state.words.push(ProgressWords::Round);
            }
            ModelEvent::Waiting { .. } => self.set_waiting(true),
            ModelEvent::Waited => self.set_waiting(false),
            ModelEvent::Calling { call, id, .. } => self.call_started(call, id),
            ModelEvent::Called { outcome, .. } => {
                self.observer.event(VoiceEvent::Called(outcome));
                self.call_ended(outcome.call_id);
            }
            ModelEvent::ModelUnavailable { error } => {
                self.engines.mark_lost(EngineRole::Model, &error);
            }
            // An answer from the sentence matcher doesn't show that the model works.
            ModelEvent::Replied {
                source: AnswerSource::Model(_),
                ..
            } => self.engines.mark_working(EngineRole::Model),
            ModelEvent::Notice(text) => tracing::debug!("{text}"),
            _ => {}
        }
    }
}
