//! A model that says what a test tells it to.

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
    AssistantMessage, CallArguments, Catalog, Event, Listener, Message, ModelCall, ModelClient,
    ModelError, Part, Provider, Reply, Request, SentenceRouter, Stop, ToolList, Toolbox, Usage,
};

/// What it does when it is asked.
#[derive(Clone)]
pub(crate) enum Say {
    /// Says this.
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

/// Reads its answers from a script; at the end the last again.
pub(crate) struct Script {
    says: Mutex<VecDeque<Say>>,
    asked: Mutex<Vec<Vec<Message>>>,
    /// How many tools it was offered each time, and when.
    offered: Mutex<Vec<(usize, Instant)>>,
    /// Knows how tools are listed.
    lists: SentenceRouter,
    keeps: bool,
    /// How long it takes to get ready.
    pub(crate) prepares: Mutex<Duration>,
}

impl Script {
    pub(crate) fn new(says: impl IntoIterator<Item = Say>) -> Arc<Self> {
        Arc::new(Self::of(says, true))
    }

    /// Without a record of what it was asked.
    pub(crate) fn forgetful(says: impl IntoIterator<Item = Say>) -> Arc<Self> {
        Arc::new(Self::of(says, false))
    }

    fn of(says: impl IntoIterator<Item = Say>, keeps: bool) -> Self {
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

    /// What it was sent each time.
    pub(crate) fn asked(&self) -> Vec<Vec<Message>> {
        self.asked.lock().clone()
    }

    /// How many tools it was offered each time, and when.
    pub(crate) fn offered(&self) -> Vec<(usize, Instant)> {
        self.offered.lock().clone()
    }

    /// The words of the assistant in what it was sent last.
    pub(crate) fn has_said(&self) -> Vec<String> {
        let asked = self.asked().pop().unwrap();
        let said = asked.iter().filter_map(|message| match message {
            Message::Assistant(message) => Some(message.to_text()),
            _ => None,
        });
        said.collect()
    }

    fn next(&self) -> Say {
        let mut says = self.says.lock();
        match says.len() {
            1 => says.front().cloned(),
            _ => says.pop_front(),
        }
        .unwrap()
    }
}

impl ModelClient for Script {
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
        request: Request<'a>,
        listener: &'a mut dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        if self.keeps {
            self.asked.lock().push(request.messages.to_vec());
            let offered = (request.tools.len(), Instant::now());
            self.offered.lock().push(offered);
        }
        let say = self.next();
        async move {
            let text = |text: String| Part::Text { text };
            let (parts, stop) = match say {
                Say::Words(words) => {
                    listener.event(Event::Text(words));
                    (vec![text(words.to_owned())], Stop::End)
                }
                Say::Slowly(after, pieces) => {
                    for piece in pieces {
                        sleep(after).await;
                        listener.event(Event::Text(piece));
                    }
                    (vec![text(pieces.concat())], Stop::End)
                }
                Say::Corrects(wrong, words) => {
                    for event in [Event::Void, Event::Text(wrong), Event::Void] {
                        listener.event(event);
                        tokio::task::yield_now().await;
                    }
                    listener.event(Event::Text(words));
                    (vec![text(words.to_owned())], Stop::End)
                }
                Say::Call(words, name) => {
                    let call = Part::Call(ModelCall {
                        id: String::new(),
                        name: name.to_owned(),
                        arguments: CallArguments::read("{}"),
                    });
                    let mut parts = vec![call];
                    if !words.is_empty() {
                        listener.event(Event::Text(words));
                        parts.insert(0, text(words.to_owned()));
                    }
                    (parts, Stop::Calls)
                }
                Say::Fails(words, error) => {
                    if !words.is_empty() {
                        listener.event(Event::Text(words));
                    }
                    return Err(error);
                }
                Say::Never => std::future::pending().await,
                Say::Panics => panic!("as the test told it to"),
            };
            Ok(Reply {
                message: AssistantMessage { parts },
                stop,
                usage: Usage::default(),
                first_token: None,
            })
        }
        .boxed()
    }
}
