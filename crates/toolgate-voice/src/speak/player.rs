//! Plays prepared sentences and tracks which of them were heard.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedMutexGuard, mpsc};
use tokio::time::{Instant, timeout};

use super::script::SayingGuard;
use super::volume::VolumeRamp;
use super::worker::{GrowingLength, PreparedSentence, SharedVoice};
use super::{AudioPlayback, SpeechOutcome};
use crate::audio::{AudioClip, AudioFormat};
use crate::engine::SpeakingError;

// The output stays open for a moment, because the next sentence may be about to arrive.
const IDLE_TIMEOUT: Duration = Duration::from_millis(300);
// An output that doesn't stop in time is dropped, which also silences it.
const STOP_TIMEOUT: Duration = Duration::from_millis(100);

pub(super) struct SentencePlayer {
    voice: Arc<SharedVoice>,
    holds_turn: bool,
    gain: VolumeRamp,
    open: Option<OpenOutput>,
    said: String,
    first_audio: Option<Instant>,
}

struct OpenOutput {
    format: AudioFormat,
    playing: Box<dyn AudioPlayback>,
    sent: Duration,
    sentences: Vec<QueuedSentence>,
    _turn: Option<OwnedMutexGuard<()>>,
}

pub(super) struct QueuedSentence {
    words: String,
    begins: Duration,
    length: GrowingLength,
    has_sound: bool,
    _saying: SayingGuard,
}

impl QueuedSentence {
    fn cut_at(&mut self, heard: Duration) {
        let length = self.length.get();
        if heard >= length {
            return;
        }
        let share = heard.as_secs_f64() / length.as_secs_f64();
        let end = (self.words.trim_end().len() as f64 * share) as usize;
        let end = self.words.floor_char_boundary(end);
        let end = match self.words[end..].starts_with(char::is_whitespace) {
            true => Some(end),
            false => self.words[..end].rfind(char::is_whitespace),
        };
        self.words.truncate(end.unwrap_or(0));
    }
}

impl SentencePlayer {
    pub(super) fn new(voice: Arc<SharedVoice>, holds_turn: bool) -> Self {
        Self {
            gain: VolumeRamp::new(&voice.volume),
            voice,
            holds_turn,
            open: None,
            said: String::new(),
            first_audio: None,
        }
    }

    pub(super) async fn play(
        &mut self,
        mut sentences: mpsc::Receiver<PreparedSentence>,
    ) -> Result<(), SpeakingError> {
        while let Some(sentence) = self.next(&mut sentences).await? {
            self.play_sentence(sentence).await?;
        }
        self.end().await
    }

    pub(super) async fn play_alone(&mut self, sound: AudioClip) -> Result<(), SpeakingError> {
        self.play_slice(sound, &mut true).await?;
        self.end().await
    }

    /// Cuts the sentence that was stopped: only the words that were heard count.
    pub(super) fn cut_short(&mut self) {
        let Some(open) = &mut self.open else {
            return;
        };
        let heard = open.playing.heard();
        let mut sentences = open.sentences.iter_mut().rev();
        let last = sentences.find(|sentence| sentence.has_sound && sentence.begins < heard);
        if let Some(last) = last {
            last.cut_at(heard - last.begins);
        }
    }

    pub(super) async fn close(&mut self) -> Vec<QueuedSentence> {
        let Some(mut open) = self.open.take() else {
            return Vec::new();
        };
        let unheard = open.split_off_unheard();
        let heard = open.sentences.drain(..).map(|sentence| sentence.words);
        self.said.extend(heard);
        // An output that hangs is dropped, which silences it too.
        let _in_time = timeout(STOP_TIMEOUT, open.playing.stop()).await.is_ok();
        unheard
    }

    pub(super) fn into_outcome(
        self,
        complete: bool,
        problem: Option<SpeakingError>,
    ) -> SpeechOutcome {
        SpeechOutcome {
            text: self.said,
            complete,
            first_audio: self.first_audio,
            problem,
        }
    }

    async fn next(
        &mut self,
        sentences: &mut mpsc::Receiver<PreparedSentence>,
    ) -> Result<Option<PreparedSentence>, SpeakingError> {
        if let Some(open) = &self.open {
            let unheard = open.sent.saturating_sub(open.playing.heard());
            match timeout(unheard + IDLE_TIMEOUT, sentences.recv()).await {
                Ok(next) => return Ok(next),
                Err(_) => self.end().await?,
            }
        }
        Ok(sentences.recv().await)
    }

