//! A language pack compiled for matching.

use std::collections::HashMap;

use super::answer::{collect_slot_names, fill_placeholders};
use super::graph::{EdgeLabel, GraphEdge, TemplateGraph};
use super::name_index::{NameIndex, NameNormalizer};
use super::pack::{Intent, ListSource, NumberRange, Pack, PackError, SlotKind, SlotValues};
use super::template::{SentenceTemplate, TemplatePart, TemplateSlot};
use super::words::plain_words;

// Packs come from users: nested alternatives must not make a graph that is slow to walk.
const MAX_STATES: usize = 500;

/// Phrases that may be skipped, by their first word. The flag marks mere politeness, which may also
/// be skipped after free text.
type FillerPhrases = HashMap<String, Vec<(Vec<String>, bool)>>;

pub(crate) struct SentenceEngine {
    pub(crate) pack: Pack,
    pub(crate) templates: Vec<CompiledTemplate>,
    pub(crate) slots: Vec<SlotFilling>,
    pub(crate) vocabulary: HashMap<String, usize>,
    pub(crate) spelt: Vec<String>,
    fillers: FillerPhrases,
    pub(crate) replace: HashMap<String, Vec<String>>,
    /// The intents in whose sentences or example each word occurs.
    pub(crate) hints: HashMap<String, Vec<usize>>,
    pub(crate) all: Vec<Vec<String>>,
    pub(crate) everything: Vec<Vec<String>>,
    by_name: HashMap<String, usize>,
}

pub(crate) struct CompiledTemplate {
    pub(crate) intent: usize,
    pub(crate) sentence: usize,
    pub(crate) graph: TemplateGraph,
}

pub(crate) enum SlotFilling {
    Number,
    Range(Box<NumberRange>),
    Expression,
    Date,
    Text,
    Values(Box<NameIndex>, Option<String>),
    List(Box<ListSource>),
}

// Checked at load time, so that a lookup at run time can't miss.
const TEXTS: &str = "about absent again and cancelled do_that done half help help_none left mean \
    no_list none not_understood or range several too_long unknown unsure what which";

impl SentenceEngine {
    pub(crate) fn new(pack: Pack) -> Result<Self, PackError> {
        if let Some(missing) = TEXTS.split(' ').find(|key| !pack.texts.contains_key(*key)) {
            return Err(problem(&format!("the text '{missing}' is missing")));
        }
        let split =
            |(word, words): (&String, &String)| (plain_words(word).concat(), plain_words(words));
        let mut engine = Self {
            replace: pack.replace.iter().map(split).collect(),
            fillers: fillers(&pack),
            templates: Vec::new(),
            slots: Vec::new(),
            vocabulary: HashMap::new(),
            spelt: Vec::new(),
            hints: HashMap::new(),
            all: phrases(&pack.groups.all),
            everything: phrases(&pack.groups.everything),
            by_name: HashMap::new(),
            pack,
        };
        let slots = std::mem::take(&mut engine.pack.slots);
        for (name, kind) in &slots {
            let filling = engine.slot_filling(name, kind)?;
            engine.by_name.insert(name.clone(), engine.slots.len());
            engine.slots.push(filling);
        }
        engine.pack.slots = slots;
        let intents = std::mem::take(&mut engine.pack.intents);
        for (index, intent) in intents.iter().enumerate() {
            engine.add_intent(index, intent)?;
        }
        engine.pack.intents = intents;
        Ok(engine)
    }

    fn add_intent(&mut self, index: usize, intent: &Intent) -> Result<(), PackError> {
        check_intent(intent)?;
        let any = intent.any.as_deref();
        if let Some(any) = any.filter(|any| self.list_slot(any).is_none()) {
            return Err(problem(&format!(
                "`any` names '{any}', but no slot of that name has a list"
            )));
        }
        self.index_words(index, intent);
        for (sentence, template) in intent.sentences.iter().enumerate() {
            let graph = self.compile_template(template)?;
            self.templates.push(CompiledTemplate {
                intent: index,
                sentence,
                graph,
            });
        }
        Ok(())
    }

