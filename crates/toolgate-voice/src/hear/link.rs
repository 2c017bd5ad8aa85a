//! The way back to a satellite.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::EngineError;
use crate::wyoming::Event;

/// Pieces of sound that wait to be sent. Few: what waits here is still played after somebody said stop.
const SOUND: usize = 8;
const NEWS: usize = 64;

/// Speaks to the satellite that is heard. Cheap to clone; once the satellite is lost, it only gives errors.
#[derive(Debug, Clone)]
pub(crate) struct SatelliteLink {
    at: Arc<str>,
    sound: mpsc::Sender<Event>,
    news: mpsc::Sender<Event>,
    /// How often the satellite has said that all was played.
    played: watch::Receiver<u64>,
}

pub(crate) struct Outgoing {
    sound: mpsc::Receiver<Event>,
    news: mpsc::Receiver<Event>,
}

impl Outgoing {
    /// The next event that is to be sent, news before sound; none once nobody is left to speak.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        tokio::select! {
            biased;
            Some(event) = self.news.recv() => Some(event),
            Some(event) = self.sound.recv() => Some(event),
            else => None,
        }
    }
}

impl SatelliteLink {
    /// A link, what it wants to be sent, and how it hears that all was played.
    pub(crate) fn new(at: &str) -> (Self, Outgoing, watch::Sender<u64>) {
        let (sound, sound_out) = mpsc::channel(SOUND);
        let (news, news_out) = mpsc::channel(NEWS);
        let (playing, played) = watch::channel(0);
        let link = Self {
            at: at.into(),
            sound,
            news,
            played,
        };
        let outgoing = Outgoing {
            sound: sound_out,
            news: news_out,
        };
        (link, outgoing, playing)
    }

    /// Sends `audio-start` or `audio-chunk`, as soon as the satellite takes it.
    pub(crate) async fn send(&self, event: Event) -> Result<(), EngineError> {
        let sent = self.sound.send(event).await;
        sent.map_err(|_| self.lost())
    }

    /// Ends the sound, and waits until it was heard: false if the satellite does not say so in time.
    pub(crate) async fn finish(&self, within: Duration) -> Result<bool, EngineError> {
        let mut played = self.played.clone();
        played.mark_unchanged();
        self.send(Event::AudioStop { timestamp: None }).await?;
        match timeout(within, played.changed()).await {
            Ok(Ok(())) => Ok(true),
            Ok(Err(_)) => Err(self.lost()),
            Err(_) => Ok(false),
        }
    }

    /// Tells the satellite how the request goes: `voice-started`, `voice-stopped`, `transcript`, `synthesize`, `error`. Never
    /// waits: a satellite that takes nothing any more is noticed by whoever hears it.
    pub(crate) fn tell(&self, event: Event) {
        if self.news.try_send(event).is_err() {
            tracing::debug!(at = %self.at, "news for the satellite were dropped");
        }
    }

    fn lost(&self) -> EngineError {
        EngineError::closed(self.at.to_string())
    }
}
