//! `tts`: text in, speech out, with whatever engine the gateway itself speaks with.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use tracing::warn;

use super::{artifact, or_english};
use crate::EngineError;
use crate::audio::Format;
use crate::speak::{Piece, Sentences, Synthesize, speakable};
use crate::wyoming::{Event, Guest, Info, Service, TtsProgram, TtsVoice};

/// The longest text of one request, in bytes.
const LONGEST: usize = 64 << 10;
/// The longest sentence that is waited for, in bytes: what goes on longer is spoken in parts.
const LONGEST_SENTENCE: usize = 2 << 10;
/// The longest piece of sound.
const CHUNK: usize = 16 << 10;

pub(crate) struct TtsService {
    engine: Arc<dyn Synthesize>,
    voice: String,
    languages: Vec<String>,
}

/// Why a request is not carried out, for the client.
enum Refusal {
    Gone(EngineError),
    Because(&'static str, &'static str),
}

impl From<EngineError> for Refusal {
    fn from(error: EngineError) -> Self {
        Self::Gone(error)
    }
}

const SSML: Refusal = Refusal::Because("only plain text is spoken, no SSML", "ssml");
const TOO_LONG: Refusal = Refusal::Because("the text is too long", "too-long");
const FAILED: Refusal = Refusal::Because(
    "the speech engine failed; Toolgate's log says why",
    "engine",
);

impl TtsService {
    /// Lends an engine, which has one voice for these languages; without any, for English. A voice without a name cannot be chosen:
    /// it gets one.
    pub(crate) fn new(engine: Arc<dyn Synthesize>, voice: &str, languages: Vec<String>) -> Self {
        let voice = if voice.is_empty() { "toolgate" } else { voice };
        Self {
            engine,
            voice: voice.to_owned(),
            languages: or_english(languages),
        }
    }

    async fn requests(&self, guest: &mut Guest) -> Result<(), Refusal> {
        let mut pieces: Option<Pieces> = None;
        while let Some(event) = guest.receive().await? {
            match event {
                // The same text again, for services that do not take pieces.
                Event::Synthesize { .. } if pieces.is_some() => {}
                Event::Synthesize {
                    text, text_format, ..
                } => {
                    plain(text_format.as_deref())?;
                    if text.len() > LONGEST {
                        return Err(TOO_LONG);
                    }
                    self.say(guest, &text).await?;
                }
                Event::SynthesizeStart { text_format, .. } => {
                    plain(text_format.as_deref())?;
                    pieces = Some(Pieces::default());
                }
                Event::SynthesizeChunk { text } => {
                    if let Some(pieces) = &mut pieces {
                        for sentence in pieces.push(&text)? {
                            self.say(guest, &sentence).await?;
                        }
                    }
                }
                Event::SynthesizeStop => {
                    if let Some(mut pieces) = pieces.take() {
                        if let Some(rest) = pieces.rest() {
                            self.say(guest, &rest).await?;
                        }
                        guest.send(&Event::SynthesizeStopped).await?;
                    }
                }
                // Servers ignore what is not for them.
                _ => {}
            }
        }
        Ok(())
    }

    async fn say(&self, guest: &mut Guest, text: &str) -> Result<(), Refusal> {
        let text = speakable(text);
        if text.trim().is_empty() {
            return Ok(silence(guest).await?);
        }
        let failed = |error: EngineError| {
            warn!(%error, "a text could not be spoken for a Wyoming client");
            FAILED
        };
        let mut sound = self.engine.synthesize(&text).await.map_err(failed)?;
        let format = sound.format;
        guest.send(&start(format)).await?;
        let mut frames = Frames::new(format);
        while let Some(piece) = sound.chunks.next().await {
            for bytes in frames.whole(&piece.map_err(failed)?) {
                guest.send(&Event::chunk(format, bytes)).await?;
            }
        }
        Ok(guest.send(&STOP).await?)
    }
}

const STOP: Event = Event::AudioStop { timestamp: None };

fn start(format: Format) -> Event {
    Event::AudioStart {
        format,
        timestamp: None,
    }
}

/// There is nothing to say, but somebody waits for the end of it.
async fn silence(guest: &mut Guest) -> Result<(), EngineError> {
    guest.send(&start(Format::HEARD)).await?;
    guest.send(&STOP).await
}

fn plain(text_format: Option<&str>) -> Result<(), Refusal> {
    match text_format {
        None | Some("text") => Ok(()),
        Some(_) => Err(SSML),
    }
}

#[derive(Default)]
struct Pieces {
    sentences: Sentences,
    length: usize,
    /// How much of it waits for the end of its sentence.
    waiting: usize,
}

impl Pieces {
    /// The sentences that are whole by now.
    fn push(&mut self, text: &str) -> Result<Vec<String>, Refusal> {
        self.length += text.len();
        if self.length > LONGEST {
            return Err(TOO_LONG);
        }
        let mut pieces = self.sentences.push(text);
        self.waiting += text.len();
        for piece in &pieces {
            self.waiting = self.waiting.saturating_sub(piece.words.len());
        }
        if self.waiting > LONGEST_SENTENCE {
            pieces.extend(self.sentences.rest());
            self.waiting = 0;
        }
        Ok(pieces.into_iter().filter_map(words).collect())
    }

    fn rest(&mut self) -> Option<String> {
        self.sentences.rest().and_then(words)
    }
}

/// What is to be said of a piece: neither code nor blanks.
fn words(piece: Piece) -> Option<String> {
    let spoken = !piece.code && !piece.words.trim().is_empty();
    spoken.then_some(piece.words)
}

/// Makes whole frames of an engine's pieces, which may end anywhere.
struct Frames {
    rest: BytesMut,
    /// Bytes of all channels of one sample.
    frame: usize,
}

impl Frames {
    fn new(format: Format) -> Self {
        Self {
            rest: BytesMut::new(),
            frame: format.frame_bytes().max(1),
        }
    }

    fn whole(&mut self, piece: &[u8]) -> Vec<Bytes> {
        self.rest.extend_from_slice(piece);
        let longest = CHUNK / self.frame * self.frame;
        let mut chunks = Vec::new();
        while self.rest.len() >= self.frame {
            let whole = self.rest.len() / self.frame * self.frame;
            chunks.push(self.rest.split_to(whole.min(longest)).freeze());
        }
        chunks
    }
}

impl Service for TtsService {
    fn info(&self) -> Info {
        let voice = TtsVoice {
            artifact: artifact(&self.voice, "The voice of this Toolgate"),
            languages: self.languages.clone(),
            speakers: None,
        };
        let program = TtsProgram {
            artifact: artifact("toolgate", "Speaks with the engine of this Toolgate"),
            voices: vec![voice],
            supports_synthesize_streaming: true,
        };
        Info {
            tts: vec![program],
            ..Info::default()
        }
    }

    fn attend<'a>(&'a self, guest: &'a mut Guest) -> BoxFuture<'a, Result<(), EngineError>> {
        async move {
            match self.requests(guest).await {
                Ok(()) => Ok(()),
                Err(Refusal::Gone(error)) => Err(error),
                // The connection ends with it: there are clients that wait for sound whatever they are told.
                Err(Refusal::Because(text, code)) => {
                    let (text, code) = (text.to_owned(), Some(code.to_owned()));
                    guest.send(&Event::Error { text, code }).await
                }
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests;
