//! Which templates a sentence fits, and how well.
//!
//! For each template the cheapest way through its graph is found in one walk over words and states; nothing is ever tried
//! again, so that the time is bounded by their product. What a slot can be filled with at a word is found once for all
//! templates.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use jiff::civil::Date;
use serde_json::{Map, Value};

use super::engine::{Compiled, Engine, Filling};
use super::graph::On;
use super::lists::Names;
use super::lookups::Lookups;
use super::meaning::Moment;
use super::words::Sentence;

/// A wrong letter.
pub(super) const EDIT: u32 = 100;
/// A name of which only some words were said.
pub(super) const PART: u32 = 40;
/// A name that is not in its list.
pub(super) const UNKNOWN: u32 = 1000;
/// Each word that is skipped, or is part of a name, a calculation, any text: the more is known of it the better.
const SKIPPED: u32 = 1;
pub(super) const NAME: u32 = 1;
pub(super) const CALCULATION: u32 = 2;
pub(super) const TEXT: u32 = 5;

/// The longest name, in words.
pub(super) const LONGEST_NAME: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Mercy {
    None,
    Spelling,
    /// Also names that are in no list: to say what is wrong, never to act.
    Unknown,
}

#[derive(Clone)]
pub(crate) enum ListState {
    Known(Arc<Names>),
    Unreadable(String),
}

pub(crate) struct Reading<'a> {
    pub(super) engine: &'a Engine,
    pub(super) sentence: &'a Sentence<'a>,
    pub(super) lists: &'a HashMap<usize, ListState>,
    pub(super) mercy: Mercy,
    pub(super) today: Date,
    pub(super) last: &'a [Map<String, Value>],
    pub(super) texts: Vec<String>,
    /// For each word the words of templates it may be, with the letters that are wrong.
    words: Vec<Vec<(usize, usize)>>,
    /// For each word how many of them may be skipped from there, and whether they are mere politeness.
    skips: Vec<Vec<(usize, bool)>>,
    pub(super) fills: RefCell<Fills>,
    cells: RefCell<Vec<Cell>>,
    pub(super) lookups: &'a Lookups,
    /// Lists that are not known, and the least that a match would cost that needs them.
    pub(super) wanted: RefCell<HashMap<usize, u32>>,
}

type Fills = HashMap<(usize, usize), Rc<[Fill]>>;

