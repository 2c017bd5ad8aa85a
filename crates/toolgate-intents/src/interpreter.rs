//! From a sentence to calls, and from their results to words.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Map;
use toolgate_core::{ToolWaitListener, Toolbox};

use super::answer::{Answer, Joining};
use super::engine::Engine;
use super::live::Live;
use super::lookups::Lookups;
use super::meaning::{Interpretation, Meaning, Moment};
use super::memory::{CompletedCalls, ResultPhrase, SentenceContext, SentenceMemory, call_next};
use super::pack::{Pack, PackError};

/// Says what sentences mean with the tools that are there, in less than a millisecond once the
/// names of things are known.
///
/// ```
/// use std::sync::Arc;
/// use toolgate_core::{ToolExecutor, ToolManager, Toolbox};
/// use toolgate_intents::{Interpretation, Pack, SentenceContext, SentenceInterpreter};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let toolbox = Toolbox::new(ToolExecutor::new(Arc::new(ToolManager::new())));
/// let mine = Pack::read(r#"{ "intents": [{ "sentences": ["hello [there]"], "say": "Hi." }] }"#)?;
/// let sentences = SentenceInterpreter::new(toolbox, Pack::english().with(mine))?;
/// let context = SentenceContext::default();
/// let meaning = sentences.interpret("Hello!", &context, true, &mut |_| {}).await;
/// assert_eq!(meaning, Interpretation::Answer("Hi.".to_owned()));
/// # Ok::<_, toolgate_intents::PackError>(())
/// # }).unwrap();
/// ```
pub struct SentenceInterpreter {
    pub(crate) engine: Arc<Engine>,
    pub(crate) toolbox: Toolbox,
    pub(crate) live: Arc<Live>,
    pub(crate) today: fn() -> jiff::civil::Date,
}

impl SentenceInterpreter {
    /// With these tools and this language. The toolbox must be that of the conversation.
    pub fn new(toolbox: Toolbox, pack: Pack) -> Result<Self, PackError> {
        Ok(Self {
            engine: Arc::new(Engine::new(pack)?),
            toolbox,
            live: Arc::default(),
            today: || jiff::Zoned::now().date(),
        })
    }

    /// The language of its pack, such as `en`.
    pub fn language(&self) -> &str {
        &self.engine.pack.language
    }

    /// What a sentence means. Waits for tools whose servers are still starting, if it needs them,
    /// and tells so. Where nothing may be called any more, a sentence that means calls fails.
    pub async fn interpret(
        &self,
        text: &str,
        context: &SentenceContext<'_>,
        may_call: bool,
        waits: ToolWaitListener<'_>,
    ) -> Interpretation {
        match self.heard(text, context, waits).await {
            Meaning::Act { choice, then, .. } if may_call => {
                call_next(std::iter::once(choice).chain(then).collect())
            }
            Meaning::Act { .. } => self.say_again(),
            Meaning::Say(words) => Interpretation::Answer(words),
            Meaning::Fail(words) => Interpretation::Failure(words),
            Meaning::Ask {
                question: text,
                choices: asked,
            } => Interpretation::Question {
                text,
                memory: SentenceMemory {
                    asked,
                    ..SentenceMemory::default()
                },
            },
            Meaning::Begun {
                question: text,
                words,
            } => Interpretation::Question {
                text,
                memory: SentenceMemory {
                    begun: Some(words),
                    ..SentenceMemory::default()
                },
            },
        }
    }

    /// The calls that a sentence means without any doubt. Never waits for a server; it does wait
    /// for the names of things, so a caller in a hurry sets a limit.
    pub async fn certain_calls(
        &self,
        text: &str,
        context: &SentenceContext<'_>,
    ) -> Option<Interpretation> {
        let certainly = |moment: &Moment<'_>| self.engine.certainly(text, moment);
        let steps = self.with_lists(context, None, certainly).await??;
        Some(call_next(steps))
    }

