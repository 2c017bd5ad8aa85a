//! A program that plays what it reads.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::EngineError;
use crate::audio::Format;
use crate::hear::program::Running;
use crate::hear::server::first_of;
use crate::speak::pace::Pace;
use crate::speak::{Output, Playing};

/// A program dies at once when it is killed, and its sound with it: it may have a little more than a breath in advance.
const LEAD: Duration = Duration::from_millis(300);

/// How long a program may not read, and how long it may take to end after everything was heard.
const PATIENCE: Duration = Duration::from_secs(5);

/// An endless length, as programs write it that do not know how long it gets.
const ENDLESS: u32 = 0x7fff_f000;

/// Plays through a program: `pw-play`, `paplay`, `aplay`, or a whole command that reads a WAV stream.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    words: Vec<String>,
}

impl Program {
    /// The programs that are looked for, the most modern first.
    pub(crate) const KNOWN: [&str; 3] = ["pw-play", "paplay", "aplay"];

    /// A program this module knows, alone, or the words of a command.
    pub(crate) fn new(words: Vec<String>) -> Self {
        Self { words }
    }

    /// The first program that this machine has, with the sound server it needs.
    pub(crate) fn probe() -> Result<Self, EngineError> {
        let program = first_of(&Self::KNOWN).ok_or_else(|| EngineError::program("output", "this machine has no program to play sound; install pipewire-bin (pw-play), pulseaudio-utils (paplay) or \
                  alsa-utils (aplay), or set `voice.output`"))?;
        Ok(Self::new(vec![program.to_owned()]))
    }

    /// The command for a format, and whether it wants a header.
    fn command(&self, format: Format) -> (Vec<String>, bool) {
        let (rate, channels) = (format.rate, format.channels);
        let line = match &self.words[..] {
            [program] if program == "pw-play" => {
                return (vec![program.clone(), "-".to_owned()], true);
            }
            [program] if program == "paplay" => {
                format!(
                    "paplay --raw --latency-msec=150 --format=s16le --rate={rate} --channels={channels}"
                )
            }
            [program] if program == "aplay" => {
                format!("aplay -q -t raw -f S16_LE -r {rate} -c {channels} -")
            }
            words => return (words.to_vec(), true),
        };
        (line.split(' ').map(str::to_owned).collect(), false)
    }
}

impl Output for Program {
    fn begin(&self, format: Format) -> BoxFuture<'_, Result<Box<dyn Playing>, EngineError>> {
        async move {
            let (words, with_header) = self.command(format);
            let (running, stdin, mut stdout) = Running::start(&words)?;
            // What it says is read so that it never waits for it, and ends when it does.
            let ended = tokio::spawn(async move {
                tokio::io::copy(&mut stdout, &mut tokio::io::sink())
                    .await
                    .ok();
            });
            let mut player = Player {
                format,
                name: running.name().to_owned(),
                running: Some(running),
                stdin: Some(stdin),
                ended,
                pace: Pace::new(LEAD),
                failed: false,
            };
            if with_header {
                player.write(header(format, ENDLESS).into()).await?;
            }
            Ok(Box::new(player) as Box<dyn Playing>)
        }
        .boxed()
    }
}

pub(super) fn header(format: Format, length: u32) -> Vec<u8> {
    let frame = format.channels * 2;
    let mut bytes = Vec::with_capacity(44);
    bytes.extend(b"RIFF");
    bytes.extend((length + 36).to_le_bytes());
    bytes.extend(b"WAVEfmt ");
    bytes.extend(16_u32.to_le_bytes());
    bytes.extend(1_u16.to_le_bytes());
    bytes.extend(format.channels.to_le_bytes());
    bytes.extend(format.rate.to_le_bytes());
    bytes.extend((format.rate * u32::from(frame)).to_le_bytes());
    bytes.extend(frame.to_le_bytes());
    bytes.extend(16_u16.to_le_bytes());
    bytes.extend(b"data");
    bytes.extend(length.to_le_bytes());
    bytes
}

struct Player {
    format: Format,
    name: String,
    /// Gone once it is stopped.
    running: Option<Running>,
    stdin: Option<ChildStdin>,
    ended: JoinHandle<()>,
    pace: Pace,
    failed: bool,
}

impl Player {
    async fn write(&mut self, bytes: Bytes) -> Result<(), EngineError> {
        let Some(stdin) = &mut self.stdin else {
            return Err(self.closed());
        };
        match timeout(PATIENCE, stdin.write_all(&bytes)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(self.why_it_ended().await),
            Err(_) => Err(EngineError::timed_out(&self.name, PATIENCE)),
        }
    }

    async fn why_it_ended(&mut self) -> EngineError {
        self.failed = true;
        match &mut self.running {
            Some(running) => match running.end().await {
                Err(problem) => problem,
                Ok(()) => running.failed("ended before the sound did"),
            },
            None => self.closed(),
        }
    }

    fn closed(&self) -> EngineError {
        EngineError::closed(&self.name)
    }
}

impl Playing for Player {
    fn play(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<(), EngineError>> {
        async move {
            self.pace.room().await;
            let length = self.format.duration(bytes.len());
            self.write(bytes).await?;
            self.pace.gave(length);
            Ok(())
        }
        .boxed()
    }

    fn heard(&self) -> Duration {
        // One that failed was at least this far from what it had: it may not have begun at all.
        let missing = if self.failed { LEAD } else { Duration::ZERO };
        self.pace.heard().saturating_sub(missing)
    }

    fn end(&mut self) -> BoxFuture<'_, Result<(), EngineError>> {
        async move {
            self.stdin = None;
            let within = self.pace.unheard() + PATIENCE;
            let ended = timeout(within, &mut self.ended).await;
            let result = match (&mut self.running, ended) {
                (Some(running), Ok(_)) => running.end().await,
                (None, _) => Err(self.closed()),
                (_, Err(_)) => Err(EngineError::timed_out(&self.name, within)),
            };
            self.failed = result.is_err();
            result
        }
        .boxed()
    }

    fn stop(&mut self) -> BoxFuture<'_, ()> {
        self.running = None;
        self.stdin = None;
        async {}.boxed()
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.ended.abort();
    }
}

#[cfg(test)]
mod tests;
