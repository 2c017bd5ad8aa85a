//! The event hub: logs every event, updates the state others need, and passes the event on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;
use toolgate_journal::TurnOutcome;
use tracing::{info, warn};

use crate::turn::HANDLE;
use crate::{VoiceEvent, VoiceObserver, VoiceState};

pub(crate) struct EventHub {
    observers: Vec<Arc<dyn VoiceObserver>>,
    activity: Mutex<GatewayActivity>,
    turns: AtomicU64,
    failed: AtomicU64,
    dropped: Mutex<BTreeMap<String, u64>>,
    finished: watch::Sender<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CaptureState {
    Starting,
    Idle,
    Listening,
    Hearing,
}

// Capture and answering run side by side. One state is shown: the one a person cares about.
struct GatewayActivity {
    capture: CaptureState,
    answer: Option<VoiceState>,
    shown: VoiceState,
    idle: CaptureState,
}

impl GatewayActivity {
    fn visible_state(&self) -> VoiceState {
        match (self.capture, &self.answer) {
            (CaptureState::Hearing, _) => VoiceState::Hearing,
            // After the wake word, listening is all that matters. A gateway that always listens
            // does so beside an answer.
            (CaptureState::Listening, None) => VoiceState::Listening,
            (CaptureState::Listening, Some(_)) if self.idle == CaptureState::Idle => {
                VoiceState::Listening
            }
            (_, Some(answer)) => answer.clone(),
            (CaptureState::Idle, None) => VoiceState::Waiting,
            (CaptureState::Starting, None) => VoiceState::Starting,
        }
    }
}

impl EventHub {
    pub(crate) fn new(observers: Vec<Arc<dyn VoiceObserver>>) -> Self {
        Self {
            observers,
            activity: Mutex::new(GatewayActivity {
                capture: CaptureState::Starting,
                answer: None,
                shown: VoiceState::Starting,
                idle: CaptureState::Starting,
            }),
            turns: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            dropped: Mutex::default(),
            finished: watch::Sender::new(0),
        }
    }

    pub(super) fn set_idle_state(&self, state: CaptureState) {
        self.update(|activity| (activity.capture, activity.idle) = (state, state));
    }

    pub(super) fn set_capture(&self, state: CaptureState) {
        self.update(|activity| activity.capture = state);
    }

    pub(super) fn return_to_idle(&self) {
        self.update(|activity| activity.capture = activity.idle);
    }

    pub(super) fn report_dropped(&self, source: &str, why: &str) {
        self.count_dropped(why);
        self.return_to_idle();
        let heard = "";
        self.notify(VoiceEvent::Dropped { source, heard, why });
    }

    pub(super) async fn wait_for_utterances(&self, count: u64) {
        let mut finished = self.finished.subscribe();
        // Fails when the sender is dropped, which ends the wait just as well.
        let _is_open = finished
            .wait_for(|finished| *finished >= count)
            .await
            .is_ok();
    }

    pub(super) fn counts(&self) -> (u64, u64, u64) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let dropped = self.dropped.lock().values().sum();
        (count(&self.turns), count(&self.failed), dropped)
    }

    /// Reasons with their counts, such as `2 × too short to be speech`.
    pub(super) fn drop_reasons(&self) -> Vec<String> {
        let dropped = self.dropped.lock();
        let reasons = dropped
            .iter()
            .map(|(why, count)| format!("{count} × {why}"));
        reasons.collect()
    }

    fn count_dropped(&self, why: &str) {
        // The keys are our own texts, so the map stays small.
        *self.dropped.lock().entry(why.to_owned()).or_default() += 1;
    }

    fn update(&self, change: impl FnOnce(&mut GatewayActivity)) {
        let mut activity = self.activity.lock();
        change(&mut activity);
        let now = activity.visible_state();
        if activity.shown != now {
            activity.shown.clone_from(&now);
            // Sent under the lock, so that observers see the states in order.
            self.notify(VoiceEvent::State(&now));
        }
    }

    fn notify(&self, event: VoiceEvent<'_>) {
        for observer in &self.observers {
            observer.event(event);
        }
    }

    // The state of an answer that was cut short is no longer shown, because the next
    // one may be running.
    fn end_utterance(&self, ends_answer: impl Fn(&VoiceState) -> bool) {
        self.update(|activity| {
            activity.answer = activity.answer.take().filter(|state| !ends_answer(state));
        });
        self.finished.send_modify(|finished| *finished += 1);
    }
}

