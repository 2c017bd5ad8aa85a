//! Decides what a sentence means: calls, a question, or an answer.

use serde_json::{Map, Value};

use super::answer::{fill_arguments, fill_placeholders, join_items, value_text};
use super::engine::{CompiledSlot, SentenceEngine};
use super::matcher::{FillKind, MatchTolerance, SentenceMatcher, SlotFill, TemplateMatch};
use super::meaning::{
    CallChoice, MatchContext, MissingLists, PlannedCall, SentenceMeaning, ToolPresence,
};
use super::splitter::PartSplitter;
use super::template::TemplatePart;
use super::words::Sentence;

/// A person can't keep more choices in mind when they are read aloud.
const MAX_CHOICES: usize = 8;
pub(crate) const MAX_CALLS: usize = 32;

impl SentenceEngine {
    // Returns the meaning of a sentence, or as an error the lists that must be read first.
    pub(crate) fn understand(
        &self,
        text: &str,
        context: &MatchContext<'_>,
    ) -> Result<SentenceMeaning, MissingLists> {
        let Some(sentence) = Sentence::parse(text, &self.replace) else {
            return Ok(SentenceMeaning::Fail(self.text("too_long").to_owned()));
        };
        let mut splitter = PartSplitter::new(self, &sentence, context);
        for tolerance in [MatchTolerance::None, MatchTolerance::Spelling] {
            if let Some(meaning) = self.find_meaning(&sentence, context, tolerance)? {
                let is_free = matches!(meaning, SentenceMeaning::Act { certain: false, .. });
                return Ok(match is_free && splitter.ends_with_request()? {
                    true => self.unsure_failure(),
                    false => meaning,
                });
            }
            if let Some(meaning) = splitter.interpret_parts(tolerance)? {
                return Ok(meaning);
            }
        }
        if let Some(meaning) = splitter.explain_partly_understood()? {
            return Ok(meaning);
        }
        let matches = self.find_matches(&sentence, context, MatchTolerance::Unknown, |intent| {
            !self.pack.intents[intent].known
        })?;
        let problem = matches
            .iter()
            .find_map(|found| self.explain_problem(found, context));
        Ok(problem
            .unwrap_or_else(|| SentenceMeaning::Fail(self.not_understood_text(&sentence, context))))
    }

    pub(crate) fn certain_steps(
        &self,
        text: &str,
        context: &MatchContext<'_>,
    ) -> Result<Option<Vec<CallChoice>>, MissingLists> {
        let Some(sentence) = Sentence::parse(text, &self.replace) else {
            return Ok(None);
        };
        let meaning = match self.find_meaning(&sentence, context, MatchTolerance::None)? {
            None => {
                PartSplitter::new(self, &sentence, context).interpret_parts(MatchTolerance::None)?
            }
            meaning => meaning,
        };
        Ok(match meaning {
            Some(SentenceMeaning::Act {
                choice,
                then,
                certain: true,
            }) => Some([vec![choice], then].concat()),
            _ => None,
        })
    }

    pub(super) fn find_meaning(
        &self,
        sentence: &Sentence<'_>,
        context: &MatchContext<'_>,
        tolerance: MatchTolerance,
    ) -> Result<Option<SentenceMeaning>, MissingLists> {
        let is_ready = |intent: usize| context.is_ready(intent);
        let matches = self.find_matches(sentence, context, tolerance, is_ready)?;
        let first = matches.first();
        Ok(first.map(|first| self.choose_meaning(sentence, first, &matches, context)))
    }

    pub(super) fn find_matches(
        &self,
        sentence: &Sentence<'_>,
        context: &MatchContext<'_>,
        tolerance: MatchTolerance,
        is_wanted: impl Fn(usize) -> bool,
    ) -> Result<Vec<TemplateMatch>, MissingLists> {
        let matcher = SentenceMatcher::new(self, sentence, context, tolerance);
        let mut matches = matcher.best_matches(is_wanted);
        let wanted = matcher.missing_lists(&matches);
        if !wanted.is_empty() {
            return Err(wanted);
        }
        let layer = |found: &TemplateMatch| self.pack.intents[found.intent].layer;
        let top = matches.iter().map(layer).max();
        matches.retain(|found| Some(layer(found)) == top);
        let mut unread = MissingLists::new();
        for found in &mut matches {
            unread.extend(self.add_candidates(found, context));
        }
        match unread.is_empty() {
            true => Ok(matches),
            false => Err(unread),
        }
    }

