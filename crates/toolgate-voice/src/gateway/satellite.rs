//! A satellite is told how its request goes: it lights up, and it stops sending sound once its words are known.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::hear::SatelliteLink;
use crate::wyoming;
use crate::{Event, State, Watcher};

/// The satellite that is connected now, if there is one.
#[derive(Default)]
pub(super) struct Satellite(Mutex<Option<SatelliteLink>>);

impl Satellite {
    /// This one is told from now on.
    pub(super) fn connect(&self, link: Option<SatelliteLink>) {
        *self.link() = link;
    }

    fn link(&self) -> MutexGuard<'_, Option<SatelliteLink>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watcher for Satellite {
    fn event(&self, event: Event<'_>) {
        let transcript = |text: &str| wyoming::Event::Transcript {
            text: text.to_owned(),
            language: None,
            context: None,
        };
        let news = match event {
            Event::State(State::Hearing) => wyoming::Event::VoiceStarted { timestamp: None },
            Event::State(State::Transcribing) => wyoming::Event::VoiceStopped { timestamp: None },
            Event::Heard(text) => transcript(text),
            // Without one it would go on listening.
            Event::Dropped(_) => transcript(""),
            Event::Turn(turn) if turn.heard.is_empty() => transcript(""),
            _ => return,
        };
        if let Some(link) = &*self.link() {
            link.tell(news);
        }
    }
}