impl VoiceObserver for EventHub {
    fn event(&self, event: VoiceEvent<'_>) {
        match &event {
            VoiceEvent::State(state) => {
                return self.update(|activity| activity.answer = Some((*state).clone()));
            }
            VoiceEvent::Lost { role, why } => {
                warn!(%role, why, "lost; retrying until it is back");
            }
            VoiceEvent::Back(role) => info!(%role, "back"),
            VoiceEvent::Phase {
                name,
                took,
                problem,
            } => {
                let took_ms = took.as_secs_f64() * 1000.0;
                match problem {
                    None => info!(phase = name, took_ms, "ready"),
                    Some(problem) => warn!(phase = name, took_ms, problem, "not available"),
                }
            }
            VoiceEvent::Ready { degraded } => match degraded {
                None => info!("ready"),
                Some(words) => warn!(degraded = words, "ready, but degraded"),
            },
            VoiceEvent::Turn(turn) => {
                self.turns.fetch_add(1, Ordering::Relaxed);
                if turn.outcome == TurnOutcome::Failed {
                    self.failed.fetch_add(1, Ordering::Relaxed);
                }
            }
            VoiceEvent::Dropped { why, .. } => self.count_dropped(why),
            _ => {}
        }
        self.notify(event);
        match &event {
            // A written request doesn't change what the voice does.
            VoiceEvent::Turn(turn) if turn.source == HANDLE => {}
            VoiceEvent::Turn(turn) if turn.outcome == TurnOutcome::Interrupted => {
                self.end_utterance(|state| *state != VoiceState::Transcribing);
            }
            VoiceEvent::Turn(_) => self.end_utterance(|_| true),
            VoiceEvent::Dropped { .. } => {
                self.end_utterance(|state| *state == VoiceState::Transcribing);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct StateRecorder(Mutex<Vec<VoiceState>>);

    impl VoiceObserver for StateRecorder {
        fn event(&self, event: VoiceEvent<'_>) {
            if let VoiceEvent::State(state) = event {
                self.0.lock().push(state.clone());
            }
        }
    }

    fn hub() -> (Arc<StateRecorder>, EventHub) {
        let seen = Arc::new(StateRecorder::default());
        let hub = EventHub::new(vec![seen.clone()]);
        (seen, hub)
    }

    #[test]
    fn listens_after_the_wake_word_cuts_an_answer_short() {
        let (seen, hub) = hub();
        hub.set_idle_state(CaptureState::Idle);
        hub.event(VoiceEvent::State(&VoiceState::Speaking));
        hub.set_capture(CaptureState::Listening);
        hub.end_utterance(|state| *state != VoiceState::Transcribing);
        hub.set_capture(CaptureState::Hearing);
        hub.return_to_idle();
        hub.event(VoiceEvent::State(&VoiceState::Transcribing));
        assert_eq!(
            *seen.0.lock(),
            [
                VoiceState::Waiting,
                VoiceState::Speaking,
                VoiceState::Listening,
                VoiceState::Hearing,
                VoiceState::Waiting,
                VoiceState::Transcribing
            ]
        );
    }

    fn dropped(why: &str) -> VoiceEvent<'_> {
        let (source, heard) = ("microphone", "");
        VoiceEvent::Dropped { source, heard, why }
    }

    #[test]
    fn dropped_utterance_does_not_end_a_running_answer() {
        let (seen, hub) = hub();
        hub.set_idle_state(CaptureState::Listening);
        hub.event(VoiceEvent::State(&VoiceState::Transcribing));
        hub.event(dropped("too short"));
        hub.event(VoiceEvent::State(&VoiceState::Speaking));
        hub.event(dropped("too quiet"));
        hub.report_dropped("microphone", "nothing was said");
        let states = [
            VoiceState::Listening,
            VoiceState::Transcribing,
            VoiceState::Listening,
            VoiceState::Speaking,
        ];
        assert_eq!(*seen.0.lock(), states);
        hub.report_dropped("microphone", "too quiet");
        assert_eq!((hub.counts(), *hub.finished.borrow()), ((0, 0, 4), 2));
        assert_eq!(
            hub.drop_reasons(),
            ["1 × nothing was said", "2 × too quiet", "1 × too short"]
        );
    }
}
