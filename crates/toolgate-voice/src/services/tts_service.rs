//! The Wyoming service `tts`, which offers the gateway's speech engine to other programs.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use serde_json::Value;
use tracing::warn;

use super::{artifact, default_to_english};
use crate::EngineError;
use crate::audio::AudioFormat;
use crate::speak::{AnswerPiece, SentenceSplitter, SpeechSynthesizer, speakable};
use crate::wyoming::{
    ServiceInfo, ServiceProgram, WyomingClient, WyomingEvent, WyomingModel, WyomingService,
};

const MAX_TEXT_BYTES: usize = 64 << 10;
// Text without an end of sentence is spoken in parts of this many bytes.
const MAX_SENTENCE_LEN: usize = 2 << 10;
const MAX_CHUNK_LEN: usize = 16 << 10;

pub(crate) struct TtsService {
    engine: Arc<dyn SpeechSynthesizer>,
    voice: String,
    languages: Vec<String>,
}

enum TtsRequestError {
    Connection(EngineError),
    Rejected(&'static str, &'static str),
}

impl From<EngineError> for TtsRequestError {
    fn from(error: EngineError) -> Self {
        Self::Connection(error)
    }
}

const SSML: TtsRequestError =
    TtsRequestError::Rejected("only plain text is supported, not SSML", "ssml");
const TOO_LONG: TtsRequestError = TtsRequestError::Rejected("the text is too long", "too-long");
const FAILED: TtsRequestError = TtsRequestError::Rejected(
    "the speech engine failed; Toolgate's log says why",
    "engine",
);

impl TtsService {
    /// Offers an engine with one voice. Clients can't choose a voice without a name, so an unnamed
    /// one gets a name. Without a language, English is advertised.
    pub(crate) fn new(
        engine: Arc<dyn SpeechSynthesizer>,
        voice: &str,
        languages: Vec<String>,
    ) -> Self {
        let voice = if voice.is_empty() { "toolgate" } else { voice };
        Self {
            engine,
            voice: voice.to_owned(),
            languages: default_to_english(languages),
        }
    }

    async fn serve_requests(&self, client: &mut WyomingClient) -> Result<(), TtsRequestError> {
        let mut pieces: Option<StreamedText> = None;
        while let Some(event) = client.receive().await? {
            match event {
                // After the pieces, clients send the whole text again for
                // servers that don't stream.
                WyomingEvent::Synthesize { .. } if pieces.is_some() => {}
                WyomingEvent::Synthesize {
                    text, text_format, ..
                } => {
                    require_plain_text(text_format.as_deref())?;
                    if text.len() > MAX_TEXT_BYTES {
                        return Err(TOO_LONG);
                    }
                    self.speak(client, &text).await?;
                }
                WyomingEvent::SynthesizeStart { text_format, .. } => {
                    require_plain_text(text_format.as_deref())?;
                    pieces = Some(StreamedText::default());
                }
                WyomingEvent::SynthesizeChunk { text } => {
                    if let Some(pieces) = &mut pieces {
                        for sentence in pieces.push(&text)? {
                            self.speak(client, &sentence).await?;
                        }
                    }
                }
                WyomingEvent::SynthesizeStop => {
                    if let Some(mut pieces) = pieces.take() {
                        if let Some(rest) = pieces.finish() {
                            self.speak(client, &rest).await?;
                        }
                        client.send(&WyomingEvent::SynthesizeStopped).await?;
                    }
                }
                // Servers ignore unknown events.
                _ => {}
            }
        }
        Ok(())
    }

    async fn speak(&self, client: &mut WyomingClient, text: &str) -> Result<(), TtsRequestError> {
        let text = speakable(text);
        if text.trim().is_empty() {
            return Ok(send_silence(client).await?);
        }
        let failed = |error: EngineError| {
            warn!(%error, "speech for a Wyoming client failed");
            FAILED
        };
        let mut sound = self.engine.synthesize(&text).await.map_err(failed)?;
        let format = sound.format;
        client.send(&WyomingEvent::audio_start(format)).await?;
        let mut frames = FrameSplitter::new(format);
        while let Some(piece) = sound.chunks.next().await {
            for bytes in frames.split(&piece.map_err(failed)?) {
                let chunk = WyomingEvent::audio_chunk(format, bytes);
                client.send(&chunk).await?;
            }
        }
        Ok(client.send(&STOP).await?)
    }
}

