//! Sentences that are understood without a model, where the model can not be reached.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::Instant;

use super::{IntentsClient, Memory, memory, reply};
use crate::{
    Catalog, Event, Listener, Message, ModelClient, ModelError, Provider, Reply, Request, Stop,
    ToolList,
};

/// How long a model that could not be reached is not asked what needs no model: each try may take seconds.
const AWAY: Duration = Duration::from_secs(60);

/// A model with [`IntentsClient`] behind it. While the model can not be reached, what is understood without one is done and
/// answered, and of everything else there is the model's error. It is tried again with each sentence that is not understood, and
/// after a minute with any.
///
/// ```
/// use std::sync::Arc;
/// use toolgate_core::{ToolExecutor, ToolManager};
/// use toolgate_models::{IntentsClient, ModelClient, Pack, StandIn, Toolbox};
///
/// let toolbox = Toolbox::new(ToolExecutor::new(Arc::new(ToolManager::new())));
/// let intents = IntentsClient::new(toolbox.clone(), Pack::english())?;
/// # let model: Arc<dyn ModelClient> = Arc::new(IntentsClient::new(toolbox, Pack::english())?);
/// let client = StandIn::new(intents, model);
/// assert_eq!(client.model(), "en");
/// # Ok::<_, toolgate_models::PackError>(())
/// ```
pub struct StandIn {
    intents: IntentsClient,
    model: Arc<dyn ModelClient>,
    /// When it was last found that the model can not be reached.
    away: Mutex<Option<Instant>>,
}

impl StandIn {
    /// Behind a model.
    pub fn new(intents: IntentsClient, model: Arc<dyn ModelClient>) -> Self {
        Self {
            intents,
            model,
            away: Mutex::default(),
        }
    }

    fn away(&self) -> MutexGuard<'_, Option<Instant>> {
        self.away.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_away(&self) -> bool {
        self.away().is_some_and(|since| since.elapsed() < AWAY)
    }

    /// The answer of the sentences, if they have one.
    async fn instead(&self, request: &Request<'_>, listener: &mut dyn Listener) -> Option<Reply> {
        let begins = matches!(request.messages, [.., Message::User { .. }]);
        if !begins && !has_begun(request.messages) {
            return None;
        }
        let answer = self.intents.answer(request.messages, request.words_only);
        let (message, stop) = answer.await;
        if begins {
            // That it is not understood is no answer: why the model gave none is.
            if stop == Stop::Refusal {
                return None;
            }
            let provider = self.model.provider();
            listener.event(Event::Notice(&format!(
                "{provider} can not be reached: what needs no model is answered without one"
            )));
        }
        Some(reply(message, stop, listener))
    }
}

/// True if the sentences made the last calls: who begins a turn ends it.
fn has_begun(messages: &[Message]) -> bool {
    let [.., before, Message::Tool { .. }] = messages else {
        return false;
    };
    matches!(memory(Some(before)), Some(Memory::Called(_)))
}

impl ModelClient for StandIn {
    fn provider(&self) -> Provider {
        self.model.provider()
    }

    fn model(&self) -> &str {
        self.model.model()
    }

    fn prepare(&self, deadline: Instant) -> BoxFuture<'_, ()> {
        self.model.prepare(deadline)
    }

    fn window(&self) -> usize {
        self.model.window()
    }

    fn most_tools(&self) -> Option<usize> {
        self.model.most_tools()
    }

    fn catalog(&self, tools: &Arc<ToolList>) -> Arc<Catalog> {
        self.model.catalog(tools)
    }

    fn understands<'a>(&'a self, text: &'a str) -> BoxFuture<'a, bool> {
        self.model.understands(text)
    }

    fn reply<'a>(
        &'a self,
        request: Request<'a>,
        listener: &'a mut dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let was_away = self.is_away();
            if was_away && let Some(reply) = self.instead(&request, listener).await {
                return Ok(reply);
            }
            let reply = self.model.reply(request, listener).await;
            let Err(error @ ModelError::Unreachable { .. }) = reply else {
                *self.away() = None;
                return reply;
            };
            *self.away() = Some(Instant::now());
            match was_away {
                true => Err(error),
                false => self.instead(&request, listener).await.ok_or(error),
            }
        })
    }
}
