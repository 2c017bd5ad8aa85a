//! A provider that needs no model: sentences are matched against the templates of a language pack.
//!
//! `words` makes words of a sentence, `template` and `engine` small graphs of a pack's sentences, `matcher` finds those that
//! fit, `talk` says what that means, `live` knows the tools and the names of things, `answer` makes words of results.
//! Whatever must be remembered from one message to the next stands in the history itself, so that a conversation can be saved.

mod answer;
mod dates;
mod engine;
mod fast;
mod lists;
mod live;
mod matcher;
mod maths;
mod numbers;
mod pack;
mod talk;
mod template;
#[cfg(test)]
mod tests;
mod words;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use toolgate_core::{Origin, ToolDefinition};

use self::answer::{Answer, Joining};
use self::engine::Engine;
use self::live::Live;
use self::talk::{Choice, Meaning, Moment};
use crate::catalog::{CatalogCache, Dialect};
use crate::{
    AssistantMessage, CallArguments, Catalog, Event, Listener, Message, ModelCall, ModelClient,
    ModelError, Part, Provider, Reply, Request, Stop, ToolList, ToolResult, Toolbox, Usage,
};

pub use fast::FastPath;
pub use pack::{Pack, PackError};

/// Answers by itself what it has sentences for, in less than a millisecond once the names of things are known.
///
/// ```
/// use std::sync::Arc;
/// use serde_json::json;
/// use toolgate_core::{ToolExecutor, ToolManager};
/// use toolgate_models::{IntentsClient, ModelClient, Pack, Provider, Toolbox};
///
/// let toolbox = Toolbox::new(ToolExecutor::new(Arc::new(ToolManager::new())));
/// let mine = Pack::read(r#"{ "intents": [{ "sentences": ["ring [the] bell"], "tool": "bell", "answer": "Ding." }] }"#)?;
/// let client = IntentsClient::new(toolbox, Pack::english().with(mine))?;
/// assert_eq!((client.provider(), client.model()), (Provider::Intents, "en"));
/// # Ok::<_, toolgate_models::PackError>(())
/// ```
pub struct IntentsClient {
    engine: Engine,
    toolbox: Toolbox,
    origin: Origin,
    live: Live,
    catalogs: CatalogCache,
    today: fn() -> jiff::civil::Date,
}

/// What an answer of this provider remembers for the next one.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Memory {
    /// The person was asked which of these is meant.
    Asked(Vec<Choice>),
    /// A tool was called, and this is to be said of its result.
    Called {
        answer: Answer,
        slots: Map<String, Value>,
    },
}

const CALL_ID: &str = "intent_";

/// Names and all are taken as they are listed.
const DIALECT: Dialect = Dialect {
    longest_name: usize::MAX,
    original_names: false,
    convert,
};

fn convert(_: &ToolDefinition, name: &str) -> Result<Box<RawValue>, String> {
    serde_json::value::to_raw_value(&json!({ "name": name })).map_err(|error| error.to_string())
}

impl IntentsClient {
    /// With these tools and this language. The toolbox must be that of the conversation.
    pub fn new(toolbox: Toolbox, pack: Pack) -> Result<Self, PackError> {
        Ok(Self {
            engine: Engine::new(pack)?,
            toolbox,
            origin: Origin::default(),
            live: Live::default(),
            catalogs: CatalogCache::default(),
            today: || jiff::Zoned::now().date(),
        })
    }

