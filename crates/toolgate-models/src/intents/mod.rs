//! A provider that needs no model: sentences are matched against the templates of a language pack.
//!
//! `words` makes words of a sentence, `template` and `engine` small graphs of a pack's sentences, `matcher` finds those that
//! fit, `talk` says what that means, `live` knows the tools and the names of things, `answer` makes words of results.
//! Whatever must be remembered from one message to the next stands in the history itself, so that a conversation can be saved
//! (`memory`).

mod answer;
mod dates;
mod doubts;
mod engine;
mod examples;
mod fast;
mod fills;
mod groups;
mod items;
mod left_out;
mod lists;
mod live;
mod lookups;
mod matcher;
mod maths;
mod meaning;
mod memory;
mod numbers;
mod pack;
mod parts;
mod replies;
mod spelling;
mod stand_in;
mod talk;
mod template;
#[cfg(test)]
mod tests;
mod waiting;
mod words;

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::value::RawValue;
use serde_json::{Map, json};
use tokio::time::Instant;
use toolgate_core::ToolDefinition;

use self::answer::{Answer, Joining};
use self::engine::Engine;
use self::live::Live;
use self::lookups::Lookups;
use self::meaning::{Meaning, Moment};
use self::memory::{
    Memory, Said, call_next, last_slots, memory, remember, then, was_heard, without_aside,
};
use crate::catalog::{CatalogCache, Dialect};
use crate::{
    AssistantMessage, Catalog, Event, Listener, Message, ModelClient, ModelError, Provider, Reply,
    Request, Stop, ToolList, ToolResult, Toolbox, Usage,
};