const STOP: WyomingEvent = WyomingEvent::AudioStop { timestamp: None };

// The client waits for the end of the sound, even if there is none.
async fn send_silence(client: &mut WyomingClient) -> Result<(), EngineError> {
    client
        .send(&WyomingEvent::audio_start(AudioFormat::CAPTURE))
        .await?;
    client.send(&STOP).await
}

fn require_plain_text(text_format: Option<&str>) -> Result<(), TtsRequestError> {
    match text_format {
        None | Some("text") => Ok(()),
        Some(_) => Err(SSML),
    }
}

#[derive(Default)]
struct StreamedText {
    sentences: SentenceSplitter,
    length: usize,
    waiting: usize,
}

impl StreamedText {
    fn push(&mut self, text: &str) -> Result<Vec<String>, TtsRequestError> {
        self.length += text.len();
        if self.length > MAX_TEXT_BYTES {
            return Err(TOO_LONG);
        }
        let mut pieces = self.sentences.push(text);
        let taken: usize = pieces.iter().map(|piece| piece.words.len()).sum();
        self.waiting = (self.waiting + text.len()).saturating_sub(taken);
        if self.waiting > MAX_SENTENCE_LEN {
            pieces.extend(self.sentences.finish_round());
            self.waiting = 0;
        }
        Ok(pieces.into_iter().filter_map(spoken_words).collect())
    }

    fn finish(&mut self) -> Option<String> {
        self.sentences.finish_round().and_then(spoken_words)
    }
}

fn spoken_words(piece: AnswerPiece) -> Option<String> {
    let spoken = !piece.code && !piece.words.trim().is_empty();
    spoken.then_some(piece.words)
}

// An engine's chunks may be cut anywhere, but an event must hold whole frames.
struct FrameSplitter {
    rest: BytesMut,
    frame: usize,
}

impl FrameSplitter {
    fn new(format: AudioFormat) -> Self {
        Self {
            rest: BytesMut::new(),
            frame: format.frame_bytes().max(1),
        }
    }

    fn split(&mut self, piece: &[u8]) -> Vec<Bytes> {
        self.rest.extend_from_slice(piece);
        let longest = MAX_CHUNK_LEN / self.frame * self.frame;
        let mut chunks = Vec::new();
        while self.rest.len() >= self.frame {
            let whole = self.rest.len() / self.frame * self.frame;
            chunks.push(self.rest.split_to(whole.min(longest)).freeze());
        }
        chunks
    }
}

impl WyomingService for TtsService {
    fn info(&self) -> ServiceInfo {
        let voice = WyomingModel {
            artifact: artifact(&self.voice, "The voice of this Toolgate"),
            languages: self.languages.clone(),
            more: [("speakers".to_owned(), Value::Null)].into_iter().collect(),
        };
        let streams = (
            "supports_synthesize_streaming".to_owned(),
            Value::Bool(true),
        );
        let program = ServiceProgram {
            artifact: artifact("toolgate", "Speaks with the engine of this Toolgate"),
            voices: Some(vec![voice]),
            more: [streams].into_iter().collect(),
            ..ServiceProgram::default()
        };
        ServiceInfo {
            tts: vec![program],
            ..ServiceInfo::default()
        }
    }

    fn serve_client<'a>(
        &'a self,
        client: &'a mut WyomingClient,
    ) -> BoxFuture<'a, Result<(), EngineError>> {
        async move {
            match self.serve_requests(client).await {
                Ok(()) => Ok(()),
                Err(TtsRequestError::Connection(error)) => Err(error),
                // The connection is closed too: some clients wait for sound even after an error.
                Err(TtsRequestError::Rejected(text, code)) => {
                    let (text, code) = (text.to_owned(), Some(code.to_owned()));
                    client.send(&WyomingEvent::Error { text, code }).await
                }
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests;
