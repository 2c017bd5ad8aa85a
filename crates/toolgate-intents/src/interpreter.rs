//! The public interpreter: turns sentences into calls, and results into words.

use std::sync::Arc;

use serde_json::Map;
use toolgate_core::{ToolWaitListener, Toolbox};

use super::answer::{AnswerTemplate, AnswerWording};
use super::engine::SentenceEngine;
use super::live_lists::LiveLists;
use super::lookups::LookupCache;
use super::meaning::{Interpretation, MatchContext, MissingLists, SentenceMeaning};
use super::memory::{
    CompletedCalls, ResultPhrase, SentenceContext, SentenceMemory, start_next_step,
};
use super::pack::{Pack, PackError};

/// Interprets sentences for the tools that are available. Takes less than a millisecond once the
/// names of things are known.
///
/// ```
/// use std::sync::Arc;
/// use toolgate_core::{ToolExecutor, ToolManager, Toolbox};
/// use toolgate_intents::{Interpretation, Pack, SentenceContext, SentenceInterpreter};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let toolbox = Toolbox::new(ToolExecutor::new(Arc::new(ToolManager::new())));
/// let mine = Pack::parse(r#"{ "intents": [{ "sentences": ["hello [there]"], "say": "Hi." }] }"#)?;
/// let sentences = SentenceInterpreter::new(toolbox, Pack::english().with(mine))?;
/// let context = SentenceContext::default();
/// let meaning = sentences.interpret("Hello!", &context, true, &mut |_| {}).await;
/// assert_eq!(meaning, Interpretation::Answer("Hi.".to_owned()));
/// # Ok::<_, toolgate_intents::PackError>(())
/// # }).unwrap();
/// ```
pub struct SentenceInterpreter {
    pub(crate) engine: Arc<SentenceEngine>,
    pub(crate) toolbox: Toolbox,
    pub(crate) live_lists: Arc<LiveLists>,
    pub(crate) today: fn() -> jiff::civil::Date,
}

impl SentenceInterpreter {
    /// Fails if the pack is inconsistent. Calls that read names go through `toolbox`, so it
    /// must be the conversation's.
    pub fn new(toolbox: Toolbox, pack: Pack) -> Result<Self, PackError> {
        Ok(Self {
            engine: Arc::new(SentenceEngine::new(pack)?),
            toolbox,
            live_lists: Arc::default(),
            today: || jiff::Zoned::now().date(),
        })
    }

    /// The language of the pack, such as `en`.
    pub fn language(&self) -> &str {
        &self.engine.pack.language
    }

