//! Sentences that are understood without a model, where the model can not be reached.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use futures::future::BoxFuture;
use tokio::time::Instant;

use super::memory::{Memory, memory, without_aside};
use super::{IntentsClient, reply};
use crate::{
    AssistantMessage, Catalog, Event, Listener, Message, ModelClient, ModelError, Provider, Reply,
    Request, Stop, ToolList,
};

/// A model with [`IntentsClient`] behind it. While the model can not be reached, what is understood without one is done and
/// answered, and of everything else there is the model's error. It is tried again with each sentence that is not understood.
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
    intents: Arc<IntentsClient>,
    model: Arc<dyn ModelClient>,
    /// True if the model could not be reached when it was last asked.
    is_away: AtomicBool,
}

/// What the sentences make of a request.
type Answer = (AssistantMessage, Stop);

enum Heard {
    Model(Result<Reply, ModelError>),
    Sentences(Answer),
}

impl StandIn {
    /// Behind a model.
    pub fn new(intents: impl Into<Arc<IntentsClient>>, model: Arc<dyn ModelClient>) -> Self {
        Self {
            intents: intents.into(),
            model,
            is_away: AtomicBool::new(false),
        }
    }

    /// The model's reply, or the answer of the sentences as soon as the model is found to be away: what its further attempts
    /// take is not waited for.
    async fn ask(&self, request: Request<'_>, listener: &mut dyn Listener) -> Heard {
        let is_away = AtomicBool::new(false);
        let mut watching = |event: Event<'_>| {
            if let Event::Retrying {
                error: ModelError::Unreachable { .. },
                ..
            } = event
            {
                is_away.store(true, Ordering::Relaxed);
            }
            listener.event(event);
        };
        let mut asking = self.model.reply(request, &mut watching);
        let first = poll_fn(|context| match asking.as_mut().poll(context) {
            Poll::Ready(reply) => Poll::Ready(Some(reply)),
            Poll::Pending if is_away.load(Ordering::Relaxed) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        });
        let replied = match first.await {
            None => None,
            Some(Err(error @ ModelError::Unreachable { .. })) => Some(Err(error)),
            Some(reply) => return Heard::Model(reply),
        };
        match (self.instead(&request).await, replied) {
            (Some(answer), _) => Heard::Sentences(answer),
            (None, Some(error)) => Heard::Model(error),
            (None, None) => Heard::Model(asking.await),
        }
    }

    /// The answer of the sentences, if they have one.
    async fn instead(&self, request: &Request<'_>) -> Option<Answer> {
        let begins = begins(request);
        if !begins && !has_begun(request) {
            return None;
        }
        let mut nobody = |_: Event<'_>| {};
        let answer = self
            .intents
            .answer(request.messages, request.words_only, &mut nobody);
        let answer = answer.await;
        // That it is not understood is no answer: why the model gave none is.
        (!begins || answer.1 != Stop::Refusal).then_some(answer)
    }

    fn tell(
        &self,
        (message, stop): Answer,
        request: &Request<'_>,
        listener: &mut dyn Listener,
    ) -> Reply {
        if begins(request) {
            let provider = self.model.provider();
            listener.event(Event::Notice(&format!(
                "{provider} can not be reached: what needs no model is answered without one"
            )));
        }
        reply(message, stop, listener)
    }
}

/// True if a person has just spoken.
fn begins(request: &Request<'_>) -> bool {
    let messages = without_aside(request.messages, request.words_only);
    matches!(messages, [.., Message::User { .. }])
}

/// True if the sentences made the last calls: who begins a turn ends it.
fn has_begun(request: &Request<'_>) -> bool {
    let messages = without_aside(request.messages, request.words_only);
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
        match self.is_away.load(Ordering::Relaxed) {
            // It would be waited for in vain.
            true => Box::pin(std::future::ready(())),
            false => self.model.prepare(deadline),
        }
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
            let was_away = self.is_away.load(Ordering::Relaxed);
            if (was_away || has_begun(&request))
                && let Some(answer) = self.instead(&request).await
            {
                return Ok(self.tell(answer, &request, listener));
            }
            let heard = match was_away {
                true => Heard::Model(self.model.reply(request, listener).await),
                false => self.ask(request, listener).await,
            };
            let is_there = |reply: &_| !matches!(reply, Err(ModelError::Unreachable { .. }));
            let is_away = !matches!(&heard, Heard::Model(reply) if is_there(reply));
            self.is_away.store(is_away, Ordering::Relaxed);
            match heard {
                Heard::Model(reply) => reply,
                Heard::Sentences(answer) => Ok(self.tell(answer, &request, listener)),
            }
        })
    }
}
