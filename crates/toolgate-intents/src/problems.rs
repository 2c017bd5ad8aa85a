//! Answers to sentences that were not understood, can't be carried out, or are ambiguous.

use std::collections::{BTreeSet, HashMap};

use super::answer::join_items;
use super::engine::{CompiledSlot, SentenceEngine};
use super::matcher::{FillKind, ListState, SlotFill, TemplateMatch};
use super::meaning::{MatchContext, SentenceMeaning, ToolPresence};
use super::words::{Sentence, plain_words};

const MAX_EXAMPLES: usize = 3;
const MAX_NAMES: usize = 5;

impl SentenceEngine {
    // Explains why a matched sentence can't be carried out, or asks which similar name is meant.
    pub(super) fn explain_problem(
        &self,
        found: &TemplateMatch,
        context: &MatchContext<'_>,
    ) -> Option<SentenceMeaning> {
        let intent = &self.pack.intents[found.intent];
        let tool = intent.tool.as_deref()?;
        let does = intent.does.as_deref().unwrap_or(self.text("do_that"));
        let about = [("tool", tool), ("does", does)];
        let (name, careful) = match context.tools.get(found.intent)? {
            ToolPresence::Absent => {
                return Some(SentenceMeaning::Fail(self.fill_text("absent", &about)));
            }
            ToolPresence::Ambiguous(names) => {
                let names = join_items(names, self.text("and"));
                let about = [about[0], about[1], ("names", &names)];
                return Some(SentenceMeaning::Fail(self.fill_text("several", &about)));
            }
            ToolPresence::Ready { name, careful } => (name, *careful),
            ToolPresence::NotNeeded => return None,
        };
        match self.explain_out_of_range(found) {
            Some(words) => Some(SentenceMeaning::Fail(words)),
            None => self.explain_unknown_name(found, name, careful, context),
        }
    }

    fn explain_unknown_name(
        &self,
        found: &TemplateMatch,
        tool: &str,
        careful: bool,
        context: &MatchContext<'_>,
    ) -> Option<SentenceMeaning> {
        let is_unknown = |(_, _, fill): &&(_, usize, SlotFill)| fill.kind == FillKind::UnknownName;
        let place = found.slots.iter().position(|slot| is_unknown(&slot))?;
        let (_, slot, fill) = &found.slots[place];
        let (_, said) = fill.values.first()?;
        if self.pack.pronouns.contains(&said.to_lowercase()) {
            return Some(SentenceMeaning::Say(
                self.fill_text("what", &[("name", said)]),
            ));
        }
        let unknown = |noun: &str| self.fill_text("unknown", &[("noun", noun), ("name", said)]);
        let source = match &self.slots[*slot] {
            CompiledSlot::List(source) => source,
            CompiledSlot::Values(_, noun) => {
                return Some(SentenceMeaning::Fail(unknown(noun.as_deref()?)));
            }
            _ => return None,
        };
        let names = match context.lists.get(slot)? {
            ListState::Known(names) => names,
            ListState::Unreadable(reason) => {
                let about = [
                    ("noun", source.noun.as_str()),
                    ("nouns", &source.nouns),
                    ("reason", reason),
                ];
                return Some(SentenceMeaning::Fail(self.fill_text("no_list", &about)));
            }
        };
        let unknown = unknown(&source.noun);
        let near = names.suggestions(said, MAX_NAMES, &self.normalizer());
        if near.is_empty() {
            return Some(SentenceMeaning::Fail(unknown));
        }
        let mut meant = found.clone();
        let near = near.into_iter();
        meant.slots[place].2.values = near
            .map(|name| (name.as_str().into(), name.clone()))
            .collect();
        let choices = self.call_choices(&meant, false, tool, careful);
        let question = format!("{unknown} {}", self.question_text(&choices, 0));
        Some(SentenceMeaning::Ask { question, choices })
    }

    pub(super) fn not_understood_text(
        &self,
        sentence: &Sentence<'_>,
        context: &MatchContext<'_>,
    ) -> String {
        // A word that occurs in few intents says more about the meaning than a common one.
        const WEIGHT: usize = 60;
        const IN_EXAMPLE: usize = 10;
        let said: BTreeSet<&str> = sentence
            .tokens
            .iter()
            .map(|token| token.text.as_str())
            .collect();
        let mut shared: HashMap<usize, usize> = HashMap::new();
        for intents in said
            .iter()
            .filter_map(|word| self.intents_by_word.get(*word))
        {
            for intent in intents {
                *shared.entry(*intent).or_default() += WEIGHT / intents.len();
            }
        }
        let in_example = |word: &String| match self.intents_by_word.get(word) {
            Some(intents) if said.contains(word.as_str()) => IN_EXAMPLE * WEIGHT / intents.len(),
            _ => 0,
        };
        let shared = |intent: usize, example: &str| {
            let in_example: usize = plain_words(example).iter().map(in_example).sum();
            in_example + shared.get(&intent).copied().unwrap_or(0)
        };
        let examples = self.examples(context).into_iter();
        let mut examples: Vec<(usize, String)> = examples
            .map(|(intent, example)| (shared(intent, &example), example))
            .collect();
        examples.sort_by_key(|(shared, _)| std::cmp::Reverse(*shared));
        if examples.first().is_some_and(|(shared, _)| *shared > 0) {
            examples.retain(|(shared, _)| *shared > 0);
        }
        let quoted: Vec<String> = examples
            .iter()
            .take(MAX_EXAMPLES)
            .map(|(_, example)| format!("“{example}”"))
            .collect();
        match quoted.is_empty() {
            true => self.text("help_none").to_owned(),
            false => self.fill_text(
                "not_understood",
                &[("examples", &join_items(&quoted, self.text("or")))],
            ),
        }
    }
}
