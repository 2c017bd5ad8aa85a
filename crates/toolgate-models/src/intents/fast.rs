//! Sentences that are understood without any doubt need no model.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::Instant;

use super::{IntentsClient, Memory, memory, reply};
use crate::{
    AssistantMessage, Catalog, Listener, Message, ModelClient, ModelError, Provider, Reply,
    Request, Stop, ToolList,
};

/// How long a turn waits for the names of things. They go on being read, and are there for one of the next turns.
pub(crate) const PATIENCE: Duration = Duration::from_millis(150);

/// A model with [`IntentsClient`] in front of it. What is certain is answered at once, everything else by the model: what
/// is misspelt, what could mean two things, what is free text, and what is about things whose names are not read within 150 ms. Who begins a turn ends it, unless a call fails: then the model,
/// which sees the call and what came of it, answers.
///
/// ```
/// use std::sync::Arc;
/// use toolgate_core::{ToolExecutor, ToolManager};
/// use toolgate_models::{FastPath, IntentsClient, ModelClient, Pack, Toolbox};
///
/// let toolbox = Toolbox::new(ToolExecutor::new(Arc::new(ToolManager::new())));
/// let intents = IntentsClient::new(toolbox.clone(), Pack::english())?;
/// # let model: Arc<dyn ModelClient> = Arc::new(IntentsClient::new(toolbox, Pack::english())?);
/// let client = FastPath::new(intents, model);
/// assert_eq!(client.model(), "en");
/// # Ok::<_, toolgate_models::PackError>(())
/// ```
pub struct FastPath {
    intents: Arc<IntentsClient>,
    model: Arc<dyn ModelClient>,
}

impl FastPath {
    /// In front of a model.
    pub fn new(intents: impl Into<Arc<IntentsClient>>, model: Arc<dyn ModelClient>) -> Self {
        Self {
            intents: intents.into(),
            model,
        }
    }

    /// The calls that a sentence means without any doubt, if that is known at once.
    async fn certain(&self, messages: &[Message]) -> Option<AssistantMessage> {
        let looking = tokio::time::timeout(PATIENCE, self.intents.certain(messages));
        looking.await.unwrap_or_else(|_| {
            tracing::debug!("the names of things are still being read: the model answers");
            None
        })
    }
}

impl ModelClient for FastPath {
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
        Box::pin(async move {
            let text = text.to_owned();
            self.certain(&[Message::User { text }]).await.is_some()
        })
    }

    fn reply<'a>(
        &'a self,
        request: Request<'a>,
        listener: &'a mut dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let answer = match request.messages {
                [.., before, Message::Tool { results }] => match memory(Some(before)) {
                    Some(Memory::Called(_)) if !results.iter().any(|result| result.is_error) => {
                        Some(
                            self.intents
                                .answer(request.messages, request.words_only, listener)
                                .await,
                        )
                    }
                    _ => None,
                },
                [.., Message::User { .. }] if !request.words_only => {
                    let call = self.certain(request.messages).await;
                    call.map(|message| (message, Stop::Calls))
                }
                _ => None,
            };
            match answer {
                Some((message, stop)) => Ok(reply(message, stop, listener)),
                None => self.model.reply(request, listener).await,
            }
        })
    }
}
