//! A language pack compiled for matching.

use std::collections::HashMap;

use super::answer::{collect_slot_names, fill_placeholders};
use super::graph::{EdgeLabel, GraphEdge, TemplateGraph};
use super::name_index::{NameIndex, NameNormalizer};
use super::pack::{Intent, ListSource, NumberRange, Pack, PackError, SlotKind, SlotValues};
use super::template::{SentenceTemplate, TemplatePart, TemplateSlot};
use super::words::plain_words;

// Packs are user input: nested alternatives must not make a graph that is slow to walk.
const MAX_STATES: usize = 500;

/// Phrases that may be skipped, by their first word. The flag marks polite phrases, which may also
/// be skipped after free text.
type FillerPhrases = HashMap<String, Vec<(Vec<String>, bool)>>;

pub(crate) struct SentenceEngine {
    pub(crate) pack: Pack,
    pub(crate) templates: Vec<CompiledTemplate>,
    pub(crate) slots: Vec<CompiledSlot>,
    /// The IDs of the words in templates; `words_by_id` is the reverse.
    pub(crate) vocabulary: HashMap<String, usize>,
    pub(crate) words_by_id: Vec<String>,
    fillers: FillerPhrases,
    pub(crate) replace: HashMap<String, Vec<String>>,
    /// For each word, the indices of the intents whose sentences or example contain it.
    pub(crate) intents_by_word: HashMap<String, Vec<usize>>,
    pub(crate) all_phrases: Vec<Vec<String>>,
    pub(crate) everything_phrases: Vec<Vec<String>>,
    slots_by_name: HashMap<String, usize>,
}

pub(crate) struct CompiledTemplate {
    pub(crate) intent: usize,
    pub(crate) sentence: usize,
    pub(crate) graph: TemplateGraph,
}

pub(crate) enum CompiledSlot {
    Number,
    Range(Box<NumberRange>),
    Expression,
    Date,
    Text,
    Values(Box<NameIndex>, Option<String>),
    List(Box<ListSource>),
}

// Checked at load time, so that a lookup at run time can't miss.
const REQUIRED_TEXTS: &str = "about absent again and cancelled do_that done half help help_none left mean \
    no_list none not_understood or range several too_long unknown unsure what which";

