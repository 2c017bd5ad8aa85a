//! Tracks which engines are lost, so that each loss and return is reported only once.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::warn;

use crate::speak::SpeechOutcome;
use crate::{EngineError, EngineRole, VoiceEvent, VoiceObserver};

pub(crate) struct EngineHealth {
    observer: Arc<dyn VoiceObserver>,
    lost: Mutex<HashSet<EngineRole>>,
}

impl EngineHealth {
    pub(crate) fn new(observer: Arc<dyn VoiceObserver>) -> Self {
        Self {
            observer,
            lost: Mutex::default(),
        }
    }

    /// Records a failure. True if the user should hear about it: an engine that refuses one request
    /// isn't lost, and its message is always new.
    pub(crate) fn record_failure(&self, role: EngineRole, error: &EngineError) -> bool {
        if let EngineError::Refused { .. } = error {
            warn!(%role, %error, "an engine rejected a request");
            self.mark_working(role);
            return true;
        }
        self.mark_lost(role, &error)
    }

    pub(crate) fn record_speech(&self, spoken: &SpeechOutcome) {
        match &spoken.problem {
            Some(problem) => {
                // If only playing failed, the speech engine worked.
                if problem.role == EngineRole::Loudspeaker {
                    self.mark_working(EngineRole::Speech);
                }
                self.record_failure(problem.role, &problem.error);
            }
            None if spoken.first_audio.is_some() => {
                self.mark_working(EngineRole::Speech);
                self.mark_working(EngineRole::Loudspeaker);
            }
            None => {}
        }
    }

    /// Marks an engine as lost. Reports it and returns true if that is new.
    pub(crate) fn mark_lost(&self, role: EngineRole, why: &impl ToString) -> bool {
        let is_news = self.lost.lock().insert(role);
        if is_news {
            let why = &why.to_string();
            self.observer.event(VoiceEvent::Lost { role, why });
        }
        is_news
    }

    pub(crate) fn lost_roles(&self) -> Vec<EngineRole> {
        self.lost.lock().iter().copied().collect()
    }

    pub(crate) fn mark_working(&self, role: EngineRole) {
        let is_news = self.lost.lock().remove(&role);
        if is_news {
            self.observer.event(VoiceEvent::Back(role));
        }
    }
}