    pub(crate) fn normalizer(&self) -> NameNormalizer<'_> {
        NameNormalizer {
            numbers: &self.pack.numbers,
            small: &self.pack.small,
        }
    }

    pub(crate) fn fillers(&self, first: &str) -> &[(Vec<String>, bool)] {
        self.fillers.get(first).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn is_expression(&self, slot: usize) -> bool {
        matches!(self.slots[slot], SlotFilling::Expression)
    }

    pub(crate) fn list_slot(&self, name: &str) -> Option<usize> {
        let slot = *self.by_name.get(name)?;
        matches!(self.slots[slot], SlotFilling::List(_)).then_some(slot)
    }

    // True if both slots take their names from the same list, so that `it` may refer from one to
    // the other.
    pub(crate) fn is_same_list(&self, slot: usize, name: &str) -> bool {
        let other = self.by_name.get(name).map(|other| &self.slots[*other]);
        match (&self.slots[slot], other) {
            (SlotFilling::List(one), Some(SlotFilling::List(other))) => {
                (&one.tool, &one.pointer) == (&other.tool, &other.pointer)
            }
            _ => false,
        }
    }

    fn index_words(&mut self, index: usize, intent: &Intent) {
        // An intent with a left-out name needs no hints: the example of the complete sentence
        // covers it.
        if intent.any.is_some() {
            return;
        }
        let example = intent.example.as_deref().unwrap_or("");
        let example = fill_placeholders(example, |_| Some(String::new()));
        let mut words = plain_words(&example.unwrap_or_default());
        for template in &intent.sentences {
            collect_words(&template.parts, &mut words);
        }
        words.sort_unstable();
        words.dedup();
        for word in words {
            self.hints.entry(word).or_default().push(index);
        }
    }

    pub(crate) fn text(&self, key: &str) -> &str {
        self.pack.texts.get(key).map_or("", String::as_str)
    }

    fn slot_filling(&self, name: &str, kind: &SlotKind) -> Result<SlotFilling, PackError> {
        Ok(match kind {
            SlotKind::Number => SlotFilling::Number,
            SlotKind::Range(range) => SlotFilling::Range(Box::new(range.clone())),
            SlotKind::Expression => SlotFilling::Expression,
            SlotKind::Date => SlotFilling::Date,
            SlotKind::Text => SlotFilling::Text,
            SlotKind::List(source) => SlotFilling::List(source.clone()),
            SlotKind::Values(values) => {
                let values: Vec<(&str, &[String])> = match values {
                    SlotValues::Plain(plain) => {
                        plain.iter().map(|value| (&**value, &[][..])).collect()
                    }
                    SlotValues::Spoken(spoken) => spoken
                        .iter()
                        .map(|(value, forms)| (&**value, &**forms))
                        .collect(),
                };
                let names = NameIndex::from_values(values, &self.normalizer());
                if names.len() == 0 {
                    return Err(problem(&format!("the slot '{name}' has no values")));
                }
                SlotFilling::Values(Box::new(names), self.pack.nouns.get(name).cloned())
            }
        })
    }

    fn compile_template(
        &mut self,
        template: &SentenceTemplate,
    ) -> Result<TemplateGraph, PackError> {
        let mut graph = TemplateGraph::default();
        let start = graph.add_state();
        self.sequence(&mut graph, start, template, &template.parts)?;
        if graph.states.len() > MAX_STATES {
            return Err(problem(&format!(
                "the sentence '{template}' has too many parts"
            )));
        }
        graph.mark_text(|slot| matches!(self.slots[slot], SlotFilling::Text));
        graph.firsts = graph.first_words();
        Ok(graph)
    }

    fn sequence(
        &mut self,
        graph: &mut TemplateGraph,
        from: usize,
        template: &SentenceTemplate,
        parts: &[TemplatePart],
    ) -> Result<usize, PackError> {
        let mut at = from;
        for part in parts {
            match part {
                TemplatePart::Word(word) => {
                    let id = *self.vocabulary.entry(word.clone()).or_insert_with(|| {
                        self.spelt.push(word.clone());
                        self.spelt.len() - 1
                    });
                    at = graph.add_step(at, EdgeLabel::Word(id));
                }
                TemplatePart::Slot(slot) => {
                    let filler = self.slot(slot, template)?;
                    let (name, slot) = (slot.name.as_str().into(), filler);
                    at = graph.add_step(at, EdgeLabel::Slot { name, slot });
                }
                TemplatePart::OneOf(choices) => {
                    let mut ends = Vec::new();
                    for choice in choices {
                        ends.push(self.sequence(graph, at, template, choice)?);
                    }
                    let join = graph.add_state();
                    for end in ends {
                        let edge = GraphEdge {
                            to: join,
                            on: EdgeLabel::Empty,
                        };
                        graph.states[end].push(edge);
                    }
                    at = join;
                }
            }
        }
        // The matcher expects the final state to be the last one. An alternative may have added
        // states after it.
        if parts.as_ptr() == template.parts.as_ptr() && at + 1 != graph.states.len() {
            at = graph.add_step(at, EdgeLabel::Empty);
        }
        Ok(at)
    }

    fn slot(
        &mut self,
        slot: &TemplateSlot,
        template: &SentenceTemplate,
    ) -> Result<usize, PackError> {
        if slot.choices.is_empty() {
            let (known, name) = (self.by_name.get(&slot.name), &slot.name);
            let unknown = || {
                problem(&format!(
                    "the sentence '{template}' has an unknown slot '{name}'"
                ))
            };
            return known.copied().ok_or_else(unknown);
        }
        let values = slot.choices.iter().map(|value| (value.as_str(), &[][..]));
        let names = NameIndex::from_values(values, &self.normalizer());
        self.slots.push(SlotFilling::Values(Box::new(names), None));
        Ok(self.slots.len() - 1)
    }
}