#[derive(Debug, Clone)]
pub(crate) struct Match {
    pub(crate) intent: usize,
    pub(crate) sentence: usize,
    pub(crate) cost: u32,
    /// True if a word of the template was misspelt.
    pub(crate) misspelt: bool,
    pub(crate) slots: Vec<(Arc<str>, usize, Fill)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fill {
    pub(super) end: usize,
    pub(super) cost: u32,
    pub(crate) how: How,
    /// True if all values are meant, and not one of them.
    pub(crate) together: bool,
    /// What they may mean: several if that is not clear.
    pub(crate) values: Vec<(Value, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Certain,
    /// By free text: certain, but it may be anything.
    Free,
    Part,
    Misspelt,
    Plural,
    Everything,
    /// By a number that it may not be.
    Outside,
    Unknown,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(
        engine: &'a Engine,
        sentence: &'a Sentence<'a>,
        moment: &'a Moment<'a>,
        mercy: Mercy,
    ) -> Self {
        let count = sentence.tokens.len();
        Self {
            engine,
            sentence,
            lists: moment.lists,
            mercy,
            today: moment.today,
            last: moment.last,
            texts: sentence.words(),
            words: (0..count)
                .map(|at| words_at(engine, sentence, at, mercy, moment.lookups))
                .collect(),
            skips: (0..count)
                .map(|at| skips_at(engine, sentence, at))
                .collect(),
            fills: RefCell::default(),
            cells: RefCell::default(),
            lookups: moment.lookups,
            wanted: RefCell::default(),
        }
    }

    /// The best matches among the templates of these intents: several if they are equally good.
    pub(crate) fn best(&self, is_wanted: impl Fn(usize) -> bool) -> Vec<Match> {
        let firsts = self.first_words();
        let may_fit =
            |template: &&Compiled| template.graph.may_begin(&firsts) && is_wanted(template.intent);
        let mut best: Vec<Match> = Vec::new();
        for template in self.engine.templates.iter().filter(may_fit) {
            let worst = best.first().map_or(u32::MAX, |best| best.cost);
            let Some(found) = self.walk(template, worst) else {
                continue;
            };
            if found.cost < worst {
                best.clear();
            }
            best.push(found);
        }
        best
    }

    /// The words of templates that may be the first one, behind words that may be skipped.
    fn first_words(&self) -> Vec<usize> {
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

    /// The lists that are not known and could make a match as good as `best` or better.
    pub(crate) fn wanted(&self, best: &[Match]) -> BTreeSet<usize> {
        let best = best.first().map_or(u32::MAX, |best| best.cost);
        let wanted = self.wanted.borrow();
        let matter = wanted.iter().filter(|(_, cost)| **cost <= best);
        matter.map(|(slot, _)| *slot).collect()
    }

    fn want(&self, slot: usize, cost: u32) {
        let is_list = matches!(self.engine.slots[slot], Filling::List(_));
        if is_list && !self.lists.contains_key(&slot) {
            let mut wanted = self.wanted.borrow_mut();
            let least = wanted.entry(slot).or_insert(u32::MAX);
            *least = (*least).min(cost + NAME);
        }
    }

    /// The cheapest way through a template, if it costs no more than `worst`.
    fn walk(&self, template: &Compiled, worst: u32) -> Option<Match> {
        let (count, states) = (self.sentence.tokens.len(), template.graph.states.len());
        let mut cells = self.cells.borrow_mut();
        cells.clear();
        cells.resize(states, Cell::UNREACHED);
        cells[0].cost = 0;
        for at in 0..=count {
            // Most templates end with one of the first words: rows are added once they are reached.
            if at * states == cells.len() {
                return None;
            }
            for state in 0..states {
                let cost = cells[at * states + state].cost;
                if cost <= worst && cost < u32::MAX {
                    self.step(template, &mut cells, (at, state));
                }
            }
        }
        let end = cells.last().map_or(u32::MAX, |end| end.cost);
        (end <= worst && end < u32::MAX).then(|| self.way_back(template, &cells, end))
    }

    fn step(&self, template: &Compiled, cells: &mut Vec<Cell>, from: (usize, usize)) {
        let ((at, state), states) = (from, template.graph.states.len());
        let cost = cells[at * states + state].cost;
        let mut go = |to_at: usize, to_state: usize, more: u32, via: Via| {
            let rows = cells.len().max((to_at + 1) * states);
            cells.resize(rows, Cell::UNREACHED);
            let cell = &mut cells[to_at * states + to_state];
            let cost = cost.saturating_add(more);
            if cost < cell.cost {
                *cell = Cell { cost, from, via };
            }
        };
        for (skip, polite) in self.skips.get(at).into_iter().flatten() {
            if template.graph.may_skip(state, *polite) {
                go(at + skip, state, SKIPPED * *skip as u32, Via::Nothing);
            }
        }
        for (index, edge) in template.graph.states[state].iter().enumerate() {
            match &edge.on {
                On::Nothing => go(at, edge.to, 0, Via::Nothing),
                On::Word(word) => {
                    let mut here = self.words.get(at).into_iter().flatten();
                    if let Some((_, edits)) = here.find(|(id, _)| id == word) {
                        let more = *edits as u32 * EDIT;
                        go(at + 1, edge.to, more, Via::Word { edits: *edits });
                    }
                }
                On::Slot { .. } if at == self.sentence.tokens.len() => {}
                On::Slot { slot, .. } => {
                    self.want(*slot, cost);
                    for (fill, found) in self.fills(*slot, at).iter().enumerate() {
                        let via = Via::Slot { edge: index, fill };
                        go(found.end, edge.to, found.cost, via);
                    }
                }
            }
        }
    }

    fn way_back(&self, template: &Compiled, cells: &[Cell], cost: u32) -> Match {
        let states = template.graph.states.len();
        let mut found = Match {
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
            match cell.via {
                Via::Start => break,
                Via::Nothing => {}
                Via::Word { edits } => found.misspelt |= edits > 0,
                Via::Slot { edge, fill } => {
                    if let On::Slot { name, slot } = &template.graph.states[from.1][edge].on {
                        let fill = self.fills(*slot, from.0)[fill].clone();
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

impl Match {
    /// What the slots are filled with, where that is clear; a calculation also as people say it, if that differs.
    pub(crate) fn values(&self, engine: &Engine) -> Map<String, Value> {
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

    /// True if one of its slots is filled this way.
    pub(crate) fn has(&self, how: How) -> bool {
        self.slots.iter().any(|(_, _, fill)| fill.how == how)
    }
}

#[derive(Clone, Copy)]
struct Cell {
    cost: u32,
    from: (usize, usize),
    via: Via,
}

impl Cell {
    const UNREACHED: Self = Self {
        cost: u32::MAX,
        from: (0, 0),
        via: Via::Start,
    };
}

#[derive(Clone, Copy)]
enum Via {
    Start,
    Nothing,
    Word { edits: usize },
    Slot { edge: usize, fill: usize },
}

fn words_at(
    engine: &Engine,
    sentence: &Sentence<'_>,
    at: usize,
    mercy: Mercy,
    lookups: &Lookups,
) -> Vec<(usize, usize)> {
    let text = &sentence.tokens[at].text;
    // A word that is one of a template's is not another one misspelt: `increase` is not `decrease`.
    if let Some(id) = engine.vocabulary.get(text) {
        return vec![(*id, 0)];
    }
    if mercy < Mercy::Spelling {
        return Vec::new();
    }
    let mut near = lookups.templates.borrow_mut();
    near.look_up(text, &engine.spelt);
    near.of(text).to_vec()
}

fn skips_at(engine: &Engine, sentence: &Sentence<'_>, at: usize) -> Vec<(usize, bool)> {
    let rest = &sentence.tokens[at..];
    let is_here = |(filler, _): &&(Vec<String>, bool)| {
        let words = filler.iter().zip(rest);
        filler.len() <= rest.len() && words.into_iter().all(|(word, token)| *word == token.text)
    };
    let here = engine.fillers(&rest[0].text).iter().filter(is_here);
    here.map(|(filler, polite)| (filler.len(), *polite))
        .collect()
}
