//! Sources that are byte streams: stdin, files and programs.

use std::error::Error;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::unix::pipe;
use tokio::time::timeout;
use toolgate_core::text::escape;

use super::child_program::ChildProgram;
use super::source_decoder::SourceDecoder;
use super::{AudioSource, CaptureEvent, SILENCE_TIMEOUT, TRAILING_SILENCE};
use crate::EngineError;
use crate::audio::{AudioFormat, SAMPLE_RATE};

const READ_BUFFER_LEN: usize = 4096;

type ByteReader = Box<dyn AsyncRead + Send + Unpin>;

pub(super) fn open_stdin(rate: u32) -> Result<Box<dyn AudioSource>, EngineError> {
    let failed = |why: String| EngineError::program("stdin", why);
    if io::stdin().is_terminal() {
        return Err(failed(
            "stdin is a terminal: pipe a recorder into it, such as `arecord -f S16_LE -r 16000 -c 1 |`".to_owned(),
        ));
    }
    let file = io::stdin().as_fd().try_clone_to_owned();
    open_descriptor(file.map_err(|error| failed(error.to_string()))?, rate)
}

fn open_descriptor(file: OwnedFd, rate: u32) -> Result<Box<dyn AudioSource>, EngineError> {
    let format = AudioFormat {
        rate,
        ..AudioFormat::CAPTURE
    };
    let failed = |error: &dyn Error| EngineError::program("stdin", error);
    let decoder = SourceDecoder::raw_or_wav(format).map_err(|error| failed(&error))?;
    let again = file.try_clone().map_err(|error| failed(&error))?;
    // A pipe is read without a thread: a thread blocked on stdin would keep
    // the process from exiting.
    let bytes: ByteReader = match pipe::Receiver::from_owned_fd(file) {
        Ok(pipe) => Box::new(pipe),
        Err(_) => Box::new(tokio::fs::File::from_std(again.into())),
    };
    Ok(Box::new(StdinSource {
        stream: SampleStream::new("stdin", bytes, decoder),
        is_silent: true,
    }))
}

/// With `is_continuous`, the command must neither end nor be silent.
pub(super) fn open_command(
    words: &[String],
    is_continuous: bool,
) -> Result<Box<dyn AudioSource>, EngineError> {
    let (running, _, stdout) = ChildProgram::start(words)?;
    let name = running.name();
    let decoder = SourceDecoder::raw_or_wav(AudioFormat::CAPTURE)
        .map_err(|error| EngineError::program(name, error))?;
    Ok(Box::new(CommandSource {
        stream: SampleStream::new(name, Box::new(stdout), decoder),
        running,
        is_continuous,
        ended: false,
    }))
}

// All files are opened first, so that a missing one is reported before any sound is processed.
pub(super) async fn open_files(paths: &[PathBuf]) -> Result<Box<dyn AudioSource>, EngineError> {
    let mut streams = Vec::new();
    for path in paths.iter().rev() {
        let name = escape(&path.to_string_lossy());
        let file = tokio::fs::File::open(path).await;
        let file = file.map_err(|error| EngineError::program(&name, error))?;
        let stream = SampleStream::new(&name, Box::new(file), SourceDecoder::only_wav());
        streams.push((path.clone(), stream));
    }
    Ok(Box::new(FileSource {
        streams,
        position: FilePosition::Before,
    }))
}

struct SampleStream {
    name: String,
    bytes: ByteReader,
    decoder: Option<SourceDecoder>,
    buffer: Vec<u8>,
}

impl SampleStream {
    fn new(name: &str, bytes: ByteReader, decoder: SourceDecoder) -> Self {
        Self {
            name: name.to_owned(),
            bytes,
            decoder: Some(decoder),
            buffer: vec![0; READ_BUFFER_LEN],
        }
    }

