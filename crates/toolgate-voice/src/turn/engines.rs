//! An engine that is lost is told once, and once that it is back; whoever watches logs it.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::warn;

use crate::speak::Spoken;
use crate::{EngineError, Event, Role, Watcher};

pub(crate) struct Engines {
    watcher: Arc<dyn Watcher>,
    lost: Mutex<HashSet<Role>>,
}

impl Engines {
    pub(crate) fn new(watcher: Arc<dyn Watcher>) -> Self {
        Self {
            watcher,
            lost: Mutex::default(),
        }
    }

    /// An engine failed. True if that is news: an engine that refuses one request is not lost, and what it says is always news.
    pub(crate) fn failed(&self, role: Role, error: &EngineError) -> bool {
        if let EngineError::Refused { .. } = error {
            warn!(%role, %error, "an engine refused");
            self.worked(role);
            return true;
        }
        let is_news = self.change(|lost| lost.insert(role));
        if is_news {
            let why = &error.to_string();
            self.watcher.event(Event::Lost { role, why });
        }
        is_news
    }

    /// What a speech says of the voice and of what plays it.
    pub(crate) fn spoke(&self, spoken: &Spoken) {
        match &spoken.problem {
            Some(problem) => {
                // Sound that can not be played was made.
                if problem.role == Role::Loudspeaker {
                    self.worked(Role::Speech);
                }
                self.failed(problem.role, &problem.error);
            }
            None if spoken.first_audio.is_some() => {
                self.worked(Role::Speech);
                self.worked(Role::Loudspeaker);
            }
            None => {}
        }
    }

    /// An engine can not be had. Told if that is news.
    pub(crate) fn lost(&self, role: Role, why: &str) {
        if self.change(|lost| lost.insert(role)) {
            self.watcher.event(Event::Lost { role, why });
        }
    }

    pub(crate) fn all_lost(&self) -> Vec<Role> {
        let lost = self.lost.lock();
        lost.iter().copied().collect()
    }

    /// An engine did its work, or is there again.
    pub(crate) fn worked(&self, role: Role) {
        if self.change(|lost| lost.remove(&role)) {
            self.watcher.event(Event::Back(role));
        }
    }

    fn change(&self, change: impl FnOnce(&mut HashSet<Role>) -> bool) -> bool {
        let mut lost = self.lost.lock();
        change(&mut lost)
    }
}
