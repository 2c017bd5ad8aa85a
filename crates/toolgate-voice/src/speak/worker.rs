//! Says one speech: prepares a sentence while the one before it is played.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::StreamExt;
use tokio::sync::{Mutex, mpsc};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::player::Player;
use super::script::{Saying, Script};
use super::sentences::Piece;
use super::slices::Slices;
use super::{Loudness, Output, Spoken, Synthesize, Tone, speakable};
use crate::EngineError;
use crate::audio::Sound;

/// How many slices of the next sentence may wait: ten seconds.
const AHEAD: usize = 250;

/// No sentence sounds for longer, in slices: two minutes. What does is an engine gone mad.
const LONGEST: usize = 3000;

/// How long an engine that failed has to come back.
const BREATH: Duration = Duration::from_millis(250);

/// How long a tone waits for what was told to stop; later it would be about nothing.
const FALLS_SILENT: Duration = Duration::from_millis(150);

/// How long a tone may take, with a player that has to start first.
const LONGEST_TONE: Duration = Duration::from_secs(1);

pub(super) struct Mouth {
    pub(super) engine: Arc<dyn Synthesize>,
    pub(super) output: Arc<dyn Output>,
    pub(super) loudness: Loudness,
    pub(super) turn: Arc<Mutex<()>>,
    /// Held by a tone as long as it sounds.
    pub(super) tone: Mutex<()>,
}

impl Mouth {
    pub(super) fn new(
        engine: Arc<dyn Synthesize>,
        output: Arc<dyn Output>,
        loudness: Loudness,
    ) -> Self {
        Self {
            engine,
            output,
            loudness,
            turn: Arc::default(),
            tone: Mutex::default(),
        }
    }
}

/// A sentence on its way from the engine to the player. Without sound it is passed over in silence.
pub(super) struct Prepared {
    pub(super) words: String,
    /// How long it sounds, as far as the engine has come.
    pub(super) length: Length,
    pub(super) sound: Option<mpsc::Receiver<Result<Sound, EngineError>>>,
    pub(super) saying: Saying,
}

/// A length that grows while a sentence is synthesised. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Length(Arc<AtomicU64>);

impl Length {
    pub(super) fn get(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::Relaxed))
    }

    fn add(&self, slice: &Sound) {
        let sounds = slice.format.duration(slice.bytes.len());
        let sounds = u64::try_from(sounds.as_micros()).unwrap_or(u64::MAX);
        self.0.fetch_add(sounds, Ordering::Relaxed);
    }
}

/// Says everything in the script, until it ends or is stopped.
pub(super) async fn speak(
    mouth: Arc<Mouth>,
    script: Arc<Script>,
    stop: CancellationToken,
) -> Spoken {
    let mut player = Player::new(mouth.clone(), false);
    // One sentence waits here while another is played.
    let (prepared, sentences) = mpsc::channel(1);
    let work = async {
        let (result, ()) = tokio::join!(player.play(sentences), prepare(&mouth, &script, prepared));
        result
    };
    let result = tokio::select! {
        biased;
        () = stop.cancelled() => None,
        result = work => Some(result),
    };
    if result.is_none() {
        player.cut_short();
    }
    player.fall_silent().await;
    let problem = result
        .as_ref()
        .and_then(|result| result.as_ref().err().cloned());
    if let Some(problem) = &problem {
        debug!(role = %problem.role, %problem, "not spoken to its end");
    }
    player.spoken(matches!(result, Some(Ok(()))) && script.is_whole(), problem)
}

/// Plays a tone, unless something sounds and goes on.
pub(super) async fn play_tone(mouth: Arc<Mouth>, tone: Tone, stop: CancellationToken) {
    let turn = timeout(FALLS_SILENT, mouth.turn.lock());
    let Some(Ok(_turn)) = stop.run_until_cancelled(turn).await else {
        return;
    };
    if mouth.loudness.is_silent() {
        return;
    }
    let _tone = mouth.tone.lock().await;
    let mut player = Player::new(mouth.clone(), true);
    let played = timeout(LONGEST_TONE, player.play_alone(tone.sound()));
    let played = stop.run_until_cancelled(played).await;
    player.fall_silent().await;
    match played {
        Some(Ok(Err(problem))) => debug!(%problem, "a tone was not played"),
        Some(Err(_)) => debug!("a tone was not heard in time"),
        Some(Ok(Ok(()))) | None => {}
    }
}

/// Gives sentence after sentence to the engine, one ahead of the player.
async fn prepare(mouth: &Mouth, script: &Script, prepared: mpsc::Sender<Prepared>) {
    while let Some((piece, saying)) = script.next_to_say().await {
        let text = text_of(&piece, &mouth.loudness);
        let length = Length::default();
        let (slices, sound) = mpsc::channel(AHEAD);
        let sentence = Prepared {
            words: piece.words,
            length: length.clone(),
            sound: (!text.is_empty()).then_some(sound),
            saying,
        };
        if prepared.send(sentence).await.is_err() {
            return;
        }
        if text.is_empty() {
            continue;
        }
        let made = Made { slices, length };
        if let Err(problem) = synthesize(mouth, &text, &made).await {
            // The player goes away with the news.
            let _told = made.slices.send(Err(problem)).await.is_ok();
            return;
        }
    }
}

fn text_of(piece: &Piece, loudness: &Loudness) -> String {
    if piece.code || loudness.is_silent() {
        return String::new();
    }
    speakable(&piece.words)
}

/// Once more if it fails: half a sentence and then the whole of it is better than half of it.
async fn synthesize(mouth: &Mouth, text: &str, made: &Made) -> Result<(), EngineError> {
    let Err(problem) = attempt(mouth, text, made).await else {
        return Ok(());
    };
    debug!(%problem, "the speech engine failed; once more");
    sleep(BREATH).await;
    attempt(mouth, text, made).await
}

struct Made {
    slices: mpsc::Sender<Result<Sound, EngineError>>,
    length: Length,
}

impl Made {
    /// False if nobody listens any more.
    async fn send(&self, slice: Sound) -> bool {
        self.length.add(&slice);
        self.slices.send(Ok(slice)).await.is_ok()
    }
}

async fn attempt(mouth: &Mouth, text: &str, made: &Made) -> Result<(), EngineError> {
    let mut stream = mouth.engine.synthesize(text).await?;
    let unplayable = |why: String| EngineError::program("the speech engine", why);
    let mut cut = Slices::new(stream.format).map_err(|error| unplayable(error.to_string()))?;
    let mut count = 0;
    while let Some(chunk) = stream.chunks.next().await {
        for slice in cut.cut(&chunk?) {
            count += 1;
            if count > LONGEST {
                return Err(unplayable(
                    "a sentence takes more than two minutes".to_owned(),
                ));
            }
            if !made.send(slice).await {
                return Ok(());
            }
        }
    }
    if let Some(rest) = cut.rest() {
        // Nobody listens any more: then there is nothing left to do.
        let _heard = made.send(rest).await;
    }
    Ok(())
}
