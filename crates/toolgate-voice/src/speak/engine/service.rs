//! A Wyoming service that speaks.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};

use crate::EngineError;
use crate::audio::Format;
use crate::engine::within;
use crate::speak::{SoundStream, Synthesize};
use crate::wyoming::{Address, Connection, Event, VoiceChoice};

const CONNECT: Duration = Duration::from_secs(5);

const PATIENCE: Duration = Duration::from_secs(15);

/// So many events in a row that are no sound are nonsense.
const NONSENSE: usize = 100;

/// Speaks with a Wyoming service `tts`. One connection per text.
#[derive(Debug, Clone)]
pub(crate) struct WyomingTts {
    address: Address,
    voice: Option<VoiceChoice>,
}

impl WyomingTts {
    pub(crate) fn new(address: Address, voice: &str) -> Self {
        let voice = (!voice.is_empty()).then(|| VoiceChoice {
            name: Some(voice.to_owned()),
            ..VoiceChoice::default()
        });
        Self { address, voice }
    }
}

impl Synthesize for WyomingTts {
    fn synthesize<'a>(&'a self, text: &'a str) -> BoxFuture<'a, Result<SoundStream, EngineError>> {
        async move {
            let mut connection = Connection::connect(&self.address, CONNECT).await?;
            let synthesize = Event::Synthesize {
                text: text.to_owned(),
                voice: self.voice.clone(),
                text_format: None,
            };
            connection.send(&synthesize).await?;
            let mut answer = Answer {
                connection,
                at: self.address.to_string(),
                format: None,
            };
            let format = answer.begin().await?;
            let chunks = stream::try_unfold(answer, async |mut answer| {
                Ok(answer.more().await?.map(|bytes| (bytes, answer)))
            });
            let chunks = chunks.boxed();
            Ok(SoundStream { format, chunks })
        }
        .boxed()
    }
}

/// What comes back. Dropped, the connection is closed.
struct Answer {
    connection: Connection,
    at: String,
    format: Option<Format>,
}

impl Answer {
    async fn begin(&mut self) -> Result<Format, EngineError> {
        for _ in 0..NONSENSE {
            if let Event::AudioStart { format, .. } = self.event().await? {
                self.format = Some(format);
                return Ok(format);
            }
        }
        Err(self.nonsense("it sends no sound"))
    }

    async fn more(&mut self) -> Result<Option<Bytes>, EngineError> {
        for _ in 0..NONSENSE {
            match self.event().await? {
                Event::AudioChunk { format, bytes, .. } if Some(format) == self.format => {
                    return Ok(Some(bytes));
                }
                Event::AudioChunk { .. } => {
                    return Err(self.nonsense("it changes the format in the middle"));
                }
                Event::AudioStop { .. } => return Ok(None),
                _ => {}
            }
        }
        Err(self.nonsense("it sends no sound"))
    }

    async fn event(&mut self) -> Result<Event, EngineError> {
        within(PATIENCE, &self.at, self.connection.answer()).await
    }

    fn nonsense(&self, why: &str) -> EngineError {
        EngineError::protocol(&self.at, why)
    }
}

#[cfg(test)]
mod tests;
