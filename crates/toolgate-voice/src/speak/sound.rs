//! What makes sound of words, and what plays it.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};

use crate::EngineError;
use crate::audio::Format;

/// Sound as an engine makes it, piece by piece. Dropped before its end, it stops the engine.
pub(crate) struct SoundStream {
    pub(crate) format: Format,
    /// The pieces; a frame may be cut between two of them.
    pub(crate) chunks: BoxStream<'static, Result<Bytes, EngineError>>,
}

impl fmt::Debug for SoundStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SoundStream")
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

pub(crate) trait Synthesize: Send + Sync {
    /// The sound of this text. It bounds its own time: neither the first piece nor the next may hang for ever.
    fn synthesize<'a>(&'a self, text: &'a str) -> BoxFuture<'a, Result<SoundStream, EngineError>>;
}

/// Plays sound. One [`Playing`] at a time.
pub(crate) trait Output: Send + Sync {
    /// Gets ready for 16-bit sound of this rate and number of channels.
    fn begin(&self, format: Format) -> BoxFuture<'_, Result<Box<dyn Playing>, EngineError>>;
}

/// Sound that is being played. Dropped before its end, it falls silent.
pub(crate) trait Playing: Send {
    /// Plays a piece of whole frames after what came before. It resolves as soon as it is of use to give more, which keeps what
    /// was given but cannot be taken back short.
    fn play(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<(), EngineError>>;

    /// How much of what was given was heard by now.
    fn heard(&self) -> Duration;

    /// Nothing comes after this. Resolves once everything was heard: at once, where that was so with the last piece.
    fn end(&mut self) -> BoxFuture<'_, Result<(), EngineError>> {
        async { Ok(()) }.boxed()
    }

    /// Silence, now. Where all was heard it is silent.
    fn stop(&mut self) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }
}

/// The engine of a gateway that says nothing: no sound for any text.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NoSpeech;

impl Synthesize for NoSpeech {
    fn synthesize<'a>(&'a self, _text: &'a str) -> BoxFuture<'a, Result<SoundStream, EngineError>> {
        let nothing = SoundStream {
            format: Format::HEARD,
            chunks: stream::empty().boxed(),
        };
        async { Ok(nothing) }.boxed()
    }
}

/// Plays nowhere, at once.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NoOutput;

impl Output for NoOutput {
    fn begin(&self, format: Format) -> BoxFuture<'_, Result<Box<dyn Playing>, EngineError>> {
        let playing: Box<dyn Playing> = Box::new(Unheard {
            format,
            given: Duration::ZERO,
        });
        async { Ok(playing) }.boxed()
    }
}

struct Unheard {
    format: Format,
    given: Duration,
}

impl Playing for Unheard {
    fn play(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<(), EngineError>> {
        self.given += self.format.duration(bytes.len());
        async { Ok(()) }.boxed()
    }

    fn heard(&self) -> Duration {
        self.given
    }
}
