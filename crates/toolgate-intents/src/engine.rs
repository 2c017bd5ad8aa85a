//! A pack made ready to match sentences against.

use std::collections::HashMap;

use super::answer::fill;
use super::graph::{Edge, Graph, On};
use super::lists::{Names, Spoken};
use super::pack::{Intent, ListSource, Pack, PackError, Range, SlotKind, Values};
use super::template::{Part, Slot, Template};
use super::words::plain_words;

const MOST_STATES: usize = 500;

/// Phrases that may be skipped, and whether they are mere politeness, by their first word.
type Fillers = HashMap<String, Vec<(Vec<String>, bool)>>;

pub(crate) struct Engine {
    pub(crate) pack: Pack,
    pub(crate) templates: Vec<Compiled>,
    pub(crate) slots: Vec<Filling>,
    /// The words of templates, by their places in `spelt`.
    pub(crate) vocabulary: HashMap<String, usize>,
    pub(crate) spelt: Vec<String>,
    fillers: Fillers,
    pub(crate) replace: HashMap<String, Vec<String>>,
    /// For each word the intents that have it.
    pub(crate) hints: HashMap<String, Vec<usize>>,
    pub(crate) all: Vec<Vec<String>>,
    pub(crate) everything: Vec<Vec<String>>,
    by_name: HashMap<String, usize>,
}

pub(crate) struct Compiled {
    pub(crate) intent: usize,
    pub(crate) sentence: usize,
    pub(crate) graph: Graph,
}

pub(crate) enum Filling {
    Number,
    Range(Box<Range>),
    Expression,
    Date,
    Text,
    Values(Box<Names>, Option<String>),
    List(Box<ListSource>),
}

/// The texts that a pack must have.
const TEXTS: [&str; 23] = [
    "about",
    "absent",
    "again",
    "and",
    "cancelled",
    "do_that",
    "done",
    "half",
    "help",
    "help_none",
    "left",
    "mean",
    "no_list",
    "none",
    "not_understood",
    "or",
    "range",
    "several",
    "too_long",
    "unknown",
    "unsure",
    "what",
    "which",
];

impl Engine {
    pub(crate) fn new(pack: Pack) -> Result<Self, PackError> {
        if let Some(missing) = TEXTS.iter().find(|key| !pack.texts.contains_key(**key)) {
            return Err(PackError::whole(format!("the text '{missing}' is missing")));
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
            let filling = engine.filling(name, kind)?;
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
        check(intent)?;
        let any = intent.any.as_deref();
        if let Some(any) = any.filter(|any| self.list_of(any).is_none()) {
            let any = toolgate_core::escape(any);
            return Err(PackError::whole(format!(
                "any '{any}' may be meant, but no slot of that name has a list"
            )));
        }
        self.hint(index, intent);
        for (sentence, template) in intent.sentences.iter().enumerate() {
            let graph = self.compile(template)?;
            self.templates.push(Compiled {
                intent: index,
                sentence,
                graph,
            });
        }
        Ok(())
    }

    pub(crate) fn spoken(&self) -> Spoken<'_> {
        Spoken {
            numbers: &self.pack.numbers,
            small: &self.pack.small,
        }
    }

