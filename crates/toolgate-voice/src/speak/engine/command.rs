//! A program that speaks.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use tempfile::TempPath;
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::dialect::{self, FILE};
use crate::EngineError;
use crate::audio::WavStream;
use crate::hear::program::{Running, find};
use crate::speak::{SoundStream, Synthesize};

const PATIENCE: Duration = Duration::from_secs(15);

/// The longest text at once, in bytes: an argument may not be much longer.
const LONGEST: usize = 32 << 10;

/// How much sound a program may make of it, in bytes: twenty minutes of speech.
const LARGEST: usize = 64 << 20;

/// Speaks with a program: `espeak-ng`, `piper`, `flite`, `say`, or a whole command that writes WAV. One process per text, in a
/// group of its own, without a shell; it gets the text on stdin, or in place of a word `{text}`.
#[derive(Debug, Clone)]
pub(crate) struct CommandTts {
    words: Vec<String>,
}

impl CommandTts {
    /// The programs that are looked for, in this order. `espeak-ng` speaks the most languages and needs nothing else.
    pub(crate) const KNOWN: [&str; 4] = ["espeak-ng", "piper", "flite", "say"];

    pub(crate) fn parse(setting: &str, voice: &str) -> Result<Self, EngineError> {
        let words = dialect::command(setting.trim(), voice)?;
        Ok(Self { words })
    }

    pub(crate) fn probe(voice: &str) -> Result<Self, EngineError> {
        let works =
            |program: &&&str| find(program).is_some() && dialect::command(program, voice).is_ok();
        let program = Self::KNOWN.iter().find(works).ok_or_else(|| {
            EngineError::program(
                "tts",
                "this machine has no program that speaks; install espeak-ng, or set `voice.tts`",
            )
        })?;
        Self::parse(program, voice)
    }
}

impl Synthesize for CommandTts {
    fn synthesize<'a>(&'a self, text: &'a str) -> BoxFuture<'a, Result<SoundStream, EngineError>> {
        async move {
            let text = &text[..text.floor_char_boundary(LONGEST)];
            let (mut words, input) = dialect::fill(&self.words, text);
            let file = file_for(&mut words)?;
            let (running, mut stdin, stdout) = Running::start(&words)?;
            // One that ended already says why when its output is read.
            let _taken = timeout(PATIENCE, stdin.write_all(input.as_bytes()))
                .await
                .is_ok();
            drop(stdin);
            let mut speaking = Speaking {
                running,
                output: Box::new(stdout),
                wav: WavStream::default(),
                total: 0,
                file,
            };
            let first = speaking.first().await?;
            let Some(format) = speaking.wav.format() else {
                return Err(speaking.running.failed("wrote no WAV"));
            };
            let rest = stream::try_unfold(speaking, async |mut speaking| {
                Ok(speaking.more().await?.map(|sound| (sound, speaking)))
            });
            let chunks = stream::iter([Ok(first)]).chain(rest).boxed();
            Ok(SoundStream { format, chunks })
        }
        .boxed()
    }
}

/// A file of its own for a program that can write to nothing else.
fn file_for(words: &mut [String]) -> Result<Option<TempPath>, EngineError> {
    let Some(place) = words.iter_mut().skip(1).find(|word| *word == FILE) else {
        return Ok(None);
    };
    let made = tempfile::Builder::new().suffix(".wav").tempfile();
    let file = made.map_err(|error| {
        EngineError::program("tts", format!("cannot make a file for speech: {error}"))
    })?;
    *place = file.path().display().to_string();
    Ok(Some(file.into_temp_path()))
}

struct Speaking {
    running: Running,
    output: Box<dyn AsyncRead + Send + Unpin>,
    wav: WavStream,
    total: usize,
    /// Where its sound will be once it is done, if not in its output.
    file: Option<TempPath>,
}

impl Speaking {
    async fn first(&mut self) -> Result<Bytes, EngineError> {
        if self.file.is_some() {
            self.read_file_instead().await?;
        }
        while let Some(sound) = self.more().await? {
            if self.wav.format().is_some() {
                return Ok(sound);
            }
        }
        Ok(Bytes::new())
    }

    async fn read_file_instead(&mut self) -> Result<(), EngineError> {
        // What it says meanwhile is not its sound.
        while self.read().await?.is_some() {}
        self.running.end().await?;
        if let Some(file) = &self.file {
            let file = File::open(file).await;
            self.output = Box::new(file.map_err(|error| self.running.failed(&error.to_string()))?);
        }
        Ok(())
    }

    /// More sound; none at the end of a program that did its work.
    async fn more(&mut self) -> Result<Option<Bytes>, EngineError> {
        let Some(bytes) = self.read().await? else {
            if self.file.is_none() {
                self.running.end().await?;
            }
            return Ok(None);
        };
        let sound = self.wav.feed(&bytes);
        sound
            .map(Some)
            .map_err(|error| self.running.failed(&error.to_string()))
    }

    async fn read(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        let mut bytes = Vec::with_capacity(16 << 10);
        match timeout(PATIENCE, self.output.read_buf(&mut bytes)).await {
            Ok(Ok(0)) => return Ok(None),
            Ok(Ok(read)) => self.total += read,
            Ok(Err(error)) => return Err(self.running.failed(&error.to_string())),
            Err(_) => {
                return Err(EngineError::timed_out(self.running.name(), PATIENCE));
            }
        }
        if self.total > LARGEST {
            return Err(self.running.failed("writes more sound than any text has"));
        }
        Ok(Some(bytes))
    }
}

#[cfg(test)]
mod tests;