    /// Who is said to ask when names are read from tools.
    #[must_use]
    pub fn origin(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// Looks again and again until all lists that matter are known.
    async fn with_lists<T>(
        &self,
        mut look: impl FnMut(&Moment<'_>) -> Result<T, std::collections::BTreeSet<usize>>,
    ) -> Option<T> {
        let list = self.toolbox.current();
        // Each time at least one more is known; the last look is for lists that went bad in between.
        for _ in 0..=self.engine.slots.len() {
            let known = self.live.snapshot(&self.engine, &list);
            let today = (self.today)();
            let moment = Moment {
                tools: &known.tools,
                lists: &known.lists,
                today,
            };
            match look(&moment) {
                Ok(found) => return Some(found),
                Err(wanted) => {
                    self.live
                        .read(&self.engine, &wanted, &self.toolbox, &list, self.origin)
                        .await;
                }
            }
        }
        None
    }

    async fn heard(&self, text: &str, asked: Option<&[Choice]>) -> Meaning {
        if let Some(meaning) = asked.and_then(|choices| self.engine.answer_to(text, choices)) {
            return meaning;
        }
        let meaning = self
            .with_lists(|moment| self.engine.understand(text, moment))
            .await;
        meaning.unwrap_or_else(|| Meaning::Say(self.engine.text("again").to_owned()))
    }

    /// The answer to the last message.
    async fn answer(&self, messages: &[Message], words_only: bool) -> AssistantMessage {
        let meaning = match messages {
            [.., Message::Tool { results }] => Meaning::Say(self.told(messages, results)),
            [before @ .., Message::User { text }] => {
                let asked = match memory(before.last()) {
                    Some(Memory::Asked(choices)) => Some(choices),
                    _ => None,
                };
                self.heard(text, asked.as_deref()).await
            }
            _ => Meaning::Say(self.engine.text("again").to_owned()),
        };
        match meaning {
            Meaning::Act { choice, .. } if !words_only => called(messages, choice),
            Meaning::Act { .. } => AssistantMessage::text(self.engine.text("again")),
            Meaning::Say(words) => AssistantMessage::text(words),
            Meaning::Ask { question, choices } => {
                let mut message = AssistantMessage::text(question);
                message.parts.push(remember(&Memory::Asked(choices)));
                message
            }
        }
    }

    /// What came of the calls, in words.
    fn told(&self, messages: &[Message], results: &[ToolResult]) -> String {
        let before = messages.iter().rev().nth(1);
        let (answer, slots) = match memory(before) {
            Some(Memory::Called { answer, slots }) => (answer, slots),
            _ => (Answer::default(), Map::new()),
        };
        let joining = Joining {
            and: self.engine.text("and"),
            done: self.engine.text("done"),
        };
        let words = results.iter().map(|result| match result.is_error {
            true => result.text.clone(),
            false => answer.to_words(&result.text, &slots, &joining),
        });
        words.collect::<Vec<_>>().join("\n")
    }

    /// What a sentence means without any doubt, as the answer to the last message.
    async fn certain(&self, messages: &[Message]) -> Option<AssistantMessage> {
        let [.., Message::User { text }] = messages else {
            return None;
        };
        let choice = self
            .with_lists(|moment| self.engine.certainly(text, moment))
            .await??;
        Some(called(messages, choice))
    }
}

impl ModelClient for IntentsClient {
    fn provider(&self) -> Provider {
        Provider::Intents
    }

    fn model(&self) -> &str {
        &self.engine.pack.language
    }

    fn window(&self) -> usize {
        // It looks at two messages, however many there are.
        1 << 20
    }

    fn catalog(&self, tools: &Arc<ToolList>) -> Arc<Catalog> {
        self.catalogs.get(tools, &DIALECT)
    }

    fn reply<'a>(
        &'a self,
        request: Request<'a>,
        listener: &'a mut dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let message = self.answer(request.messages, request.words_only).await;
            Ok(reply(message, listener))
        })
    }
}

/// Tells the words of an answer and makes a reply of it.
fn reply(message: AssistantMessage, listener: &mut dyn Listener) -> Reply {
    let text = message.to_text();
    if !text.is_empty() {
        listener.event(Event::Text(&text));
    }
    let stop = if message.calls().next().is_some() {
        Stop::Calls
    } else {
        Stop::End
    };
    Reply {
        message,
        stop,
        usage: Usage::default(),
        first_token: Some(Duration::ZERO),
    }
}

/// A message that asks for a call.
fn called(messages: &[Message], choice: Choice) -> AssistantMessage {
    let memory = Memory::Called {
        answer: choice.answer,
        slots: choice.slots,
    };
    let call = ModelCall {
        id: next_id(messages),
        name: choice.tool,
        arguments: CallArguments::Object(choice.arguments),
    };
    AssistantMessage {
        parts: vec![remember(&memory), Part::Call(call)],
    }
}

/// An id that no call before has.
fn next_id(messages: &[Message]) -> String {
    let calls = messages.iter().filter_map(|message| match message {
        Message::Assistant(message) => Some(message.calls()),
        _ => None,
    });
    let used = calls
        .flatten()
        .filter_map(|call| call.id.strip_prefix(CALL_ID)?.parse::<u32>().ok());
    format!(
        "{CALL_ID}{}",
        used.max().map_or(1, |last| last.saturating_add(1))
    )
}

fn remember(memory: &Memory) -> Part {
    Part::Opaque {
        provider: Provider::Intents,
        value: serde_json::to_value(memory).unwrap_or_default(),
    }
}

/// What this provider remembers in a message, if it is one of its own.
fn memory(message: Option<&Message>) -> Option<Memory> {
    let Some(Message::Assistant(message)) = message else {
        return None;
    };
    message.parts.iter().find_map(|part| match part {
        Part::Opaque {
            provider: Provider::Intents,
            value,
        } => Memory::deserialize(value).ok(),
        _ => None,
    })
}