    /// What follows the calls that were made since the person spoke, round by round: the next
    /// ones, if there are any and they may be made, or the words for all results.
    pub fn after_calls(&self, rounds: &[CompletedCalls<'_>], may_call: bool) -> Interpretation {
        let last = rounds.last().and_then(|round| round.memory);
        let steps = last.map_or(&[][..], |memory| memory.then.as_slice());
        if !steps.is_empty() && may_call {
            return call_next(steps.to_vec());
        }
        let (mut words, has_failed) = self.report(rounds);
        if !steps.is_empty() {
            words = format!("{words}\n{}", self.engine.text("left"));
        }
        match has_failed || !steps.is_empty() {
            true => Interpretation::Failure(words),
            false => Interpretation::Answer(words),
        }
    }

    /// For a history that nothing can be said about.
    pub fn say_again(&self) -> Interpretation {
        Interpretation::Failure(self.engine.text("again").to_owned())
    }

    /// Looks again and again until all lists that matter are known. Those of servers that are
    /// still starting are waited for, if there is somebody to tell that; else there is no result.
    async fn with_lists<T>(
        &self,
        context: &SentenceContext<'_>,
        mut waits: Option<ToolWaitListener<'_>>,
        mut look: impl FnMut(&Moment<'_>) -> Result<T, BTreeSet<usize>>,
    ) -> Option<T> {
        let last = context.last_slots();
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

    async fn heard(
        &self,
        text: &str,
        context: &SentenceContext<'_>,
        waits: ToolWaitListener<'_>,
    ) -> Meaning {
        if let Some(choices) = context.question() {
            let answer = |moment: &Moment<'_>| self.engine.answer_to(text, choices, moment);
            let answer = self.with_lists(context, Some(&mut *waits), answer).await;
            if let Some(Some(meaning)) = answer {
                return meaning;
            }
        }
        let meaning = self.understood(text, context, waits).await;
        let Some(begun) = context.begun() else {
            return meaning;
        };
        let whole = format!("{begun} {text}");
        match meaning {
            Meaning::Fail(_) if self.engine.is_no(text) => self.engine.cancelled(),
            // `Turn on.` `What should I turn on?` `The lamp.`
            Meaning::Fail(why) => match self.understood(&whole, context, waits).await {
                Meaning::Fail(_) => Meaning::Fail(why),
                meaning => meaning,
            },
            // `The battery of which device?` `Motion sensor.` That could be something else, but here
            // it is the answer.
            asked @ Meaning::Ask { .. } => match self.understood(&whole, context, waits).await {
                meaning @ Meaning::Act { .. } => meaning,
                _ => asked,
            },
            meaning => meaning,
        }
    }

    async fn understood(
        &self,
        text: &str,
        context: &SentenceContext<'_>,
        waits: ToolWaitListener<'_>,
    ) -> Meaning {
        let meaning = self.understood_now(text, context, waits).await;
        let Meaning::Fail(_) = meaning else {
            return meaning;
        };
        // Perhaps only because its tool is not there yet.
        let Some(tool) = self.awaited_tool(text, context) else {
            return meaning;
        };
        self.toolbox.wait_for_tool(&tool, waits).await;
        self.understood_now(text, context, waits).await
    }

    async fn understood_now(
        &self,
        text: &str,
        context: &SentenceContext<'_>,
        waits: ToolWaitListener<'_>,
    ) -> Meaning {
        let understand = |moment: &Moment<'_>| self.engine.understand(text, moment);
        let meaning = self.with_lists(context, Some(waits), understand).await;
        meaning.unwrap_or_else(|| Meaning::Fail(self.engine.text("again").to_owned()))
    }

    fn report(&self, rounds: &[CompletedCalls<'_>]) -> (String, bool) {
        let (mut words, mut has_failed) = (Vec::new(), false);
        for round in rounds {
            let phrases = round.memory.map_or(&[][..], |memory| &memory.called);
            for (index, (text, is_error)) in round.results.iter().enumerate() {
                let said = self.words_of(phrases.get(index), text, *is_error);
                // Five lamps that say `Done.` say it once, and so does what fails for the same reason.
                let is_told = match is_error {
                    true => words.contains(&said),
                    false => words.last() == Some(&said),
                };
                if !is_told {
                    words.push(said);
                }
                has_failed |= is_error;
            }
        }
        (words.join("\n"), has_failed)
    }

    fn words_of(&self, phrase: Option<&ResultPhrase>, text: &str, is_error: bool) -> String {
        let joining = Joining {
            and: self.engine.text("and"),
            about: self.engine.text("about"),
            done: self.engine.text("done"),
            units: &self.engine.pack.maths.shown,
        };
        let (none, no_slots) = (Answer::default(), Map::new());
        let (answer, slots) =
            phrase.map_or((&none, &no_slots), |phrase| (&phrase.answer, &phrase.slots));
        match is_error {
            true => answer.to_failure(text, slots, &joining),
            false => answer.to_words(text, slots, &joining),
        }
    }
}
