//! Finds the templates that a sentence fits, and how well.
//!
//! One pass over words and states finds the cheapest path through each template, without
//! backtracking, so time is bounded by their product. The values for a slot are found
//! once for all templates.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use jiff::civil::Date;
use serde_json::{Map, Value};

use super::engine::{CompiledSlot, CompiledTemplate, SentenceEngine};
use super::graph::EdgeLabel;
use super::lookups::LookupCache;
use super::meaning::{MatchContext, MissingLists};
use super::name_index::NameIndex;
use super::words::Sentence;

/// The cost of each wrong letter.
pub(super) const EDIT_COST: u32 = 100;
/// The cost of a name that is said only in part.
pub(super) const PARTIAL_NAME_COST: u32 = 40;
// Higher than any other cost, so that a known name always beats an unknown one.
pub(super) const UNKNOWN_NAME_COST: u32 = 1000;
/// Costs per word. The more is known about a word, the cheaper it is.
const SKIPPED_WORD_COST: u32 = 1;
pub(super) const NAME_WORD_COST: u32 = 1;
pub(super) const CALCULATION_WORD_COST: u32 = 2;
pub(super) const TEXT_WORD_COST: u32 = 5;

pub(super) const MAX_NAME_LEN: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum MatchTolerance {
    None,
    Spelling,
    /// Accepts names that are in no list. Used to explain a problem, never to act.
    Unknown,
}

#[derive(Clone)]
pub(crate) enum ListState {
    Known(Arc<NameIndex>),
    /// The list could not be read, for this reason.
    Unreadable(String),
}

pub(crate) struct SentenceMatcher<'a> {
    pub(super) engine: &'a SentenceEngine,
    pub(super) sentence: &'a Sentence<'a>,
    pub(super) lists: &'a HashMap<usize, ListState>,
    pub(super) tolerance: MatchTolerance,
    pub(super) today: Date,
    pub(super) last_slots: &'a [Map<String, Value>],
    pub(super) texts: Vec<String>,
    /// For each word, the template words it may be and the number of wrong letters.
    words: Vec<Vec<(usize, usize)>>,
    /// For each word, the fillers that start there: their length, and whether they are only polite.
    skips: Vec<Vec<(usize, bool)>>,
    pub(super) fills: RefCell<FillCache>,
    cells: RefCell<Vec<PathCell>>,
    pub(super) lookups: &'a LookupCache,
    /// Lists that are not known yet, and the lowest cost of a match that needs them.
    pub(super) missing_lists: RefCell<HashMap<usize, u32>>,
}

type FillCache = HashMap<(usize, usize), Rc<[SlotFill]>>;

