//! A turn of a conversation that can be broken off at any moment.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use toolgate_models::{Conversation, ModelError, Turn};

use super::progress::Progress;
use super::sorry;
use crate::speak::{Script, Speaker, Speech, Tone};

/// How a tool that takes long is bridged.
#[derive(Clone, Copy)]
pub(super) struct Filler {
    pub(super) after: Duration,
    pub(super) words: bool,
    pub(super) tone: bool,
}

pub(super) struct Aloud<'a> {
    pub(super) speaker: &'a Speaker,
    pub(super) speech: &'a Speech,
    pub(super) filler: Filler,
}

pub(super) enum To<'a> {
    Room(Aloud<'a>),
    Reader(&'a Script),
}

impl<'a> To<'a> {
    fn script(&self) -> &'a Script {
        match self {
            Self::Room(aloud) => aloud.speech.script(),
            Self::Reader(script) => script,
        }
    }

    fn aloud(&self) -> Option<&Aloud<'a>> {
        match self {
            Self::Room(aloud) => Some(aloud),
            Self::Reader(_) => None,
        }
    }
}

pub(super) struct Conversed {
    /// None if it was broken off.
    pub(super) result: Option<Result<Turn, ModelError>>,
    /// What was said to bridge a wait, which is no word of the model's.
    pub(super) filled: Option<&'static str>,
}

enum Step {
    Over(Result<Turn, ModelError>),
    BrokenOff,
    /// A tool began or ended, or servers of tools are waited for no longer.
    Worked,
}

/// Asks the model and tells its words while it answers, until it is done or `stop` comes. A call of a tool that must not be stopped goes on
/// to its end first; the model hears of it with the next request.
pub(super) async fn converse(
    conversation: &mut Conversation,
    text: &str,
    progress: &Progress,
    to: To<'_>,
    stop: impl Future<Output = ()>,
) -> Conversed {
    let mut listener = progress.clone();
    let mut turn = pin!(conversation.turn(text, &mut listener));
    let mut stop = pin!(stop);
    let (mut stopped, mut has_said, mut filled, mut bridged) = (false, false, None, false);
    loop {
        let working = progress.working();
        let filler = to.aloud().filter(|_| !bridged && !stopped);
        let filler_at = filler.and_then(|aloud| Some(working? + aloud.filler.after));
        let step = poll_fn(|context| {
            let polled = turn.as_mut().poll(context);
            let script = (!stopped).then(|| to.script());
            let ended = match &polled {
                Poll::Ready(Ok(turn)) => Some(turn),
                _ => None,
            };
            has_said |= progress.say(script, ended);
            match polled {
                Poll::Ready(result) => Poll::Ready(Step::Over(result)),
                Poll::Pending if stopped && !progress.must_go_on() => Poll::Ready(Step::BrokenOff),
                Poll::Pending if progress.working() != working => Poll::Ready(Step::Worked),
                Poll::Pending => Poll::Pending,
            }
        });
        let step = tokio::select! {
            biased;
            () = &mut stop, if !stopped => {
                stopped = true;
                progress.hush();
                match progress.must_go_on() {
                    true => Step::Worked,
                    false => Step::BrokenOff,
                }
            }
            step = step => step,
            () = sleep_until(filler_at.unwrap_or_else(Instant::now)), if filler_at.is_some() => {
                bridged = true;
                // Who is asked something knows what is waited for.
                let filler = filler.filter(|_| !progress.is_asking());
                filled = filler.and_then(|aloud| bridge(aloud, progress, has_said));
                Step::Worked
            }
        };
        let result = match step {
            Step::Worked => continue,
            Step::Over(result) => Some(result),
            Step::BrokenOff => None,
        };
        return Conversed { result, filled };
    }
}

/// Says that it takes a moment: in words, which are given back, or by a tone.
fn bridge(aloud: &Aloud<'_>, progress: &Progress, has_said: bool) -> Option<&'static str> {
    let words = match progress.is_waiting() {
        true => sorry::STARTING,
        false => sorry::MOMENT,
    };
    let words = (aloud.filler.words && !has_said).then_some(words);
    if let Some(words) = words {
        aloud.speech.push(words);
        aloud.speech.flush();
    } else if aloud.filler.tone {
        aloud.speaker.tone(Tone::Working);
    }
    words
}
