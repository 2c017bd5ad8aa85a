//! Sound that comes as a stream of bytes: from stdin, from files, from programs.

use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::unix::pipe;
use tokio::time::timeout;

use super::decode::Decoder;
use super::program::Running;
use super::{Heard, QUIET, SILENT, Source};
use crate::EngineError;
use crate::audio::{Format, RATE};

/// How much is read at once: an eighth of a second of what is heard.
const READ: usize = 4096;

type Bytes = Box<dyn AsyncRead + Send + Unpin>;

pub(super) fn stdin(rate: u32) -> Result<Box<dyn Source>, EngineError> {
    let failed = |why: String| EngineError::program("stdin", why);
    if io::stdin().is_terminal() {
        return Err(failed(
            "a terminal gives no sound: pipe a program into it, such as `arecord -f S16_LE -r 16000 -c 1 |`".to_owned(),
        ));
    }
    let file = io::stdin().as_fd().try_clone_to_owned();
    descriptor(file.map_err(|error| failed(error.to_string()))?, rate)
}

fn descriptor(file: OwnedFd, rate: u32) -> Result<Box<dyn Source>, EngineError> {
    let format = Format {
        rate,
        ..Format::HEARD
    };
    let decoder = Decoder::raw_or_wav(format)
        .map_err(|error| EngineError::program("stdin", error.to_string()))?;
    let again = file
        .try_clone()
        .map_err(|error| EngineError::program("stdin", error.to_string()))?;
    // A pipe is read without a thread: one that waits for stdin would keep the program from ending.
    let bytes: Bytes = match pipe::Receiver::from_owned_fd(file) {
        Ok(pipe) => Box::new(pipe),
        Err(_) => Box::new(tokio::fs::File::from_std(again.into())),
    };
    Ok(Box::new(Stdin {
        stream: Stream::new("stdin", bytes, decoder),
        is_silent: true,
    }))
}

pub(super) fn command(words: &[String]) -> Result<Box<dyn Source>, EngineError> {
    Ok(Box::new(Program::start(words)?))
}

/// What a recorder writes: it must neither end nor be silent.
pub(super) fn recorder(words: &[String]) -> Result<Box<dyn Source>, EngineError> {
    let lasts = true;
    Ok(Box::new(Program {
        lasts,
        ..Program::start(words)?
    }))
}

/// Files, one after the other. All of them must be there before the first is read.
pub(super) async fn files(paths: &[PathBuf]) -> Result<Box<dyn Source>, EngineError> {
    let mut streams = Vec::new();
    for path in paths.iter().rev() {
        let file = tokio::fs::File::open(path).await;
        let file = file.map_err(|error| EngineError::program(shown(path), error.to_string()))?;
        let stream = Stream::new(&shown(path), Box::new(file), Decoder::only_wav());
        streams.push((path.clone(), stream));
    }
    Ok(Box::new(Files {
        streams,
        place: Place::Before,
    }))
}

struct Stream {
    name: String,
    bytes: Bytes,
    /// None once the stream has ended, or failed.
    decoder: Option<Decoder>,
    buffer: Vec<u8>,
}

impl Stream {
    fn new(name: &str, bytes: Bytes, decoder: Decoder) -> Self {
        Self {
            name: name.to_owned(),
            bytes,
            decoder: Some(decoder),
            buffer: vec![0; READ],
        }
    }

    async fn read(&mut self) -> Result<Option<Vec<i16>>, EngineError> {
        while let Some(decoder) = &mut self.decoder {
            let read = self.bytes.read(&mut self.buffer).await;
            let sound = match read {
                Ok(0) => self.decoder.take().map_or(Ok(Vec::new()), Decoder::finish),
                Ok(read) => decoder.decode(&self.buffer[..read]),
                Err(error) => {
                    self.decoder = None;
                    return Err(EngineError::program(&self.name, error.to_string()));
                }
            };
            match sound {
                Ok(sound) if sound.is_empty() => {}
                Ok(sound) => return Ok(Some(sound)),
                Err(error) => {
                    self.decoder = None;
                    return Err(EngineError::program(&self.name, error.to_string()));
                }
            }
        }
        Ok(None)
    }
}

struct Stdin {
    stream: Stream,
    is_silent: bool,
}

impl Source for Stdin {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Heard>, EngineError>> {
        Box::pin(async {
            let sound = self.stream.read().await?;
            // A recorder that failed has said why; but whoever reads only this would take it for a success.
            if std::mem::take(&mut self.is_silent) && sound.is_none() {
                let why = "it ended without any sound: does the program before it record?";
                return Err(EngineError::program("stdin", why));
            }
            Ok(sound.map(Heard::Sound))
        })
    }
}

/// Files that are still to be read, the next one last.
struct Files {
    streams: Vec<(PathBuf, Stream)>,
    place: Place,
}

#[derive(Clone, Copy)]
enum Place {
    Before,
    Within,
    /// Behind it; so much silence is still to come.
    Behind(usize),
}

impl Source for Files {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Heard>, EngineError>> {
        Box::pin(async {
            loop {
                let Some((path, stream)) = self.streams.last_mut() else {
                    return Ok(None);
                };
                match self.place {
                    Place::Before => {
                        self.place = Place::Within;
                        return Ok(Some(Heard::Begins(path.clone())));
                    }
                    Place::Within => match stream.read().await {
                        Ok(Some(sound)) => return Ok(Some(Heard::Sound(sound))),
                        Ok(None) => self.place = Place::Behind(QUIET),
                        Err(error) => {
                            self.next_file();
                            return Err(error);
                        }
                    },
                    Place::Behind(0) => {
                        self.next_file();
                        return Ok(Some(Heard::Ends));
                    }
                    Place::Behind(quiet) => {
                        let samples = quiet.min(RATE as usize / 8);
                        self.place = Place::Behind(quiet - samples);
                        return Ok(Some(Heard::Sound(vec![0; samples])));
                    }
                }
            }
        })
    }
}

impl Files {
    fn next_file(&mut self) {
        self.streams.pop();
        self.place = Place::Before;
    }
}

struct Program {
    stream: Stream,
    running: Running,
    lasts: bool,
    over: bool,
}

impl Program {
    fn start(words: &[String]) -> Result<Self, EngineError> {
        let (running, _, stdout) = Running::start(words)?;
        let name = running.name();
        let decoder = Decoder::raw_or_wav(Format::HEARD);
        let decoder = decoder.map_err(|error| EngineError::program(name, error.to_string()))?;
        Ok(Self {
            stream: Stream::new(name, Box::new(stdout), decoder),
            running,
            lasts: false,
            over: false,
        })
    }
}

impl Source for Program {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Heard>, EngineError>> {
        Box::pin(async {
            if self.over {
                return Ok(None);
            }
            let heard = match self.lasts {
                true => timeout(SILENT, self.stream.read()).await,
                false => Ok(self.stream.read().await),
            };
            match heard {
                Ok(Ok(Some(sound))) => return Ok(Some(Heard::Sound(sound))),
                Ok(Ok(None)) => {}
                Ok(Err(error)) => {
                    self.over = true;
                    return Err(error);
                }
                Err(_) => {
                    self.over = true;
                    let why = format!("gave no sound for {} s", SILENT.as_secs());
                    return Err(self.running.failed(&why));
                }
            }
            let end = self.running.end().await;
            self.over = true;
            end?;
            match self.lasts {
                true => Err(self.running.failed("ended by itself")),
                false => Ok(None),
            }
        })
    }
}

fn shown(path: &Path) -> String {
    toolgate_core::escape(&path.to_string_lossy())
}

#[cfg(test)]
mod tests;
