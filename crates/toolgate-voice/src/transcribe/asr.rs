//! A Wyoming service that makes text of speech.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::timeout;

use super::Transcribe;
use crate::EngineError;
use crate::audio::Format;
use crate::engine::within;
use crate::listen::Utterance;
use crate::wyoming::{Address, Connection, Event, Receiver, Sender};

/// How long a connection may take: the engine is on this machine or next to it.
const CONNECT: Duration = Duration::from_secs(5);

/// Samples in one event: a quarter of a second.
const CHUNK: usize = 4096;

/// Nobody says more in one breath, in bytes.
const LONGEST: usize = 16 << 10;

/// An engine that no longer takes sound may have said why.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Whisper, Vosk and their like, behind Wyoming. Every utterance has a connection of its own: an engine that was restarted is
/// found again, and one that went wrong in the middle leaves nothing behind.
#[derive(Debug, Clone)]
pub(crate) struct WyomingAsr {
    address: Address,
    language: Option<String>,
    deadline: Duration,
}

impl WyomingAsr {
    /// At this address. The language may be empty: as the service is set up. An utterance may take until the deadline, from the
    /// connection to the last word.
    pub(crate) fn new(address: Address, language: &str, deadline: Duration) -> Self {
        let language = Some(language.trim()).filter(|language| !language.is_empty());
        Self {
            address,
            language: language.map(str::to_owned),
            deadline,
        }
    }

    /// Gives the sender back: some engines take its end for that of the request.
    async fn send(&self, mut to: Sender, utterance: &Utterance) -> Result<Sender, EngineError> {
        let (format, timestamp) = (Format::HEARD, None);
        to.send(&Event::Transcribe {
            name: None,
            language: self.language.clone(),
            context: None,
            vad_sensitivity: None,
        })
        .await?;
        to.send(&Event::AudioStart { format, timestamp }).await?;
        for samples in utterance.samples.chunks(CHUNK) {
            let bytes = samples.iter().copied().flat_map(i16::to_le_bytes);
            let bytes = Bytes::from_iter(bytes);
            to.send(&Event::chunk(format, bytes)).await?;
        }
        to.send(&Event::AudioStop { timestamp }).await?;
        Ok(to)
    }
}

impl Transcribe for WyomingAsr {
    fn transcribe<'a>(
        &'a self,
        utterance: &'a Utterance,
    ) -> BoxFuture<'a, Result<String, EngineError>> {
        let asking = async move {
            let connecting = Connection::connect(&self.address, CONNECT.min(self.deadline));
            let (sender, receiver) = connecting.await?.into_split();
            let mut answer = std::pin::pin!(answer(receiver, self.address.to_string()));
            // Side by side: an engine that answers before it has taken everything must not keep both waiting.
            tokio::select! {
                text = &mut answer => text,
                sent = self.send(sender, utterance) => match sent {
                    Ok(_sender) => answer.await,
                    Err(error) => timeout(LAST_WORDS, answer).await.unwrap_or(Err(error)),
                },
            }
        };
        within(self.deadline, &self.address, asking).boxed()
    }
}

/// The text, whole or in pieces. An engine that streams sends both; the whole counts.
async fn answer(mut from: Receiver, at: String) -> Result<String, EngineError> {
    let too_long = |at: String| {
        EngineError::protocol(at, format!("its transcript is longer than {LONGEST} bytes"))
    };
    let mut pieces = String::new();
    loop {
        match from.answer().await? {
            Event::Transcript { text, .. } if text.len() > LONGEST => return Err(too_long(at)),
            Event::Transcript { text, .. } => return Ok(text),
            Event::TranscriptStart { .. } => pieces.clear(),
            Event::TranscriptChunk { text } if pieces.len() + text.len() > LONGEST => {
                return Err(too_long(at));
            }
            Event::TranscriptChunk { text } => pieces.push_str(&text),
            Event::TranscriptStop => return Ok(pieces),
            _ => {}
        }
    }
}
