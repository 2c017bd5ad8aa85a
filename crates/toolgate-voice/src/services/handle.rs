//! `handle`: a request in text, its answer in text. Home Assistant offers it as a conversation agent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use tracing::debug;

use super::{artifact, or_english};
use crate::EngineError;
use crate::speak::Script;
use crate::wyoming::{Context, Event, Guest, HandleProgram, Info, Model, Service};

/// The longest request, in bytes. Nobody says more in one breath.
const LONGEST: usize = 4096;
/// The longest id that is of use: somebody keeps them.
const LONGEST_ID: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Asked {
    /// What somebody said, without blanks around it.
    pub(crate) text: String,
    /// Requests with the same id belong together.
    pub(crate) conversation_id: Option<String>,
    pub(crate) device_id: Option<String>,
    pub(crate) satellite_id: Option<String>,
    /// Requests over the same connection have the same number.
    pub(crate) connection: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) text: String,
    /// False if the request was not carried out.
    pub(crate) ok: bool,
}

impl Answered {
    pub(crate) fn done(text: &str) -> Self {
        let text = text.to_owned();
        Self { text, ok: true }
    }

    pub(crate) fn failed(text: &str) -> Self {
        let text = text.to_owned();
        Self { text, ok: false }
    }
}

/// Answers requests. It bounds its own time.
pub(crate) trait Respond: Send + Sync {
    /// The answer; a failure is told in words. Words that go into the script are told at once, the rest with the answer.
    /// Dropped if nobody waits for it any more.
    fn respond(&self, asked: Asked, script: Arc<Script>) -> BoxFuture<'_, Answered>;
}

pub(crate) struct HandleService {
    respond: Arc<dyn Respond>,
    languages: Vec<String>,
    connections: AtomicU64,
}

impl HandleService {
    /// Offers what `respond` says, for requests in these languages; without any, in English.
    pub(crate) fn new(respond: Arc<dyn Respond>, languages: Vec<String>) -> Self {
        Self {
            respond,
            languages: or_english(languages),
            connections: AtomicU64::new(0),
        }
    }

    /// Answers, and hears meanwhile whether the client is still there.
    async fn answer(
        &self,
        guest: &mut Guest,
        request: Request,
        inbox: &mut Inbox,
    ) -> Result<(), EngineError> {
        if request.text.len() > LONGEST {
            let text = format!("a request has at most {LONGEST} bytes");
            let code = Some("too-long".to_owned());
            return guest.send(&Event::Error { text, code }).await;
        }
        let asked = request.asked(inbox.connection);
        let mut reply = Reply::to(request);
        let script = Arc::<Script>::default();
        if asked.text.is_empty() {
            let answered = Answered::failed("I did not hear anything.");
            return reply.end(guest, &script, answered).await;
        }
        let mut answered = self.respond.respond(asked, Arc::clone(&script));
        loop {
            tokio::select! {
                biased;
                answered = &mut answered => return reply.end(guest, &script, answered).await,
                Some(piece) = script.next(), if reply.streaming => reply.tell(guest, &piece.words).await?,
                event = guest.receive_while_busy(), if inbox.next.is_none() => match event? {
                    Some(event) => {
                        if let Some(event) = guest.sift(event).await? {
                            inbox.take(guest, event).await?;
                        }
                    }
                    None => {
                        debug!("a client of the service 'handle' went away before its answer");
                        return Ok(());
                    }
                },
            }
        }
    }
}

#[derive(Default)]
struct Request {
    text: String,
    context: Option<Context>,
    /// A client that sends pieces understands pieces.
    streaming: bool,
}

impl Request {
    fn asked(&self, connection: u64) -> Asked {
        Asked {
            text: self.text.trim().to_owned(),
            conversation_id: self.id("conversation_id"),
            device_id: self.id("device_id"),
            satellite_id: self.id("satellite_id"),
            connection,
        }
    }

    fn id(&self, key: &str) -> Option<String> {
        match self.context.as_ref()?.get(key)? {
            Value::String(id) if id.len() <= LONGEST_ID => Some(id.clone()),
            _ => None,
        }
    }
}

struct Reply {
    context: Option<Context>,
    streaming: bool,
    told: String,
}

impl Reply {
    fn to(request: Request) -> Self {
        Self {
            context: request.context,
            streaming: request.streaming,
            told: String::new(),
        }
    }