    /// Interprets one sentence. If it needs a tool whose server is still starting, it reports that
    /// to `waits` and waits. With `may_call` false, a sentence that means calls fails.
    pub async fn interpret(
        &self,
        text: &str,
        context: &SentenceContext<'_>,
        may_call: bool,
        waits: ToolWaitListener<'_>,
    ) -> Interpretation {
        match self.interpret_reply_or_text(text, context, waits).await {
            SentenceMeaning::Act { choice, then, .. } if may_call => {
                start_next_step(std::iter::once(choice).chain(then).collect())
            }
            SentenceMeaning::Act { .. } => self.ask_to_repeat(),
            SentenceMeaning::Say(words) => Interpretation::Answer(words),
            SentenceMeaning::Fail(words) => Interpretation::Failure(words),
            SentenceMeaning::Ask {
                question: text,
                choices: asked,
            } => Interpretation::Question {
                text,
                memory: SentenceMemory {
                    asked,
                    ..SentenceMemory::default()
                },
            },
            SentenceMeaning::AskMissing {
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

    /// The calls of a sentence whose meaning is certain: it has no misspelling, partial name or
    /// free text. `None` for any other sentence. Never waits for a server to start, but does read
    /// lists of names, so the caller should set a timeout.
    pub async fn certain_calls(
        &self,
        text: &str,
        context: &SentenceContext<'_>,
    ) -> Option<Interpretation> {
        let find_steps = |matching: &MatchContext<'_>| self.engine.certain_steps(text, matching);
        let steps = self.with_lists(context, None, find_steps).await??;
        Some(start_next_step(steps))
    }

    /// Continues after the calls that were made since the person spoke: with the next
    /// calls, or with an answer that reports all results. With `may_call` false, an answer
    /// says if steps are left.
    pub fn after_calls(&self, rounds: &[CompletedCalls<'_>], may_call: bool) -> Interpretation {
        let last = rounds.last().and_then(|round| round.memory);
        let steps = last.map_or(&[][..], |memory| memory.then.as_slice());
        if !steps.is_empty() && may_call {
            return start_next_step(steps.to_vec());
        }
        let (mut words, has_failed) = self.report_results(rounds);
        if !steps.is_empty() {
            words = format!("{words}\n{}", self.engine.text("left"));
        }
        match has_failed || !steps.is_empty() {
            true => Interpretation::Failure(words),
            false => Interpretation::Answer(words),
        }
    }

    /// Asks the person to repeat the sentence. For a history that can't be continued.
    pub fn ask_to_repeat(&self) -> Interpretation {
        Interpretation::Failure(self.engine.text("again").to_owned())
    }

    // Repeats `attempt` until all lists it needs are known. Waits for servers that are still
    // starting only if `waits` is given; otherwise the result is `None`.
    async fn with_lists<T>(
        &self,
        context: &SentenceContext<'_>,
        mut waits: Option<ToolWaitListener<'_>>,
        mut attempt: impl FnMut(&MatchContext<'_>) -> Result<T, MissingLists>,
    ) -> Option<T> {
        let last = context.last_slots();
        let mut list = self.toolbox.current();
        // Each round reads at least one list, which bounds the loop. The extra round is for a list
        // that expired in the meantime.
        for _ in 0..=self.engine.slots.len() {
            let known = self.live_lists.snapshot(&self.engine, &list);
            let found = attempt(&MatchContext {
                tools: &known.tools,
                lists: &known.lists,
                today: (self.today)(),
                last_slots: &last,
                lookups: &LookupCache::default(),
            });
            match found {
                Ok(found) => return Some(found),
                Err(wanted) => {
                    if !self.wait_for_lists(&wanted, &mut waits).await {
                        return None;
                    }
                    list = self.toolbox.current();
                    let (engine, toolbox) = (&self.engine, &self.toolbox);
                    self.live_lists.read(engine, wanted, toolbox, &list).await;
                }
            }
        }
        None
    }

    async fn interpret_reply_or_text(
        &self,
        text: &str,
        context: &SentenceContext<'_>,
        waits: ToolWaitListener<'_>,
    ) -> SentenceMeaning {
        if let Some(choices) = context.question() {
            let answer =
                |matching: &MatchContext<'_>| self.engine.interpret_reply(text, choices, matching);
            let answer = self.with_lists(context, Some(&mut *waits), answer).await;
            if let Some(Some(meaning)) = answer {
                return meaning;
            }
        }
        let meaning = self.understand_with_wait(text, context, waits).await;
        let Some(begun) = context.unfinished_sentence() else {
            return meaning;
        };
        let whole = format!("{begun} {text}");
        match meaning {
            SentenceMeaning::Fail(_) if self.engine.is_no(text) => self.engine.cancelled(),
            // `Turn on.` `What should I turn on?` `The lamp.`
            SentenceMeaning::Fail(why) => {
                match self.understand_with_wait(&whole, context, waits).await {
                    SentenceMeaning::Fail(_) => SentenceMeaning::Fail(why),
                    meaning => meaning,
                }
            }
            // `The battery of which device?` `Motion sensor.` On its own that is ambiguous, but
            // here it is the answer.
            asked @ SentenceMeaning::Ask { .. } => {
                match self.understand_with_wait(&whole, context, waits).await {
                    meaning @ SentenceMeaning::Act { .. } => meaning,
                    _ => asked,
                }
            }
            meaning => meaning,
        }
    }

    async fn understand_with_wait(
        &self,
        text: &str,
        context: &SentenceContext<'_>,
        waits: ToolWaitListener<'_>,
    ) -> SentenceMeaning {
        let meaning = self.understand_with_lists(text, context, waits).await;
        let SentenceMeaning::Fail(_) = meaning else {
            return meaning;
        };
        // The sentence may have failed only because its tool is not available yet.
        let Some(tool) = self.awaited_tool(text, context) else {
            return meaning;
        };
        self.toolbox.wait_for_tool(&tool, waits).await;
        self.understand_with_lists(text, context, waits).await
    }

    async fn understand_with_lists(
        &self,
        text: &str,
        context: &SentenceContext<'_>,
        waits: ToolWaitListener<'_>,
    ) -> SentenceMeaning {
        let understand = |matching: &MatchContext<'_>| self.engine.understand(text, matching);
        let meaning = self.with_lists(context, Some(waits), understand).await;
        meaning.unwrap_or_else(|| SentenceMeaning::Fail(self.engine.text("again").to_owned()))
    }

    fn report_results(&self, rounds: &[CompletedCalls<'_>]) -> (String, bool) {
        let (mut words, mut has_failed) = (Vec::new(), false);
        for round in rounds {
            let phrases = round.memory.map_or(&[][..], |memory| &memory.called);
            for (index, (text, is_error)) in round.results.iter().enumerate() {
                let said = self.result_text(phrases.get(index), text, *is_error);
                // Five lamps in a row that answer `Done.` are reported once, and so is an error
                // that occurs several times.
                let is_repeated = match is_error {
                    true => words.contains(&said),
                    false => words.last() == Some(&said),
                };
                if !is_repeated {
                    words.push(said);
                }
                has_failed |= is_error;
            }
        }
        (words.join("\n"), has_failed)
    }

    fn result_text(&self, phrase: Option<&ResultPhrase>, text: &str, is_error: bool) -> String {
        let wording = AnswerWording {
            and: self.engine.text("and"),
            rounded_prefix: self.engine.text("about"),
            done: self.engine.text("done"),
            units: &self.engine.pack.maths.shown,
        };
        let (none, no_slots) = (AnswerTemplate::default(), Map::new());
        let (answer, slots) =
            phrase.map_or((&none, &no_slots), |phrase| (&phrase.answer, &phrase.slots));
        match is_error {
            true => answer.render_error(text, slots, &wording),
            false => answer.render_result(text, slots, &wording),
        }
    }
}
