//! Speech-to-text by a Wyoming service.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::timeout;

use super::SpeechToText;
use crate::EngineError;
use crate::audio::AudioFormat;
use crate::engine::with_deadline;
use crate::segment::Utterance;
use crate::wyoming::{EventReceiver, EventSender, WyomingAddress, WyomingConnection, WyomingEvent};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const CHUNK_SAMPLES: usize = 4096;
const MAX_TRANSCRIPT_BYTES: usize = 16 << 10;
// An engine that no longer accepts sound may already have sent the reason.
const ERROR_GRACE: Duration = Duration::from_millis(200);

/// Whisper, Vosk and others behind Wyoming. Each utterance uses a new connection, so a restarted
/// engine is found again and a broken request leaves nothing behind.
#[derive(Debug, Clone)]
pub(crate) struct WyomingAsr {
    address: WyomingAddress,
    language: Option<String>,
    deadline: Duration,
}

impl WyomingAsr {
    /// An empty language leaves the choice to the service. The deadline covers everything from the
    /// connection to the last word.
    pub(crate) fn new(address: WyomingAddress, language: &str, deadline: Duration) -> Self {
        let language = Some(language.trim()).filter(|language| !language.is_empty());
        Self {
            address,
            language: language.map(str::to_owned),
            deadline,
        }
    }

    // Returns the sender, because some engines take its end for the end of the request.
    async fn send_utterance(
        &self,
        mut to: EventSender,
        utterance: &Utterance,
    ) -> Result<EventSender, EngineError> {
        let format = AudioFormat::CAPTURE;
        to.send(&WyomingEvent::Transcribe {
            name: None,
            language: self.language.clone(),
            context: None,
            vad_sensitivity: None,
        })
        .await?;
        to.send(&WyomingEvent::audio_start(format)).await?;
        for samples in utterance.samples.chunks(CHUNK_SAMPLES) {
            let bytes: Bytes = samples.iter().copied().flat_map(i16::to_le_bytes).collect();
            to.send(&WyomingEvent::audio_chunk(format, bytes)).await?;
        }
        to.send(&WyomingEvent::AudioStop { timestamp: None })
            .await?;
        Ok(to)
    }
}

impl SpeechToText for WyomingAsr {
    fn transcribe<'a>(
        &'a self,
        utterance: &'a Utterance,
    ) -> BoxFuture<'a, Result<String, EngineError>> {
        let asking = async move {
            let connecting =
                WyomingConnection::connect(&self.address, CONNECT_TIMEOUT.min(self.deadline));
            let (sender, receiver) = connecting.await?.into_split();
            let mut answer = std::pin::pin!(receive_transcript(receiver, self.address.to_string()));
            // Send and receive side by side: an engine that answers early must
            // not deadlock with us.
            tokio::select! {
                text = &mut answer => text,
                sent = self.send_utterance(sender, utterance) => match sent {
                    Ok(_sender) => answer.await,
                    Err(error) => timeout(ERROR_GRACE, answer).await.unwrap_or(Err(error)),
                },
            }
        };
        with_deadline(self.deadline, &self.address, asking).boxed()
    }
}

async fn receive_transcript(mut from: EventReceiver, at: String) -> Result<String, EngineError> {
    let mut pieces = String::new();
    loop {
        match from.receive_answer().await? {
            WyomingEvent::Transcript { text, .. } if text.len() <= MAX_TRANSCRIPT_BYTES => {
                return Ok(text);
            }
            WyomingEvent::TranscriptStart { .. } => pieces.clear(),
            WyomingEvent::TranscriptChunk { text }
                if pieces.len() + text.len() <= MAX_TRANSCRIPT_BYTES =>
            {
                pieces.push_str(&text);
            }
            WyomingEvent::TranscriptStop => return Ok(pieces),
            WyomingEvent::Transcript { .. } | WyomingEvent::TranscriptChunk { .. } => {
                let why = format!("its transcript is longer than {MAX_TRANSCRIPT_BYTES} bytes");
                return Err(EngineError::protocol(at, why));
            }
            _ => {}
        }
    }
}
