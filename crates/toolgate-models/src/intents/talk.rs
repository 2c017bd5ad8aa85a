//! What a sentence means: a call, a question back, or words.

use std::collections::{BTreeSet, HashMap};

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::answer::{Answer, arguments, fill, listed, spoken};
use super::engine::{Engine, Filling};
use super::lists::{Found, Names, NearWords};
use super::matcher::{Fill, How, ListState, Match, Mercy, Reading};
use super::template::Part;
use super::words::{Sentence, plain_words};

/// The most things a person is asked to choose from.
const MOST_CHOICES: usize = 8;
const MOST_EXAMPLES: usize = 3;
const MOST_NAMES: usize = 5;
/// The most things that are done at once.
pub(crate) const MOST_TOGETHER: usize = 32;

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
    /// The person is asked for what is missing after these words.
    Begun {
        question: String,
        words: String,
    },
    Say(String),
    /// Nothing is done, and this is why.
    Fail(String),
}

/// What may be meant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Choice {
    /// What a person calls it.
    pub(crate) label: String,
    /// Several if several things were named.
    pub(crate) calls: Vec<Planned>,
    /// True if it must not be done by mistake.
    pub(crate) careful: bool,
}

/// A call, and what is to be said of its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Planned {
    /// The name the tool is listed under.
    pub(crate) tool: String,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) answer: Answer,
    pub(crate) slots: Map<String, Value>,
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
    /// What the slots of the last calls were filled with.
    pub(crate) last: &'a [Map<String, Value>],
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
            return Ok(Meaning::Fail(self.text("too_long").to_owned()));
        };
        for mercy in [Mercy::None, Mercy::Spelling] {
            let matches =
                self.matches(&sentence, moment, mercy, |intent| moment.is_ready(intent))?;
            if !matches.is_empty() {
                return Ok(self.meaning(&sentence, &matches, moment));
            }
        }
        let matches = self.matches(&sentence, moment, Mercy::Unknown, |intent| {
            !self.pack.intents[intent].known
        })?;
        let problem = matches.iter().find_map(|found| self.problem(found, moment));
        Ok(problem.unwrap_or_else(|| Meaning::Fail(self.not_understood(&sentence, moment))))
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
        Ok(match self.meaning(&sentence, &matches, moment) {
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
        let reading = Reading::new(self, sentence, moment, mercy);
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

    fn meaning(&self, sentence: &Sentence<'_>, matches: &[Match], moment: &Moment<'_>) -> Meaning {
        let Some(first) = matches.first() else {
            return Meaning::Fail(String::new());
        };
        if let Some(words) = self.out_of_range(first) {
            return Meaning::Fail(words);
        }
        let mut choices: Vec<Choice> = Vec::new();
        for found in matches {
            let Some(Presence::Ready { name, careful }) = moment.tools.get(found.intent) else {
                return self.words_of(sentence, first, moment);
            };
            for choice in self.choices(found, matches.len() > 1, name, *careful) {
                let is_same = |other: &Choice| other.does_the_same(&choice);
                if !choices.iter().any(is_same) {
                    choices.push(choice);
                }
            }
        }
        let forgiven = matches
            .iter()
            .any(|found| found.misspelt || found.has(How::Part) || found.has(How::Misspelt));
        match <[Choice; 1]>::try_from(choices) {
            Ok([choice]) => {
                let is_much = choice.calls.len() > 1;
                let is_daring = choice.careful && (forgiven || is_much);
                if is_daring || is_much && first.has(How::Everything) {
                    let slots: Vec<_> = choice.calls.iter().map(|call| &call.slots).collect();
                    let label = self.rendered(first, &slots);
                    return self.ask(vec![Choice { label, ..choice }]);
                }
                let certain = !forgiven && !first.has(How::Free);
                Meaning::Act { choice, certain }
            }
            Err(none) if none.is_empty() => Meaning::Fail(self.text("again").to_owned()),
            Err(choices) => self.ask(choices),
        }
    }

    /// All that a match may mean, with the tool of this name.
    fn choices(&self, found: &Match, as_sentences: bool, tool: &str, careful: bool) -> Vec<Choice> {
        let intent = &self.pack.intents[found.intent];
        let planned = |slots: Map<String, Value>| Planned {
            tool: tool.to_owned(),
            arguments: arguments(&intent.arguments, &slots),
            answer: intent.answer.clone(),
            slots,
        };
        let readings = self.readings(found, as_sentences).into_iter();
        let choice = |(label, slots): (String, Vec<Map<String, Value>>)| Choice {
            label,
            calls: slots.into_iter().map(planned).collect(),
            careful: careful || intent.exact,
        };
        readings.map(choice).collect()
    }

    /// What a number may be, if it is something else.
    fn out_of_range(&self, found: &Match) -> Option<String> {
        let is_outside = |(_, _, fill): &&(_, usize, Fill)| fill.how == How::Outside;
        let (_, slot, _) = found.slots.iter().find(is_outside)?;
        let Filling::Range(range) = &self.slots[*slot] else {
            return None;
        };
        let (from, to) = (range.from.to_string(), range.to.to_string());
        Some(self.filled(
            "range",
            &[("noun", &range.noun), ("from", &from), ("to", &to)],
        ))
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

    /// All ways to fill the slots of a match, each with what a person calls it. One way fills them several times where
    /// several things are meant together.
    fn readings(
        &self,
        found: &Match,
        as_sentences: bool,
    ) -> Vec<(String, Vec<Map<String, Value>>)> {
        let mut all = vec![(String::new(), vec![found.values(self)])];
        for (name, _, fill) in found
            .slots
            .iter()
            .filter(|(_, _, fill)| fill.values.len() > 1)
        {
            let with = |slots: &Map<String, Value>, value: &Value| {
                let mut slots = slots.clone();
                slots.insert((**name).to_owned(), value.clone());
                slots
            };
            if fill.together {
                for (_, ways) in &mut all {
                    let values = fill.values.iter();
                    let each =
                        values.flat_map(|(value, _)| ways.iter().map(|slots| with(slots, value)));
                    *ways = each.take(MOST_TOGETHER).collect();
                }
                continue;
            }
            let spread = all.iter().flat_map(|(label, ways)| {
                fill.values.iter().map(move |(value, name_of)| {
                    let ways = ways.iter().map(|slots| with(slots, value)).collect();
                    (format!("{label} {name_of}").trim().to_owned(), ways)
                })
            });
            // A list may have thousands that fit.
            all = spread.take(100).collect();
        }
        for (label, ways) in &mut all {
            if as_sentences || label.is_empty() {
                *label = self.rendered(found, &ways.iter().collect::<Vec<_>>());
            }
        }
        all
    }

    /// The sentence of a match as it would be said in full.
    fn rendered(&self, found: &Match, ways: &[&Map<String, Value>]) -> String {
        let template = &self.pack.intents[found.intent].sentences[found.sentence];
        let mut slots = Map::new();
        for name in ways.first().into_iter().flat_map(|first| first.keys()) {
            let mut values: Vec<String> = Vec::new();
            for value in ways.iter().filter_map(|slots| slots.get(name)) {
                let value = spoken(value, self.text("and"));
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            slots.insert(name.clone(), listed(&values, self.text("and")).into());
        }
        let mut words = Vec::new();
        render(&template.parts, &slots, &mut words);
        words.join(" ")
    }

    fn words_of(&self, sentence: &Sentence<'_>, found: &Match, moment: &Moment<'_>) -> Meaning {
        let intent = &self.pack.intents[found.intent];
        let slots = found.values(self);
        let said = |text: &str| {
            let value = |name: &str| slots.get(name).map(|value| spoken(value, self.text("and")));
            fill(text, value).unwrap_or_default()
        };
        if let Some(say) = &intent.say {
            return Meaning::Say(said(say));
        }
        if let Some(ask) = &intent.ask {
            return Meaning::Begun {
                question: said(ask),
                words: sentence.around(0, sentence.tokens.len()).to_owned(),
            };
        }
        let examples = self
            .examples(moment)
            .map(|(_, example)| format!("\n- {example}"));
        match examples.collect::<String>() {
            none if none.is_empty() => Meaning::Fail(self.text("help_none").to_owned()),
            examples => Meaning::Say(self.filled("help", &[("examples", &examples)])),
        }
    }

    /// Why what was understood can not be done, or what may be meant instead.
    fn problem(&self, found: &Match, moment: &Moment<'_>) -> Option<Meaning> {
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

    fn not_understood(&self, sentence: &Sentence<'_>, moment: &Moment<'_>) -> String {
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

    fn examples(&self, moment: &Moment<'_>) -> impl Iterator<Item = (usize, &str)> {
        let ready = self
            .pack
            .intents
            .iter()
            .enumerate()
            .filter(|(index, _)| moment.is_ready(*index));
        ready.filter_map(|(index, intent)| Some((index, intent.example.as_deref()?)))
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

impl Choice {
    fn does_the_same(&self, other: &Self) -> bool {
        let calls = |choice: &Self| -> Vec<(String, Map<String, Value>)> {
            let calls = choice.calls.iter();
            calls
                .map(|call| (call.tool.clone(), call.arguments.clone()))
                .collect()
        };
        calls(self) == calls(other)
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