impl SentenceEngine {
    pub(crate) fn new(pack: Pack) -> Result<Self, PackError> {
        if let Some(missing) = REQUIRED_TEXTS
            .split(' ')
            .find(|key| !pack.texts.contains_key(*key))
        {
            return Err(pack_error(&format!("the text '{missing}' is missing")));
        }
        let split =
            |(word, words): (&String, &String)| (plain_words(word).concat(), plain_words(words));
        let mut engine = Self {
            replace: pack.replace.iter().map(split).collect(),
            fillers: index_fillers(&pack),
            templates: Vec::new(),
            slots: Vec::new(),
            vocabulary: HashMap::new(),
            words_by_id: Vec::new(),
            intents_by_word: HashMap::new(),
            all_phrases: split_phrases(&pack.groups.all),
            everything_phrases: split_phrases(&pack.groups.everything),
            slots_by_name: HashMap::new(),
            pack,
        };
        let slots = std::mem::take(&mut engine.pack.slots);
        for (name, kind) in &slots {
            let compiled = engine.compile_slot(name, kind)?;
            engine
                .slots_by_name
                .insert(name.clone(), engine.slots.len());
            engine.slots.push(compiled);
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
            return Err(pack_error(&format!(
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
        matches!(self.slots[slot], CompiledSlot::Expression)
    }

    pub(crate) fn list_slot(&self, name: &str) -> Option<usize> {
        let slot = *self.slots_by_name.get(name)?;
        matches!(self.slots[slot], CompiledSlot::List(_)).then_some(slot)
    }

    // True if both slots take their names from the same list, so that `it` in one can refer to a
    // name in the other.
    pub(crate) fn is_same_list(&self, slot: usize, name: &str) -> bool {
        let other = self
            .slots_by_name
            .get(name)
            .map(|other| &self.slots[*other]);
        match (&self.slots[slot], other) {
            (CompiledSlot::List(one), Some(CompiledSlot::List(other))) => {
                (&one.tool, &one.pointer) == (&other.tool, &other.pointer)
            }
            _ => false,
        }
    }

    fn index_words(&mut self, index: usize, intent: &Intent) {
        // An intent with an omitted name is not suggested: the example of the complete sentence
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
            self.intents_by_word.entry(word).or_default().push(index);
        }
    }

    pub(crate) fn text(&self, key: &str) -> &str {
        self.pack.texts.get(key).map_or("", String::as_str)
    }

    fn compile_slot(&self, name: &str, kind: &SlotKind) -> Result<CompiledSlot, PackError> {
        Ok(match kind {
            SlotKind::Number => CompiledSlot::Number,
            SlotKind::Range(range) => CompiledSlot::Range(Box::new(range.clone())),
            SlotKind::Expression => CompiledSlot::Expression,
            SlotKind::Date => CompiledSlot::Date,
            SlotKind::Text => CompiledSlot::Text,
            SlotKind::List(source) => CompiledSlot::List(source.clone()),
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
                    return Err(pack_error(&format!("the slot '{name}' has no values")));
                }
                CompiledSlot::Values(Box::new(names), self.pack.nouns.get(name).cloned())
            }
        })
    }

    fn compile_template(
        &mut self,
        template: &SentenceTemplate,
    ) -> Result<TemplateGraph, PackError> {
        let mut graph = TemplateGraph::default();
        let start = graph.add_state();
        self.compile_sequence(&mut graph, start, template, &template.parts)?;
        if graph.states.len() > MAX_STATES {
            return Err(pack_error(&format!(
                "the sentence '{template}' has too many parts"
            )));
        }
        graph.mark_text(|slot| matches!(self.slots[slot], CompiledSlot::Text));
        graph.firsts = graph.find_first_words();
        Ok(graph)
    }

    fn compile_sequence(
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
                        self.words_by_id.push(word.clone());
                        self.words_by_id.len() - 1
                    });
                    at = graph.add_step(at, EdgeLabel::Word(id));
                }
                TemplatePart::Slot(slot) => {
                    let index = self.resolve_slot(slot, template)?;
                    let (name, slot) = (slot.name.as_str().into(), index);
                    at = graph.add_step(at, EdgeLabel::Slot { name, slot });
                }
                TemplatePart::OneOf(choices) => {
                    let mut ends = Vec::new();
                    for choice in choices {
                        ends.push(self.compile_sequence(graph, at, template, choice)?);
                    }
                    let join = graph.add_state();
                    for end in ends {
                        let edge = GraphEdge {
                            to: join,
                            label: EdgeLabel::Empty,
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

    fn resolve_slot(
        &mut self,
        slot: &TemplateSlot,
        template: &SentenceTemplate,
    ) -> Result<usize, PackError> {
        if slot.choices.is_empty() {
            let (known, name) = (self.slots_by_name.get(&slot.name), &slot.name);
            let unknown = || {
                pack_error(&format!(
                    "the sentence '{template}' has an unknown slot '{name}'"
                ))
            };
            return known.copied().ok_or_else(unknown);
        }
        let values = slot.choices.iter().map(|value| (value.as_str(), &[][..]));
        let names = NameIndex::from_values(values, &self.normalizer());
        self.slots.push(CompiledSlot::Values(Box::new(names), None));
        Ok(self.slots.len() - 1)
    }
}

fn index_fillers(pack: &Pack) -> FillerPhrases {
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

pub(super) fn split_phrases(texts: &[String]) -> Vec<Vec<String>> {
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

fn pack_error(text: &str) -> PackError {
    PackError::without_position(toolgate_core::text::escape(text))
}

fn check_intent(intent: &Intent) -> Result<(), PackError> {
    let Some(first) = intent.sentences.first() else {
        let tool = intent.tool.as_deref().unwrap_or("?");
        return Err(pack_error(&format!(
            "an intent for the tool '{tool}' has no sentences"
        )));
    };
    let meanings = usize::from(intent.tool.is_some() && intent.ask.is_none())
        + usize::from(intent.say.is_some())
        + usize::from(intent.ask.is_some())
        + usize::from(intent.help);
    if meanings != 1 {
        return Err(pack_error(&format!(
            "the intent '{first}' needs exactly one of `tool`, `say`, `ask` and `help`"
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
        Some(name) => Err(pack_error(&format!(
            "no sentence of the intent '{first}' has the slot '{name}' that its arguments use"
        ))),
        None => Ok(()),
    }
}
