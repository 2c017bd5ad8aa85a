//! The second task: words are answered, and the answer is spoken.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use toolgate_journal::TurnOutcome;
use toolgate_models::{AnswerSource, Conversation, ModelError, Turn, TurnEnd};
use tracing::warn;

use super::consent::AloudTurn;
use super::converse::{Aloud, To, converse};
use super::listening::Deaf;
use super::progress::{Progress, Way};
use super::stages::{Asked, Came, record};
use super::{Question, Reason, Shared, sorry, survive};
use crate::services::Answered;
use crate::speak::{Script, Speech, Spoken, Tone};
use crate::transcribe::{is_cancel, plain};
use crate::{Event, State};

/// The name of a conversation is a key, not a text, in bytes.
const LONGEST_PLACE: usize = 200;

impl Shared {
    pub(super) async fn answer_all(self: Arc<Self>) {
        loop {
            let request = tokio::select! {
                biased;
                () = self.closed.cancelled() => return,
                request = self.line.next() => request,
            };
            if self.is_given_up(request.number) {
                self.drop_request(Reason::GivenUp, &request.asked.heard);
                continue;
            }
            self.answers(Some(request.number));
            drop(request.place);
            let answer = match &request.problem {
                None => survive(self.talk(request.number, &request.asked.heard)).await,
                Some(deaf) => survive(self.excuse(request.number, deaf)).await,
            };
            let came = match answer {
                Some(came) => came,
                None => self.broken(request.number).await,
            };
            self.answers(None);
            self.over(&record(request.asked, came));
        }
    }

    async fn talk(&self, number: u64, text: &str) -> Came {
        let mut conversation = self.conversations.enter(&self.source).await;
        let progress = self.progress(Way::Aloud);
        self.state(&State::Thinking);
        let speech = self.speech(number);
        self.consent.set_turn(Some(AloudTurn {
            number,
            progress: progress.clone(),
            script: Arc::clone(speech.script()),
        }));
        let to = To::Room(Aloud {
            speaker: &self.speaker,
            speech: &speech,
            filler: self.filler,
        });
        let stop = self.until_given_up(number);
        let done = converse(&mut conversation, text, &progress, to, stop).await;
        self.consent.set_turn(None);
        let verdict = done.result.map(verdict);
        if let Some(sorry) = verdict.as_ref().and_then(|verdict| verdict.sorry) {
            self.watcher.event(Event::Words(sorry));
            speech.push(sorry);
        }
        let mut spoken = speech.finish().await;
        if let Some(filler) = done.filled {
            // It comes first, and perhaps it broke off.
            let rest = spoken.text.trim_start().strip_prefix(filler);
            spoken.text = rest.unwrap_or_default().to_owned();
        }
        // Perhaps silence came only after the last word that there was.
        spoken.complete &= verdict.is_some();
        let is_of_the_model = verdict
            .as_ref()
            .is_none_or(|verdict| verdict.sorry.is_none());
        if !spoken.complete && is_of_the_model && progress.has_asked() {
            conversation.keep_spoken(&spoken.text);
        }
        let model = who(&conversation);
        drop(conversation);
        self.settle(&self.source, verdict.as_ref());
        self.came(verdict, &spoken, model, &progress)
    }

    fn came(
        &self,
        verdict: Option<Verdict>,
        spoken: &Spoken,
        model: String,
        progress: &Progress,
    ) -> Came {
        self.engines.spoke(spoken);
        let problem = spoken.problem.as_ref();
        let was_stopped = !spoken.complete && problem.is_none();
        let (answer, error) = match verdict {
            Some(verdict) => (verdict.answer, verdict.error),
            None => (String::new(), None),
        };
        let (answer, outcome) = if was_stopped {
            (spoken.text.trim().to_owned(), TurnOutcome::Interrupted)
        } else if error.is_some() || problem.is_some() {
            (answer, TurnOutcome::Failed)
        } else {
            (answer, TurnOutcome::Answered)
        };
        Came {
            answer,
            outcome,
            error: error.or_else(|| problem.map(ToString::to_string)),
            model,
            calls: progress.calls(),
            first_token: progress.first_token(),
            first_audio: spoken.first_audio,
        }
    }

    /// Nobody knows what was said: the person is told, once in words.
    async fn excuse(&self, number: u64, deaf: &Deaf) -> Came {
        let words = sorry::deaf(&deaf.error);
        let mut came = failed(words, deaf.error.to_string());
        if deaf.is_news {
            let spoken = self.say(number, words).await;
            came.first_audio = spoken.first_audio;
        } else if self.filler.tone {
            self.speaker.tone(Tone::Error);
        }
        came
    }

    /// Something in here broke: the conversation may be in pieces.
    async fn broken(&self, number: u64) -> Came {
        self.conversations.forget(&self.source);
        let spoken = self.say(number, sorry::BROKEN).await;
        Came {
            first_audio: spoken.first_audio,
            ..failed(sorry::BROKEN, "an error inside of the gateway".to_owned())
        }
    }

