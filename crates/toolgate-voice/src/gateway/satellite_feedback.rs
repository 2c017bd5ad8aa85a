//! Tells the satellite how its request is going, so that it lights up, and stops streaming once
//! the request is transcribed.

use parking_lot::Mutex;

use crate::capture::SatelliteLink;
use crate::turn::HANDLE;
use crate::wyoming::WyomingEvent;
use crate::{VoiceEvent, VoiceObserver};

#[derive(Default)]
pub(super) struct SatelliteFeedback(Mutex<FeedbackState>);

#[derive(Default)]
struct FeedbackState {
    link: Option<SatelliteLink>,
    awaits_transcript: bool,
}

impl SatelliteFeedback {
    pub(super) fn connect(&self, link: Option<SatelliteLink>) {
        *self.0.lock() = FeedbackState {
            link,
            awaits_transcript: false,
        };
    }

    pub(super) fn speech_started(&self) {
        let mut satellite = self.0.lock();
        satellite.awaits_transcript = false;
        satellite.send(WyomingEvent::VoiceStarted { timestamp: None });
    }

    pub(super) fn speech_stopped(&self) {
        let mut satellite = self.0.lock();
        satellite.awaits_transcript = true;
        satellite.send(WyomingEvent::VoiceStopped { timestamp: None });
    }

    // Without an empty transcript the satellite would keep streaming.
    pub(super) fn send_empty_transcript(&self) {
        let mut satellite = self.0.lock();
        satellite.awaits_transcript = true;
        satellite.send_transcript("");
    }
}

impl FeedbackState {
    fn send(&self, event: WyomingEvent) {
        if let Some(link) = &self.link {
            link.notify(event);
        }
    }

    fn send_transcript(&mut self, text: &str) {
        if std::mem::take(&mut self.awaits_transcript) {
            self.send(WyomingEvent::Transcript {
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
            VoiceEvent::Heard { text, .. } => self.0.lock().send_transcript(text),
            VoiceEvent::Dropped { .. } => self.0.lock().send_transcript(""),
            // Transcription failed. In all other cases `Heard` has already been sent.
            VoiceEvent::Turn(turn) if turn.source != HANDLE && turn.heard.is_empty() => {
                self.0.lock().send_transcript("");
            }
            _ => {}
        }
    }
}
