//! Everything that happens passes here: it is logged, remembered where others need it, and told to all who watch.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;
use toolgate_journal::TurnOutcome;
use tracing::{info, warn};

use crate::turn::HANDLE;
use crate::{Event, State, Watcher};

/// Tells all watchers, and knows what the gateway is doing.
pub(crate) struct Hub {
    watchers: Vec<Arc<dyn Watcher>>,
    doing: Mutex<Doing>,
    turns: AtomicU64,
    failed: AtomicU64,
    /// How often something was not answered, by reason.
    dropped: Mutex<BTreeMap<String, u64>>,
    /// Utterances that came to an end, one way or the other.
    over: watch::Sender<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ear {
    Starting,
    Resting,
    Listening,
    Hearing,
}

/// The ear does one thing and the answer another: what is shown is what a person wants to know.
struct Doing {
    ear: Ear,
    answer: Option<State>,
    shown: State,
    rest: Ear,
}

impl Doing {
    fn show(&self) -> State {
        match (self.ear, &self.answer) {
            (Ear::Hearing, _) => State::Hearing,
            // It was called, and nothing else matters; one that always listens does so beside an answer.
            (Ear::Listening, None) => State::Listening,
            (Ear::Listening, Some(_)) if self.rest == Ear::Resting => State::Listening,
            (_, Some(answer)) => answer.clone(),
            (Ear::Resting, None) => State::Waiting,
            (Ear::Starting, None) => State::Starting,
        }
    }
}

impl Hub {
    pub(crate) fn new(watchers: Vec<Arc<dyn Watcher>>) -> Self {
        Self {
            watchers,
            doing: Mutex::new(Doing {
                ear: Ear::Starting,
                answer: None,
                shown: State::Starting,
                rest: Ear::Starting,
            }),
            turns: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            dropped: Mutex::default(),
            over: watch::Sender::new(0),
        }
    }

    /// What the ear does from now on while nobody speaks.
    pub(super) fn rests_in(&self, rest: Ear) {
        self.change(|doing| (doing.ear, doing.rest) = (rest, rest));
    }

    pub(super) fn ear(&self, ear: Ear) {
        self.change(|doing| doing.ear = ear);
    }

    pub(super) fn quiet(&self) {
        self.change(|doing| doing.ear = doing.rest);
    }

    /// The ear heard something that is no request.
    pub(super) fn unheard(&self, source: &str, why: &str) {
        self.count_dropped(why);
        self.quiet();
        let heard = "";
        self.tell(Event::Dropped { source, heard, why });
    }

    /// Waits until this many utterances came to an end.
    pub(super) async fn until_over(&self, count: u64) {
        let mut over = self.over.subscribe();
        // Fails once nobody tells any more, which is as well.
        let _is_told = over.wait_for(|over| *over >= count).await.is_ok();
    }

    pub(super) fn counts(&self) -> (u64, u64, u64) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let dropped = self.dropped.lock().values().sum();
        (count(&self.turns), count(&self.failed), dropped)
    }

    /// What was not answered and how often, such as `2 × too short to be speech`.
    pub(super) fn dropped(&self) -> Vec<String> {
        let dropped = self.dropped.lock();
        let dropped = dropped
            .iter()
            .map(|(why, count)| format!("{count} × {why}"));
        dropped.collect()
    }

    fn count_dropped(&self, why: &str) {
        // There are few reasons, all of them ours.
        *self.dropped.lock().entry(why.to_owned()).or_default() += 1;
    }

    fn change(&self, change: impl FnOnce(&mut Doing)) {
        let mut doing = self.doing.lock();
        change(&mut doing);
        let now = doing.show();
        if doing.shown != now {
            doing.shown.clone_from(&now);
            // Under the lock: states are told in the order in which they came.
            self.tell(Event::State(&now));
        }
    }

    fn tell(&self, event: Event<'_>) {
        for watcher in &self.watchers {
            watcher.event(event);
        }
    }

