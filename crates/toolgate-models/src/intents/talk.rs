//! What a sentence means: a call, a question back, or words.

use std::collections::{BTreeSet, HashMap};

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::answer::{Answer, arguments, fill, listed};
use super::engine::{Engine, Filling};
use super::lists::{Found, Names, NearWords};
use super::matcher::{Fill, How, ListState, Match, Mercy, Reading};
use super::template::Part;
use super::words::{Sentence, plain_words};

/// The most things a person is asked to choose from.
const MOST_CHOICES: usize = 8;
const MOST_EXAMPLES: usize = 3;
const MOST_NAMES: usize = 5;

/// What is to be done about a sentence.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Meaning {
    /// A tool is called. `certain` if nothing was forgiven and nothing is free text.
    Act {
        choice: Choice,
        certain: bool,
    },
    /// The person is asked which of these is meant, or whether the only one is.
    Ask {
        question: String,
        choices: Vec<Choice>,
    },
    Say(String),
}

/// A call that may be meant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Choice {
    /// What a person calls it.
    pub(crate) label: String,
    /// The name the tool is listed under.
    pub(crate) tool: String,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) answer: Answer,
    pub(crate) slots: Map<String, Value>,
    /// True if it must not be done by mistake.
    pub(crate) careful: bool,
}

/// Whether the tool of an intent is there.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Presence {
    /// None is needed.
    Words,
    Ready {
        name: String,
        careful: bool,
    },
    Absent,
    /// Several of that name, and no way to tell which.
    Several(Vec<String>),
}

/// What is known at the moment a sentence is heard.
pub(crate) struct Moment<'a> {
    /// For each intent.
    pub(crate) tools: &'a [Presence],
    pub(crate) lists: &'a HashMap<usize, ListState>,
    pub(crate) today: Date,
}

impl Moment<'_> {
    fn is_ready(&self, intent: usize) -> bool {
        matches!(
            self.tools.get(intent),
            Some(Presence::Ready { .. } | Presence::Words)
        )
    }
}

impl Engine {
    /// What a sentence means, or the lists that have to be read before that can be said.
    pub(crate) fn understand(
        &self,
        text: &str,
        moment: &Moment<'_>,
    ) -> Result<Meaning, BTreeSet<usize>> {
        let Some(sentence) = Sentence::read(text, &self.replace) else {
            return Ok(Meaning::Say(self.text("too_long").to_owned()));
        };
        for mercy in [Mercy::None, Mercy::Spelling] {
            let matches =
                self.matches(&sentence, moment, mercy, |intent| moment.is_ready(intent))?;
            if !matches.is_empty() {
                return Ok(self.meaning(&matches, moment));
            }
        }
        let matches = self.matches(&sentence, moment, Mercy::Unknown, |_| true)?;
        let problem = matches.iter().find_map(|found| self.problem(found, moment));
        Ok(Meaning::Say(
            problem.unwrap_or_else(|| self.not_understood(&sentence, moment)),
        ))
    }

    /// What a sentence means without any doubt.
    pub(crate) fn certainly(
        &self,
        text: &str,
        moment: &Moment<'_>,
    ) -> Result<Option<Choice>, BTreeSet<usize>> {
        let Some(sentence) = Sentence::read(text, &self.replace) else {
            return Ok(None);
        };
        let matches = self.matches(&sentence, moment, Mercy::None, |intent| {
            moment.is_ready(intent)
        })?;
        Ok(match self.meaning(&matches, moment) {
            Meaning::Act {
                choice,
                certain: true,
            } => Some(choice),
            _ => None,
        })
    }

    fn matches(
        &self,
        sentence: &Sentence<'_>,
        moment: &Moment<'_>,
        mercy: Mercy,
        is_wanted: impl Fn(usize) -> bool,
    ) -> Result<Vec<Match>, BTreeSet<usize>> {
        let reading = Reading::new(self, sentence, moment.lists, mercy, moment.today);
        let mut matches = reading.best(is_wanted);
        let wanted = reading.wanted(&matches);
        if !wanted.is_empty() {
            return Err(wanted);
        }
        let layer = |found: &Match| self.pack.intents[found.intent].layer;
        let top = matches.iter().map(layer).max();
        matches.retain(|found| Some(layer(found)) == top);
        Ok(matches)
    }

