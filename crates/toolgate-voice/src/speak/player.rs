//! The second half of the voice: plays prepared sentences and knows which of them were heard.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedMutexGuard, mpsc};
use tokio::time::{Instant, timeout};

use super::loudness::Gain;
use super::script::Saying;
use super::worker::{Length, Mouth, Prepared};
use super::{Playing, Spoken};
use crate::audio::{Format, Sound};
use crate::engine::Problem;

/// How long the output is kept open after everything was heard: the next sentence may be about to come.
const IDLE: Duration = Duration::from_millis(300);

/// How long an output may take to fall silent before it is dropped, which silences it too.
const STOP: Duration = Duration::from_millis(100);

pub(super) struct Player {
    mouth: Arc<Mouth>,
    /// Its caller holds the mouth's turn.
    holds_turn: bool,
    gain: Gain,
    open: Option<Open>,
    /// Words that were heard, or had their turn in silence.
    said: String,
    first_audio: Option<Instant>,
}

struct Open {
    format: Format,
    playing: Box<dyn Playing>,
    given: Duration,
    /// Sentences in it, with where they begin.
    sentences: Vec<Sentence>,
    _turn: Option<OwnedMutexGuard<()>>,
}

struct Sentence {
    words: String,
    begins: Duration,
    length: Length,
    sounds: bool,
    _saying: Saying,
}

