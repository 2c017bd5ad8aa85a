//! The Wyoming service `handle`, a conversation agent for Home Assistant: text in, text out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use tracing::debug;

use super::{artifact, default_to_english};
use crate::EngineError;
use crate::speak::AnswerScript;
use crate::wyoming::{
    HandleContext, ServiceInfo, ServiceProgram, WyomingClient, WyomingEvent, WyomingModel,
    WyomingService,
};

const MAX_REQUEST_BYTES: usize = 4096;
// Ids are kept as keys, so their length is bounded.
const MAX_ID_LEN: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct HandleRequest {
    pub(crate) text: String,
    pub(crate) conversation_id: Option<String>,
    pub(crate) device_id: Option<String>,
    pub(crate) satellite_id: Option<String>,
    pub(crate) connection: u64,
}

impl HandleRequest {
    pub(crate) fn room(&self) -> Option<&String> {
        self.satellite_id.as_ref().or(self.device_id.as_ref())
    }

    /// Requests with the same key share a conversation. Two anonymous clients must not, or one
    /// could mean the other's "it".
    pub(crate) fn conversation_key(&self) -> String {
        match self.conversation_id.as_ref().or(self.room()) {
            Some(id) => id.clone(),
            None => format!("connection {}", self.connection),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HandleResponse {
    pub(crate) text: String,
    /// False if the request was not carried out.
    pub(crate) ok: bool,
}

impl HandleResponse {
    pub(crate) fn done(text: &str) -> Self {
        let text = text.to_owned();
        Self { text, ok: true }
    }

    pub(crate) fn failed(text: &str) -> Self {
        let text = text.to_owned();
        Self { text, ok: false }
    }
}

pub(crate) trait RequestHandler: Send + Sync {
    /// Answers in words, even on failure. Words pushed to the script are sent at once. The future
    /// is dropped if the client goes away.
    fn respond(
        &self,
        request: HandleRequest,
        script: Arc<AnswerScript>,
    ) -> BoxFuture<'_, HandleResponse>;
}

pub(crate) struct HandleService {
    handler: Arc<dyn RequestHandler>,
    languages: Vec<String>,
    connections: AtomicU64,
}

impl HandleService {
    pub(crate) fn new(handler: Arc<dyn RequestHandler>, languages: Vec<String>) -> Self {
        Self {
            handler,
            languages: default_to_english(languages),
            connections: AtomicU64::new(0),
        }
    }

    async fn answer(
        &self,
        client: &mut WyomingClient,
        request: BufferedRequest,
        inbox: &mut RequestInbox,
    ) -> Result<(), EngineError> {
        if request.text.len() > MAX_REQUEST_BYTES {
            let text = format!("a request can have at most {MAX_REQUEST_BYTES} bytes");
            let code = Some("too-long".to_owned());
            return client.send(&WyomingEvent::Error { text, code }).await;
        }
        let asked = request.to_handle_request(inbox.connection);
        let mut reply = ResponseWriter {
            request,
            sent: String::new(),
        };
        let script = Arc::<AnswerScript>::default();
        if asked.text.is_empty() {
            let answered = HandleResponse::failed("I didn't hear anything.");
            return reply.end(client, &script, answered).await;
        }
        let mut answered = self.handler.respond(asked, Arc::clone(&script));
        loop {
            tokio::select! {
                biased;
                answered = &mut answered => return reply.end(client, &script, answered).await,
                Some(piece) = script.next(), if reply.request.streaming => reply.send_words(client, &piece.words).await?,
                event = client.receive_while_busy(), if inbox.next.is_none() => match event? {
                    Some(event) => {
                        if let Some(event) = client.answer_standard(event).await? {
                            inbox.handle_event(client, event).await?;
                        }
                    }
                    None => {
                        debug!("a client of 'handle' left before its answer");
                        return Ok(());
                    }
                },
            }
        }
    }
}

#[derive(Default)]
struct BufferedRequest {
    text: String,
    context: Option<HandleContext>,
    // A client that sends a request in pieces can also read an answer in pieces.
    streaming: bool,
}

impl BufferedRequest {
    fn to_handle_request(&self, connection: u64) -> HandleRequest {
        HandleRequest {
            text: self.text.trim().to_owned(),
            conversation_id: self.id("conversation_id"),
            device_id: self.id("device_id"),
            satellite_id: self.id("satellite_id"),
            connection,
        }
    }

    fn id(&self, key: &str) -> Option<String> {
        match self.context.as_ref()?.get(key)? {
            Value::String(id) if id.len() <= MAX_ID_LEN => Some(id.clone()),
            _ => None,
        }
    }
}

struct ResponseWriter {
    request: BufferedRequest,
    sent: String,
}

impl ResponseWriter {
    async fn send_words(
        &mut self,
        client: &mut WyomingClient,
        words: &str,
    ) -> Result<(), EngineError> {
        let is_apart = |text: &str| text.is_empty() || text.ends_with(char::is_whitespace);
        let mut text = words.to_owned();
        if self.sent.is_empty() {
            let context = self.request.context.clone();
            client.send(&WyomingEvent::HandledStart { context }).await?;
        } else if !is_apart(&self.sent) && !words.starts_with(char::is_whitespace) {
            text.insert(0, ' ');
        }
        self.sent.push_str(&text);
        client.send(&WyomingEvent::HandledChunk { text }).await
    }

    async fn end(
        mut self,
        client: &mut WyomingClient,
        script: &AnswerScript,
        answered: HandleResponse,
    ) -> Result<(), EngineError> {
        let mut text = answered.text;
        if self.request.streaming {
            script.end();
            while let Some(piece) = script.next().await {
                self.send_words(client, &piece.words).await?;
            }
            // Words that were taken back have already been sent. The final answer is added unless
            // it was sent too.
            let is_news = !self.sent.trim_end().ends_with(text.trim());
            if is_news && (answered.ok || !self.sent.is_empty()) {
                self.send_words(client, &text).await?;
            }
        }
        let has_sent = !self.sent.is_empty();
        if has_sent {
            text = self.sent.trim().to_owned();
        }
        let (text, context) = (Some(text), self.request.context);
        let whole = match answered.ok {
            true => WyomingEvent::Handled { text, context },
            false => WyomingEvent::NotHandled { text, context },
        };
        client.send(&whole).await?;
        match has_sent {
            true => client.send(&WyomingEvent::HandledStop).await,
            false => Ok(()),
        }
    }
}

#[derive(Default)]
struct RequestInbox {
    connection: u64,
    pieces: Option<BufferedRequest>,
    /// A complete request. Nothing more is read until it is answered.
    next: Option<BufferedRequest>,
}

impl RequestInbox {
    async fn handle_event(
        &mut self,
        client: &mut WyomingClient,
        event: WyomingEvent,
    ) -> Result<(), EngineError> {
        match event {
            WyomingEvent::TranscriptStart { context, .. } => {
                self.pieces = Some(BufferedRequest {
                    text: String::new(),
                    context,
                    streaming: true,
                });
            }
            WyomingEvent::TranscriptChunk { text } => {
                if let Some(pieces) = &mut self.pieces
                    && pieces.text.len() <= MAX_REQUEST_BYTES
                {
                    pieces.text.push_str(&text);
                }
            }
            WyomingEvent::Transcript { text, context, .. } => {
                let streaming = self.pieces.take().is_some();
                self.next = Some(BufferedRequest {
                    text,
                    context,
                    streaming,
                });
            }
            // Without a whole transcript the pieces are the request.
            WyomingEvent::TranscriptStop => self.next = self.pieces.take(),
            // Servers ignore unknown events, but a client that waits for an answer must hear
            // that there is none.
            event => {
                if let Some(other) = other_service(&event) {
                    let text = format!(
                        "this service answers text ('transcript') and does not offer {other}"
                    );
                    let code = Some("not-offered".to_owned());
                    return client.send(&WyomingEvent::Error { text, code }).await;
                }
            }
        }
        Ok(())
    }
}

fn other_service(event: &WyomingEvent) -> Option<&'static str> {
    match event {
        WyomingEvent::Synthesize { .. } | WyomingEvent::SynthesizeStart { .. } => Some("speech"),
        WyomingEvent::Transcribe { .. } => Some("transcription"),
        WyomingEvent::Detect { .. } => Some("wake words"),
        WyomingEvent::Recognize { .. } => Some("intents"),
        _ => None,
    }
}

impl WyomingService for HandleService {
    fn info(&self) -> ServiceInfo {
        let model = WyomingModel {
            artifact: artifact("toolgate", "The model and the tools of this Toolgate"),
            languages: self.languages.clone(),
            ..WyomingModel::default()
        };
        let supports = ["supports_handled_streaming", "supports_home_control"];
        let program = ServiceProgram {
            artifact: artifact(
                "toolgate",
                "Answers requests and controls devices with tools",
            ),
            models: Some(vec![model]),
            more: supports
                .map(|name| (name.to_owned(), Value::Bool(true)))
                .into_iter()
                .collect(),
            ..ServiceProgram::default()
        };
        ServiceInfo {
            handle: vec![program],
            ..ServiceInfo::default()
        }
    }

    fn serve_client<'a>(
        &'a self,
        client: &'a mut WyomingClient,
    ) -> BoxFuture<'a, Result<(), EngineError>> {
        async move {
            let mut inbox = RequestInbox {
                connection: self.connections.fetch_add(1, Ordering::Relaxed),
                ..RequestInbox::default()
            };
            while let Some(event) = client.receive().await? {
                inbox.handle_event(client, event).await?;
                while let Some(request) = inbox.next.take() {
                    self.answer(client, request, &mut inbox).await?;
                }
            }
            Ok(())
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests;