#[derive(Debug, Clone)]
pub(crate) struct TemplateMatch {
    pub(crate) intent: usize,
    pub(crate) sentence: usize,
    pub(crate) cost: u32,
    pub(crate) misspelt: bool,
    pub(crate) slots: Vec<(Arc<str>, usize, SlotFill)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SlotFill {
    /// The index of the word after it.
    pub(super) end: usize,
    pub(super) cost: u32,
    pub(crate) kind: FillKind,
    /// True if all values are meant together, rather than one of them.
    pub(crate) together: bool,
    /// The possible values and their labels; several if the meaning is ambiguous.
    pub(crate) values: Vec<(Value, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FillKind {
    Certain,
    /// Anything fits, so a sentence with free text is not certain.
    FreeText,
    /// A name that is said only in part, a pronoun, or an omitted name.
    PartialName,
    Misspelt,
    /// All things with a plural noun, such as `the kitchen lights`.
    Plural,
    Everything,
    OutOfRange,
    UnknownName,
}

impl<'a> SentenceMatcher<'a> {
    pub(crate) fn new(
        engine: &'a SentenceEngine,
        sentence: &'a Sentence<'a>,
        context: &'a MatchContext<'a>,
        tolerance: MatchTolerance,
    ) -> Self {
        let count = sentence.tokens.len();
        Self {
            engine,
            sentence,
            lists: context.lists,
            tolerance,
            today: context.today,
            last_slots: context.last_slots,
            texts: sentence.words(),
            words: (0..count)
                .map(|at| words_at(engine, sentence, at, tolerance, context.lookups))
                .collect(),
            skips: (0..count)
                .map(|at| skips_at(engine, sentence, at))
                .collect(),
            fills: RefCell::default(),
            cells: RefCell::default(),
            lookups: context.lookups,
            missing_lists: RefCell::default(),
        }
    }

    pub(crate) fn best_matches(&self, is_wanted: impl Fn(usize) -> bool) -> Vec<TemplateMatch> {
        let firsts = self.possible_first_words();
        let may_fit = |template: &&CompiledTemplate| {
            template.graph.may_begin(&firsts) && is_wanted(template.intent)
        };
        let mut best: Vec<TemplateMatch> = Vec::new();
        for template in self.engine.templates.iter().filter(may_fit) {
            let max_cost = best.first().map_or(u32::MAX, |best| best.cost);
            let Some(found) = self.find_path(template, max_cost) else {
                continue;
            };
            if found.cost < max_cost {
                best.clear();
            }
            best.push(found);
        }
        best
    }

    fn possible_first_words(&self) -> Vec<usize> {
        let (mut firsts, mut reached) = (Vec::new(), vec![false; self.words.len() + 1]);
        reached[0] = true;
        for at in 0..self.words.len() {
            if reached[at] {
                firsts.extend(self.words[at].iter().map(|(word, _)| *word));
                for (skip, _) in &self.skips[at] {
                    reached[at + skip] = true;
                }
            }
        }
        firsts
    }

    /// The unknown lists that could lead to a match at least as good as `best_matches`.
    pub(crate) fn missing_lists(&self, best: &[TemplateMatch]) -> MissingLists {
        let best = best.first().map_or(u32::MAX, |best| best.cost);
        let missing = self.missing_lists.borrow();
        let relevant = missing.iter().filter(|(_, cost)| **cost <= best);
        relevant.map(|(slot, _)| *slot).collect()
    }

    fn note_missing_list(&self, slot: usize, cost: u32) {
        let is_list = matches!(self.engine.slots[slot], CompiledSlot::List(_));
        if is_list && !self.lists.contains_key(&slot) {
            let mut missing = self.missing_lists.borrow_mut();
            let least = missing.entry(slot).or_insert(u32::MAX);
            *least = (*least).min(cost + NAME_WORD_COST);
        }
    }

    fn find_path(&self, template: &CompiledTemplate, max_cost: u32) -> Option<TemplateMatch> {
        let (count, states) = (self.sentence.tokens.len(), template.graph.states.len());
        let mut cells = self.cells.borrow_mut();
        cells.clear();
        cells.resize(states, PathCell::UNREACHED);
        cells[0].cost = 0;
        for at in 0..=count {
            // Most templates fail within a few words, so rows are added only when they are reached.
            if at * states == cells.len() {
                return None;
            }
            for state in 0..states {
                let cost = cells[at * states + state].cost;
                if cost <= max_cost && cost < u32::MAX {
                    self.extend_paths(template, &mut cells, (at, state));
                }
            }
        }
        let end = cells.last().map_or(u32::MAX, |end| end.cost);
        (end <= max_cost && end < u32::MAX).then(|| self.trace_back(template, &cells, end))
    }

    fn extend_paths(
        &self,
        template: &CompiledTemplate,
        cells: &mut Vec<PathCell>,
        from: (usize, usize),
    ) {
        let ((at, state), states) = (from, template.graph.states.len());
        let cost = cells[at * states + state].cost;
        let mut reach = |to_at: usize, to_state: usize, more: u32, via: PathStep| {
            let rows = cells.len().max((to_at + 1) * states);
            cells.resize(rows, PathCell::UNREACHED);
            let cell = &mut cells[to_at * states + to_state];
            let cost = cost.saturating_add(more);
            if cost < cell.cost {
                *cell = PathCell {
                    cost,
                    from,
                    step: via,
                };
            }
        };
        for (skip, polite) in self.skips.get(at).into_iter().flatten() {
            if template.graph.may_skip(state, *polite) {
                reach(
                    at + skip,
                    state,
                    SKIPPED_WORD_COST * *skip as u32,
                    PathStep::Nothing,
                );
            }
        }
        for (index, edge) in template.graph.states[state].iter().enumerate() {
            match &edge.label {
                EdgeLabel::Empty => reach(at, edge.to, 0, PathStep::Nothing),
                EdgeLabel::Word(word) => {
                    let mut here = self.words.get(at).into_iter().flatten();
                    if let Some((_, edits)) = here.find(|(id, _)| id == word) {
                        let more = *edits as u32 * EDIT_COST;
                        reach(at + 1, edge.to, more, PathStep::Word { edits: *edits });
                    }
                }
                EdgeLabel::Slot { .. } if at == self.sentence.tokens.len() => {}
                EdgeLabel::Slot { slot, .. } => {
                    self.note_missing_list(*slot, cost);
                    for (fill, found) in self.fills_at(*slot, at).iter().enumerate() {
                        let via = PathStep::Slot { edge: index, fill };
                        reach(found.end, edge.to, found.cost, via);
                    }
                }
            }
        }
    }

    fn trace_back(
        &self,
        template: &CompiledTemplate,
        cells: &[PathCell],
        cost: u32,
    ) -> TemplateMatch {
        let states = template.graph.states.len();
        let mut found = TemplateMatch {
            intent: template.intent,
            sentence: template.sentence,
            cost,
            misspelt: false,
            slots: Vec::new(),
        };
        let (mut at, mut state) = (self.sentence.tokens.len(), states - 1);
        loop {
            let cell = &cells[at * states + state];
            let from = cell.from;
            match cell.step {
                PathStep::Start => break,
                PathStep::Nothing => {}
                PathStep::Word { edits } => found.misspelt |= edits > 0,
                PathStep::Slot { edge, fill } => {
                    if let EdgeLabel::Slot { name, slot } =
                        &template.graph.states[from.1][edge].label
                    {
                        let fill = self.fills_at(*slot, from.0)[fill].clone();
                        found.slots.push((Arc::clone(name), *slot, fill));
                    }
                }
            }
            (at, state) = from;
        }
        found.slots.reverse();
        found
    }
}

impl TemplateMatch {
    /// The first value of each slot. An expression also gets a `…_said` entry if
    /// people say it differently.
    pub(crate) fn slot_values(&self, engine: &SentenceEngine) -> Map<String, Value> {
        let mut values = Map::new();
        for (name, slot, fill) in &self.slots {
            let Some((value, label)) = fill.values.first() else {
                continue;
            };
            values.insert((**name).to_owned(), value.clone());
            if engine.is_expression(*slot) && !label.is_empty() {
                values.insert(format!("{name}_said"), label.as_str().into());
            }
        }
        values
    }

    pub(crate) fn has_fill(&self, kind: FillKind) -> bool {
        self.slots.iter().any(|(_, _, fill)| fill.kind == kind)
    }
}

#[derive(Clone, Copy)]
struct PathCell {
    cost: u32,
    from: (usize, usize),
    step: PathStep,
}

impl PathCell {
    const UNREACHED: Self = Self {
        cost: u32::MAX,
        from: (0, 0),
        step: PathStep::Start,
    };
}

#[derive(Clone, Copy)]
enum PathStep {
    Start,
    Nothing,
    Word { edits: usize },
    Slot { edge: usize, fill: usize },
}

fn words_at(
    engine: &SentenceEngine,
    sentence: &Sentence<'_>,
    at: usize,
    tolerance: MatchTolerance,
    lookups: &LookupCache,
) -> Vec<(usize, usize)> {
    let text = &sentence.tokens[at].text;
    // A known word is never a misspelling of another one: `increase` is not `decrease`.
    if let Some(id) = engine.vocabulary.get(text) {
        return vec![(*id, 0)];
    }
    if tolerance < MatchTolerance::Spelling {
        return Vec::new();
    }
    let mut near = lookups.templates.borrow_mut();
    near.look_up(text, &engine.words_by_id);
    near.get(text).to_vec()
}

fn skips_at(engine: &SentenceEngine, sentence: &Sentence<'_>, at: usize) -> Vec<(usize, bool)> {
    let rest = &sentence.tokens[at..];
    let is_here = |(filler, _): &&(Vec<String>, bool)| {
        let words = filler.iter().zip(rest);
        filler.len() <= rest.len() && words.into_iter().all(|(word, token)| *word == token.text)
    };
    let here = engine.fillers(&rest[0].text).iter().filter(is_here);
    here.map(|(filler, polite)| (filler.len(), *polite))
        .collect()
}
