//! Audio sources: stdin, files, programs, and Wyoming microphones and satellites.
//!
//! ```text
//!  AudioInput ──▶ open ──▶ AudioSource     stdin, files, a program: `byte_sources`
//!                          AudioSource     a Wyoming microphone or satellite: `wyoming_source`,
//!                                          and `satellite_link` for the way back
//! ```

mod byte_sources;
pub(crate) mod child_program;
mod input;
mod real_time_source;
mod recorder;
mod satellite_link;
pub(crate) mod sound_server;
mod source_decoder;
mod wyoming_source;

use std::path::PathBuf;
use std::time::Duration;

use futures::future::BoxFuture;

pub use self::input::{AudioInput, AudioInputError};
pub(crate) use self::real_time_source::in_real_time;
pub(crate) use self::recorder::RECORDERS;
pub(crate) use self::satellite_link::SatelliteLink;
use crate::EngineError;
use crate::audio::SAMPLE_RATE;

// A working microphone sends silence, so one that sends nothing at all is broken.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(10);
// Added after sound that ends by itself, so that the segmenter finds the end of speech in it.
const TRAILING_SILENCE: usize = SAMPLE_RATE as usize * 5 / 2;

/// A source of sound. It must be polled all the time: most sources drop sound that isn't read.
pub(crate) trait AudioSource: Send {
    /// The next event, or `None` at the end. Cancel safe.
    fn next(&mut self) -> BoxFuture<'_, Result<Option<CaptureEvent>, EngineError>>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CaptureEvent {
    /// 16-bit mono at 16 kHz.
    Sound(Vec<i16>),
    /// The satellite heard its wake word itself, or was triggered: a request follows.
    Woken(Option<String>),
    FileBegins(PathBuf),
    FileEnds,
}

pub(crate) struct OpenInput {
    pub(crate) source: Box<dyn AudioSource>,
    /// An event that was read to see whether the source works. `Some(None)` is the end.
    pub(crate) first: Option<Option<CaptureEvent>>,
    pub(crate) room: Option<String>,
    pub(crate) link: Option<SatelliteLink>,
}

pub(crate) async fn open(input: &AudioInput) -> Result<OpenInput, EngineError> {
    let source: Box<dyn AudioSource> = match input {
        AudioInput::Stdin { rate } => byte_sources::open_stdin(*rate)?,
        AudioInput::Wav(files) => byte_sources::open_files(files).await?,
        AudioInput::Program(program) => {
            byte_sources::open_command(&recorder::recorder_command(program).await, true)?
        }
        AudioInput::Command(words) => byte_sources::open_command(words, false)?,
        AudioInput::Wyoming(address) => return wyoming_source::open(address).await,
    };
    Ok(OpenInput {
        source,
        first: None,
        room: None,
        link: None,
    })
}

#[cfg(test)]
mod tests;