    fn meaning(&self, matches: &[Match], moment: &Moment<'_>) -> Meaning {
        let Some(first) = matches.first() else {
            return Meaning::Say(String::new());
        };
        let mut choices: Vec<Choice> = Vec::new();
        for found in matches {
            let intent = &self.pack.intents[found.intent];
            let Some(Presence::Ready { name, careful }) = moment.tools.get(found.intent) else {
                return Meaning::Say(self.words_of(first, moment));
            };
            for (label, slots) in self.readings(found, matches.len() > 1) {
                let choice = Choice {
                    label,
                    tool: name.clone(),
                    arguments: arguments(&intent.arguments, &slots),
                    answer: intent.answer.clone(),
                    slots,
                    careful: *careful || intent.exact,
                };
                let is_known = |other: &Choice| {
                    (&other.tool, &other.arguments) == (&choice.tool, &choice.arguments)
                };
                if !choices.iter().any(is_known) {
                    choices.push(choice);
                }
            }
        }
        let forgiven = matches
            .iter()
            .any(|found| found.misspelt || found.has(How::Part) || found.has(How::Misspelt));
        match choices.pop() {
            Some(choice) if choices.is_empty() && choice.careful && forgiven => {
                let choice = Choice {
                    label: self.rendered(first, &choice.slots),
                    ..choice
                };
                self.ask(vec![choice])
            }
            Some(choice) if choices.is_empty() => {
                let certain = !forgiven && !first.has(How::Free);
                Meaning::Act { choice, certain }
            }
            Some(choice) => {
                choices.push(choice);
                self.ask(choices)
            }
            None => Meaning::Say(self.text("again").to_owned()),
        }
    }

    /// A question which of these is meant.
    pub(crate) fn ask(&self, mut choices: Vec<Choice>) -> Meaning {
        let more = choices.len().saturating_sub(MOST_CHOICES);
        choices.truncate(MOST_CHOICES);
        let mut labels: Vec<String> = choices.iter().map(|choice| choice.label.clone()).collect();
        let key = if labels.len() == 1 { "mean" } else { "which" };
        if more > 0 {
            labels.push("…".to_owned());
        }
        let names = listed(&labels, self.text("or"));
        Meaning::Ask {
            question: self.filled(key, &[("choices", &names)]),
            choices,
        }
    }

    /// All ways to fill the slots of a match, each with what a person calls it.
    fn readings(&self, found: &Match, as_sentences: bool) -> Vec<(String, Map<String, Value>)> {
        let mut all = vec![(String::new(), found.values())];
        for (name, _, fill) in &found.slots {
            let unclear: &[(Value, String)] = if fill.values.len() > 1 {
                &fill.values
            } else {
                &[]
            };
            if unclear.is_empty() {
                continue;
            }
            let spread = all.iter().flat_map(|(label, slots)| {
                unclear.iter().map(move |(value, name_of)| {
                    let mut slots = slots.clone();
                    slots.insert((**name).to_owned(), value.clone());
                    (format!("{label} {name_of}").trim().to_owned(), slots)
                })
            });
            // A list may have thousands that fit.
            all = spread.take(100).collect();
        }
        for (label, slots) in &mut all {
            if as_sentences || label.is_empty() {
                *label = self.rendered(found, slots);
            }
        }
        all
    }

    /// The sentence of a match as it would be said in full.
    fn rendered(&self, found: &Match, slots: &Map<String, Value>) -> String {
        let template = &self.pack.intents[found.intent].sentences[found.sentence];
        let mut words = Vec::new();
        render(&template.parts, slots, &mut words);
        words.join(" ")
    }

    fn words_of(&self, found: &Match, moment: &Moment<'_>) -> String {
        let intent = &self.pack.intents[found.intent];
        if !intent.help {
            return intent.say.clone().unwrap_or_default();
        }
        let examples = self
            .examples(moment)
            .map(|example| format!("\n- {example}"));
        match examples.collect::<String>() {
            none if none.is_empty() => self.text("help_none").to_owned(),
            examples => self.filled("help", &[("examples", &examples)]),
        }
    }

