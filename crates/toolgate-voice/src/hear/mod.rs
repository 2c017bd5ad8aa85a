//! Where sound comes from.
//!
//! ```text
//!  Input ──▶ open ──▶ Source     stdin, WAV files, a program, a command: `stream`, and `decode` for their bytes
//!                     Source     a Wyoming microphone or satellite: `service`, and `link` for the way back
//! ```

mod begun;
mod decode;
mod environment;
mod input;
mod link;
mod paced;
pub(crate) mod program;
mod recorder;
pub(crate) mod server;
mod service;
mod stream;

use std::path::PathBuf;
use std::time::Duration;

use futures::future::BoxFuture;

pub(crate) use self::begun::begun;
pub use self::input::{Input, InputError};
pub(crate) use self::link::SatelliteLink;
pub(crate) use self::paced::paced;
pub(crate) use self::recorder::Recorder;
use crate::EngineError;
use crate::audio::RATE;

/// How long a microphone may give nothing at all, not even silence.
const SILENT: Duration = Duration::from_secs(10);
/// What follows sound that ends by itself, so that the end of speech is found in it.
const QUIET: usize = RATE as usize * 5 / 2;

/// Something that gives sound. It has to be asked all the time: what nobody takes is lost, not kept.
pub(crate) trait Source: Send {
    /// What is heard next, or `None` once there will be no more. May be dropped and asked again: nothing is lost.
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Heard>, EngineError>>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Sound, 16-bit mono at 16 kHz.
    Sound(Vec<i16>),
    /// The satellite heard its wake word itself, or was asked to listen: what follows is a request.
    Woken(Option<String>),
    Begins(PathBuf),
    /// That was all of the file, and the silence behind it.
    Ends,
}

pub(crate) struct Opened {
    pub(crate) source: Box<dyn Source>,
    pub(crate) room: Option<String>,
    pub(crate) link: Option<SatelliteLink>,
}

/// Opens an input. One that fails later is opened again by whoever needs it.
pub(crate) async fn open(input: &Input) -> Result<Opened, EngineError> {
    let source: Box<dyn Source> = match input {
        Input::Stdin { rate } => stream::stdin(*rate)?,
        Input::Wav(files) => stream::files(files).await?,
        Input::Program(program) => stream::recorder(&program.command().await)?,
        Input::Command(words) => stream::command(words)?,
        Input::Wyoming(address) => return service::open(address).await,
    };
    Ok(Opened {
        source,
        room: None,
        link: None,
    })
}

#[cfg(test)]
mod tests;
