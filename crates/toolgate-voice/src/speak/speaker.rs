//! The one voice of the gateway.

use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::script::Script;
use super::worker::{self, Mouth};
use super::{Loudness, Output, Synthesize, Tone};
use crate::Problem;

/// Speaks, one speech at a time. Clones are the same voice.
///
/// ```
/// use std::sync::Arc;
/// use toolgate_voice::{Loudness, NoOutput, NoSpeech, Speaker};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let speaker = Speaker::new(Arc::new(NoSpeech), Arc::new(NoOutput), Loudness::default());
/// let speech = speaker.begin();
/// speech.push("The light is ");
/// speech.push("on.");
/// let spoken = speech.finish().await;
/// assert!(spoken.complete && spoken.text == "The light is on.");
/// # });
/// ```
#[derive(Clone)]
pub struct Speaker {
    mouth: Arc<Mouth>,
    /// Ends what sounds now.
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
    /// A voice of this engine at this place.
    pub fn new(engine: Arc<dyn Synthesize>, output: Arc<dyn Output>, loudness: Loudness) -> Self {
        Self {
            mouth: Arc::new(Mouth::new(engine, output, loudness)),
            current: Arc::default(),
        }
    }

    /// Begins to speak. What was being spoken stops.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn begin(&self) -> Speech {
        let stop = CancellationToken::new();
        std::mem::replace(&mut self.current().speech, stop.clone()).cancel();
        let script = Arc::new(Script::default());
        let (tell, first_audio) = watch::channel(None);
        let work = worker::speak(self.mouth.clone(), script.clone(), stop.clone(), tell);
        Speech {
            script,
            first_audio,
            worker: tokio::spawn(work),
            _stop: stop.drop_guard(),
        }
    }

    /// Says something behind whatever sounds now, which goes on. Resolves once it was heard, or all was stopped.
    pub async fn announce(&self, words: &str) -> Spoken {
        let stop = self.current().announcements.child_token();
        let script = Arc::new(Script::default());
        script.push(words);
        script.end();
        let (tell, _) = watch::channel(None);
        worker::speak(self.mouth.clone(), script, stop, tell).await
    }

    /// True while anything sounds.
    pub fn sounds(&self) -> bool {
        self.mouth.turn.try_lock().is_err()
    }

    /// Plays a tone, unless something sounds already: a tone on top of words would only hide them. What was stopped just now has
    /// a moment to fall silent.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn tone(&self, tone: Tone) {
        let stop = CancellationToken::new();
        std::mem::replace(&mut self.current().tone, stop.clone()).cancel();
        tokio::spawn(worker::play_tone(self.mouth.clone(), tone, stop));
    }

    /// True while a tone sounds: what a microphone hears then is no part of a request.
    pub fn tone_sounds(&self) -> bool {
        self.mouth.tone.try_lock().is_err()
    }

    /// Silence within 150 ms, whatever sounds.
    pub fn stop(&self) {
        let mut current = self.current();
        current.speech.cancel();
        current.tone.cancel();
        std::mem::take(&mut current.announcements).cancel();
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock()
    }
}

/// Something that is being said while its words still come. Dropped, it falls silent.
#[derive(Debug)]
pub struct Speech {
    script: Arc<Script>,
    first_audio: watch::Receiver<Option<Instant>>,
    worker: JoinHandle<Spoken>,
    _stop: DropGuard,
}

impl Speech {
    /// More words. They are spoken as soon as they are a sentence.
    pub fn push(&self, words: &str) {
        self.script.push(words);
    }

    /// Takes back the words since the last [`flush`](Self::flush) that were not given to the engine yet.
    pub fn void(&self) {
        self.script.void();
    }

    /// Says what is there, be it a sentence or not: nothing comes for a while. The next words are a new round.
    pub fn flush(&self) {
        self.script.flush();
    }

    /// Where its words wait.
    pub(crate) fn script(&self) -> &Arc<Script> {
        &self.script
    }

    /// When its first sound left, once it did. None if it ended without one.
    pub async fn first_audio(&self) -> Option<Instant> {
        let mut first_audio = self.first_audio.clone();
        // Fails once the worker is gone, and then the last value stands.
        let _seen = first_audio.wait_for(Option::is_some).await.is_ok();
        *self.first_audio.borrow()
    }

    /// No more words come. Resolves once the last was heard, or the speech was stopped.
    pub async fn finish(mut self) -> Spoken {
        self.script.end();
        // It fails only if an engine panics, which is no reason for the conversation to end.
        (&mut self.worker).await.unwrap_or_default()
    }
}

/// What became of a speech.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Spoken {
    /// The words as they were given, up to and with the word whose sound was last heard to its end. What was passed over in
    /// silence, for it cannot be said or the voice was muted, counts in its place.
    pub text: String,
    /// True if it was said to its end.
    pub complete: bool,
    /// When the first sound left.
    pub first_audio: Option<Instant>,
    /// Why it is not complete, if that is not because it was stopped.
    pub problem: Option<Problem>,
}

#[cfg(test)]
mod tests;