impl Sentence {
    /// Keeps the words that were heard to their end, if it was heard for so long.
    fn cut(&mut self, heard: Duration) {
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

impl Player {
    pub(super) fn new(mouth: Arc<Mouth>, holds_turn: bool) -> Self {
        Self {
            gain: Gain::new(&mouth.loudness),
            mouth,
            holds_turn,
            open: None,
            said: String::new(),
            first_audio: None,
        }
    }

    /// Plays sentence after sentence. Resolves once the last was heard.
    pub(super) async fn play(
        &mut self,
        mut sentences: mpsc::Receiver<Prepared>,
    ) -> Result<(), Problem> {
        while let Some(sentence) = self.next(&mut sentences).await? {
            self.sentence(sentence).await?;
        }
        self.end().await
    }

    pub(super) async fn play_alone(&mut self, sound: Sound) -> Result<(), Problem> {
        self.sound(sound, &mut true).await?;
        self.end().await
    }

    /// Somebody stops it in the middle of a sentence: only the words that were heard count.
    pub(super) fn cut_short(&mut self) {
        let Some(open) = &mut self.open else {
            return;
        };
        let heard = open.playing.heard();
        let mut sentences = open.sentences.iter_mut().rev();
        let last = sentences.find(|sentence| sentence.sounds && sentence.begins < heard);
        if let Some(last) = last {
            last.cut(heard - last.begins);
        }
    }

    /// Stops what sounds. Nothing happens if everything was heard.
    pub(super) async fn fall_silent(&mut self) {
        self.close().await;
    }

    /// Stops what sounds, and gives the sentences that nobody heard anything of.
    async fn close(&mut self) -> Vec<Sentence> {
        let Some(mut open) = self.open.take() else {
            return Vec::new();
        };
        let unheard = open.split_off_unheard();
        let heard = open.sentences.drain(..).map(|sentence| sentence.words);
        self.said.extend(heard);
        // One that hangs is dropped, and that is silence too.
        let _in_time = timeout(STOP, open.playing.stop()).await.is_ok();
        unheard
    }

    pub(super) fn spoken(self, complete: bool, problem: Option<Problem>) -> Spoken {
        Spoken {
            text: self.said,
            complete,
            first_audio: self.first_audio,
            problem,
        }
    }

    /// The next sentence. If it takes its time, the output is closed meanwhile: a tone may want it.
    async fn next(
        &mut self,
        sentences: &mut mpsc::Receiver<Prepared>,
    ) -> Result<Option<Prepared>, Problem> {
        if let Some(open) = &self.open {
            let unheard = open.given.saturating_sub(open.playing.heard());
            match timeout(unheard + IDLE, sentences.recv()).await {
                Ok(next) => return Ok(next),
                Err(_) => self.end().await?,
            }
        }
        Ok(sentences.recv().await)
    }

    async fn sentence(&mut self, sentence: Prepared) -> Result<(), Problem> {
        let Some(mut sound) = sentence.sound else {
            self.pass_over(sentence.words, sentence.saying);
            return Ok(());
        };
        let mut words = Some((sentence.words, sentence.length, sentence.saying));
        let mut again = true;
        while let Some(slice) = sound.recv().await {
            let slice = slice.map_err(Problem::of_speech)?;
            self.open(slice.format).await?;
            if let (Some((words, length, saying)), Some(open)) = (words.take(), &mut self.open) {
                open.sentences.push(Sentence {
                    words,
                    begins: open.given,
                    length,
                    sounds: true,
                    _saying: saying,
                });
            }
            self.sound(slice, &mut again).await?;
        }
        // An engine that has no sound for it said it in silence.
        words
            .into_iter()
            .for_each(|(words, _, saying)| self.pass_over(words, saying));
        Ok(())
    }

    fn pass_over(&mut self, words: String, saying: Saying) {
        match &mut self.open {
            Some(open) => open.sentences.push(Sentence {
                words,
                begins: open.given,
                length: Length::default(),
                sounds: false,
                _saying: saying,
            }),
            None => self.said.push_str(&words),
        }
    }

    /// Plays a slice; if the output fails, once more with a new one if `again`.
    async fn sound(&mut self, slice: Sound, again: &mut bool) -> Result<(), Problem> {
        let slice = self.gain.apply(slice);
        let sounds = slice.format.duration(slice.bytes.len());
        loop {
            let open = self.open(slice.format).await?;
            match open.playing.play(slice.bytes.clone()).await {
                Ok(()) => {
                    open.given += sounds;
                    self.sounded();
                    return Ok(());
                }
                Err(_) if std::mem::take(again) => {
                    let unheard = self.close().await;
                    let begins = Duration::ZERO;
                    let unheard = unheard
                        .into_iter()
                        .map(|sentence| Sentence { begins, ..sentence });
                    self.open(slice.format).await?.sentences.extend(unheard);
                }
                Err(error) => return Err(Problem::of_loudspeaker(error)),
            }
        }
    }

    /// The open output for this format. What is open for another is played to its end first.
    async fn open(&mut self, format: Format) -> Result<&mut Open, Problem> {
        if self.open.as_ref().is_some_and(|open| open.format != format) {
            self.end().await?;
        }
        match &mut self.open {
            Some(open) => Ok(open),
            none => {
                let turn = match self.holds_turn {
                    true => None,
                    false => Some(self.mouth.turn.clone().lock_owned().await),
                };
                let playing = self.mouth.output.begin(format).await;
                let playing = playing.map_err(Problem::of_loudspeaker)?;
                Ok(none.insert(Open {
                    format,
                    playing,
                    given: Duration::ZERO,
                    sentences: Vec::new(),
                    _turn: turn,
                }))
            }
        }
    }

    async fn end(&mut self) -> Result<(), Problem> {
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        // It stays open meanwhile: a stop has to find it.
        let ended = open.playing.end().await;
        ended.map_err(Problem::of_loudspeaker)?;
        let heard = self.open.take().into_iter().flat_map(|open| open.sentences);
        self.said.extend(heard.map(|sentence| sentence.words));
        Ok(())
    }

    fn sounded(&mut self) {
        self.first_audio.get_or_insert_with(Instant::now);
    }
}

impl Open {
    /// Takes out every sentence whose sound did not begin, or whose turn in silence did not come.
    fn split_off_unheard(&mut self) -> Vec<Sentence> {
        let heard = self.playing.heard();
        let had_its_turn = |sentence: &Sentence| match sentence.sounds {
            true => sentence.begins < heard,
            false => sentence.begins <= heard,
        };
        let count = self
            .sentences
            .iter()
            .take_while(|sentence| had_its_turn(sentence))
            .count();
        self.sentences.split_off(count)
    }
}
