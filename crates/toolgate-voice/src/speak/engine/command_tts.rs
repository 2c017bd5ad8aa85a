//! Speech from a program.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use tempfile::TempPath;
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::command_lines::{self, FILE_PLACEHOLDER};
use crate::EngineError;
use crate::audio::WavStream;
use crate::capture::child_program::{ChildProgram, find_program};
use crate::speak::{SoundStream, SpeechSynthesizer};

const OUTPUT_TIMEOUT: Duration = Duration::from_secs(15);
// The text may be an argument, whose length the system limits.
const MAX_TEXT_BYTES: usize = 32 << 10;
// In bytes: twenty minutes of speech. A broken program might never stop.
const MAX_AUDIO_BYTES: usize = 64 << 20;

/// Speaks with `espeak-ng`, `piper`, `flite`, `say`, or any command that writes WAV. Each text gets
/// a process of its own, without a shell. The text goes to stdin, or replaces a word `{text}`.
pub(crate) struct CommandTts {
    words: Vec<String>,
}

impl CommandTts {
    pub(crate) const KNOWN: [&str; 4] = ["espeak-ng", "piper", "flite", "say"];

    pub(crate) fn parse(setting: &str, voice: &str) -> Result<Self, EngineError> {
        let words = command_lines::command_line(setting.trim(), voice)?;
        Ok(Self { words })
    }

    pub(crate) fn probe(voice: &str) -> Result<Self, EngineError> {
        let works = |program: &&&str| {
            find_program(program).is_some() && command_lines::command_line(program, voice).is_ok()
        };
        let missing = "no speech program found; install espeak-ng, or set `voice.tts`";
        let program = Self::KNOWN.iter().find(works);
        let program = program.ok_or_else(|| EngineError::program("tts", missing))?;
        Self::parse(program, voice)
    }
}

impl SpeechSynthesizer for CommandTts {
    fn synthesize<'a>(&'a self, text: &'a str) -> BoxFuture<'a, Result<SoundStream, EngineError>> {
        async move {
            let text = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
            let (mut words, input) = command_lines::fill_text(&self.words, text);
            let file = create_output_file(&mut words)?;
            let (running, mut stdin, stdout) = ChildProgram::start(&words)?;
            // A program that has already exited says why when its output is read.
            let writing = stdin.write_all(input.as_bytes());
            let _taken = timeout(OUTPUT_TIMEOUT, writing).await.is_ok();
            drop(stdin);
            let mut speaking = SpeechProgram {
                running,
                output: Box::new(stdout),
                wav: WavStream::default(),
                total: 0,
                file,
            };
            let first = speaking.first_chunk().await?;
            let Some(format) = speaking.wav.format() else {
                return Err(speaking.running.error_with_stderr("wrote no WAV"));
            };
            let rest = stream::try_unfold(speaking, async |mut speaking| {
                Ok(speaking.next_chunk().await?.map(|sound| (sound, speaking)))
            });
            let chunks = stream::iter([Ok(first)]).chain(rest).boxed();
            Ok(SoundStream { format, chunks })
        }
        .boxed()
    }
}

fn create_output_file(words: &mut [String]) -> Result<Option<TempPath>, EngineError> {
    let Some(place) = words
        .iter_mut()
        .skip(1)
        .find(|word| *word == FILE_PLACEHOLDER)
    else {
        return Ok(None);
    };
    let made = tempfile::Builder::new().suffix(".wav").tempfile();
    let file = made.map_err(|error| {
        EngineError::program("tts", format!("cannot make a file for speech: {error}"))
    })?;
    *place = file.path().display().to_string();
    Ok(Some(file.into_temp_path()))
}

struct SpeechProgram {
    running: ChildProgram,
    output: Box<dyn AsyncRead + Send + Unpin>,
    wav: WavStream,
    total: usize,
    file: Option<TempPath>,
}

impl SpeechProgram {
    async fn first_chunk(&mut self) -> Result<Bytes, EngineError> {
        if self.file.is_some() {
            self.read_output_file().await?;
        }
        while let Some(sound) = self.next_chunk().await? {
            if self.wav.format().is_some() {
                return Ok(sound);
            }
        }
        Ok(Bytes::new())
    }

    async fn read_output_file(&mut self) -> Result<(), EngineError> {
        // Its stdout contains no sound. It is drained so that the program doesn't block.
        while self.read().await?.is_some() {}
        self.running.wait_for_exit().await?;
        if let Some(file) = &self.file {
            let file = File::open(file).await;
            let failed = |error: io::Error| self.running.error_with_stderr(&error.to_string());
            self.output = Box::new(file.map_err(failed)?);
        }
        Ok(())
    }

    async fn next_chunk(&mut self) -> Result<Option<Bytes>, EngineError> {
        let Some(bytes) = self.read().await? else {
            if self.file.is_none() {
                self.running.wait_for_exit().await?;
            }
            return Ok(None);
        };
        let sound = self.wav.feed(&bytes).map(Some);
        sound.map_err(|error| self.running.error_with_stderr(&error.to_string()))
    }

    async fn read(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        let mut bytes = Vec::with_capacity(16 << 10);
        match timeout(OUTPUT_TIMEOUT, self.output.read_buf(&mut bytes)).await {
            Ok(Ok(0)) => return Ok(None),
            Ok(Ok(read)) => self.total += read,
            Ok(Err(error)) => return Err(self.running.error_with_stderr(&error.to_string())),
            Err(_) => return Err(EngineError::timed_out(self.running.name(), OUTPUT_TIMEOUT)),
        }
        if self.total > MAX_AUDIO_BYTES {
            let why = "wrote far too much sound for the text";
            return Err(self.running.error_with_stderr(why));
        }
        Ok(Some(bytes))
    }
}

#[cfg(test)]
mod tests;
