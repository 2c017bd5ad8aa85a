//! Records events.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::timeout;
use toolgate_journal::VoiceTurn;
use toolgate_voice::{DropReason, VoiceEvent, VoiceObserver, VoiceState};

/// Far longer than any test waits.
const HANG: Duration = Duration::from_secs(600);

/// Events as text, and turns unchanged.
#[derive(Default)]
pub(crate) struct EventRecorder {
    events: Mutex<Vec<String>>,
    turns: Mutex<Vec<VoiceTurn>>,
    changed: Notify,
    drops: Mutex<HashMap<String, u64>>,
    /// For long tests: only turns and drops are counted.
    pub(crate) ends: std::sync::atomic::AtomicUsize,
    pub(crate) is_brief: std::sync::atomic::AtomicBool,
}

impl VoiceObserver for EventRecorder {
    fn event(&self, event: VoiceEvent<'_>) {
        use std::sync::atomic::Ordering::Relaxed;
        if matches!(event, VoiceEvent::Turn(_) | VoiceEvent::Dropped { .. }) {
            self.ends.fetch_add(1, Relaxed);
        }
        if let VoiceEvent::Dropped { why, .. } = event {
            *self.drops.lock().entry(why.to_owned()).or_default() += 1;
        }
        if !self.is_brief.load(Relaxed) {
            if let VoiceEvent::Turn(turn) = event {
                self.turns.lock().push(turn.clone());
            }
            self.events.lock().push(words(&event));
        }
        self.changed.notify_waiters();
    }
}

fn words(event: &VoiceEvent<'_>) -> String {
    match event {
        VoiceEvent::State(VoiceState::Calling(tool)) => format!("state calling {tool}"),
        VoiceEvent::State(state) => format!("state {state:?}").to_lowercase(),
        VoiceEvent::Heard { text, .. } => format!("heard {text}"),
        VoiceEvent::Dropped { why, .. } => format!("dropped {why}"),
        VoiceEvent::Calling {
            name, arguments, ..
        } => format!("calling {name} {arguments}"),
        VoiceEvent::Called(outcome) => {
            format!("called {} {}", outcome.tool_name, outcome.is_success())
        }
        VoiceEvent::Words(text) => format!("words {text}"),
        VoiceEvent::Turn(turn) => format!("turn {:?}", turn.outcome).to_lowercase(),
        VoiceEvent::Lost { role, .. } => format!("lost {role}"),
        VoiceEvent::Back(role) => format!("back {role}"),
        other => format!("{other:?}"),
    }
}

impl EventRecorder {
    pub(crate) fn events(&self) -> Vec<String> {
        self.events.lock().clone()
    }

    pub(crate) fn turns(&self) -> Vec<VoiceTurn> {
        self.turns.lock().clone()
    }

    pub(crate) fn dropped(&self, reason: DropReason) -> u64 {
        let drops = self.drops.lock();
        drops.get(&reason.to_string()).copied().unwrap_or(0)
    }

    /// How often this event occurred.
    pub(crate) fn count(&self, event: &str) -> usize {
        let events = self.events();
        events.iter().filter(|seen| *seen == event).count()
    }

    /// Waits until something holds.
    pub(crate) async fn until(&self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let waiting = async {
            loop {
                let changed = self.changed.notified();
                if holds(self) {
                    return;
                }
                changed.await;
            }
        };
        let seen = timeout(HANG, waiting).await;
        assert!(
            seen.is_ok(),
            "waited for {what} in vain: {:#?}",
            self.events()
        );
    }

    /// Waits until this event occurred this often.
    pub(crate) async fn seen(&self, event: &str, times: usize) {
        self.until(event, |recorder| recorder.count(event) >= times)
            .await;
    }

    /// Waits for a turn, counted from 0.
    pub(crate) async fn turn(&self, index: usize) -> VoiceTurn {
        self.until("a turn", |recorder| recorder.turns().len() > index)
            .await;
        self.turns()[index].clone()
    }
}
