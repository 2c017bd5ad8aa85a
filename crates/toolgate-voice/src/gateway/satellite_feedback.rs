//! Tells the satellite how its request is going: it lights up, and stops streaming once
//! its request is transcribed.

use parking_lot::Mutex;

use crate::capture::SatelliteLink;
use crate::turn::HANDLE;
use crate::wyoming::WyomingEvent as News;
use crate::{VoiceEvent, VoiceObserver};

#[derive(Default)]
pub(super) struct SatelliteFeedback(Mutex<FeedbackState>);

#[derive(Default)]
struct FeedbackState {
    link: Option<SatelliteLink>,
    waits: bool,
}

impl SatelliteFeedback {
    pub(super) fn connect(&self, link: Option<SatelliteLink>) {
        *self.0.lock() = FeedbackState { link, waits: false };
    }

    pub(super) fn speech_started(&self) {
        let mut satellite = self.0.lock();
        satellite.waits = false;
        satellite.tell(News::VoiceStarted { timestamp: None });
    }

    pub(super) fn speech_stopped(&self) {
        let mut satellite = self.0.lock();
        satellite.waits = true;
        satellite.tell(News::VoiceStopped { timestamp: None });
    }

    // Without an empty transcript the satellite would go on streaming.
    pub(super) fn send_empty_transcript(&self) {
        let mut satellite = self.0.lock();
        satellite.waits = true;
        satellite.answer("");
    }
}

impl FeedbackState {
    fn tell(&self, news: News) {
        if let Some(link) = &self.link {
            link.tell(news);
        }
    }

    fn answer(&mut self, text: &str) {
        if std::mem::take(&mut self.waits) {
            self.tell(News::Transcript {
                text: text.to_owned(),
                language: None,
                context: None,
            });
        }
    }
}

impl VoiceObserver for SatelliteFeedback {
    fn event(&self, event: VoiceEvent<'_>) {
        match event {
            // Written requests don't come from the satellite.
            VoiceEvent::Heard { source: HANDLE, .. } => {}
            VoiceEvent::Heard { text, .. } => self.0.lock().answer(text),
            VoiceEvent::Dropped { .. } => self.0.lock().answer(""),
            // Transcription failed. In all other cases `Heard` has already been sent.
            VoiceEvent::Turn(turn) if turn.source != HANDLE && turn.heard.is_empty() => {
                self.0.lock().answer("");
            }
            _ => {}
        }
    }
}
