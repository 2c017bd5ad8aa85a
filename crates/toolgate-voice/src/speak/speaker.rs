//! The one voice of the gateway.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::script::Script;
use super::worker::{self, Mouth};
use super::{Loudness, Output, Synthesize, Tone};
use crate::engine::Problem;

/// Speaks, one speech at a time. Clones are the same voice.
#[derive(Clone)]
pub(crate) struct Speaker {
    mouth: Arc<Mouth>,
    current: Arc<Mutex<Current>>,
}

#[derive(Default)]
struct Current {
    speech: CancellationToken,
    tone: CancellationToken,
    /// Of all of them: they wait for each other.
    announcements: CancellationToken,
}

impl fmt::Debug for Speaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Speaker").finish_non_exhaustive()
    }
}

impl Speaker {
    pub(crate) fn new(
        engine: Arc<dyn Synthesize>,
        output: Arc<dyn Output>,
        loudness: Loudness,
    ) -> Self {
        Self {
            mouth: Arc::new(Mouth::new(engine, output, loudness)),
            current: Arc::default(),
        }
    }

    /// Begins to speak. What was being spoken stops.
    pub(crate) fn begin(&self) -> Speech {
        let stop = CancellationToken::new();
        std::mem::replace(&mut self.current.lock().speech, stop.clone()).cancel();
        let script = Arc::new(Script::default());
        let work = worker::speak(self.mouth.clone(), script.clone(), stop.clone());
        Speech {
            script,
            worker: tokio::spawn(work),
            _stop: stop.drop_guard(),
        }
    }

    /// Says something behind whatever sounds now, which goes on. Resolves once it was heard, or all was stopped.
    pub(crate) async fn announce(&self, words: &str) -> Spoken {
        let stop = self.current.lock().announcements.child_token();
        let script = Arc::new(Script::default());
        script.push(words);
        script.end();
        worker::speak(self.mouth.clone(), script, stop).await
    }

    pub(crate) fn sounds(&self) -> bool {
        self.mouth.turn.try_lock().is_err()
    }

    /// Plays a tone, unless something sounds already: a tone on top of words would only hide them. What was stopped just now has
    /// a moment to fall silent.
    pub(crate) fn tone(&self, tone: Tone) {
        let stop = CancellationToken::new();
        std::mem::replace(&mut self.current.lock().tone, stop.clone()).cancel();
        tokio::spawn(worker::play_tone(self.mouth.clone(), tone, stop));
    }

    /// True while a tone sounds: what a microphone hears then is no part of a request.
    pub(crate) fn tone_sounds(&self) -> bool {
        self.mouth.tone.try_lock().is_err()
    }

    /// Silence within 150 ms, whatever sounds.
    pub(crate) fn stop(&self) {
        let mut current = self.current.lock();
        current.speech.cancel();
        current.tone.cancel();
        std::mem::take(&mut current.announcements).cancel();
    }
}

/// Something that is being said while its words still come. Dropped, it falls silent.
#[derive(Debug)]
pub(crate) struct Speech {
    script: Arc<Script>,
    worker: JoinHandle<Spoken>,
    _stop: DropGuard,
}

impl Speech {
    pub(crate) fn push(&self, words: &str) {
        self.script.push(words);
    }

    /// Says what is there, be it a sentence or not: nothing comes for a while. The next words are a new round.
    pub(crate) fn flush(&self) {
        self.script.flush();
    }

    pub(crate) fn script(&self) -> &Arc<Script> {
        &self.script
    }

    /// No more words come. Resolves once the last was heard, or the speech was stopped.
    pub(crate) async fn finish(mut self) -> Spoken {
        self.script.end();
        // It fails only if an engine panics, which is no reason for the conversation to end.
        (&mut self.worker).await.unwrap_or_default()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Spoken {
    /// The words as they were given, up to and with the word whose sound was last heard to its end. What was passed over in
    /// silence, for it cannot be said or the voice was muted, counts in its place.
    pub(crate) text: String,
    pub(crate) complete: bool,
    /// When the first sound left.
    pub(crate) first_audio: Option<Instant>,
    /// Why it is not complete, if that is not because it was stopped.
    pub(crate) problem: Option<Problem>,
}

#[cfg(test)]
mod tests;
