//! A fake engine and a fake output.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::{self, BoxFuture};
use futures::stream::{self, StreamExt};
use parking_lot::Mutex;

use crate::EngineError;
use crate::audio::AudioFormat;
use crate::speak::pace::PlaybackPace;
use crate::speak::{
    AudioOutput, AudioPlayback, SoundStream, Speaker, SpeechSynthesizer, VoiceVolume,
};

pub(super) const MS: Duration = Duration::from_millis(1);

/// A voice whose engine and output can be watched.
pub(super) fn voice() -> (Speaker, Arc<FakeEngine>, Arc<FakeLoudspeaker>) {
    let (engine, output) = (
        Arc::new(FakeEngine::default()),
        Arc::new(FakeLoudspeaker::default()),
    );
    let speaker = Speaker::new(engine.clone(), output.clone(), output.volume.clone());
    (speaker, engine, output)
}

pub(super) fn broken() -> EngineError {
    EngineError::Closed {
        at: "the fake".to_owned(),
    }
}

/// What an engine does instead of speaking.
#[derive(Debug, Clone, Copy)]
pub(super) enum EngineFault {
    None,
    Refuse,
    /// Fails after this many letters.
    After(usize),
    Hang,
    /// Claims an impossible format.
    Mad,
    Endless,
    /// Makes no sound.
    Silent,
}

#[derive(Default)]
pub(super) struct FakeEngine {
    texts: Mutex<Vec<String>>,
    faults: Mutex<VecDeque<EngineFault>>,
}

impl FakeEngine {
    pub(super) fn texts(&self) -> Vec<String> {
        self.texts.lock().clone()
    }

    pub(super) fn hang(&self) {
        self.fail([EngineFault::Hang]);
    }

    /// Sets what happens to the next texts.
    pub(super) fn fail(&self, faults: impl IntoIterator<Item = EngineFault>) {
        self.faults.lock().extend(faults);
    }

    pub(super) fn sound_of(text: &str) -> Vec<u8> {
        letter().repeat(text.chars().count())
    }
}

/// 50 ms at 16 kHz.
fn letter() -> Vec<u8> {
    8000_i16.to_le_bytes().repeat(800)
}

impl SpeechSynthesizer for FakeEngine {
    fn synthesize<'a>(&'a self, text: &'a str) -> BoxFuture<'a, Result<SoundStream, EngineError>> {
        self.texts.lock().push(text.to_owned());
        let fault = self.faults.lock().pop_front().unwrap_or(EngineFault::None);
        let letters = stream::iter(
            text.chars()
                .map(|_| Ok(Bytes::from(letter())))
                .collect::<Vec<_>>(),
        );
        let chunks = match fault {
            EngineFault::None | EngineFault::Mad => letters.boxed(),
            EngineFault::Refuse => return Box::pin(async { Err(broken()) }),
            EngineFault::Hang => return Box::pin(future::pending()),
            EngineFault::After(count) => letters
                .take(count)
                .chain(stream::iter([Err(broken())]))
                .boxed(),
            EngineFault::Endless => stream::repeat_with(|| Ok(Bytes::from(letter()))).boxed(),
            EngineFault::Silent => stream::empty().boxed(),
        };
        let mut format = AudioFormat::CAPTURE;
        if matches!(fault, EngineFault::Mad) {
            format.rate = 3;
        }
        Box::pin(async move { Ok(SoundStream { format, chunks }) })
    }
}

/// Plays in real time.
#[derive(Default)]
pub(super) struct FakeLoudspeaker {
    pub(super) volume: VoiceVolume,
    state: Arc<Mutex<PlayedWords>>,
}

#[derive(Default)]
struct PlayedWords {
    bytes: Vec<u8>,
    open: usize,
    most: usize,
    begun: usize,
    hang_on_stop: bool,
    hang_on_begin: bool,
    refuse: usize,
    /// Breaks after each of these numbers of slices in turn.
    breaks: VecDeque<usize>,
}

impl FakeLoudspeaker {
    pub(super) const BYTES_PER_MS: usize = 32;

    pub(super) fn heard(&self) -> Vec<u8> {
        self.state.lock().bytes.clone()
    }

    pub(super) fn forget(&self) {
        self.state.lock().bytes.clear();
    }

    pub(super) fn is_open(&self) -> bool {
        self.state.lock().open > 0
    }

    pub(super) fn most_at_once(&self) -> usize {
        self.state.lock().most
    }

    pub(super) fn begun(&self) -> usize {
        self.state.lock().begun
    }

    pub(super) fn hang_on_stop(&self) {
        self.state.lock().hang_on_stop = true;
    }

    pub(super) fn hang_on_begin(&self) {
        self.state.lock().hang_on_begin = true;
    }

    /// Fails to open this many times.
    pub(super) fn refuse(&self, times: usize) {
        self.state.lock().refuse = times;
    }

    pub(super) fn break_after(&self, slices: impl IntoIterator<Item = usize>) {
        self.state.lock().breaks.extend(slices);
    }
}

impl AudioOutput for FakeLoudspeaker {
    fn begin(
        &self,
        format: AudioFormat,
    ) -> BoxFuture<'_, Result<Box<dyn AudioPlayback>, EngineError>> {
        let state = self.state.clone();
        if state.lock().hang_on_begin {
            return Box::pin(future::pending());
        }
        Box::pin(async move {
            let mut heard = state.lock();
            if heard.refuse > 0 {
                heard.refuse -= 1;
                return Err(broken());
            }
            heard.begun += 1;
            heard.open += 1;
            heard.most = heard.most.max(heard.open);
            let breaks = heard.breaks.pop_front();
            drop(heard);
            Ok(Box::new(SlicePlayback {
                format,
                pace: PlaybackPace::new(100 * MS),
                state,
                breaks,
            }) as Box<dyn AudioPlayback>)
        })
    }
}

struct SlicePlayback {
    format: AudioFormat,
    pace: PlaybackPace,
    state: Arc<Mutex<PlayedWords>>,
    breaks: Option<usize>,
}

impl AudioPlayback for SlicePlayback {
    fn play(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(async move {
            self.pace.wait_for_lead().await;
            if let Some(left) = &mut self.breaks {
                *left = left.checked_sub(1).ok_or_else(broken)?;
            }
            self.pace.record_sent(self.format.duration(bytes.len()));
            self.state.lock().bytes.extend(&bytes);
            Ok(())
        })
    }

    fn heard(&self) -> Duration {
        self.pace.heard()
    }

    fn end(&mut self) -> BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(async move {
            tokio::time::sleep(self.pace.unheard()).await;
            Ok(())
        })
    }

    fn stop(&mut self) -> BoxFuture<'_, ()> {
        match self.state.lock().hang_on_stop {
            true => Box::pin(future::pending()),
            false => Box::pin(future::ready(())),
        }
    }
}

impl Drop for SlicePlayback {
    fn drop(&mut self) {
        self.state.lock().open -= 1;
    }
}
