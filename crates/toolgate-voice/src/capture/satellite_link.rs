//! The way back to a satellite: sound to play, and notices about its request.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::EngineError;
use crate::wyoming::WyomingEvent;

// Kept short, because sound in the channel is still played after a stop.
const SOUND_CAPACITY: usize = 8;
const NOTICE_CAPACITY: usize = 64;

#[derive(Debug, Clone)]
pub(crate) struct SatelliteLink {
    at: Arc<str>,
    sound: mpsc::Sender<WyomingEvent>,
    notices: mpsc::Sender<WyomingEvent>,
    played: watch::Receiver<u64>,
}

pub(crate) struct SatelliteOutbox {
    sound: mpsc::Receiver<WyomingEvent>,
    notices: mpsc::Receiver<WyomingEvent>,
}

impl SatelliteOutbox {
    /// The next event to send, notices before sound. `None` once every link is dropped.
    pub(crate) async fn next(&mut self) -> Option<WyomingEvent> {
        tokio::select! {
            biased;
            Some(event) = self.notices.recv() => Some(event),
            Some(event) = self.sound.recv() => Some(event),
            else => None,
        }
    }
}

impl SatelliteLink {
    pub(crate) fn new(at: &str) -> (Self, SatelliteOutbox, watch::Sender<u64>) {
        let (sound, sound_out) = mpsc::channel(SOUND_CAPACITY);
        let (notices, notices_out) = mpsc::channel(NOTICE_CAPACITY);
        let (playing, played) = watch::channel(0);
        let outbox = SatelliteOutbox {
            sound: sound_out,
            notices: notices_out,
        };
        let at = at.into();
        (
            Self {
                at,
                sound,
                notices,
                played,
            },
            outbox,
            playing,
        )
    }

    pub(crate) async fn send(&self, event: WyomingEvent) -> Result<(), EngineError> {
        let sent = self.sound.send(event).await;
        sent.map_err(|_| self.lost_error())
    }

    /// Ends the sound and waits until it was played. False if the satellite
    /// doesn't confirm in time.
    pub(crate) async fn finish_playback(&self, within: Duration) -> Result<bool, EngineError> {
        let mut played = self.played.clone();
        played.mark_unchanged();
        let stop = WyomingEvent::AudioStop { timestamp: None };
        self.send(stop).await?;
        match timeout(within, played.changed()).await {
            Ok(Ok(())) => Ok(true),
            Ok(Err(_)) => Err(self.lost_error()),
            Err(_) => Ok(false),
        }
    }

    /// Tells the satellite how the request is going. Never waits: if the satellite is stuck, the
    /// task that reads from it will notice.
    pub(crate) fn notify(&self, event: WyomingEvent) {
        if self.notices.try_send(event).is_err() {
            tracing::debug!(at = %self.at, "dropped an event for the satellite");
        }
    }

    fn lost_error(&self) -> EngineError {
        EngineError::closed(&self.at)
    }
}
