//! The second task of the turn engine: answers requests and speaks the answers.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use toolgate_journal::TurnOutcome;
use toolgate_models::{AnswerSource, Conversation, ModelError, TurnEnd, TurnRecord};
use tracing::warn;

use super::consent::SpokenTurn;
use super::converse::{SpokenAnswer, converse};
use super::progress::{AnswerMode, TurnProgress};
use super::transcribing::TranscriptionError;
use super::turn_record::{TurnRequest, TurnResult, to_voice_turn};
use super::{DropReason, HANDLE, TurnEngine, apologies, catch_panic};
use crate::services::{HandleRequest, HandleResponse};
use crate::speak::{ActiveSpeech, AnswerScript, SignalTone, SpeechOutcome};
use crate::transcribe::{is_cancel, tidy_transcript};
use crate::{VoiceEvent, VoiceState};

// In bytes. The name is a key from outside, so its length is bounded.
const MAX_KEY_LEN: usize = 200;

impl TurnEngine {
    pub(super) async fn answer_all(self: Arc<Self>) {
        loop {
            let request = tokio::select! {
                biased;
                () = self.closed.cancelled() => return,
                request = self.answer_queue.next() => request,
            };
            if self.is_given_up(request.number) {
                self.drop_request(DropReason::GivenUp, &request.turn.heard);
                continue;
            }
            *self.answering.lock() = Some(request.number);
            drop(request.permit);
            let answer = match &request.problem {
                None => catch_panic(self.answer_aloud(request.number, &request.turn.heard)).await,
                Some(failure) => catch_panic(self.apologize(request.number, failure)).await,
            };
            let result = match answer {
                Some(result) => result,
                None => self.recover(request.number).await,
            };
            *self.answering.lock() = None;
            self.record_turn(&to_voice_turn(request.turn, result));
        }
    }

    async fn answer_aloud(&self, number: u64, text: &str) -> TurnResult {
        let mut conversation = self.conversations.lock_for_turn(&self.source).await;
        let progress = self.new_progress(AnswerMode::Spoken);
        self.report_state(&VoiceState::Thinking);
        let speech = self.begin_speech(number);
        self.consent.set_turn(Some(SpokenTurn {
            number,
            progress: progress.clone(),
            script: Arc::clone(speech.script()),
        }));
        let aloud = SpokenAnswer {
            speaker: &self.speaker,
            speech: &speech,
            filler: self.filler,
        };
        let stop = self.until_given_up(number);
        let (script, aloud) = (speech.script(), Some(&aloud));
        let done = converse(&mut conversation, text, &progress, script, aloud, stop).await;
        self.consent.set_turn(None);
        let verdict = done.result.map(to_verdict);
        if let Some(apology) = verdict.as_ref().and_then(|verdict| verdict.apology) {
            self.observer.event(VoiceEvent::Words(apology));
            speech.push(apology);
        }
        let mut spoken = speech.finish().await;
        if let Some(filler) = done.spoken_filler {
            // The filler comes first and may have been cut off. History must not hold it.
            let rest = spoken.text.trim_start().strip_prefix(filler);
            spoken.text = rest.unwrap_or_default().to_owned();
        }
        // The speech may be complete although the turn was broken off after its last word.
        spoken.complete &= verdict.is_some();
        let is_model_answer = verdict
            .as_ref()
            .is_none_or(|verdict| verdict.apology.is_none());
        if !spoken.complete && is_model_answer && progress.state().model_was_asked {
            conversation.keep_spoken(&spoken.text);
        }
        let model = answer_source(&conversation);
        drop(conversation);
        self.touch_or_forget(&self.source, verdict.as_ref());
        self.finish_turn(verdict, &spoken, model, &progress)
    }

    fn finish_turn(
        &self,
        verdict: Option<TurnVerdict>,
        spoken: &SpeechOutcome,
        model: String,
        progress: &TurnProgress,
    ) -> TurnResult {
        self.engines.record_speech(spoken);
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
        let state = progress.state();
        TurnResult {
            answer,
            outcome,
            error: error.or_else(|| problem.map(ToString::to_string)),
            model,
            calls: state.calls.clone(),
            first_token: state.first_token,
            first_audio: spoken.first_audio,
        }
    }

    /// Transcription failed: says so, but only once in words.
    async fn apologize(&self, number: u64, failure: &TranscriptionError) -> TurnResult {
        let words = apologies::not_understood(&failure.error);
        let mut result = failed_turn(words, failure.error.to_string());
        if failure.is_news {
            let spoken = self.say_alone(number, words).await;
            result.first_audio = spoken.first_audio;
        } else if self.filler.tone {
            self.speaker.play_tone(SignalTone::Error);
        }
        result
    }

    // After a panic, the conversation may be inconsistent.
    async fn recover(&self, number: u64) -> TurnResult {
        self.conversations.forget(&self.source);
        let spoken = self.say_alone(number, apologies::BROKEN).await;
        TurnResult {
            first_audio: spoken.first_audio,
            ..failed_turn(apologies::BROKEN, "an internal error".to_owned())
        }
    }

