//! What a sentence means: a call, a question back, or words.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::answer::{arguments, fill, listed, spoken};
use super::engine::{Engine, Filling};
use super::matcher::{Fill, How, Match, Mercy, Reading};
use super::meaning::{Choice, Meaning, Moment, Planned, Presence};
use super::parts::Parting;
use super::template::Part;
use super::words::Sentence;

/// The most things a person is asked to choose from.
const MOST_CHOICES: usize = 8;
/// The most things that are done at once.
pub(crate) const MOST_TOGETHER: usize = 32;

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
        let mut parting = Parting::new(self, &sentence, moment);
        for mercy in [Mercy::None, Mercy::Spelling] {
            if let Some(meaning) = self.meant(&sentence, moment, mercy)? {
                let is_free = matches!(meaning, Meaning::Act { certain: false, .. });
                return Ok(match is_free && parting.is_two()? {
                    true => self.unsure(),
                    false => meaning,
                });
            }
            if let Some(meaning) = parting.meant(mercy)? {
                return Ok(meaning);
            }
        }
        if let Some(meaning) = parting.half()? {
            return Ok(meaning);
        }
        let matches = self.matches(&sentence, moment, Mercy::Unknown, |intent| {
            !self.pack.intents[intent].known
        })?;
        let problem = matches.iter().find_map(|found| self.problem(found, moment));
        Ok(problem.unwrap_or_else(|| Meaning::Fail(self.not_understood(&sentence, moment))))
    }

    /// What a sentence means without any doubt, one thing after the other.
    pub(crate) fn certainly(
        &self,
        text: &str,
        moment: &Moment<'_>,
    ) -> Result<Option<Vec<Choice>>, BTreeSet<usize>> {
        let Some(sentence) = Sentence::read(text, &self.replace) else {
            return Ok(None);
        };
        let meaning = match self.meant(&sentence, moment, Mercy::None)? {
            None => Parting::new(self, &sentence, moment).meant(Mercy::None)?,
            meaning => meaning,
        };
        Ok(match meaning {
            Some(Meaning::Act {
                choice,
                then,
                certain: true,
            }) => Some([vec![choice], then].concat()),
            _ => None,
        })
    }

    /// What a sentence means with the tools that are there, if it is one that is known.
    pub(super) fn meant(
        &self,
        sentence: &Sentence<'_>,
        moment: &Moment<'_>,
        mercy: Mercy,
    ) -> Result<Option<Meaning>, BTreeSet<usize>> {
        let is_ready = |intent: usize| moment.is_ready(intent);
        let matches = self.matches(sentence, moment, mercy, is_ready)?;
        let first = matches.first();
        Ok(first.map(|first| self.meaning(sentence, first, &matches, moment)))
    }

    pub(super) fn matches(
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
        let mut unread = BTreeSet::new();
        for found in &mut matches {
            unread.extend(self.add_any(found, moment));
        }
        match unread.is_empty() {
            true => Ok(matches),
            false => Err(unread),
        }
    }

    fn meaning(
        &self,
        sentence: &Sentence<'_>,
        first: &Match,
        matches: &[Match],
        moment: &Moment<'_>,
    ) -> Meaning {
        if let Some(words) = self.out_of_range(first) {
            return Meaning::Fail(words);
        }
        if self.pack.intents[first.intent].ask.is_some() {
            return self.words_of(sentence, first, moment);
        }
        if let Some(meaning) = matches.iter().find_map(|found| self.nobody(found, moment)) {
            return meaning;
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
                let is_everything = first.has(How::Everything);
                let is_several = is_much || is_everything || first.has(How::Plural);
                let is_daring = choice.careful && (forgiven || is_several);
                if is_daring || is_much && is_everything {
                    let slots: Vec<_> = choice.calls.iter().map(|call| &call.slots).collect();
                    let label = self.rendered(first, &slots);
                    return self.ask(vec![Choice { label, ..choice }]);
                }
                let certain = !forgiven && !first.has(How::Free);
                Meaning::Act {
                    choice,
                    then: Vec::new(),
                    certain,
                }
            }
            Err(none) if none.is_empty() => Meaning::Fail(self.text("again").to_owned()),
            Err(choices) => self.ask(choices),
        }
    }

    pub(super) fn choices(
        &self,
        found: &Match,
        as_sentences: bool,
        tool: &str,
        careful: bool,
    ) -> Vec<Choice> {
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

    pub(super) fn out_of_range(&self, found: &Match) -> Option<String> {
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

    pub(crate) fn ask(&self, mut choices: Vec<Choice>) -> Meaning {
        let more = choices.len().saturating_sub(MOST_CHOICES);
        choices.truncate(MOST_CHOICES);
        Meaning::Ask {
            question: self.question(&choices, more),
            choices,
        }
    }

    pub(super) fn question(&self, choices: &[Choice], more: usize) -> String {
        let mut labels: Vec<String> = choices.iter().map(|choice| choice.label.clone()).collect();
        let key = if labels.len() == 1 { "mean" } else { "which" };
        if more > 0 {
            labels.push("…".to_owned());
        }
        let names = listed(&labels, self.text("or"));
        self.filled(key, &[("choices", &names)])
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
        let examples = self.examples(moment).into_iter();
        let examples = examples.map(|(_, example)| format!("\n- {example}"));
        match examples.collect::<String>() {
            none if none.is_empty() => Meaning::Fail(self.text("help_none").to_owned()),
            examples => Meaning::Say(self.filled("help", &[("examples", &examples)])),
        }
    }

    pub(crate) fn filled(&self, key: &str, values: &[(&str, &str)]) -> String {
        let value = |name: &str| {
            let found = values.iter().find(|(key, _)| *key == name);
            Some(found.map_or(String::new(), |(_, value)| (*value).to_owned()))
        };
        fill(self.text(key), value).unwrap_or_default()
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