    async fn say(&self, number: u64, words: &str) -> Spoken {
        self.state(&State::Speaking);
        self.watcher.event(Event::Words(words));
        let speech = self.speech(number);
        speech.push(words);
        let spoken = speech.finish().await;
        self.engines.spoke(&spoken);
        spoken
    }

    /// Begins to speak; not a sound if the request was given up just now. Whoever gives it up later stops this speech.
    fn speech(&self, number: u64) -> Speech {
        let speech = self.speaker.begin();
        if self.is_given_up(number) {
            self.speaker.stop();
        }
        speech
    }

    /// One turn for somebody who reads; its words go into the script as they come.
    pub(super) async fn reply(
        &self,
        question: Question,
        script: &Script,
        stop: &CancellationToken,
    ) -> Answered {
        let Ok(_permit) = self.asks.try_acquire() else {
            warn!("a request is refused: too many ask at the same time");
            return Answered::failed(sorry::BUSY);
        };
        let heard = plain(&question.text);
        let mut place = format!(
            "{} {}",
            question.source,
            question.conversation.as_deref().unwrap_or_default()
        );
        place.truncate(place.floor_char_boundary(LONGEST_PLACE));
        if is_cancel(&heard) {
            self.conversations.cancel(&place);
        }
        if heard.is_empty() || is_cancel(&heard) {
            return Answered::done(sorry::OKAY);
        }
        let asked = Asked::now(&question, heard);
        self.watcher.event(Event::Heard {
            source: &asked.source,
            text: &asked.heard,
            took: None,
        });
        let mut conversation = self.conversations.enter(&place).await;
        let progress = self.progress(Way::InWriting);
        let stop = stop.cancelled();
        let to = To::Reader(script);
        let done = converse(&mut conversation, &asked.heard, &progress, to, stop).await;
        let verdict = done.result.map(verdict);
        let is_refusal = verdict.as_ref().is_some_and(|verdict| verdict.is_refusal);
        let model = who(&conversation);
        drop(conversation);
        self.settle(&place, verdict.as_ref());
        let spoken = Spoken {
            complete: verdict.is_some(),
            ..Spoken::default()
        };
        let came = self.came(verdict, &spoken, model, &progress);
        let answer = match came.outcome {
            TurnOutcome::Answered if !is_refusal => Answered::done(&came.answer),
            // Who went away reads nothing: the program ends.
            TurnOutcome::Interrupted => Answered::failed(sorry::ENDING),
            _ => Answered::failed(&came.answer),
        };
        self.over(&record(asked, came));
        answer
    }

    fn progress(&self, way: Way) -> Progress {
        let executor = self.conversations.toolbox().executor().clone();
        Progress::new(
            Arc::clone(&self.engines),
            Arc::clone(&self.watcher),
            executor,
            way,
        )
    }

    fn settle(&self, place: &str, verdict: Option<&Verdict>) {
        match verdict {
            Some(verdict) if verdict.forget => self.conversations.forget(place),
            _ => self.conversations.touch(place),
        }
    }
}

struct Verdict {
    answer: String,
    /// The same, if it is not the model's and was not told yet.
    sorry: Option<&'static str>,
    error: Option<String>,
    /// True if nothing can come of this conversation any more.
    forget: bool,
    /// True if the answer says that the request was not understood, or not carried out.
    is_refusal: bool,
}

fn verdict(result: Result<Turn, ModelError>) -> Verdict {
    let (sorry, error, forget) = match result {
        Ok(turn) => match turn.error {
            None => {
                return Verdict {
                    answer: turn.answer,
                    sorry: None,
                    error: None,
                    forget: false,
                    is_refusal: turn.end == TurnEnd::Refusal,
                };
            }
            Some(error) => {
                let used_tools = turn.rounds.iter().any(|round| !round.calls.is_empty());
                (sorry::without_answer(turn.end, used_tools), error, false)
            }
        },
        Err(error) => {
            let forget = matches!(error, ModelError::TooLong { .. });
            (sorry::without_model(&error), error.to_string(), forget)
        }
    };
    warn!(error, "there is no answer");
    Verdict {
        answer: sorry.to_owned(),
        sorry: Some(sorry),
        error: Some(error),
        forget,
        is_refusal: true,
    }
}

fn failed(words: &str, error: String) -> Came {
    Came {
        answer: words.to_owned(),
        outcome: TurnOutcome::Failed,
        error: Some(error),
        model: String::new(),
        calls: Vec::new(),
        first_token: None,
        first_audio: None,
    }
}

/// Who answered the last turn: the model, or sentences.
fn who(conversation: &Conversation) -> String {
    let router = conversation.router();
    match (router.source(), conversation.last_source()) {
        (AnswerSource::Model(_), AnswerSource::Sentences) => AnswerSource::Sentences.to_string(),
        (source, _) => format!("{source} {}", router.model_name()),
    }
}
