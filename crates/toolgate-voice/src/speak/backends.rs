//! The traits of speech engines and outputs, with silent implementations.

use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};

use crate::EngineError;
use crate::audio::AudioFormat;

pub(crate) struct SoundStream {
    pub(crate) format: AudioFormat,
    /// Chunks that may be cut in the middle of a frame.
    pub(crate) chunks: BoxStream<'static, Result<Bytes, EngineError>>,
}

pub(crate) trait SpeechSynthesizer: Send + Sync {
    /// Synthesizes this text. Must enforce time limits for the first chunk and every other one.
    fn synthesize<'a>(&'a self, text: &'a str) -> BoxFuture<'a, Result<SoundStream, EngineError>>;
}

pub(crate) trait AudioOutput: Send + Sync {
    /// Opens the output for 16-bit sound of this rate and number of channels.
    fn begin(&self, format: AudioFormat) -> BoxFuture<'_, OpenedPlayback>;
}

pub(crate) type OpenedPlayback = Result<Box<dyn AudioPlayback>, EngineError>;

/// An open output that plays sound. Dropping it stops the sound.
pub(crate) trait AudioPlayback: Send {
    /// Plays whole frames after the earlier ones. Resolves once the output needs more, so that
    /// little sound is left to play when it is stopped.
    fn play(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<(), EngineError>>;

    /// How much of the sound has been heard so far.
    fn heard(&self) -> Duration;

    /// Resolves once everything was heard.
    fn end(&mut self) -> BoxFuture<'_, Result<(), EngineError>> {
        async { Ok(()) }.boxed()
    }

    fn stop(&mut self) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }
}

pub(crate) struct NoSpeech;

impl SpeechSynthesizer for NoSpeech {
    fn synthesize<'a>(&'a self, _text: &'a str) -> BoxFuture<'a, Result<SoundStream, EngineError>> {
        let nothing = SoundStream {
            format: AudioFormat::CAPTURE,
            chunks: stream::empty().boxed(),
        };
        async { Ok(nothing) }.boxed()
    }
}

pub(crate) struct NoOutput;

impl AudioOutput for NoOutput {
    fn begin(&self, format: AudioFormat) -> BoxFuture<'_, OpenedPlayback> {
        let playing: Box<dyn AudioPlayback> = Box::new(SilentPlayback {
            format,
            played: Duration::ZERO,
        });
        async { Ok(playing) }.boxed()
    }
}

struct SilentPlayback {
    format: AudioFormat,
    played: Duration,
}

impl AudioPlayback for SilentPlayback {
    fn play(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<(), EngineError>> {
        self.played += self.format.duration(bytes.len());
        async { Ok(()) }.boxed()
    }

    fn heard(&self) -> Duration {
        self.played
    }
}