    fn choose_meaning(
        &self,
        sentence: &Sentence<'_>,
        first: &TemplateMatch,
        matches: &[TemplateMatch],
        context: &MatchContext<'_>,
    ) -> SentenceMeaning {
        if let Some(words) = self.explain_out_of_range(first) {
            return SentenceMeaning::Fail(words);
        }
        if self.pack.intents[first.intent].ask.is_some() {
            return self.answer_without_call(sentence, first, context);
        }
        let mut all = matches.iter();
        if let Some(meaning) = all.find_map(|found| self.explain_missing_name(found, context)) {
            return meaning;
        }
        let mut choices: Vec<CallChoice> = Vec::new();
        for found in matches {
            let Some(ToolPresence::Ready { name, careful }) = context.tools.get(found.intent)
            else {
                return self.answer_without_call(sentence, first, context);
            };
            for choice in self.call_choices(found, matches.len() > 1, name, *careful) {
                let is_same = |other: &CallChoice| other.has_same_calls(&choice);
                if !choices.iter().any(is_same) {
                    choices.push(choice);
                }
            }
        }
        let is_inexact = matches.iter().any(|found| {
            found.misspelt
                || found.has_fill(FillKind::PartialName)
                || found.has_fill(FillKind::Misspelt)
        });
        match <[CallChoice; 1]>::try_from(choices) {
            Ok([choice]) => {
                let has_many_calls = choice.calls.len() > 1;
                let is_everything = first.has_fill(FillKind::Everything);
                let is_several =
                    has_many_calls || is_everything || first.has_fill(FillKind::Plural);
                let needs_consent = choice.careful && (is_inexact || is_several);
                if needs_consent || has_many_calls && is_everything {
                    let slots: Vec<_> = choice.calls.iter().map(|call| &call.slots).collect();
                    let label = self.render_sentence(first, &slots);
                    return self.ask_choice(vec![CallChoice { label, ..choice }]);
                }
                let certain = !is_inexact && !first.has_fill(FillKind::FreeText);
                SentenceMeaning::Act {
                    choice,
                    then: Vec::new(),
                    certain,
                }
            }
            Err(none) if none.is_empty() => SentenceMeaning::Fail(self.text("again").to_owned()),
            Err(choices) => self.ask_choice(choices),
        }
    }

    pub(super) fn call_choices(
        &self,
        found: &TemplateMatch,
        as_sentences: bool,
        tool: &str,
        careful: bool,
    ) -> Vec<CallChoice> {
        let intent = &self.pack.intents[found.intent];
        let planned = |slots: Map<String, Value>| PlannedCall {
            tool: tool.to_owned(),
            arguments: fill_arguments(&intent.arguments, &slots),
            answer: intent.answer.clone(),
            slots,
        };
        let combinations = self.slot_combinations(found, as_sentences).into_iter();
        let choice = |(label, slots): (String, Vec<Map<String, Value>>)| CallChoice {
            label,
            calls: slots.into_iter().map(planned).collect(),
            careful: careful || intent.exact,
        };
        combinations.map(choice).collect()
    }

    pub(super) fn explain_out_of_range(&self, found: &TemplateMatch) -> Option<String> {
        let is_outside = |(_, _, fill): &&(_, usize, SlotFill)| fill.kind == FillKind::OutOfRange;
        let (_, slot, _) = found.slots.iter().find(is_outside)?;
        let CompiledSlot::Range(range) = &self.slots[*slot] else {
            return None;
        };
        let (from, to) = (range.from.to_string(), range.to.to_string());
        let about = [("noun", range.noun.as_str()), ("from", &from), ("to", &to)];
        Some(self.fill_text("range", &about))
    }

    pub(crate) fn ask_choice(&self, mut choices: Vec<CallChoice>) -> SentenceMeaning {
        let more = choices.len().saturating_sub(MAX_CHOICES);
        choices.truncate(MAX_CHOICES);
        SentenceMeaning::Ask {
            question: self.question_text(&choices, more),
            choices,
        }
    }

    pub(super) fn question_text(&self, choices: &[CallChoice], more: usize) -> String {
        let mut labels: Vec<String> = choices.iter().map(|choice| choice.label.clone()).collect();
        let key = if labels.len() == 1 { "mean" } else { "which" };
        if more > 0 {
            labels.push("…".to_owned());
        }
        let names = join_items(&labels, self.text("or"));
        self.fill_text(key, &[("choices", &names)])
    }

