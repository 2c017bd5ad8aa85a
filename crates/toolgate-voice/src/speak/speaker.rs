//! The speaker: all sound of the gateway goes through it.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::script::AnswerScript;
use super::worker::{self, SharedVoice};
use super::{AudioOutput, SignalTone, SpeechSynthesizer, VoiceVolume};
use crate::engine::SpeakingError;

#[derive(Clone)]
pub(crate) struct Speaker {
    voice: Arc<SharedVoice>,
    current: Arc<Mutex<CurrentSpeech>>,
}

#[derive(Default)]
struct CurrentSpeech {
    speech: CancellationToken,
    tone: CancellationToken,
    announcements: CancellationToken,
}

impl Speaker {
    pub(crate) fn new(
        engine: Arc<dyn SpeechSynthesizer>,
        output: Arc<dyn AudioOutput>,
        volume: VoiceVolume,
    ) -> Self {
        Self {
            voice: Arc::new(SharedVoice {
                engine,
                output,
                volume,
                turn: Arc::default(),
                tone: tokio::sync::Mutex::default(),
            }),
            current: Arc::default(),
        }
    }

    /// Begins a speech and stops the previous one.
    pub(crate) fn begin(&self) -> ActiveSpeech {
        let stop = CancellationToken::new();
        std::mem::replace(&mut self.current.lock().speech, stop.clone()).cancel();
        let script = Arc::new(AnswerScript::default());
        let work = worker::speak(self.voice.clone(), script.clone(), stop.clone());
        ActiveSpeech {
            script,
            worker: tokio::spawn(work),
            _stop: stop.drop_guard(),
        }
    }

    /// Speaks after the current sound has ended. Resolves once it was heard or stopped.
    pub(crate) async fn announce(&self, words: &str) -> SpeechOutcome {
        let stop = self.current.lock().announcements.child_token();
        let script = Arc::new(AnswerScript::default());
        script.push(words);
        script.end();
        worker::speak(self.voice.clone(), script, stop).await
    }

    pub(crate) fn is_sounding(&self) -> bool {
        self.voice.turn.try_lock().is_err()
    }

    /// Plays a tone unless something is playing: a tone on top of words would only hide them. Sound
    /// that was just stopped gets a moment to end.
    pub(crate) fn play_tone(&self, tone: SignalTone) {
        let stop = CancellationToken::new();
        std::mem::replace(&mut self.current.lock().tone, stop.clone()).cancel();
        tokio::spawn(worker::play_tone(self.voice.clone(), tone, stop));
    }

    /// True while a tone plays. What the microphone captures meanwhile is not part of a request.
    pub(crate) fn is_tone_sounding(&self) -> bool {
        self.voice.tone.try_lock().is_err()
    }

    /// Silences everything within 150 ms.
    pub(crate) fn stop(&self) {
        let mut current = self.current.lock();
        current.speech.cancel();
        current.tone.cancel();
        std::mem::take(&mut current.announcements).cancel();
    }
}

#[derive(Debug)]
pub(crate) struct ActiveSpeech {
    script: Arc<AnswerScript>,
    worker: JoinHandle<SpeechOutcome>,
    _stop: DropGuard,
}

impl ActiveSpeech {
    pub(crate) fn push(&self, words: &str) {
        self.script.push(words);
    }

    /// Speaks what is there, even an incomplete sentence, because nothing will follow for a while.
    /// Starts a new round.
    pub(crate) fn flush(&self) {
        self.script.flush();
    }

    pub(crate) fn script(&self) -> &Arc<AnswerScript> {
        &self.script
    }

    /// Ends the speech. Resolves once the last word was heard or it was stopped.
    pub(crate) async fn finish(mut self) -> SpeechOutcome {
        self.script.end();
        // The join fails only if an engine panicked, which must not end the conversation.
        (&mut self.worker).await.unwrap_or_default()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SpeechOutcome {
    /// The words up to the last one that was completely heard. Text skipped in silence, because it
    /// is muted or can't be spoken, is included.
    pub(crate) text: String,
    pub(crate) complete: bool,
    pub(crate) first_audio: Option<Instant>,
    pub(crate) problem: Option<SpeakingError>,
}

#[cfg(test)]
mod tests;
