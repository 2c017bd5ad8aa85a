//! The first task of the turn engine: transcribes utterances or drops them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, timeout};

use super::turn_record::TurnRequest;
use super::{DropReason, TranscriptionJob, TurnEngine, catch_panic};
use crate::segment::Utterance;
use crate::speak::SignalTone;
use crate::transcribe::{
    check_sound, is_cancel, is_hallucination, requests_behind_remnant, tidy_transcript,
    without_wake_word,
};
use crate::{EngineError, EngineRole, VoiceEvent, VoiceState};

const DEADLINE_GRACE: Duration = Duration::from_secs(1);

pub(super) struct QueuedRequest {
    pub(super) number: u64,
    pub(super) turn: TurnRequest,
    pub(super) problem: Option<TranscriptionError>,
    pub(super) permit: OwnedSemaphorePermit,
}

struct DroppedRequest {
    reason: DropReason,
    heard: String,
}

impl From<DropReason> for DroppedRequest {
    fn from(reason: DropReason) -> Self {
        let heard = String::new();
        Self { reason, heard }
    }
}

pub(super) struct TranscriptionError {
    pub(super) error: EngineError,
    pub(super) is_news: bool,
}

impl TurnEngine {
    pub(super) async fn transcribe_all(
        self: Arc<Self>,
        mut jobs: mpsc::Receiver<TranscriptionJob>,
    ) {
        loop {
            let job = tokio::select! {
                biased;
                () = self.closed.cancelled() => return,
                job = jobs.recv() => job,
            };
            let Some(job) = job else { return };
            let request = catch_panic(self.transcribe_job(job)).await;
            let request = match request.unwrap_or_else(|| Err(DropReason::InternalError.into())) {
                Err(dropped) => {
                    self.drop_request(dropped.reason, &dropped.heard);
                    continue;
                }
                Ok(request) => request,
            };
            // A tool of a request that was given up may still run, and otherwise nothing would say
            // why it takes so long.
            let answering = *self.answering.lock();
            let waits = answering.is_some_and(|number| self.is_given_up(number));
            if waits && self.filler.tone {
                self.speaker.play_tone(SignalTone::Working);
            }
            self.answer_queue.push(request);
            // It may have been given up between the check and the push.
            self.drop_given_up();
        }
    }

    async fn transcribe_job(&self, job: TranscriptionJob) -> Result<QueuedRequest, DroppedRequest> {
        let TranscriptionJob {
            number,
            utterance,
            permit,
        } = job;
        if self.is_given_up(number) {
            return Err(DropReason::GivenUp.into());
        }
        check_sound(&utterance)?;
        if self.answering.lock().is_none() {
            self.report_state(&VoiceState::Transcribing);
        }
        let begun = Instant::now();
        // The engine enforces its own deadline. The grace is for one that doesn't.
        let limit = self.asr_timeout + DEADLINE_GRACE;
        let text = tokio::select! {
            biased;
            () = self.until_given_up(number) => return Err(DropReason::GivenUp.into()),
            text = timeout(limit, self.transcribe.transcribe(&utterance)) => text,
        };
        let transcribed = Instant::now();
        let late = || EngineError::timed_out("the transcription engine", self.asr_timeout);
        let text = text.unwrap_or_else(|_| Err(late()));
        let (heard, problem) = match text {
            Ok(text) => {
                let took = transcribed - begun;
                let heard = self.accept_words(number, &text, &utterance, took).await?;
                (heard, None)
            }
            Err(error) => {
                let role = EngineRole::Transcription;
                let is_news = self.engines.record_failure(role, &error);
                (String::new(), Some(TranscriptionError { error, is_news }))
            }
        };
        let turn = TurnRequest {
            source: self.source.clone(),
            room: utterance.room,
            wake_word: utterance.wake_word,
            heard,
            began: utterance.began,
            speech_ended: Some(utterance.ended),
            transcribed: problem.is_none().then_some(transcribed),
        };
        Ok(QueuedRequest {
            number,
            turn,
            problem,
            permit,
        })
    }

    /// Filters and reports the words of a request. A request to stop takes effect here and gives
    /// up everything before it.
    async fn accept_words(
        &self,
        number: u64,
        text: &str,
        utterance: &Utterance,
        took: Duration,
    ) -> Result<String, DroppedRequest> {
        self.engines.mark_working(EngineRole::Transcription);
        let heard = self.strip_wake_word(text, utterance).await;
        if heard.is_empty() {
            return Err(DropReason::NoWords.into());
        }
        if !is_cancel(&heard) && is_hallucination(&heard, utterance) {
            let reason = DropReason::Hallucination;
            return Err(DroppedRequest { reason, heard });
        }
        self.observer.event(VoiceEvent::Heard {
            source: &self.source,
            text: &heard,
            took: Some(took),
        });
        if is_cancel(&heard) {
            self.conversations.cancel(&self.source);
            self.give_up(number + 1);
            let reason = DropReason::Cancel;
            return Err(DroppedRequest { reason, heard });
        }
        if self.consent.try_answer(&heard, utterance.began) {
            let reason = DropReason::Reply;
            return Err(DroppedRequest { reason, heard });
        }
        Ok(heard)
    }

    async fn strip_wake_word(&self, text: &str, utterance: &Utterance) -> String {
        let name = utterance.wake_word.as_deref().unwrap_or_default();
        let heard = tidy_transcript(without_wake_word(text, name, utterance.in_one_breath));
        let router = self.conversations.router();
        if !utterance.in_one_breath || name.is_empty() || router.understands(&heard).await {
            return heard;
        }
        let mut understood = Vec::new();
        for request in requests_behind_remnant(&heard, name) {
            if is_cancel(request) || router.understands(request).await {
                understood.push(request);
            }
        }
        // If exactly one candidate is a request, the words before it were the remnant
        // of the wake word.
        match understood.as_slice() {
            [request] => (*request).to_owned(),
            _ => heard,
        }
    }
}
