//! What is said where a sentence is not understood, can not be done, or leaves something open.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::answer::listed;
use super::engine::{Engine, Filling};
use super::items::Item;
use super::lists::{Found, Names};
use super::matcher::{Fill, How, ListState, Match};
use super::meaning::{Choice, Meaning, Moment, Presence};
use super::spelling::NearWords;
use super::talk::MOST_TOGETHER;
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
        if let Some(words) = self.out_of_range(found) {
            return Some(Meaning::Fail(words));
        }
        let is_unknown = |(_, _, fill): &&(_, usize, Fill)| fill.how == How::Unknown;
        let place = found.slots.iter().position(|slot| is_unknown(&slot))?;
        let (_, slot, fill) = &found.slots[place];
        let (Filling::List(source), (_, said)) = (&self.slots[*slot], fill.values.first()?) else {
            return None;
        };
        if self.pack.pronouns.contains(&said.to_lowercase()) {
            return Some(Meaning::Say(self.filled("what", &[("name", said)])));
        }
        let noun = [
            ("noun", source.noun.as_str()),
            ("nouns", source.nouns.as_str()),
        ];
        Some(match moment.lists.get(slot)? {
            ListState::Unreadable(reason) => {
                Meaning::Fail(self.filled("no_list", &[noun[0], noun[1], ("reason", reason)]))
            }
            ListState::Known(names) => {
                let near = names.suggestions(said, MOST_NAMES);
                if near.is_empty() {
                    let about = [noun[0], noun[1], ("name", said)];
                    return Some(Meaning::Fail(self.filled("unknown", &about)));
                }
                let names = listed(&near, self.text("or"));
                let about = [noun[0], noun[1], ("name", said), ("names", &names)];
                let mut meant = found.clone();
                meant.slots[place].2.values = near
                    .iter()
                    .map(|name| (Value::from(name.as_str()), name.clone()))
                    .collect();
                Meaning::Ask {
                    question: self.filled("unknown_near", &about),
                    choices: self.choices(&meant, false, name, careful),
                }
            }
        })
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
        let mut examples: Vec<(usize, &str)> = self
            .examples(moment)
            .map(|(intent, example)| (shared(intent, example), example))
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

    pub(super) fn examples(&self, moment: &Moment<'_>) -> impl Iterator<Item = (usize, &str)> {
        let ready = self
            .pack
            .intents
            .iter()
            .enumerate()
            .filter(|(index, _)| moment.is_ready(*index));
        ready.filter_map(|(index, intent)| Some((index, intent.example.as_deref()?)))
    }

    /// What a sentence means as the answer to a question; `None` if it is something else.
    pub(crate) fn answer_to(&self, text: &str, choices: &[Choice]) -> Option<Meaning> {
        let sentence = Sentence::read(text, &self.replace)?;
        let words: Vec<String> = sentence
            .tokens
            .iter()
            .map(|token| token.text.clone())
            .collect();
        let replies = &self.pack.replies;
        let is_one_of = |list: &[String]| list.iter().any(|one| plain_words(one) == words);
        if is_one_of(&replies.no) {
            return Some(Meaning::Say(self.text("cancelled").to_owned()));
        }
        if is_one_of(&replies.all) && choices.len() > 1 {
            let choice = Choice {
                label: String::new(),
                calls: choices
                    .iter()
                    .flat_map(|choice| choice.calls.clone())
                    .take(MOST_TOGETHER)
                    .collect(),
                careful: choices.iter().any(|choice| choice.careful),
            };
            return Some(Meaning::Act {
                choice,
                certain: true,
            });
        }
        if is_one_of(&replies.yes) {
            return match choices {
                [only] => Some(Meaning::Act {
                    choice: only.clone(),
                    certain: true,
                }),
                _ => Some(self.ask(choices.to_vec())),
            };
        }
        let telling: Vec<String> = words
            .iter()
            .filter(|word| !replies.small.contains(word))
            .cloned()
            .collect();
        let telling = if telling.is_empty() { words } else { telling };
        let labels = choices.iter().map(|choice| Item::named(&choice.label));
        let names = Names::live(labels.collect(), &[], &self.spoken());
        let careful = choices.iter().any(|choice| choice.careful);
        let mut near = NearWords::default();
        match names.find(&telling, &self.spoken(), (!careful).then_some(&mut near)) {
            Some((Found::Whole | Found::Part | Found::Near(_), entries)) => {
                let is_meant =
                    |choice: &&Choice| entries.iter().any(|entry| entry.label == choice.label);
                let meant: Vec<Choice> = choices.iter().filter(is_meant).cloned().collect();
                match <[Choice; 1]>::try_from(meant) {
                    Ok([choice]) => Some(Meaning::Act {
                        choice,
                        certain: true,
                    }),
                    Err(several) => Some(self.ask(several)),
                }
            }
            None => {
                let ordinal = *replies.ordinals.get(&telling.join(" "))?;
                let index = if ordinal == 0 { choices.len() } else { ordinal }.checked_sub(1)?;
                let choice = choices.get(index).filter(|_| choices.len() > 1)?;
                Some(Meaning::Act {
                    choice: choice.clone(),
                    certain: true,
                })
            }
        }
    }
}