    async fn say_alone(&self, number: u64, words: &str) -> SpeechOutcome {
        self.report_state(&VoiceState::Speaking);
        self.observer.event(VoiceEvent::Words(words));
        let speech = self.begin_speech(number);
        speech.push(words);
        let spoken = speech.finish().await;
        self.engines.record_speech(&spoken);
        spoken
    }

    // The request may be given up between the check and `begin`, so check again after it.
    fn begin_speech(&self, number: u64) -> ActiveSpeech {
        let speech = self.speaker.begin();
        if self.is_given_up(number) {
            self.speaker.stop();
        }
        speech
    }

    pub(super) async fn answer_in_writing(
        &self,
        request: HandleRequest,
        script: &AnswerScript,
        stop: &CancellationToken,
    ) -> HandleResponse {
        let Ok(_permit) = self.written_permits.try_acquire() else {
            warn!("rejected a request: too many at the same time");
            return HandleResponse::failed(apologies::BUSY);
        };
        let heard = tidy_transcript(&request.text);
        let mut key = format!("{HANDLE} {}", request.conversation_key());
        key.truncate(key.floor_char_boundary(MAX_KEY_LEN));
        if is_cancel(&heard) {
            self.conversations.cancel(&key);
        }
        if heard.is_empty() || is_cancel(&heard) {
            return HandleResponse::done(apologies::OKAY);
        }
        let turn_request = TurnRequest::from_written(&request, heard);
        self.observer.event(VoiceEvent::Heard {
            source: &turn_request.source,
            text: &turn_request.heard,
            took: None,
        });
        let mut conversation = self.conversations.lock_for_turn(&key).await;
        let progress = self.new_progress(AnswerMode::Written);
        let stop = stop.cancelled();
        let text = &turn_request.heard;
        let done = converse(&mut conversation, text, &progress, script, None, stop).await;
        let verdict = done.result.map(to_verdict);
        let is_refusal = verdict.as_ref().is_some_and(|verdict| verdict.is_refusal);
        let model = answer_source(&conversation);
        drop(conversation);
        self.touch_or_forget(&key, verdict.as_ref());
        let spoken = SpeechOutcome {
            complete: verdict.is_some(),
            ..SpeechOutcome::default()
        };
        let result = self.finish_turn(verdict, &spoken, model, &progress);
        let answer = match result.outcome {
            TurnOutcome::Answered if !is_refusal => HandleResponse::done(&result.answer),
            // A client that went away reads nothing, so the program must be ending.
            TurnOutcome::Interrupted => HandleResponse::failed(apologies::ENDING),
            _ => HandleResponse::failed(&result.answer),
        };
        self.record_turn(&to_voice_turn(turn_request, result));
        answer
    }

    fn new_progress(&self, mode: AnswerMode) -> TurnProgress {
        let executor = self.conversations.toolbox().executor().clone();
        let (engines, observer) = (Arc::clone(&self.engines), Arc::clone(&self.observer));
        TurnProgress::new(engines, observer, executor, mode)
    }

    fn touch_or_forget(&self, key: &str, verdict: Option<&TurnVerdict>) {
        match verdict {
            Some(verdict) if verdict.forget => self.conversations.forget(key),
            _ => self.conversations.touch(key),
        }
    }
}

struct TurnVerdict {
    answer: String,
    /// The answer again if it is our own apology and was not spoken yet.
    apology: Option<&'static str>,
    error: Option<String>,
    forget: bool,
    is_refusal: bool,
}

fn to_verdict(result: Result<TurnRecord, ModelError>) -> TurnVerdict {
    let (apology, error, forget) = match result {
        Ok(TurnRecord {
            error: None,
            answer,
            end,
            ..
        }) => {
            return TurnVerdict {
                answer,
                apology: None,
                error: None,
                forget: false,
                is_refusal: end == TurnEnd::Refusal,
            };
        }
        Ok(TurnRecord {
            error: Some(error),
            end,
            rounds,
            ..
        }) => {
            let used_tools = rounds.iter().any(|round| !round.calls.is_empty());
            (apologies::without_answer(end, used_tools), error, false)
        }
        Err(error) => {
            let forget = matches!(error, ModelError::TooLong { .. });
            (apologies::without_model(&error), error.to_string(), forget)
        }
    };
    warn!(error, "no answer");
    TurnVerdict {
        answer: apology.to_owned(),
        apology: Some(apology),
        error: Some(error),
        forget,
        is_refusal: true,
    }
}

fn failed_turn(words: &str, error: String) -> TurnResult {
    TurnResult {
        answer: words.to_owned(),
        outcome: TurnOutcome::Failed,
        error: Some(error),
        model: String::new(),
        calls: Vec::new(),
        first_token: None,
        first_audio: None,
    }
}

fn answer_source(conversation: &Conversation) -> String {
    let router = conversation.router();
    match (router.source(), conversation.last_source()) {
        (AnswerSource::Model(_), AnswerSource::Sentences) => AnswerSource::Sentences.to_string(),
        (source, _) => format!("{source} {}", router.model_name()),
    }
}
