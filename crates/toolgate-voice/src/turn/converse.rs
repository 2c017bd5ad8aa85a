//! A turn of a conversation that can be stopped at any moment.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use toolgate_models::{Conversation, ModelError, TurnRecord};

use super::apologies;
use super::progress::TurnProgress;
use crate::speak::{ActiveSpeech, AnswerScript, SignalTone, Speaker};

#[derive(Clone, Copy)]
pub(super) struct FillerOptions {
    pub(super) after: Duration,
    pub(super) words: bool,
    pub(super) tone: bool,
}

pub(super) struct SpokenAnswer<'a> {
    pub(super) speaker: &'a Speaker,
    pub(super) speech: &'a ActiveSpeech,
    pub(super) filler: FillerOptions,
}

pub(super) struct ConverseOutcome {
    pub(super) result: Option<Result<TurnRecord, ModelError>>,
    /// The filler that was spoken. It's not part of the model's answer.
    pub(super) spoken_filler: Option<&'static str>,
}

enum ConverseStep {
    Over(Result<TurnRecord, ModelError>),
    BrokenOff,
    /// A tool started or ended, or waiting for tool servers is over.
    Worked,
}

impl ConverseStep {
    /// The next step while the model hasn't finished.
    fn while_pending(
        progress: &TurnProgress,
        stopped: bool,
        working: Option<Instant>,
    ) -> Poll<Self> {
        if stopped && !progress.is_uninterruptible() {
            return Poll::Ready(Self::BrokenOff);
        }
        match progress.state().working != working {
            true => Poll::Ready(Self::Worked),
            false => Poll::Pending,
        }
    }

    fn at_stop(progress: &TurnProgress) -> Self {
        match progress.is_uninterruptible() {
            true => Self::Worked,
            false => Self::BrokenOff,
        }
    }
}

/// Asks the model and passes its words to the script until it is done or `stop` resolves. A running
/// call of a tool that must not be interrupted is finished first; the model learns of it
/// with the next request.
pub(super) async fn converse(
    conversation: &mut Conversation,
    text: &str,
    progress: &TurnProgress,
    script: &AnswerScript,
    aloud: Option<&SpokenAnswer<'_>>,
    stop: impl Future<Output = ()>,
) -> ConverseOutcome {
    let mut listener = progress.clone();
    let mut turn = pin!(conversation.turn(text, &mut listener));
    let mut stop = pin!(stop);
    let (mut stopped, mut has_said, mut spoken_filler, mut filler_played) =
        (false, false, None, false);
    loop {
        let working = progress.state().working;
        let filler = aloud.filter(|_| !filler_played && !stopped);
        let filler_at = filler.and_then(|aloud| Some(working? + aloud.filler.after));
        let step = poll_fn(|context| {
            let polled = turn.as_mut().poll(context);
            let script = (!stopped).then_some(script);
            let ended = match &polled {
                Poll::Ready(Ok(turn)) => Some(turn),
                _ => None,
            };
            has_said |= progress.pass_words(script, ended);
            match polled {
                Poll::Ready(result) => Poll::Ready(ConverseStep::Over(result)),
                Poll::Pending => ConverseStep::while_pending(progress, stopped, working),
            }
        });
        let step = tokio::select! {
            biased;
            () = &mut stop, if !stopped => {
                stopped = true;
                progress.state().is_over = true;
                ConverseStep::at_stop(progress)
            }
            step = step => step,
            () = sleep_until(filler_at.unwrap_or_else(Instant::now)), if filler_at.is_some() => {
                filler_played = true;
                // Somebody who is being asked a question knows why it takes long.
                let filler = filler.filter(|_| !progress.state().is_asking_user);
                spoken_filler = filler.and_then(|aloud| play_filler(aloud, progress, has_said));
                ConverseStep::Worked
            }
        };
        let result = match step {
            ConverseStep::Worked => continue,
            ConverseStep::Over(result) => Some(result),
            ConverseStep::BrokenOff => None,
        };
        return ConverseOutcome {
            result,
            spoken_filler,
        };
    }
}

fn play_filler(
    aloud: &SpokenAnswer<'_>,
    progress: &TurnProgress,
    has_said: bool,
) -> Option<&'static str> {
    let words = match progress.state().is_waiting {
        true => apologies::STARTING,
        false => apologies::MOMENT,
    };
    let words = (aloud.filler.words && !has_said).then_some(words);
    if let Some(words) = words {
        aloud.speech.push(words);
        aloud.speech.flush();
    } else if aloud.filler.tone {
        aloud.speaker.play_tone(SignalTone::Working);
    }
    words
}