    /// All ways to fill the slots of a match, each with its label. If several values are meant
    /// together, one way fills the slots several times.
    fn slot_combinations(
        &self,
        found: &TemplateMatch,
        as_sentences: bool,
    ) -> Vec<(String, Vec<Map<String, Value>>)> {
        let mut all = vec![(String::new(), vec![found.slot_values(self)])];
        let several = found
            .slots
            .iter()
            .filter(|(_, _, fill)| fill.values.len() > 1);
        for (name, _, fill) in several {
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
                    *ways = each.take(MAX_CALLS).collect();
                }
                continue;
            }
            let spread = all.iter().flat_map(|(label, ways)| {
                fill.values.iter().map(move |(value, name_of)| {
                    let ways = ways.iter().map(|slots| with(slots, value)).collect();
                    (format!("{label} {name_of}").trim().to_owned(), ways)
                })
            });
            // A list may have thousands of matching names.
            all = spread.take(100).collect();
        }
        for (label, ways) in &mut all {
            if as_sentences || label.is_empty() {
                *label = self.render_sentence(found, &ways.iter().collect::<Vec<_>>());
            }
        }
        all
    }

    fn render_sentence(&self, found: &TemplateMatch, ways: &[&Map<String, Value>]) -> String {
        let template = &self.pack.intents[found.intent].sentences[found.sentence];
        let mut slots = Map::new();
        for name in ways.first().into_iter().flat_map(|first| first.keys()) {
            let mut values: Vec<String> = Vec::new();
            for value in ways.iter().filter_map(|slots| slots.get(name)) {
                let value = value_text(value, self.text("and"));
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            slots.insert(name.clone(), join_items(&values, self.text("and")).into());
        }
        let mut words = Vec::new();
        render_parts(&template.parts, &slots, &mut words);
        words.join(" ")
    }

    fn answer_without_call(
        &self,
        sentence: &Sentence<'_>,
        found: &TemplateMatch,
        context: &MatchContext<'_>,
    ) -> SentenceMeaning {
        let intent = &self.pack.intents[found.intent];
        let slots = found.slot_values(self);
        let said = |text: &str| {
            let value = |name: &str| Some(value_text(slots.get(name)?, self.text("and")));
            fill_placeholders(text, value).unwrap_or_default()
        };
        if let Some(say) = &intent.say {
            return SentenceMeaning::Say(said(say));
        }
        if let Some(ask) = &intent.ask {
            return SentenceMeaning::AskMissing {
                question: said(ask),
                words: sentence.text_around(0, sentence.tokens.len()).to_owned(),
            };
        }
        let examples = self.examples(context).into_iter();
        let examples = examples.map(|(_, example)| format!("\n- {example}"));
        match examples.collect::<String>() {
            none if none.is_empty() => SentenceMeaning::Fail(self.text("help_none").to_owned()),
            examples => SentenceMeaning::Say(self.fill_text("help", &[("examples", &examples)])),
        }
    }

    pub(crate) fn fill_text(&self, key: &str, values: &[(&str, &str)]) -> String {
        let value = |name: &str| {
            let found = values.iter().find(|(key, _)| *key == name);
            Some(found.map_or(String::new(), |(_, value)| (*value).to_owned()))
        };
        fill_placeholders(self.text(key), value).unwrap_or_default()
    }
}

impl CallChoice {
    fn has_same_calls(&self, other: &Self) -> bool {
        let calls = |choice: &Self| -> Vec<(String, Map<String, Value>)> {
            let calls = choice.calls.iter();
            calls
                .map(|call| (call.tool.clone(), call.arguments.clone()))
                .collect()
        };
        calls(self) == calls(other)
    }
}

fn render_parts(parts: &[TemplatePart], slots: &Map<String, Value>, words: &mut Vec<String>) {
    for part in parts {
        match part {
            TemplatePart::Word(word) => words.push(word.clone()),
            TemplatePart::Slot(slot) => {
                words.extend(slots.get(&slot.name).map(|value| match value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                }));
            }
            TemplatePart::OneOf(choices) => {
                let filled = |parts: &&Vec<TemplatePart>| has_filled_slot(parts, slots);
                let needed = || choices.iter().all(|parts| !parts.is_empty());
                let first = || choices.first().filter(|_| needed());
                if let Some(parts) = choices.iter().find(filled).or_else(first) {
                    render_parts(parts, slots, words);
                }
            }
        }
    }
}

fn has_filled_slot(parts: &[TemplatePart], slots: &Map<String, Value>) -> bool {
    parts.iter().any(|part| match part {
        TemplatePart::Word(_) => false,
        TemplatePart::Slot(slot) => slots.contains_key(&slot.name),
        TemplatePart::OneOf(choices) => choices.iter().any(|parts| has_filled_slot(parts, slots)),
    })
}
