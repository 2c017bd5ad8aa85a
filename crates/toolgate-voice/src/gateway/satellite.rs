//! A satellite is told how its request goes: it lights up, and it stops sending sound once its words are known.

use parking_lot::Mutex;

use crate::hear::SatelliteLink;
use crate::turn::HANDLE;
use crate::wyoming::Event as News;
use crate::{Event, Watcher};

#[derive(Default)]
pub(super) struct Satellite(Mutex<Connected>);

#[derive(Default)]
struct Connected {
    link: Option<SatelliteLink>,
    /// It said something, and waits for the words.
    waits: bool,
}

impl Satellite {
    pub(super) fn connect(&self, link: Option<SatelliteLink>) {
        *self.0.lock() = Connected { link, waits: false };
    }

    pub(super) fn speaks(&self) {
        let mut satellite = self.0.lock();
        satellite.waits = false;
        satellite.tell(News::VoiceStarted { timestamp: None });
    }

    /// What it said is over; its words come.
    pub(super) fn spoke(&self) {
        let mut satellite = self.0.lock();
        satellite.waits = true;
        satellite.tell(News::VoiceStopped { timestamp: None });
    }

    /// What it said is nothing. Without a word of that it would go on listening.
    pub(super) fn said_nothing(&self) {
        let mut satellite = self.0.lock();
        satellite.waits = true;
        satellite.answer("");
    }
}

impl Connected {
    fn tell(&self, news: News) {
        if let Some(link) = &self.link {
            link.tell(news);
        }
    }

    fn answer(&mut self, text: &str) {
        if std::mem::take(&mut self.waits) {
            let text = text.to_owned();
            self.tell(News::Transcript {
                text,
                language: None,
                context: None,
            });
        }
    }
}

impl Watcher for Satellite {
    fn event(&self, event: Event<'_>) {
        match event {
            // Who asks in writing is somebody else.
            Event::Heard { source: HANDLE, .. } => {}
            Event::Heard { text, .. } => self.0.lock().answer(text),
            Event::Dropped { .. } => self.0.lock().answer(""),
            // It could not be understood; the words of all others were told.
            Event::Turn(turn) if turn.source != HANDLE && turn.heard.is_empty() => {
                self.0.lock().answer("");
            }
            _ => {}
        }
    }
}