pub use fast::FastPath;
pub(crate) use fast::PATIENCE;
pub use pack::{Pack, PackError};
pub use stand_in::StandIn;

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
    engine: Arc<Engine>,
    toolbox: Toolbox,
    live: Arc<Live>,
    catalogs: CatalogCache,
    today: fn() -> jiff::civil::Date,
}

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
            engine: Arc::new(Engine::new(pack)?),
            toolbox,
            live: Arc::default(),
            catalogs: CatalogCache::default(),
            today: || jiff::Zoned::now().date(),
        })
    }

    /// Looks again and again until all lists that matter are known. Those of servers that are still starting are waited for, if
    /// there is somebody to tell that; else there is no result.
    async fn with_lists<T>(
        &self,
        messages: &[Message],
        mut waits: Option<&mut dyn Listener>,
        mut look: impl FnMut(&Moment<'_>) -> Result<T, BTreeSet<usize>>,
    ) -> Option<T> {
        let last = last_slots(messages);
        let mut list = self.toolbox.current();
        // Each time at least one more is known; the last look is for lists that went bad in between.
        for _ in 0..=self.engine.slots.len() {
            let known = self.live.snapshot(&self.engine, &list);
            let found = look(&Moment {
                tools: &known.tools,
                lists: &known.lists,
                today: (self.today)(),
                last: &last,
                lookups: &Lookups::default(),
            });
            match found {
                Ok(found) => return Some(found),
                Err(wanted) => {
                    if !self.are_readable(&wanted, &mut waits).await {
                        return None;
                    }
                    list = self.toolbox.current();
                    self.live
                        .read(&self.engine, wanted, &self.toolbox, &list)
                        .await;
                }
            }
        }
        None
    }

    async fn heard(&self, text: &str, before: &[Message], listener: &mut dyn Listener) -> Meaning {
        let memory = memory(before.last());
        if let Some(Memory::Asked(choices)) = &memory
            && was_heard(before.last(), choices)
            && let Some(Some(meaning)) = self
                .with_lists(before, Some(listener), |moment| {
                    self.engine.answer_to(text, choices, moment)
                })
                .await
        {
            return meaning;
        }
        let meaning = self.understood(text, before, listener).await;
        match (memory, meaning) {
            (Some(Memory::Begun(_)), Meaning::Fail(_)) if self.engine.is_no(text) => {
                self.engine.cancelled()
            }
            // `Turn on.` `What should I turn on?` `The lamp.`
            (Some(Memory::Begun(begun)), Meaning::Fail(why)) => {
                let whole = format!("{begun} {text}");
                match self.understood(&whole, before, listener).await {
                    Meaning::Fail(_) => Meaning::Fail(why),
                    meaning => meaning,
                }
            }
            // `The battery of which device?` `Motion sensor.` That could be something else, but here it is the answer.
            (Some(Memory::Begun(begun)), asked @ Meaning::Ask { .. }) => {
                let whole = format!("{begun} {text}");
                match self.understood(&whole, before, listener).await {
                    meaning @ Meaning::Act { .. } => meaning,
                    _ => asked,
                }
            }
            (_, meaning) => meaning,
        }
    }

    async fn understood(
        &self,
        text: &str,
        before: &[Message],
        listener: &mut dyn Listener,
    ) -> Meaning {
        let meaning = self.understood_now(text, before, listener).await;
        let Meaning::Fail(_) = meaning else {
            return meaning;
        };
        // Perhaps only because its tool is not there yet.
        let Some(tool) = self.awaited_tool(text, before) else {
            return meaning;
        };
        self.toolbox
            .wait_for_tool(&tool, &mut crate::event::tell_waits(listener))
            .await;
        self.understood_now(text, before, listener).await
    }

    async fn understood_now(
        &self,
        text: &str,
        before: &[Message],
        listener: &mut dyn Listener,
    ) -> Meaning {
        let meaning = self
            .with_lists(before, Some(listener), |moment| {
                self.engine.understand(text, moment)
            })
            .await;
        meaning.unwrap_or_else(|| Meaning::Fail(self.engine.text("again").to_owned()))
    }

    /// The answer to the last message. The listener hears only of waits for tools.
    async fn answer(
        &self,
        messages: &[Message],
        words_only: bool,
        listener: &mut dyn Listener,
    ) -> (AssistantMessage, Stop) {
        let messages = without_aside(messages, words_only);
        let again = || Meaning::Fail(self.engine.text("again").to_owned());
        let meaning = match messages {
            [.., called, Message::Tool { .. }] => match then(called) {
                steps if steps.is_empty() => self.told(messages),
                _ if words_only => self.told_half(messages),
                steps => return (call_next(messages, steps), Stop::Calls),
            },
            [before @ .., Message::User { text }] => match self.heard(text, before, listener).await
            {
                Meaning::Act { .. } if words_only => again(),
                meaning => meaning,
            },
            _ => again(),
        };
        let asking = |question: String, memory: Memory| {
            let mut message = AssistantMessage::text(question);
            message.parts.push(remember(&memory));
            (message, Stop::End)
        };
        match meaning {
            Meaning::Act { choice, then, .. } => {
                let steps = std::iter::once(choice).chain(then);
                (call_next(messages, steps.collect()), Stop::Calls)
            }
            Meaning::Say(words) => (AssistantMessage::text(words), Stop::End),
            // A program that asks sees by this that nothing came of it.
            Meaning::Fail(words) => (AssistantMessage::text(words), Stop::Refusal),
            Meaning::Ask { question, choices } => asking(question, Memory::Asked(choices)),
            Meaning::Begun { question, words } => asking(question, Memory::Begun(words)),
        }
    }

    /// What came of all calls since the person spoke, in words.
    fn told(&self, messages: &[Message]) -> Meaning {
        let is_user = |message: &Message| matches!(message, Message::User { .. });
        let asked = messages.iter().rposition(is_user).map_or(0, |at| at + 1);
        let (mut words, mut has_failed) = (Vec::new(), false);
        for pair in messages[asked..].windows(2) {
            if let [called, Message::Tool { results }] = pair {
                let said = match memory(Some(called)) {
                    Some(Memory::Called(said)) => said,
                    _ => Vec::new(),
                };
                for (said, result) in self.words_of(&said, results).into_iter().zip(results) {
                    // Five lamps that say `Done.` say it once, and so does what fails for the same reason.
                    let is_told = match result.is_error {
                        true => words.contains(&said),
                        false => words.last() == Some(&said),
                    };
                    if !is_told {
                        words.push(said);
                    }
                    has_failed |= result.is_error;
                }
            }
        }
        let words = words.join("\n");
        match has_failed {
            true => Meaning::Fail(words),
            false => Meaning::Say(words),
        }
    }

    /// The same, where there is more to be done than may be done in one turn.
    fn told_half(&self, messages: &[Message]) -> Meaning {
        let (Meaning::Fail(words) | Meaning::Say(words)) = self.told(messages) else {
            return Meaning::Fail(self.engine.text("left").to_owned());
        };
        Meaning::Fail(format!("{words}\n{}", self.engine.text("left")))
    }

    /// What results come to.
    fn words_of(&self, said: &[Said], results: &[ToolResult]) -> Vec<String> {
        let joining = Joining {
            and: self.engine.text("and"),
            about: self.engine.text("about"),
            done: self.engine.text("done"),
            units: &self.engine.pack.maths.shown,
        };
        let (none, no_slots) = (Answer::default(), Map::new());
        let words = results.iter().enumerate().map(|(index, result)| {
            let (answer, slots) = said
                .get(index)
                .map_or((&none, &no_slots), |said| (&said.answer, &said.slots));
            match result.is_error {
                true => answer.to_failure(&result.text, slots, &joining),
                false => answer.to_words(&result.text, slots, &joining),
            }
        });
        words.collect()
    }

    /// What a sentence means without any doubt, as the answer to the last message.
    async fn certain(&self, messages: &[Message]) -> Option<AssistantMessage> {
        let [before @ .., Message::User { text }] = messages else {
            return None;
        };
        let steps = self
            .with_lists(before, None, |moment| self.engine.certainly(text, moment))
            .await??;
        Some(call_next(messages, steps))
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

    fn understands<'a>(&'a self, text: &'a str) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let text = text.to_owned();
            let looking = self.certain(&[Message::User { text }]).await;
            looking.is_some()
        })
    }

    /// It waits itself, for what a sentence needs.
    fn wants_all_tools<'a>(&'a self, _: &'a str) -> BoxFuture<'a, bool> {
        Box::pin(std::future::ready(false))
    }

    fn reply<'a>(
        &'a self,
        request: Request<'a>,
        listener: &'a mut dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let (message, stop) = self
                .answer(request.messages, request.words_only, listener)
                .await;
            Ok(reply(message, stop, listener))
        })
    }
}

/// Tells the words of an answer and makes a reply of it.
fn reply(message: AssistantMessage, stop: Stop, listener: &mut dyn Listener) -> Reply {
    let text = message.to_text();
    if !text.is_empty() {
        listener.event(Event::Text(&text));
    }
    Reply {
        message,
        stop,
        usage: Usage::default(),
        first_token: Some(Instant::now()),
    }
}
