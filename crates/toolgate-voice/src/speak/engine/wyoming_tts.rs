//! Speech from a Wyoming service.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};

use crate::EngineError;
use crate::audio::AudioFormat;
use crate::engine::with_deadline;
use crate::speak::{SoundStream, SpeechSynthesizer};
use crate::wyoming::{VoiceChoice, WyomingAddress, WyomingConnection, WyomingEvent};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const SOUND_TIMEOUT: Duration = Duration::from_secs(15);
// A service that only sends other events would otherwise never hit the timeout.
const MAX_OTHER_EVENTS: usize = 100;

#[derive(Debug, Clone)]
pub(crate) struct WyomingTts {
    address: WyomingAddress,
    voice: Option<VoiceChoice>,
}

impl WyomingTts {
    pub(crate) fn new(address: WyomingAddress, voice: &str) -> Self {
        let voice = (!voice.is_empty()).then(|| VoiceChoice {
            name: Some(voice.to_owned()),
            ..VoiceChoice::default()
        });
        Self { address, voice }
    }
}

impl SpeechSynthesizer for WyomingTts {
    fn synthesize<'a>(&'a self, text: &'a str) -> BoxFuture<'a, Result<SoundStream, EngineError>> {
        async move {
            let mut connection = WyomingConnection::connect(&self.address, CONNECT_TIMEOUT).await?;
            let synthesize = WyomingEvent::Synthesize {
                text: text.to_owned(),
                voice: self.voice.clone(),
                text_format: None,
            };
            connection.send(&synthesize).await?;
            let at = self.address.to_string();
            let mut answer = SpeechResponse { connection, at };
            let Some((format, first)) = answer.next().await? else {
                return Err(answer.protocol_error("it sends no sound"));
            };
            let rest = stream::try_unfold(answer, move |mut answer| async move {
                match answer.next().await? {
                    Some((changed, _)) if changed != format => {
                        Err(answer.protocol_error("it changes the format in the middle"))
                    }
                    next => Ok(next.map(|(_, bytes)| (bytes, answer))),
                }
            });
            let chunks = stream::iter([Ok(first)]).chain(rest).boxed();
            Ok(SoundStream { format, chunks })
        }
        .boxed()
    }
}

// Dropping it closes the connection, which stops the service.
struct SpeechResponse {
    connection: WyomingConnection,
    at: String,
}

impl SpeechResponse {
    /// The format and the next sound, which is empty at the start. `None` at the end.
    async fn next(&mut self) -> Result<Option<(AudioFormat, Bytes)>, EngineError> {
        for _ in 0..MAX_OTHER_EVENTS {
            let answer = self.connection.receive_answer();
            match with_deadline(SOUND_TIMEOUT, &self.at, answer).await? {
                WyomingEvent::AudioStart { format, .. } => return Ok(Some((format, Bytes::new()))),
                WyomingEvent::AudioChunk { format, bytes, .. } => return Ok(Some((format, bytes))),
                WyomingEvent::AudioStop { .. } => return Ok(None),
                _ => {}
            }
        }
        Err(self.protocol_error("it sends no sound"))
    }

    fn protocol_error(&self, why: &str) -> EngineError {
        EngineError::protocol(&self.at, why)
    }
}

#[cfg(test)]
mod tests;