    /// An utterance came to its end. Of an answer that was cut short the state is no longer told, and the next may be at work.
    fn end(&self, ends_answer: impl Fn(&State) -> bool) {
        self.change(|doing| doing.answer = doing.answer.take().filter(|state| !ends_answer(state)));
        self.over.send_modify(|over| *over += 1);
    }
}

impl Watcher for Hub {
    fn event(&self, event: Event<'_>) {
        match &event {
            Event::State(state) => {
                return self.change(|doing| doing.answer = Some((*state).clone()));
            }
            Event::Lost { role, why } => {
                warn!(%role, why, "lost; it is looked for and used again once it is back");
            }
            Event::Back(role) => info!(%role, "back"),
            Event::Phase {
                name,
                took,
                problem,
            } => {
                let took_ms = took.as_secs_f64() * 1000.0;
                match problem {
                    None => info!(phase = name, took_ms, "ready"),
                    Some(problem) => warn!(phase = name, took_ms, problem, "not there"),
                }
            }
            Event::Ready { degraded: None } => info!("ready"),
            Event::Ready {
                degraded: Some(words),
            } => warn!(degraded = words, "ready, but not for everything"),
            Event::Turn(turn) => {
                self.turns.fetch_add(1, Ordering::Relaxed);
                if turn.outcome == TurnOutcome::Failed {
                    self.failed.fetch_add(1, Ordering::Relaxed);
                }
            }
            Event::Dropped { why, .. } => self.count_dropped(why),
            _ => {}
        }
        self.tell(event);
        match &event {
            // Who asks in writing does not change what the voice does.
            Event::Turn(turn) if turn.source == HANDLE => {}
            Event::Turn(turn) if turn.outcome == TurnOutcome::Interrupted => {
                self.end(|state| *state != State::Transcribing);
            }
            Event::Turn(_) => self.end(|_| true),
            Event::Dropped { .. } => self.end(|state| *state == State::Transcribing),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Seen(Mutex<Vec<State>>);

    impl Watcher for Seen {
        fn event(&self, event: Event<'_>) {
            if let Event::State(state) = event {
                self.0.lock().push(state.clone());
            }
        }
    }

    fn hub() -> (Arc<Seen>, Hub) {
        let seen = Arc::new(Seen::default());
        let hub = Hub::new(vec![Arc::clone(&seen) as Arc<dyn Watcher>]);
        (seen, hub)
    }

    #[test]
    fn after_a_name_it_listens_whatever_becomes_of_the_answer_that_was_cut_short() {
        let (seen, hub) = hub();
        hub.rests_in(Ear::Resting);
        hub.event(Event::State(&State::Speaking));
        hub.ear(Ear::Listening);
        hub.end(|state| *state != State::Transcribing);
        hub.ear(Ear::Hearing);
        hub.quiet();
        hub.event(Event::State(&State::Transcribing));
        assert_eq!(
            *seen.0.lock(),
            [
                State::Waiting,
                State::Speaking,
                State::Listening,
                State::Hearing,
                State::Waiting,
                State::Transcribing
            ]
        );
    }

    fn dropped(why: &str) -> Event<'_> {
        let (source, heard) = ("microphone", "");
        Event::Dropped { source, heard, why }
    }

    #[test]
    fn what_is_dropped_beside_an_answer_does_not_end_it() {
        let (seen, hub) = hub();
        hub.rests_in(Ear::Listening);
        hub.event(Event::State(&State::Transcribing));
        hub.event(dropped("too short"));
        hub.event(Event::State(&State::Speaking));
        hub.event(dropped("too quiet"));
        hub.unheard("microphone", "nothing was said");
        let states = [
            State::Listening,
            State::Transcribing,
            State::Listening,
            State::Speaking,
        ];
        assert_eq!(*seen.0.lock(), states);
        hub.unheard("microphone", "too quiet");
        assert_eq!((hub.counts(), *hub.over.borrow()), ((0, 0, 4), 2));
        assert_eq!(
            hub.dropped(),
            ["1 × nothing was said", "2 × too quiet", "1 × too short"]
        );
    }
}
