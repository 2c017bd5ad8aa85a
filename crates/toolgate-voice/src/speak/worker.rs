//! Runs one speech: synthesizes a sentence while the previous one is playing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::StreamExt;
use tokio::sync::{Mutex, mpsc};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::player::SentencePlayer;
use super::script::{AnswerScript, SayingGuard};
use super::slices::SliceCutter;
use super::{AudioOutput, SignalTone, SpeechOutcome, SpeechSynthesizer, VoiceVolume, speakable};
use crate::EngineError;
use crate::audio::AudioClip;

/// Slices of the next sentence that may wait: ten seconds.
const SLICE_CAPACITY: usize = 250;
// In slices: two minutes. An engine that makes more from one sentence is broken.
const MAX_SLICES: usize = 3000;
const RETRY_DELAY: Duration = Duration::from_millis(250);
// How long a tone waits for other sound to end. Later, it would no longer mean anything.
const FADE_OUT: Duration = Duration::from_millis(150);
const MAX_TONE: Duration = Duration::from_secs(1);

pub(super) struct SharedVoice {
    pub(super) engine: Arc<dyn SpeechSynthesizer>,
    pub(super) output: Arc<dyn AudioOutput>,
    pub(super) volume: VoiceVolume,
    /// Held while sound is playing.
    pub(super) turn: Arc<Mutex<()>>,
    pub(super) tone: Mutex<()>,
}

pub(super) struct PreparedSentence {
    pub(super) words: String,
    pub(super) length: GrowingLength,
    pub(super) sound: Option<mpsc::Receiver<Result<AudioClip, EngineError>>>,
    pub(super) saying: SayingGuard,
}

/// The length of a sentence, which grows while it is synthesized.
#[derive(Debug, Clone, Default)]
pub(super) struct GrowingLength(Arc<AtomicU64>);

impl GrowingLength {
    pub(super) fn get(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::Relaxed))
    }

    fn add(&self, slice: &AudioClip) {
        let length = slice.format.duration(slice.bytes.len());
        let micros = u64::try_from(length.as_micros()).unwrap_or(u64::MAX);
        self.0.fetch_add(micros, Ordering::Relaxed);
    }
}

type SliceSender = mpsc::Sender<Result<AudioClip, EngineError>>;

pub(super) async fn speak(
    voice: Arc<SharedVoice>,
    script: Arc<AnswerScript>,
    stop: CancellationToken,
) -> SpeechOutcome {
    let mut player = SentencePlayer::new(voice.clone(), false);
    // One sentence waits here while another is playing.
    let (prepared, sentences) = mpsc::channel(1);
    let work = async {
        let (result, ()) = tokio::join!(
            player.play(sentences),
            prepare_sentences(&voice, &script, prepared)
        );
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
    drop(player.close().await);
    let is_complete = matches!(result, Some(Ok(()))) && script.is_complete();
    let problem = result.and_then(Result::err);
    if let Some(problem) = &problem {
        debug!(role = %problem.role, %problem, "speech not completed");
    }
    player.into_outcome(is_complete, problem)
}

pub(super) async fn play_tone(voice: Arc<SharedVoice>, tone: SignalTone, stop: CancellationToken) {
    let turn = timeout(FADE_OUT, voice.turn.lock());
    let Some(Ok(_turn)) = stop.run_until_cancelled(turn).await else {
        return;
    };
    if voice.volume.is_silent() {
        return;
    }
    let _tone = voice.tone.lock().await;
    let mut player = SentencePlayer::new(voice.clone(), true);
    let played = timeout(MAX_TONE, player.play_alone(tone.sound()));
    let played = stop.run_until_cancelled(played).await;
    drop(player.close().await);
    match played {
        Some(Ok(Err(problem))) => debug!(%problem, "a tone failed"),
        Some(Err(_)) => debug!("a tone timed out"),
        Some(Ok(Ok(()))) | None => {}
    }
}

async fn prepare_sentences(
    voice: &SharedVoice,
    script: &AnswerScript,
    prepared: mpsc::Sender<PreparedSentence>,
) {
    while let Some((piece, saying)) = script.next_to_say().await {
        let text = match piece.code || voice.volume.is_silent() {
            true => String::new(),
            false => speakable(&piece.words),
        };
        let length = GrowingLength::default();
        let (slices, sound) = mpsc::channel(SLICE_CAPACITY);
        let sentence = PreparedSentence {
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
        if let Err(problem) = synthesize(voice, &text, &slices, &length).await {
            // The player stops when it receives the error.
            let _sent = slices.send(Err(problem)).await.is_ok();
            return;
        }
    }
}

// Tries once more after a failure: half a sentence followed by all of it is better than half.
async fn synthesize(
    voice: &SharedVoice,
    text: &str,
    slices: &SliceSender,
    length: &GrowingLength,
) -> Result<(), EngineError> {
    let Err(problem) = synthesize_once(voice, text, slices, length).await else {
        return Ok(());
    };
    debug!(%problem, "the speech engine failed; retrying");
    sleep(RETRY_DELAY).await;
    synthesize_once(voice, text, slices, length).await
}

async fn synthesize_once(
    voice: &SharedVoice,
    text: &str,
    slices: &SliceSender,
    length: &GrowingLength,
) -> Result<(), EngineError> {
    let mut stream = voice.engine.synthesize(text).await?;
    let unplayable = |why: String| EngineError::program("the speech engine", why);
    let mut cut = SliceCutter::new(stream.format).map_err(|error| unplayable(error.to_string()))?;
    let mut count = 0;
    while let Some(chunk) = stream.chunks.next().await {
        for slice in cut.cut(&chunk?) {
            count += 1;
            if count > MAX_SLICES {
                return Err(unplayable(
                    "a sentence takes more than two minutes".to_owned(),
                ));
            }
            length.add(&slice);
            if slices.send(Ok(slice)).await.is_err() {
                return Ok(());
            }
        }
    }
    if let Some(rest) = cut.take_rest() {
        length.add(&rest);
        // If the player is gone, there is nothing left to do.
        let _heard = slices.send(Ok(rest)).await.is_ok();
    }
    Ok(())
}