fn fillers(pack: &Pack) -> FillerPhrases {
    let plain = pack.fillers.iter().map(|filler| (filler, false));
    let polite = pack.polite.iter().map(|filler| (filler, true));
    let mut by_first = FillerPhrases::new();
    for (filler, is_polite) in plain.chain(polite) {
        let words = plain_words(filler);
        if let Some(first) = words.first().cloned() {
            by_first.entry(first).or_default().push((words, is_polite));
        }
    }
    by_first
}

pub(super) fn phrases(texts: &[String]) -> Vec<Vec<String>> {
    let phrases = texts.iter().map(|text| plain_words(text));
    phrases.filter(|words| !words.is_empty()).collect()
}

fn collect_words(parts: &[TemplatePart], words: &mut Vec<String>) {
    for part in parts {
        match part {
            TemplatePart::Word(word) => words.push(word.clone()),
            TemplatePart::Slot(slot) => words.extend(slot.choices.iter().cloned()),
            TemplatePart::OneOf(choices) => {
                choices.iter().for_each(|parts| collect_words(parts, words));
            }
        }
    }
}

fn problem(text: &str) -> PackError {
    PackError::without_position(toolgate_core::escape(text))
}

fn check_intent(intent: &Intent) -> Result<(), PackError> {
    let Some(first) = intent.sentences.first() else {
        let tool = intent.tool.as_deref().unwrap_or("?");
        return Err(problem(&format!(
            "an intent for the tool '{tool}' has no sentences"
        )));
    };
    let meanings = usize::from(intent.tool.is_some() && intent.ask.is_none())
        + usize::from(intent.say.is_some())
        + usize::from(intent.ask.is_some())
        + usize::from(intent.help);
    if meanings != 1 {
        return Err(problem(&format!(
            "the intent '{first}' needs one of `tool`, `say`, `ask` and `help`"
        )));
    }
    let known: Vec<&str> = intent
        .sentences
        .iter()
        .flat_map(SentenceTemplate::slots)
        .map(|slot| slot.name.as_str())
        .chain(intent.any.as_deref())
        .collect();
    let mut wanted = Vec::new();
    for value in intent.arguments.values() {
        collect_slot_names(value, &mut wanted);
    }
    match wanted.iter().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(problem(&format!(
            "no sentence of the intent '{first}' has the slot '{name}' that its arguments use"
        ))),
        None => Ok(()),
    }
}
