//! Keeps what can be seen.

use parking_lot::Mutex;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;
use toolgate_journal::VoiceTurn;
use toolgate_voice::{Event, State, Watcher};

/// Far beyond anything that a test waits for.
const HANG: Duration = Duration::from_secs(600);

/// Events as words, and turns as they are.
#[derive(Default)]
pub(crate) struct Watch {
    events: Mutex<Vec<String>>,
    turns: Mutex<Vec<VoiceTurn>>,
    changed: Notify,
    /// For long tests: only turns and drops are counted.
    pub(crate) ends: std::sync::atomic::AtomicUsize,
    pub(crate) is_brief: std::sync::atomic::AtomicBool,
}

impl Watcher for Watch {
    fn event(&self, event: Event<'_>) {
        use std::sync::atomic::Ordering::Relaxed;
        if matches!(event, Event::Turn(_) | Event::Dropped { .. }) {
            self.ends.fetch_add(1, Relaxed);
        }
        if !self.is_brief.load(Relaxed) {
            if let Event::Turn(turn) = event {
                self.turns.lock().push(turn.clone());
            }
            self.events.lock().push(words(&event));
        }
        self.changed.notify_waiters();
    }
}

fn words(event: &Event<'_>) -> String {
    match event {
        Event::State(State::Calling(tool)) => format!("state calling {tool}"),
        Event::State(state) => format!("state {state:?}").to_lowercase(),
        Event::Heard { text, .. } => format!("heard {text}"),
        Event::Dropped { why, .. } => format!("dropped {why}"),
        Event::Calling {
            name, arguments, ..
        } => format!("calling {name} {arguments}"),
        Event::Called(outcome) => {
            format!("called {} {}", outcome.tool_name, outcome.is_success())
        }
        Event::Words(text) => format!("words {text}"),
        Event::Turn(turn) => format!("turn {:?}", turn.outcome).to_lowercase(),
        Event::Lost { role, .. } => format!("lost {role}"),
        Event::Back(role) => format!("back {role}"),
        other => format!("{other:?}"),
    }
}

impl Watch {
    pub(crate) fn events(&self) -> Vec<String> {
        self.events.lock().clone()
    }

    pub(crate) fn turns(&self) -> Vec<VoiceTurn> {
        self.turns.lock().clone()
    }

    /// How often this was seen.
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

    /// Waits until this was seen so often.
    pub(crate) async fn seen(&self, event: &str, times: usize) {
        self.until(event, |watch| watch.count(event) >= times).await;
    }

    /// Waits for a turn, counted from 0.
    pub(crate) async fn turn(&self, index: usize) -> VoiceTurn {
        self.until("a turn", |watch| watch.turns().len() > index)
            .await;
        self.turns()[index].clone()
    }
}