    async fn read(&mut self) -> Result<Option<Vec<i16>>, EngineError> {
        while let Some(decoder) = &mut self.decoder {
            let sound = match self.bytes.read(&mut self.buffer).await {
                Ok(0) => self
                    .decoder
                    .take()
                    .map_or(Ok(Vec::new()), SourceDecoder::finish),
                Ok(read) => decoder.decode(&self.buffer[..read]),
                Err(error) => return Err(self.fail(&error)),
            };
            match sound {
                Ok(sound) if sound.is_empty() => {}
                Ok(sound) => return Ok(Some(sound)),
                Err(error) => return Err(self.fail(&error)),
            }
        }
        Ok(None)
    }

    fn fail(&mut self, error: &dyn Error) -> EngineError {
        self.decoder = None;
        EngineError::program(&self.name, error)
    }
}

struct StdinSource {
    stream: SampleStream,
    is_silent: bool,
}

impl AudioSource for StdinSource {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<CaptureEvent>, EngineError>> {
        Box::pin(async {
            let sound = self.stream.read().await?;
            // A recorder that failed has written why to the terminal, but to us an empty pipe
            // would look like success.
            if std::mem::take(&mut self.is_silent) && sound.is_none() {
                let why = "it ended without any sound: is the program before it recording?";
                return Err(EngineError::program("stdin", why));
            }
            Ok(sound.map(CaptureEvent::Sound))
        })
    }
}

// In reverse order, so that the next file can be popped.
struct FileSource {
    streams: Vec<(PathBuf, SampleStream)>,
    position: FilePosition,
}

#[derive(Clone, Copy)]
enum FilePosition {
    Before,
    Within,
    TrailingSilence(usize),
}

impl AudioSource for FileSource {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<CaptureEvent>, EngineError>> {
        Box::pin(async {
            loop {
                let Some((path, stream)) = self.streams.last_mut() else {
                    return Ok(None);
                };
                match self.position {
                    FilePosition::Before => {
                        self.position = FilePosition::Within;
                        return Ok(Some(CaptureEvent::FileBegins(path.clone())));
                    }
                    FilePosition::Within => match stream.read().await {
                        Ok(Some(sound)) => return Ok(Some(CaptureEvent::Sound(sound))),
                        Ok(None) => self.position = FilePosition::TrailingSilence(TRAILING_SILENCE),
                        Err(error) => {
                            self.next_file();
                            return Err(error);
                        }
                    },
                    FilePosition::TrailingSilence(0) => {
                        self.next_file();
                        return Ok(Some(CaptureEvent::FileEnds));
                    }
                    FilePosition::TrailingSilence(quiet) => {
                        let samples = quiet.min(SAMPLE_RATE as usize / 8);
                        self.position = FilePosition::TrailingSilence(quiet - samples);
                        return Ok(Some(CaptureEvent::Sound(vec![0; samples])));
                    }
                }
            }
        })
    }
}

impl FileSource {
    fn next_file(&mut self) {
        self.streams.pop();
        self.position = FilePosition::Before;
    }
}

struct CommandSource {
    stream: SampleStream,
    running: ChildProgram,
    is_continuous: bool,
    ended: bool,
}

impl AudioSource for CommandSource {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<CaptureEvent>, EngineError>> {
        Box::pin(async {
            if self.ended {
                return Ok(None);
            }
            let limit = if self.is_continuous {
                SILENCE_TIMEOUT
            } else {
                Duration::MAX
            };
            let end = match timeout(limit, self.stream.read()).await {
                Ok(Ok(Some(sound))) => return Ok(Some(CaptureEvent::Sound(sound))),
                Ok(Ok(None)) => self.running.wait_for_exit().await,
                Ok(Err(error)) => Err(error),
                Err(_) => {
                    let why = format!("gave no sound for {} s", SILENCE_TIMEOUT.as_secs());
                    Err(self.running.error_with_stderr(&why))
                }
            };
            self.ended = true;
            end?;
            match self.is_continuous {
                true => Err(self.running.error_with_stderr("ended by itself")),
                false => Ok(None),
            }
        })
    }
}

#[cfg(test)]
mod tests;
