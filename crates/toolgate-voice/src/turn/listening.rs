//! The first task: what was heard becomes words, or is dropped.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, timeout};

use super::stages::Asked;
use super::{Job, Reason, Shared, survive};
use crate::listen::Utterance;
use crate::speak::Tone;
use crate::transcribe::{
    behind_remnant, is_cancel, is_hallucination, plain, without_wake_word, worth,
};
use crate::{EngineError, Event, Role, State};

const GRACE: Duration = Duration::from_secs(1);

pub(super) struct Request {
    pub(super) number: u64,
    pub(super) asked: Asked,
    pub(super) problem: Option<Deaf>,
    /// Its place in the queue, until it is answered.
    pub(super) place: OwnedSemaphorePermit,
}

struct Dropped {
    reason: Reason,
    heard: String,
}

impl From<Reason> for Dropped {
    fn from(reason: Reason) -> Self {
        let heard = String::new();
        Self { reason, heard }
    }
}

pub(super) struct Deaf {
    pub(super) error: EngineError,
    /// False if the person was told of it before.
    pub(super) is_news: bool,
}

impl Shared {
    pub(super) async fn listen(self: Arc<Self>, mut jobs: mpsc::Receiver<Job>) {
        loop {
            let job = tokio::select! {
                biased;
                () = self.closed.cancelled() => return,
                job = jobs.recv() => job,
            };
            let Some(job) = job else { return };
            let request = survive(self.understand(job)).await;
            let request = match request.unwrap_or_else(|| Err(Reason::Broken.into())) {
                Err(dropped) => {
                    self.drop_request(dropped.reason, &dropped.heard);
                    continue;
                }
                Ok(request) => request,
            };
            // A tool of a request that was given up is at work still, and nobody says so.
            let answering = self.answering();
            let waits = answering.is_some_and(|number| self.is_given_up(number));
            if waits && self.filler.tone {
                self.speaker.tone(Tone::Working);
            }
            self.line.join(request);
            // Perhaps it was given up just now.
            self.leave();
        }
    }

    async fn understand(&self, job: Job) -> Result<Request, Dropped> {
        let Job {
            number,
            utterance,
            place,
        } = job;
        if self.is_given_up(number) {
            return Err(Reason::GivenUp.into());
        }
        worth(&utterance)?;
        if self.answering().is_none() {
            self.state(&State::Transcribing);
        }
        let begun = Instant::now();
        // The engine keeps its deadline itself; the grace is for one that does not.
        let limit = self.asr_timeout + GRACE;
        let text = tokio::select! {
            biased;
            () = self.until_given_up(number) => return Err(Reason::GivenUp.into()),
            text = timeout(limit, self.transcribe.transcribe(&utterance)) => text,
        };
        let transcribed = Instant::now();
        let text = text.unwrap_or_else(|_| {
            Err(EngineError::timed_out(
                "the transcription engine",
                self.asr_timeout,
            ))
        });
        let (heard, problem) = match text {
            Ok(text) => {
                let took = transcribed - begun;
                let heard = self.take_words(number, &text, &utterance, took).await?;
                (heard, None)
            }
            Err(error) => {
                let is_news = self.engines.failed(Role::Transcription, &error);
                (String::new(), Some(Deaf { error, is_news }))
            }
        };
        let asked = Asked {
            source: self.source.clone(),
            room: utterance.room,
            wake_word: utterance.wake_word,
            heard,
            began: utterance.began,
            speech_ended: Some(utterance.ended),
            transcribed: problem.is_none().then_some(transcribed),
        };
        Ok(Request {
            number,
            asked,
            problem,
            place,
        })
    }

    /// The words of a request, after they were told. A request to stop is obeyed here: whatever came before it is given up.
    async fn take_words(
        &self,
        number: u64,
        text: &str,
        utterance: &Utterance,
        took: Duration,
    ) -> Result<String, Dropped> {
        self.engines.worked(Role::Transcription);
        let heard = self.request_in(text, utterance).await;
        if heard.is_empty() {
            return Err(Reason::NoWords.into());
        }
        if !is_cancel(&heard) && is_hallucination(&heard, utterance) {
            let reason = Reason::Imagined;
            return Err(Dropped { reason, heard });
        }
        self.watcher.event(Event::Heard {
            source: &self.source,
            text: &heard,
            took: Some(took),
        });
        if is_cancel(&heard) {
            self.conversations.cancel(&self.source);
            self.give_up(number + 1);
            let reason = Reason::Cancel;
            return Err(Dropped { reason, heard });
        }
        if self.consent.take(&heard, utterance.began) {
            let reason = Reason::Reply;
            return Err(Dropped { reason, heard });
        }
        Ok(heard)
    }

    /// What was said without the name it was said to.
    async fn request_in(&self, text: &str, utterance: &Utterance) -> String {
        let name = utterance.wake_word.as_deref().unwrap_or_default();
        let heard = plain(without_wake_word(text, name, utterance.in_one_breath));
        let router = self.conversations.router();
        if !utterance.in_one_breath || name.is_empty() || router.understands(&heard).await {
            return heard;
        }
        let mut understood = Vec::new();
        for request in behind_remnant(&heard, name) {
            if is_cancel(request) || router.understands(request).await {
                understood.push(request);
            }
        }
        // Whatever is left of its name: if exactly one request fits behind it, that is what was meant.
        match understood.as_slice() {
            [request] => (*request).to_owned(),
            _ => heard,
        }
    }
}
