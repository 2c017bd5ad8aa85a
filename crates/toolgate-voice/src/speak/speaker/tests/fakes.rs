//! An engine and an output that do what they are told.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::{self, BoxFuture};
use futures::stream::{self, StreamExt};
use parking_lot::Mutex;

use crate::EngineError;
use crate::audio::Format;
use crate::speak::pace::Pace;
use crate::speak::{Loudness, Output, Playing, SoundStream, Speaker, Synthesize};

pub(super) const MS: Duration = Duration::from_millis(1);

/// A voice whose engine and output can be watched.
pub(super) fn voice() -> (Speaker, Arc<Engine>, Arc<Ear>) {
    let (engine, ear) = (Arc::new(Engine::default()), Arc::new(Ear::default()));
    let speaker = Speaker::new(engine.clone(), ear.clone(), ear.loudness.clone());
    (speaker, engine, ear)
}

pub(super) fn broken() -> EngineError {
    EngineError::Closed {
        at: "the fake".to_owned(),
    }
}

/// What an engine does with a text instead of just speaking it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    None,
    Refuse,
    /// Fails after so many letters.
    After(usize),
    Hang,
    /// Claims a format that nobody has.
    Mad,
    Endless,
    /// Has no sound for it.
    Silent,
}

#[derive(Default)]
pub(super) struct Engine {
    texts: Mutex<Vec<String>>,
    faults: Mutex<VecDeque<Fault>>,
}

impl Engine {
    pub(super) fn texts(&self) -> Vec<String> {
        self.texts.lock().clone()
    }

    pub(super) fn hang(&self) {
        self.fail([Fault::Hang]);
    }

    /// The next texts fare like this.
    pub(super) fn fail(&self, faults: impl IntoIterator<Item = Fault>) {
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

impl Synthesize for Engine {
    fn synthesize<'a>(&'a self, text: &'a str) -> BoxFuture<'a, Result<SoundStream, EngineError>> {
        self.texts.lock().push(text.to_owned());
        let fault = self.faults.lock().pop_front().unwrap_or(Fault::None);
        let letters = stream::iter(
            text.chars()
                .map(|_| Ok(Bytes::from(letter())))
                .collect::<Vec<_>>(),
        );
        let chunks = match fault {
            Fault::None | Fault::Mad => letters.boxed(),
            Fault::Refuse => return Box::pin(async { Err(broken()) }),
            Fault::Hang => return Box::pin(future::pending()),
            Fault::After(count) => letters
                .take(count)
                .chain(stream::iter([Err(broken())]))
                .boxed(),
            Fault::Endless => stream::repeat_with(|| Ok(Bytes::from(letter()))).boxed(),
            Fault::Silent => stream::empty().boxed(),
        };
        let mut format = Format::HEARD;
        if matches!(fault, Fault::Mad) {
            format.rate = 3;
        }
        Box::pin(async move { Ok(SoundStream { format, chunks }) })
    }
}

/// Hears in real time what is given to it.
#[derive(Default)]
pub(super) struct Ear {
    pub(super) loudness: Loudness,
    state: Arc<Mutex<Heard>>,
}

#[derive(Default)]
struct Heard {
    bytes: Vec<u8>,
    open: usize,
    most: usize,
    begun: usize,
    hang_on_stop: bool,
    hang_on_begin: bool,
    refuse: usize,
    /// Breaks after so many slices, as often as there are numbers.
    breaks: VecDeque<usize>,
}

impl Ear {
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

    /// Cannot be opened so many times.
    pub(super) fn refuse(&self, times: usize) {
        self.state.lock().refuse = times;
    }

    pub(super) fn break_after(&self, slices: impl IntoIterator<Item = usize>) {
        self.state.lock().breaks.extend(slices);
    }
}

impl Output for Ear {
    fn begin(&self, format: Format) -> BoxFuture<'_, Result<Box<dyn Playing>, EngineError>> {
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
            Ok(Box::new(Open {
                format,
                pace: Pace::new(100 * MS),
                state,
                breaks,
            }) as Box<dyn Playing>)
        })
    }
}

struct Open {
    format: Format,
    pace: Pace,
    state: Arc<Mutex<Heard>>,
    breaks: Option<usize>,
}

impl Playing for Open {
    fn play(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(async move {
            self.pace.room().await;
            if let Some(left) = &mut self.breaks {
                *left = left.checked_sub(1).ok_or_else(broken)?;
            }
            self.pace.gave(self.format.duration(bytes.len()));
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

impl Drop for Open {
    fn drop(&mut self) {
        self.state.lock().open -= 1;
    }
}