    async fn tell(&mut self, guest: &mut Guest, words: &str) -> Result<(), EngineError> {
        let is_apart = |text: &str| text.is_empty() || text.ends_with(char::is_whitespace);
        let mut text = words.to_owned();
        if self.told.is_empty() {
            let context = self.context.clone();
            guest.send(&Event::HandledStart { context }).await?;
        } else if !is_apart(&self.told) && !words.starts_with(char::is_whitespace) {
            text.insert(0, ' ');
        }
        self.told.push_str(&text);
        guest.send(&Event::HandledChunk { text }).await
    }

    async fn end(
        mut self,
        guest: &mut Guest,
        script: &Script,
        answered: Answered,
    ) -> Result<(), EngineError> {
        let mut text = answered.text;
        if self.streaming {
            script.end();
            while let Some(piece) = script.next().await {
                self.tell(guest, &piece.words).await?;
            }
            // What was taken back was told, and so is what stands.
            let is_news = !self.told.trim_end().ends_with(text.trim());
            if is_news && (answered.ok || !self.told.is_empty()) {
                self.tell(guest, &text).await?;
            }
        }
        let is_told = !self.told.is_empty();
        if is_told {
            text = self.told.trim().to_owned();
        }
        let (text, context) = (Some(text), self.context);
        let whole = match answered.ok {
            true => Event::Handled { text, context },
            false => Event::NotHandled { text, context },
        };
        guest.send(&whole).await?;
        match is_told {
            true => guest.send(&Event::HandledStop).await,
            false => Ok(()),
        }
    }
}

#[derive(Default)]
struct Inbox {
    connection: u64,
    pieces: Option<Request>,
    /// A request that is complete. No more is read before it is answered.
    next: Option<Request>,
}

impl Inbox {
    async fn take(&mut self, guest: &mut Guest, event: Event) -> Result<(), EngineError> {
        match event {
            Event::TranscriptStart { context, .. } => {
                self.pieces = Some(Request {
                    text: String::new(),
                    context,
                    streaming: true,
                });
            }
            Event::TranscriptChunk { text } => {
                if let Some(pieces) = &mut self.pieces
                    && pieces.text.len() <= LONGEST
                {
                    pieces.text.push_str(&text);
                }
            }
            Event::Transcript { text, context, .. } => {
                let streaming = self.pieces.take().is_some();
                self.next = Some(Request {
                    text,
                    context,
                    streaming,
                });
            }
            // The whole text did not come: the pieces are it.
            Event::TranscriptStop => self.next = self.pieces.take(),
            // Servers ignore what is not for them; but whoever waits for an answer is told that there is none.
            event => {
                if let Some(other) = elsewhere(&event) {
                    let text =
                        format!("this service answers text ('transcript'), and offers no {other}");
                    let code = Some("not-offered".to_owned());
                    return guest.send(&Event::Error { text, code }).await;
                }
            }
        }
        Ok(())
    }
}

fn elsewhere(event: &Event) -> Option<&'static str> {
    match event {
        Event::Synthesize { .. } | Event::SynthesizeStart { .. } => Some("speech"),
        Event::Transcribe { .. } => Some("transcription"),
        Event::Detect { .. } => Some("wake words"),
        Event::Recognize { .. } => Some("intents"),
        _ => None,
    }
}

impl Service for HandleService {
    fn info(&self) -> Info {
        let model = Model {
            artifact: artifact("toolgate", "The model and the tools of this Toolgate"),
            languages: self.languages.clone(),
        };
        let program = HandleProgram {
            artifact: artifact(
                "toolgate",
                "Answers requests and switches things with tools",
            ),
            models: vec![model],
            supports_handled_streaming: true,
            supports_home_control: true,
        };
        Info {
            handle: vec![program],
            ..Info::default()
        }
    }

    fn attend<'a>(&'a self, guest: &'a mut Guest) -> BoxFuture<'a, Result<(), EngineError>> {
        async move {
            let mut inbox = Inbox {
                connection: self.connections.fetch_add(1, Ordering::Relaxed),
                ..Inbox::default()
            };
            while let Some(event) = guest.receive().await? {
                inbox.take(guest, event).await?;
                while let Some(request) = inbox.next.take() {
                    self.answer(guest, request, &mut inbox).await?;
                }
            }
            Ok(())
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests;
