//! Everything that happens passes here: it is logged, remembered where others need it, and told to all who watch.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use toolgate_journal::TurnOutcome;
use tracing::{info, warn};

use crate::turn::HANDLE;
use crate::{Event, Role, State, Watcher};

/// Tells all watchers, each loss of an engine only once.
pub(crate) struct Hub {
    watchers: Vec<Arc<dyn Watcher>>,
    lost: Mutex<Vec<Role>>,
    state: watch::Sender<State>,
    resting: Mutex<State>,
    turns: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
    over: watch::Sender<u64>,
}

impl Hub {
    pub(crate) fn new(watchers: Vec<Arc<dyn Watcher>>) -> Self {
        Self {
            watchers,
            lost: Mutex::default(),
            state: watch::Sender::new(State::Starting),
            resting: Mutex::new(State::Starting),
            turns: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            over: watch::Sender::new(0),
        }
    }

    /// What the gateway is doing.
    pub(crate) fn state(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    /// What it does while nobody asks for anything; it goes there now if it is at rest.
    pub(crate) fn rest(&self, state: &State) {
        let old = std::mem::replace(&mut *lock(&self.resting), state.clone());
        if *self.state.borrow() == old {
            self.event(Event::State(state));
        }
    }

    /// Nobody spoke after all: back to rest.
    pub(crate) fn relax(&self) {
        let resting = lock(&self.resting).clone();
        self.event(Event::State(&resting));
    }

    /// The engines that are away.
    pub(crate) fn lost(&self) -> Vec<Role> {
        lock(&self.lost).clone()
    }

    /// How many requests are over.
    pub(crate) fn over(&self) -> u64 {
        *self.over.borrow()
    }

    /// Waits until more than that many are.
    pub(crate) async fn wait_for_more(&self, than: u64) {
        let mut over = self.over.subscribe();
        // Fails once nobody tells any more, which is as well.
        let _is_told = over.wait_for(|over| *over > than).await.is_ok();
    }

    /// Turns, those that failed, and what was dropped.
    pub(crate) fn counts(&self) -> (u64, u64, u64) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (
            count(&self.turns),
            count(&self.failed),
            count(&self.dropped),
        )
    }

    /// True if this is news.
    fn note(&self, role: Role, is_lost: bool) -> bool {
        let mut lost = lock(&self.lost);
        match lost.iter().position(|other| *other == role) {
            Some(place) if !is_lost => {
                lost.swap_remove(place);
                true
            }
            None if is_lost => {
                lost.push(role);
                true
            }
            _ => false,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watcher for Hub {
    fn event(&self, event: Event<'_>) {
        let (mut is_over, mut rests) = (false, false);
        match &event {
            Event::State(state) => {
                self.state.send_if_modified(|current| {
                    let is_new = current != *state;
                    if is_new {
                        current.clone_from(state);
                    }
                    is_new
                });
            }
            Event::Lost { role, why } => {
                if !self.note(*role, true) {
                    return;
                }
                warn!("{role} is lost: {why}; it is picked up again once it is back");
            }
            Event::Back(role) => {
                if !self.note(*role, false) {
                    return;
                }
                info!("{role} is back");
            }
            Event::Phase {
                name,
                took,
                problem,
            } => match problem {
                None => info!("{name}: ready after {} ms", took.as_millis()),
                Some(problem) => {
                    warn!("{name}: not there after {} ms: {problem}", took.as_millis());
                }
            },
            Event::Ready { degraded: None } => info!("ready"),
            Event::Ready {
                degraded: Some(words),
            } => warn!("ready, but not for everything: {words}"),
            Event::Turn(turn) => {
                self.turns.fetch_add(1, Ordering::Relaxed);
                if turn.outcome == TurnOutcome::Failed {
                    self.failed.fetch_add(1, Ordering::Relaxed);
                }
                // Who asks in writing does not change what the voice does; who interrupts has said what comes next.
                is_over = turn.source != HANDLE;
                rests = is_over && turn.outcome != TurnOutcome::Interrupted;
            }
            Event::Dropped(_) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                (is_over, rests) = (true, true);
            }
            _ => {}
        }
        for watcher in &self.watchers {
            watcher.event(event);
        }
        if is_over {
            self.over.send_modify(|over| *over += 1);
        }
        if rests {
            self.relax();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Seen(Mutex<Vec<String>>);

    impl Watcher for Seen {
        fn event(&self, event: Event<'_>) {
            lock(&self.0).push(format!("{event:?}"));
        }
    }

    #[test]
    fn a_loss_is_told_once_and_so_is_the_return() {
        let seen = Arc::new(Seen::default());
        let hub = Hub::new(vec![seen.clone()]);
        for _ in 0..3 {
            hub.event(Event::Lost {
                role: Role::Speech,
                why: "gone",
            });
        }
        assert_eq!(hub.lost(), [Role::Speech]);
        for _ in 0..3 {
            hub.event(Event::Back(Role::Speech));
        }
        assert_eq!(lock(&seen.0).len(), 2);
        assert!(hub.lost().is_empty());
    }

    #[test]
    fn what_was_dropped_is_counted_and_the_gateway_rests_again() {
        let hub = Hub::new(Vec::new());
        hub.rest(&State::Listening);
        assert_eq!(*hub.state().borrow(), State::Listening);
        hub.event(Event::State(&State::Transcribing));
        hub.rest(&State::Waiting);
        assert_eq!(*hub.state().borrow(), State::Transcribing, "it is at work");
        hub.event(Event::Dropped("too short"));
        assert_eq!(*hub.state().borrow(), State::Waiting);
        assert_eq!(hub.counts(), (0, 0, 1));
    }
}
