//! What is said where a sentence is not understood, can not be done, or leaves something open.

use std::collections::{BTreeSet, HashMap};

use super::answer::listed;
use super::engine::{Engine, Filling};
use super::matcher::{Fill, How, ListState, Match};
use super::meaning::{Meaning, Moment, Presence};
use super::words::{Sentence, plain_words};

const MOST_EXAMPLES: usize = 3;
const MOST_NAMES: usize = 5;

impl Engine {
    /// Why what was understood can not be done, or what may be meant instead.
    pub(super) fn problem(&self, found: &Match, moment: &Moment<'_>) -> Option<Meaning> {
        let intent = &self.pack.intents[found.intent];
        let tool = intent.tool.as_deref()?;
        let does = intent.does.as_deref().unwrap_or(self.text("do_that"));
        let about = [("tool", tool), ("does", does)];
        let (name, careful) = match moment.tools.get(found.intent)? {
            Presence::Absent => return Some(Meaning::Fail(self.filled("absent", &about))),
            Presence::Several(names) => {
                let names = listed(names, self.text("and"));
                let about = [about[0], about[1], ("names", &names)];
                return Some(Meaning::Fail(self.filled("several", &about)));
            }
            Presence::Ready { name, careful } => (name, *careful),
            Presence::Words => return None,
        };
        match self.out_of_range(found) {
            Some(words) => Some(Meaning::Fail(words)),
            None => self.unknown(found, name, careful, moment),
        }
    }

    /// What is said of a name that is not there, with the tool of this name.
    fn unknown(
        &self,
        found: &Match,
        tool: &str,
        careful: bool,
        moment: &Moment<'_>,
    ) -> Option<Meaning> {
        let is_unknown = |(_, _, fill): &&(_, usize, Fill)| fill.how == How::Unknown;
        let place = found.slots.iter().position(|slot| is_unknown(&slot))?;
        let (_, slot, fill) = &found.slots[place];
        let (_, said) = fill.values.first()?;
        if self.pack.pronouns.contains(&said.to_lowercase()) {
            return Some(Meaning::Say(self.filled("what", &[("name", said)])));
        }
        let unknown = |noun: &str| self.filled("unknown", &[("noun", noun), ("name", said)]);
        let source = match &self.slots[*slot] {
            Filling::List(source) => source,
            Filling::Values(_, noun) => return Some(Meaning::Fail(unknown(noun.as_deref()?))),
            _ => return None,
        };
        let names = match moment.lists.get(slot)? {
            ListState::Known(names) => names,
            ListState::Unreadable(reason) => {
                let about = [
                    ("noun", source.noun.as_str()),
                    ("nouns", &source.nouns),
                    ("reason", reason),
                ];
                return Some(Meaning::Fail(self.filled("no_list", &about)));
            }
        };
        let unknown = unknown(&source.noun);
        let near = names.suggestions(said, MOST_NAMES, &self.spoken());
        if near.is_empty() {
            return Some(Meaning::Fail(unknown));
        }
        let mut meant = found.clone();
        let near = near.into_iter();
        meant.slots[place].2.values = near
            .map(|name| (name.as_str().into(), name.clone()))
            .collect();
        let choices = self.choices(&meant, false, tool, careful);
        let question = format!("{unknown} {}", self.question(&choices, 0));
        Some(Meaning::Ask { question, choices })
    }

    pub(super) fn not_understood(&self, sentence: &Sentence<'_>, moment: &Moment<'_>) -> String {
        // A word that few sentences have says more than one that many have.
        const WEIGHT: usize = 60;
        const IN_EXAMPLE: usize = 10;
        let said: BTreeSet<&str> = sentence
            .tokens
            .iter()
            .map(|token| token.text.as_str())
            .collect();
        let mut shared: HashMap<usize, usize> = HashMap::new();
        for intents in said.iter().filter_map(|word| self.hints.get(*word)) {
            for intent in intents {
                *shared.entry(*intent).or_default() += WEIGHT / intents.len();
            }
        }
        let in_example = |word: &String| match self.hints.get(word) {
            Some(intents) if said.contains(word.as_str()) => IN_EXAMPLE * WEIGHT / intents.len(),
            _ => 0,
        };
        let shared = |intent: usize, example: &str| {
            let in_example: usize = plain_words(example).iter().map(in_example).sum();
            in_example + shared.get(&intent).copied().unwrap_or(0)
        };
        let examples = self.examples(moment).into_iter();
        let mut examples: Vec<(usize, String)> = examples
            .map(|(intent, example)| (shared(intent, &example), example))
            .collect();
        examples.sort_by_key(|(shared, _)| std::cmp::Reverse(*shared));
        if examples.first().is_some_and(|(shared, _)| *shared > 0) {
            examples.retain(|(shared, _)| *shared > 0);
        }
        let quoted: Vec<String> = examples
            .iter()
            .take(MOST_EXAMPLES)
            .map(|(_, example)| format!("“{example}”"))
            .collect();
        match quoted.is_empty() {
            true => self.text("help_none").to_owned(),
            false => self.filled(
                "not_understood",
                &[("examples", &listed(&quoted, self.text("or")))],
            ),
        }
    }
}