    /// Why what was understood can not be done.
    fn problem(&self, found: &Match, moment: &Moment<'_>) -> Option<String> {
        let tool = self.pack.intents[found.intent].tool.as_deref()?;
        match moment.tools.get(found.intent)? {
            Presence::Absent => return Some(self.filled("absent", &[("tool", tool)])),
            Presence::Several(names) => {
                let names = listed(names, self.text("and"));
                return Some(self.filled("several", &[("tool", tool), ("names", &names)]));
            }
            Presence::Ready { .. } | Presence::Words => {}
        }
        let is_unknown = |(_, _, fill): &&(_, usize, Fill)| fill.how == How::Unknown;
        let (_, slot, fill) = found.slots.iter().find(is_unknown)?;
        let (Filling::List(source), (_, said)) = (&self.slots[*slot], fill.values.first()?) else {
            return None;
        };
        let noun = [
            ("noun", source.noun.as_str()),
            ("nouns", source.nouns.as_str()),
        ];
        Some(match moment.lists.get(slot)? {
            ListState::Unreadable(reason) => {
                self.filled("no_list", &[noun[0], noun[1], ("reason", reason)])
            }
            ListState::Known(names) => {
                let near = names.suggestions(said, MOST_NAMES);
                let names = if near.is_empty() {
                    "–".to_owned()
                } else {
                    listed(&near, self.text("and"))
                };
                self.filled(
                    "unknown",
                    &[noun[0], noun[1], ("name", said), ("names", &names)],
                )
            }
        })
    }

    fn not_understood(&self, sentence: &Sentence<'_>, moment: &Moment<'_>) -> String {
        let said: BTreeSet<&str> = sentence
            .tokens
            .iter()
            .map(|token| token.text.as_str())
            .collect();
        let shared = |example: &str| {
            let words = plain_words(example);
            words
                .iter()
                .filter(|word| word.len() > 2 && said.contains(word.as_str()))
                .count()
        };
        let mut examples: Vec<(usize, &str)> = self
            .examples(moment)
            .map(|example| (shared(example), example))
            .collect();
        examples.sort_by_key(|(shared, _)| std::cmp::Reverse(*shared));
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

    fn examples(&self, moment: &Moment<'_>) -> impl Iterator<Item = &str> {
        let ready = self
            .pack
            .intents
            .iter()
            .enumerate()
            .filter(|(index, _)| moment.is_ready(*index));
        ready.filter_map(|(_, intent)| intent.example.as_deref())
    }

    /// A text of the pack with its gaps filled.
    pub(crate) fn filled(&self, key: &str, values: &[(&str, &str)]) -> String {
        let value = |name: &str| {
            let found = values.iter().find(|(key, _)| *key == name);
            Some(found.map_or(String::new(), |(_, value)| (*value).to_owned()))
        };
        fill(self.text(key), value).unwrap_or_default()
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
        let labels = choices
            .iter()
            .map(|choice| (choice.label.clone(), None))
            .collect();
        let names = Names::live(labels, &self.spoken());
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

/// Says parts with their slots filled: of alternatives the one whose slots are filled, and no more than needed.
fn render(parts: &[Part], slots: &Map<String, Value>, words: &mut Vec<String>) {
    for part in parts {
        match part {
            Part::Word(word) => words.push(word.clone()),
            Part::Slot(slot) => words.extend(slots.get(&slot.name).map(|value| match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            })),
            Part::OneOf(choices) => {
                let filled = |parts: &&Vec<Part>| has_filled_slot(parts, slots);
                let needed = || choices.iter().all(|parts| !parts.is_empty());
                let first = || choices.first().filter(|_| needed());
                if let Some(parts) = choices.iter().find(filled).or_else(first) {
                    render(parts, slots, words);
                }
            }
        }
    }
}

fn has_filled_slot(parts: &[Part], slots: &Map<String, Value>) -> bool {
    parts.iter().any(|part| match part {
        Part::Word(_) => false,
        Part::Slot(slot) => slots.contains_key(&slot.name),
        Part::OneOf(choices) => choices.iter().any(|parts| has_filled_slot(parts, slots)),
    })
}
