//! A scripted model.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};
use toolgate_core::{ToolExecutor, ToolManager};
use toolgate_intents::{Pack, SentenceInterpreter};
use toolgate_models::{
    AssistantMessage, CallArguments, Catalog, Message, MessagePart, ModelCall, ModelClient,
    ModelError, ModelEvent, ModelListener, ModelReply, ModelRequest, Provider, SentenceRouter,
    StopReason, TokenUsage, ToolList, Toolbox,
};

/// One step of the script.
#[derive(Clone)]
pub(crate) enum ModelStep {
    Words(&'static str),
    /// Says these pieces, each after a while.
    Slowly(Duration, &'static [&'static str]),
    /// Says something, takes it back, and says something else.
    Corrects(&'static str, &'static str),
    /// Calls a tool, perhaps with words before.
    Call(&'static str, &'static str),
    /// Fails, perhaps in the middle of these words.
    Fails(&'static str, ModelError),
    Never,
    Panics,
}

/// Answers from a script and repeats the last step.
pub(crate) struct ScriptedModel {
    says: Mutex<VecDeque<ModelStep>>,
    asked: Mutex<Vec<Vec<Message>>>,
    /// How many tools it was offered each time, and when.
    offered: Mutex<Vec<(usize, Instant)>>,
    /// Knows how tools are listed.
    lists: SentenceRouter,
    keeps: bool,
    /// How long it takes to get ready.
    pub(crate) prepares: Mutex<Duration>,
}

impl ScriptedModel {
    pub(crate) fn new(says: impl IntoIterator<Item = ModelStep>) -> Arc<Self> {
        Arc::new(Self::of(says, true))
    }

    /// Doesn't record requests.
    pub(crate) fn forgetful(says: impl IntoIterator<Item = ModelStep>) -> Arc<Self> {
        Arc::new(Self::of(says, false))
    }

    fn of(says: impl IntoIterator<Item = ModelStep>, keeps: bool) -> Self {
        let toolbox = Toolbox::new(ToolExecutor::new(Arc::new(ToolManager::new())));
        let sentences = SentenceInterpreter::new(toolbox, Pack::english()).unwrap();
        Self {
            says: Mutex::new(says.into_iter().collect()),
            asked: Mutex::default(),
            offered: Mutex::default(),
            lists: SentenceRouter::sentences_only(Arc::new(sentences)),
            keeps,
            prepares: Mutex::default(),
        }
    }

    /// The messages of each request.
    pub(crate) fn asked(&self) -> Vec<Vec<Message>> {
        self.asked.lock().clone()
    }

    /// How many tools it was offered each time, and when.
    pub(crate) fn offered(&self) -> Vec<(usize, Instant)> {
        self.offered.lock().clone()
    }

    /// The assistant's words in the last request.
    pub(crate) fn has_said(&self) -> Vec<String> {
        let asked = self.asked().pop().unwrap();
        let said = asked.iter().filter_map(|message| match message {
            Message::Assistant(message) => Some(message.to_text()),
            _ => None,
        });
        said.collect()
    }

    fn next(&self) -> ModelStep {
        let mut says = self.says.lock();
        match says.len() {
            1 => says.front().cloned(),
            _ => says.pop_front(),
        }
        .unwrap()
    }
}

impl ModelClient for ScriptedModel {
    fn provider(&self) -> Provider {
        Provider::Ollama
    }

    fn model(&self) -> &str {
        "script"
    }

    fn prepare(&self, _: Instant) -> BoxFuture<'_, ()> {
        sleep(*self.prepares.lock()).boxed()
    }

    fn window(&self) -> usize {
        100_000
    }

    fn catalog(&self, tools: &Arc<ToolList>) -> Arc<Catalog> {
        self.lists.catalog(tools)
    }

    fn reply<'a>(
        &'a self,
        request: ModelRequest<'a>,
        listener: &'a mut dyn ModelListener,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        if self.keeps {
            self.asked.lock().push(request.messages.to_vec());
            let offered = (request.tools.len(), Instant::now());
            self.offered.lock().push(offered);
        }
        let say = self.next();
        async move {
            let text = |text: String| MessagePart::Text { text };
            let (parts, stop) = match say {
                ModelStep::Words(words) => {
                    listener.event(ModelEvent::Text(words));
                    (vec![text(words.to_owned())], StopReason::End)
                }
                ModelStep::Slowly(after, pieces) => {
                    for piece in pieces {
                        sleep(after).await;
                        listener.event(ModelEvent::Text(piece));
                    }
                    (vec![text(pieces.concat())], StopReason::End)
                }
                ModelStep::Corrects(wrong, words) => {
                    for event in [ModelEvent::Void, ModelEvent::Text(wrong), ModelEvent::Void] {
                        listener.event(event);
                        tokio::task::yield_now().await;
                    }
                    listener.event(ModelEvent::Text(words));
                    (vec![text(words.to_owned())], StopReason::End)
                }
                ModelStep::Call(words, name) => {
                    let call = MessagePart::Call(ModelCall {
                        id: String::new(),
                        name: name.to_owned(),
                        arguments: CallArguments::parse("{}"),
                    });
                    let mut parts = vec![call];
                    if !words.is_empty() {
                        listener.event(ModelEvent::Text(words));
                        parts.insert(0, text(words.to_owned()));
                    }
                    (parts, StopReason::Calls)
                }
                ModelStep::Fails(words, error) => {
                    if !words.is_empty() {
                        listener.event(ModelEvent::Text(words));
                    }
                    return Err(error);
                }
                ModelStep::Never => std::future::pending().await,
                ModelStep::Panics => panic!("as the test told it to"),
            };
            Ok(ModelReply {
                message: AssistantMessage { parts },
                stop,
                usage: TokenUsage::default(),
                first_token: None,
            })
        }
        .boxed()
    }
}
