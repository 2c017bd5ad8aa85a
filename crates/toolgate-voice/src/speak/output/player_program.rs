//! Plays through a program that reads from a pipe.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::EngineError;
use crate::audio::AudioFormat;
use crate::capture::child_program::ChildProgram;
use crate::capture::sound_server::first_usable;
use crate::speak::pace::PlaybackPace;
use crate::speak::{AudioOutput, AudioPlayback, OpenedPlayback};

// A killed program falls silent at once, so it may have a little more sound in advance than others.
const LEAD: Duration = Duration::from_millis(300);
/// How long a program may stop reading, and how long it may take to exit after the last sound.
const PLAYER_TIMEOUT: Duration = Duration::from_secs(5);
const ENDLESS_LENGTH: u32 = 0x7fff_f000;

#[derive(Debug, Clone)]
pub(crate) struct PlayerProgram {
    words: Vec<String>,
}

impl PlayerProgram {
    pub(crate) const KNOWN: [&str; 3] = ["pw-play", "paplay", "aplay"];

    pub(crate) fn new(words: Vec<String>) -> Self {
        Self { words }
    }

    pub(crate) fn probe() -> Result<Self, EngineError> {
        let missing = "no player found; install pipewire-bin (pw-play), pulseaudio-utils (paplay) or \
                       alsa-utils (aplay), or set `voice.output`";
        let program = first_usable(&Self::KNOWN);
        let program = program.ok_or_else(|| EngineError::program("output", missing))?;
        Ok(Self::new(vec![program.to_owned()]))
    }

    fn command(&self, format: AudioFormat) -> (Vec<String>, bool) {
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

impl AudioOutput for PlayerProgram {
    fn begin(&self, format: AudioFormat) -> BoxFuture<'_, OpenedPlayback> {
        async move {
            let (words, with_header) = self.command(format);
            let (running, stdin, mut stdout) = ChildProgram::start(&words)?;
            // Drained so that the program never blocks. The copy ends when the program does.
            let ended = tokio::spawn(async move {
                tokio::io::copy(&mut stdout, &mut tokio::io::sink())
                    .await
                    .ok();
            });
            let mut player = ProgramPlayback {
                format,
                running,
                stdin: Some(stdin),
                ended,
                pace: PlaybackPace::new(LEAD),
                failed: false,
            };
            if with_header {
                player
                    .write(wav_header(format, ENDLESS_LENGTH).into())
                    .await?;
            }
            Ok(Box::new(player) as Box<dyn AudioPlayback>)
        }
        .boxed()
    }
}

pub(super) fn wav_header(format: AudioFormat, length: u32) -> Vec<u8> {
    let frame = format.channels * 2;
    let bytes_per_second = format.rate * u32::from(frame);
    let mut header = Vec::with_capacity(44);
    header.extend(b"RIFF");
    header.extend((length + 36).to_le_bytes());
    header.extend(b"WAVEfmt \x10\0\0\0\x01\0");
    header.extend(format.channels.to_le_bytes());
    header.extend(format.rate.to_le_bytes());
    header.extend(bytes_per_second.to_le_bytes());
    header.extend(frame.to_le_bytes());
    header.extend(b"\x10\0data");
    header.extend(length.to_le_bytes());
    header
}

struct ProgramPlayback {
    format: AudioFormat,
    running: ChildProgram,
    stdin: Option<ChildStdin>,
    ended: JoinHandle<()>,
    pace: PlaybackPace,
    failed: bool,
}

impl ProgramPlayback {
    async fn write(&mut self, bytes: Bytes) -> Result<(), EngineError> {
        let Some(stdin) = &mut self.stdin else {
            return Err(EngineError::closed(self.running.name()));
        };
        match timeout(PLAYER_TIMEOUT, stdin.write_all(&bytes)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(self.exit_error().await),
            Err(_) => Err(EngineError::timed_out(self.running.name(), PLAYER_TIMEOUT)),
        }
    }

    async fn exit_error(&mut self) -> EngineError {
        self.failed = true;
        let end = self.running.wait_for_exit().await;
        end.err()
            .unwrap_or_else(|| self.running.error_with_stderr("ended before the sound did"))
    }
}

impl AudioPlayback for ProgramPlayback {
    fn play(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<(), EngineError>> {
        async move {
            self.pace.wait_for_lead().await;
            let length = self.format.duration(bytes.len());
            self.write(bytes).await?;
            self.pace.record_sent(length);
            Ok(())
        }
        .boxed()
    }

    fn heard(&self) -> Duration {
        // A failed program may not have played anything it was given in advance.
        let missing = if self.failed { LEAD } else { Duration::ZERO };
        self.pace.heard().saturating_sub(missing)
    }

    fn end(&mut self) -> BoxFuture<'_, Result<(), EngineError>> {
        async move {
            self.stdin = None;
            let within = self.pace.unheard() + PLAYER_TIMEOUT;
            let result = match timeout(within, &mut self.ended).await {
                Ok(_) => self.running.wait_for_exit().await,
                Err(_) => Err(EngineError::timed_out(self.running.name(), within)),
            };
            self.failed = result.is_err();
            result
        }
        .boxed()
    }

    fn stop(&mut self) -> BoxFuture<'_, ()> {
        self.running.kill();
        self.stdin = None;
        async {}.boxed()
    }
}

impl Drop for ProgramPlayback {
    fn drop(&mut self) {
        self.ended.abort();
    }
}

#[cfg(test)]
mod tests;