    /// The phrases that may be skipped and begin with this word, and whether they are mere politeness.
    pub(crate) fn fillers(&self, first: &str) -> &[(Vec<String>, bool)] {
        self.fillers.get(first).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn is_expression(&self, slot: usize) -> bool {
        matches!(self.slots[slot], Filling::Expression)
    }

    pub(crate) fn list_of(&self, name: &str) -> Option<usize> {
        let slot = *self.by_name.get(name)?;
        matches!(self.slots[slot], Filling::List(_)).then_some(slot)
    }

    /// True if two slots are filled with things of the same kind.
    pub(crate) fn is_alike(&self, slot: usize, name: &str) -> bool {
        let other = self.by_name.get(name).map(|other| &self.slots[*other]);
        match (&self.slots[slot], other) {
            (Filling::List(one), Some(Filling::List(other))) => {
                (&one.tool, &one.pointer) == (&other.tool, &other.pointer)
            }
            _ => false,
        }
    }

    fn hint(&mut self, index: usize, intent: &Intent) {
        // What leaves something out is told by the example of the whole.
        if intent.any.is_some() {
            return;
        }
        let example = intent.example.as_deref().unwrap_or("");
        let example = fill(example, |_| Some(String::new()));
        let mut words = plain_words(&example.unwrap_or_default());
        intent
            .sentences
            .iter()
            .for_each(|template| words_in(&template.parts, &mut words));
        words.sort_unstable();
        words.dedup();
        for word in words {
            self.hints.entry(word).or_default().push(index);
        }
    }

    pub(crate) fn text(&self, key: &str) -> &str {
        self.pack.texts.get(key).map_or("", String::as_str)
    }

    fn filling(&self, name: &str, kind: &SlotKind) -> Result<Filling, PackError> {
        Ok(match kind {
            SlotKind::Number => Filling::Number,
            SlotKind::Range(range) => Filling::Range(Box::new(range.clone())),
            SlotKind::Expression => Filling::Expression,
            SlotKind::Date => Filling::Date,
            SlotKind::Text => Filling::Text,
            SlotKind::List(source) => Filling::List(source.clone()),
            SlotKind::Values(values) => {
                let names = match values {
                    Values::Plain(plain) => Names::fixed(
                        plain.iter().map(|value| (value.as_str(), &[][..])),
                        &self.spoken(),
                    ),
                    Values::Spoken(spoken) => {
                        let values = spoken
                            .iter()
                            .map(|(value, forms)| (value.as_str(), forms.as_slice()));
                        Names::fixed(values, &self.spoken())
                    }
                };
                if names.len() == 0 {
                    return Err(PackError::whole(format!("the slot '{name}' has no values")));
                }
                Filling::Values(Box::new(names), self.pack.nouns.get(name).cloned())
            }
        })
    }

    fn compile(&mut self, template: &Template) -> Result<Graph, PackError> {
        let mut graph = Graph::default();
        let start = graph.add();
        self.sequence(&mut graph, start, template, &template.parts)?;
        if graph.states.len() > MOST_STATES {
            let text = toolgate_core::escape(&template.text);
            return Err(PackError::whole(format!(
                "the sentence '{text}' has too many parts"
            )));
        }
        graph.mark_text(|slot| matches!(self.slots[slot], Filling::Text));
        graph.firsts = graph.first_words();
        Ok(graph)
    }

    fn sequence(
        &mut self,
        graph: &mut Graph,
        from: usize,
        template: &Template,
        parts: &[Part],
    ) -> Result<usize, PackError> {
        let mut at = from;
        for part in parts {
            match part {
                Part::Word(word) => {
                    let id = *self.vocabulary.entry(word.clone()).or_insert_with(|| {
                        self.spelt.push(word.clone());
                        self.spelt.len() - 1
                    });
                    at = graph.step(at, On::Word(id));
                }
                Part::Slot(slot) => {
                    let filler = self.slot(slot, template)?;
                    at = graph.step(
                        at,
                        On::Slot {
                            name: slot.name.as_str().into(),
                            slot: filler,
                        },
                    );
                }
                Part::OneOf(choices) => {
                    let mut ends = Vec::new();
                    for choice in choices {
                        ends.push(self.sequence(graph, at, template, choice)?);
                    }
                    let join = graph.add();
                    for end in ends {
                        graph.states[end].push(Edge {
                            to: join,
                            on: On::Nothing,
                        });
                    }
                    at = join;
                }
            }
        }
        // The last state is the end, also where that of an alternative came later.
        if parts.as_ptr() == template.parts.as_ptr() && at + 1 != graph.states.len() {
            at = graph.step(at, On::Nothing);
        }
        Ok(at)
    }

    fn slot(&mut self, slot: &Slot, template: &Template) -> Result<usize, PackError> {
        if slot.choices.is_empty() {
            return self.by_name.get(&slot.name).copied().ok_or_else(|| {
                let text = toolgate_core::escape(&template.text);
                PackError::whole(format!(
                    "the sentence '{text}' has a slot '{}' that nothing is known of",
                    slot.name
                ))
            });
        }
        let values = slot.choices.iter().map(|value| (value.as_str(), &[][..]));
        let names = Names::fixed(values, &self.spoken());
        self.slots.push(Filling::Values(Box::new(names), None));
        Ok(self.slots.len() - 1)
    }
}

fn fillers(pack: &Pack) -> Fillers {
    let plain = pack.fillers.iter().map(|filler| (filler, false));
    let polite = pack.polite.iter().map(|filler| (filler, true));
    let mut by_first = Fillers::new();
    for (filler, is_polite) in plain.chain(polite) {
        let words = plain_words(filler);
        if let Some(first) = words.first().cloned() {
            by_first.entry(first).or_default().push((words, is_polite));
        }
    }
    by_first
}

/// Texts as words, but for those that have none.
pub(super) fn phrases(texts: &[String]) -> Vec<Vec<String>> {
    let phrases = texts.iter().map(|text| plain_words(text));
    phrases.filter(|words| !words.is_empty()).collect()
}

fn words_in(parts: &[Part], words: &mut Vec<String>) {
    for part in parts {
        match part {
            Part::Word(word) => words.push(word.clone()),
            Part::Slot(slot) => words.extend(slot.choices.iter().cloned()),
            Part::OneOf(choices) => choices.iter().for_each(|parts| words_in(parts, words)),
        }
    }
}

fn check(intent: &Intent) -> Result<(), PackError> {
    let problem = |text: String| Err(PackError::whole(toolgate_core::escape(&text)));
    let Some(first) = intent.sentences.first() else {
        let tool = intent.tool.as_deref().unwrap_or("?");
        return problem(format!("an intent for the tool '{tool}' has no sentences"));
    };
    let meanings = usize::from(intent.tool.is_some() && intent.ask.is_none())
        + usize::from(intent.say.is_some())
        + usize::from(intent.ask.is_some())
        + usize::from(intent.help);
    if meanings != 1 {
        return problem(format!(
            "the intent '{first}' needs one of `tool`, `say`, `ask` and `help`"
        ));
    }
    let known: Vec<&str> = intent
        .sentences
        .iter()
        .flat_map(Template::slots)
        .map(|slot| slot.name.as_str())
        .chain(intent.any.as_deref())
        .collect();
    let mut wanted = Vec::new();
    intent
        .arguments
        .values()
        .for_each(|value| super::answer::slots_in(value, &mut wanted));
    match wanted.iter().find(|name| !known.contains(&name.as_str())) {
        Some(name) => problem(format!(
            "no sentence of the intent '{first}' has the slot '{name}' that its arguments want"
        )),
        None => Ok(()),
    }
}
