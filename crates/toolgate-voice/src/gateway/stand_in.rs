//! Somebody who answers while the model is away, at the start and later.

use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::time::Instant;
use toolgate_models::{
    Catalog, Chosen, Event, Listener, Message, ModelClient, ModelError, Part, Provider, Reply,
    Request, Stop, ToolList,
};

use crate::Role;
use crate::turn::{Engines, is_of_intents};

/// Asks the model, and plain sentences as long as it can not be had. Tells when it goes and when it is back.
pub(super) struct StandIn {
    sentences: Arc<dyn ModelClient>,
    found: OnceLock<Arc<dyn ModelClient>>,
    engines: Arc<Engines>,
}

impl StandIn {
    pub(super) fn new(sentences: Arc<dyn ModelClient>, engines: Arc<Engines>) -> Self {
        Self {
            sentences,
            found: OnceLock::new(),
            engines,
        }
    }

    /// This one answers from now on, the first that is found: then it is the only one that can come back. False if it is not
    /// the one that is missed.
    pub(super) fn find(&self, chosen: &Chosen) -> bool {
        let found = self.found.get_or_init(|| Arc::clone(&chosen.client));
        let who = |client: &Arc<dyn ModelClient>| (client.provider(), client.model().to_owned());
        who(found) == who(&chosen.client)
    }

    fn now(&self) -> &dyn ModelClient {
        self.found.get().unwrap_or(&self.sentences).as_ref()
    }

    fn is_lost(&self) -> bool {
        self.engines.all_lost().contains(&Role::Model)
    }

    /// What plain sentences make of it; nothing if they do not understand it, or if it is about calls of the model's.
    async fn understood(&self, request: Request<'_>, listener: &mut dyn Listener) -> Option<Reply> {
        if let [.., before, Message::Tool { .. }] = request.messages
            && !is_of_intents(before)
        {
            return None;
        }
        let mut of_waits = |event: Event<'_>| {
            if let Event::Waiting { .. } | Event::Waited = event {
                listener.event(event);
            }
        };
        let reply = self.sentences.reply(request, &mut of_waits).await;
        let mut reply = reply.ok().filter(|reply| reply.stop != Stop::Refusal)?;
        let text = reply.message.to_text();
        if !text.is_empty() {
            listener.event(Event::Text(&text));
        }
        // So that it is seen who answered.
        reply.message.parts.push(Part::Opaque {
            provider: Provider::Intents,
            value: Value::Null,
        });
        Some(reply)
    }

    async fn ask(
        &self,
        model: &dyn ModelClient,
        request: Request<'_>,
        listener: &mut dyn Listener,
    ) -> Result<Reply, ModelError> {
        let is_lost = self.is_lost();
        if is_lost && let Some(reply) = self.understood(request, listener).await {
            return Ok(reply);
        }
        let mut has_spoken = false;
        let mut told = |event: Event<'_>| {
            has_spoken |= matches!(event, Event::Text(_) | Event::Thinking(_));
            listener.event(event);
        };
        let error = match model.reply(request, &mut told).await {
            Ok(reply) => {
                // Sentences in front of it are no sign of life.
                let answered = Message::Assistant(reply.message.clone());
                let asked = request.messages.iter().rev().take(2);
                if !asked.chain([&answered]).any(is_of_intents) {
                    self.engines.worked(Role::Model);
                }
                return Ok(reply);
            }
            Err(error) => error,
        };
        if let ModelError::Unreachable { .. } | ModelError::TimedOut { .. } = error {
            self.engines.lost(Role::Model, &error.to_string());
            if !is_lost
                && !has_spoken
                && let Some(reply) = self.understood(request, listener).await
            {
                return Ok(reply);
            }
        }
        Err(error)
    }
}

impl ModelClient for StandIn {
    fn provider(&self) -> Provider {
        self.now().provider()
    }

    fn model(&self) -> &str {
        self.now().model()
    }

    fn prepare(&self, deadline: Instant) -> BoxFuture<'_, ()> {
        self.now().prepare(deadline)
    }

    fn window(&self) -> usize {
        self.now().window()
    }

    fn most_tools(&self) -> Option<usize> {
        self.now().most_tools()
    }

    fn catalog(&self, tools: &Arc<ToolList>) -> Arc<Catalog> {
        self.now().catalog(tools)
    }

    fn understands<'a>(&'a self, text: &'a str) -> BoxFuture<'a, bool> {
        match self.is_lost() {
            true => self.sentences.understands(text),
            false => self.now().understands(text),
        }
    }

    fn wants_all_tools<'a>(&'a self, text: &'a str) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            // Without a model, sentences wait themselves for what they need.
            let Some(model) = self.found.get().filter(|_| !self.is_lost()) else {
                return false;
            };
            !self.sentences.understands(text).await && model.wants_all_tools(text).await
        })
    }

    fn reply<'a>(
        &'a self,
        request: Request<'a>,
        listener: &'a mut dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        match self.found.get() {
            Some(model) => Box::pin(self.ask(model.as_ref(), request, listener)),
            None => self.sentences.reply(request, listener),
        }
    }
}