    async fn play_sentence(&mut self, sentence: PreparedSentence) -> Result<(), SpeakingError> {
        let Some(mut sound) = sentence.sound else {
            self.skip_in_silence(sentence.words, sentence.saying);
            return Ok(());
        };
        let mut words = Some((sentence.words, sentence.length, sentence.saying));
        let mut may_retry = true;
        while let Some(slice) = sound.recv().await {
            let slice = slice.map_err(SpeakingError::from_synthesizer)?;
            self.open_output_for(slice.format).await?;
            if let (Some((words, length, saying)), Some(open)) = (words.take(), &mut self.open) {
                open.sentences.push(QueuedSentence {
                    words,
                    begins: open.sent,
                    length,
                    has_sound: true,
                    _saying: saying,
                });
            }
            self.play_slice(slice, &mut may_retry).await?;
        }
        // Without any sound, the words count as said in silence.
        if let Some((words, _, saying)) = words {
            self.skip_in_silence(words, saying);
        }
        Ok(())
    }

    fn skip_in_silence(&mut self, words: String, saying: SayingGuard) {
        match &mut self.open {
            Some(open) => open.sentences.push(QueuedSentence {
                words,
                begins: open.sent,
                length: GrowingLength::default(),
                has_sound: false,
                _saying: saying,
            }),
            None => self.said.push_str(&words),
        }
    }

    /// Plays a slice. If the output fails and `may_retry` is set, reopens it and tries once more.
    async fn play_slice(
        &mut self,
        slice: AudioClip,
        may_retry: &mut bool,
    ) -> Result<(), SpeakingError> {
        let slice = self.gain.apply(slice);
        let length = slice.format.duration(slice.bytes.len());
        loop {
            let open = self.open_output_for(slice.format).await?;
            match open.playing.play(slice.bytes.clone()).await {
                Ok(()) => {
                    open.sent += length;
                    self.first_audio.get_or_insert_with(Instant::now);
                    return Ok(());
                }
                Err(_) if std::mem::take(may_retry) => {
                    let mut unheard = self.close().await;
                    unheard
                        .iter_mut()
                        .for_each(|sentence| sentence.begins = Duration::ZERO);
                    self.open_output_for(slice.format)
                        .await?
                        .sentences
                        .extend(unheard);
                }
                Err(error) => return Err(SpeakingError::from_output(error)),
            }
        }
    }

    async fn open_output_for(
        &mut self,
        format: AudioFormat,
    ) -> Result<&mut OpenOutput, SpeakingError> {
        if self.open.as_ref().is_some_and(|open| open.format != format) {
            self.end().await?;
        }
        match &mut self.open {
            Some(open) => Ok(open),
            none => {
                let turn = match self.holds_turn {
                    true => None,
                    false => Some(self.voice.turn.clone().lock_owned().await),
                };
                let playing = self.voice.output.begin(format).await;
                let playing = playing.map_err(SpeakingError::from_output)?;
                Ok(none.insert(OpenOutput {
                    format,
                    playing,
                    sent: Duration::ZERO,
                    sentences: Vec::new(),
                    _turn: turn,
                }))
            }
        }
    }

    async fn end(&mut self) -> Result<(), SpeakingError> {
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        // `self.open` is kept until it has ended, so that a stop finds it.
        let ended = open.playing.end().await;
        ended.map_err(SpeakingError::from_output)?;
        let heard = self.open.take().into_iter().flat_map(|open| open.sentences);
        self.said.extend(heard.map(|sentence| sentence.words));
        Ok(())
    }
}

impl OpenOutput {
    fn split_off_unheard(&mut self) -> Vec<QueuedSentence> {
        let heard = self.playing.heard();
        let had_its_turn = |sentence: &QueuedSentence| match sentence.has_sound {
            true => sentence.begins < heard,
            false => sentence.begins <= heard,
        };
        let sentences = self.sentences.iter();
        let count = sentences
            .take_while(|sentence| had_its_turn(sentence))
            .count();
        self.sentences.split_off(count)
    }
}
