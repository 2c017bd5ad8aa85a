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

use super::engine::{Compiled, Engine, Filling, On};
use super::lists::{Found, Names, NearWords, edits};
use super::numbers::to_json;
use super::talk::Moment;
use super::words::Sentence;

/// A wrong letter.
pub(super) const EDIT: u32 = 100;
/// A name of which only some words were said.
pub(super) const PART: u32 = 40;
/// A name that is not in its list.
const UNKNOWN: u32 = 1000;
/// Each word that is skipped, or is part of a name, a calculation, any text: the more is known of it the better.
const SKIPPED: u32 = 1;
pub(super) const NAME: u32 = 1;
const CALCULATION: u32 = 2;
const TEXT: u32 = 5;

/// The longest name, in words.
pub(super) const LONGEST_NAME: usize = 10;

/// How much is forgiven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mercy {
    /// Nothing.
    None,
    /// Wrong letters.
    Spelling,
    /// Also names that are in no list: to say what is wrong, never to act.
    Unknown,
}

/// A live list as far as it is known.
#[derive(Clone)]
pub(crate) enum ListState {
    Known(Arc<Names>),
    /// Why not.
    Unreadable(String),
}

/// A sentence, and all that is needed to match it.
pub(crate) struct Reading<'a> {
    pub(super) engine: &'a Engine,
    pub(super) sentence: &'a Sentence<'a>,
    lists: &'a HashMap<usize, ListState>,
    pub(super) mercy: Mercy,
    today: Date,
    /// What the slots of the last calls were filled with.
    pub(super) last: &'a [Map<String, Value>],
    /// For each word the words of templates it may be, with the letters that are wrong.
    words: Vec<Vec<(u32, u32)>>,
    /// For each word how many of them may be skipped from there, and whether they are mere politeness.
    skips: Vec<Vec<(usize, bool)>>,
    fills: RefCell<Fills>,
    /// For each slot what was found of misspelt words.
    pub(super) near: RefCell<HashMap<usize, NearWords>>,
    /// Lists that are not known, and the least that a match would cost that needs them.
    wanted: RefCell<HashMap<usize, u32>>,
}

/// What each slot can be filled with at each word.
type Fills = HashMap<(usize, usize), Rc<[Fill]>>;

/// A template that fits.
#[derive(Debug, Clone)]
pub(crate) struct Match {
    pub(crate) intent: usize,
    pub(crate) sentence: usize,
    pub(crate) cost: u32,
    /// True if a word of the template was misspelt.
    pub(crate) misspelt: bool,
    pub(crate) slots: Vec<(Arc<str>, usize, Fill)>,
}

/// Words that a slot may be filled with.
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

/// How well a slot is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Certain,
    /// By free text: certain, but it may be anything.
    Free,
    /// By some words of a name.
    Part,
    Misspelt,
    /// By all there are.
    Everything,
    /// By a number that it may not be.
    Outside,
    /// By a name that is in no list.
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
            words: (0..count)
                .map(|at| words_at(engine, sentence, at, mercy))
                .collect(),
            skips: (0..count)
                .map(|at| skips_at(engine, sentence, at))
                .collect(),
            fills: RefCell::default(),
            near: RefCell::default(),
            wanted: RefCell::default(),
        }
    }

    /// The best matches among the templates of these intents: several if they are equally good.
    pub(crate) fn best(&self, is_wanted: impl Fn(usize) -> bool) -> Vec<Match> {
        let mut best: Vec<Match> = Vec::new();
        for template in self
            .engine
            .templates
            .iter()
            .filter(|template| is_wanted(template.intent))
        {
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
        let mut cells = vec![
            Cell {
                cost: u32::MAX,
                from: (0, 0),
                via: Via::Start
            };
            (count + 1) * states
        ];
        cells[0].cost = 0;
        let mut reached = 0;
        for at in 0..=count {
            if at > reached {
                return None;
            }
            for state in 0..states {
                let cost = cells[at * states + state].cost;
                if cost > worst || cost == u32::MAX {
                    continue;
                }
                let mut go = |to_at: usize, to_state: usize, more: u32, via: Via| {
                    let cell = &mut cells[to_at * states + to_state];
                    let cost = cost.saturating_add(more);
                    if cost < cell.cost {
                        *cell = Cell {
                            cost,
                            from: (at, state),
                            via,
                        };
                        reached = reached.max(to_at);
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
                            let here = self.words.get(at).into_iter().flatten();
                            if let Some((_, edits)) = here.into_iter().find(|(id, _)| id == word) {
                                go(at + 1, edge.to, edits * EDIT, Via::Word { edits: *edits });
                            }
                        }
                        On::Slot { .. } if at == count => {}
                        On::Slot { slot, .. } => {
                            self.want(*slot, cost);
                            for (fill, found) in self.fills(*slot, at).iter().enumerate() {
                                go(
                                    found.end,
                                    edge.to,
                                    found.cost,
                                    Via::Slot { edge: index, fill },
                                );
                            }
                        }
                    }
                }
            }
        }
        let end = cells[count * states + states - 1].cost;
        (end <= worst && end < u32::MAX).then(|| self.way_back(template, &cells, end))
    }

    /// What the cheapest way went through.
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

    fn fills(&self, slot: usize, at: usize) -> Rc<[Fill]> {
        if let Some(found) = self.fills.borrow().get(&(slot, at)) {
            return Rc::clone(found);
        }
        let found: Rc<[Fill]> = self.find_fills(slot, at).into();
        self.fills
            .borrow_mut()
            .insert((slot, at), Rc::clone(&found));
        found
    }

    fn find_fills(&self, slot: usize, at: usize) -> Vec<Fill> {
        let count = self.sentence.tokens.len();
        if at >= count {
            return Vec::new();
        }
        let rest: Vec<&str> = self.sentence.tokens[at..]
            .iter()
            .map(|token| token.text.as_str())
            .collect();
        let certain = |taken: usize, cost: u32, value: Value, label: String| Fill {
            end: at + taken,
            cost: cost * taken as u32,
            how: How::Certain,
            together: false,
            values: vec![(value, label)],
        };
        match &self.engine.slots[slot] {
            Filling::Number => {
                let number = self.engine.pack.numbers.read(&rest);
                let fill = number
                    .map(|(value, taken)| certain(taken, NAME, to_json(value), value.to_string()));
                fill.into_iter().collect()
            }
            Filling::Range(range) => {
                let number = self.engine.pack.numbers.read(&rest);
                let fill = number.map(|(value, taken)| {
                    let mut fill = certain(taken, NAME, to_json(value), value.to_string());
                    if !(range.from..=range.to).contains(&value) {
                        fill.how = How::Outside;
                        fill.cost += PART;
                    }
                    fill
                });
                fill.into_iter().collect()
            }
            Filling::Date => {
                let date = self.engine.pack.dates.read(&rest, self.today);
                let fill = date.map(|(date, taken)| {
                    certain(taken, NAME, date.to_string().into(), date.to_string())
                });
                fill.into_iter().collect()
            }
            Filling::Expression => {
                let spans = (at + 1..=count).filter_map(|end| {
                    let text = self.sentence.around(at, end);
                    let pack = &self.engine.pack;
                    let read = pack.maths.read(text, &pack.numbers)?;
                    let mut fill = certain(
                        end - at,
                        CALCULATION,
                        read.written.into(),
                        read.said.unwrap_or_default(),
                    );
                    if read.unsure {
                        fill.how = How::Free;
                    }
                    Some(fill)
                });
                spans.collect()
            }
            Filling::Text => {
                let spans = (at + 1..=count).filter_map(|end| {
                    let text = self.sentence.around(at, end);
                    let text = text
                        .trim_start_matches([':', ',', ';', '-', ' '])
                        .trim_end_matches(['.', '?', '!', ',', ' ']);
                    let mut fill = certain(end - at, TEXT, text.into(), text.to_owned());
                    fill.how = How::Free;
                    (!text.is_empty()).then_some(fill)
                });
                spans.collect()
            }
            Filling::Values(names) => {
                let mut fills = self.names(slot, names, at, false);
                let twice = self.twice(names, at, &fills);
                fills.extend(twice);
                fills
            }
            Filling::List(_) => match self.lists.get(&slot) {
                Some(ListState::Known(names)) => {
                    let mut fills = self.names(slot, names, at, self.mercy >= Mercy::Unknown);
                    fills.extend(self.groups(slot, names, at));
                    fills
                }
                Some(ListState::Unreadable(_)) if self.mercy >= Mercy::Unknown => self.unknown(at),
                Some(ListState::Unreadable(_)) => Vec::new(),
                None => Vec::new(),
            },
        }
    }

    fn names(&self, slot: usize, names: &Names, at: usize, or_unknown: bool) -> Vec<Fill> {
        let longest = (self.sentence.tokens.len() - at).min(LONGEST_NAME);
        let words: Vec<String> = self.sentence.tokens[at..at + longest]
            .iter()
            .map(|token| token.text.clone())
            .collect();
        let mut fills: Vec<Fill> = if or_unknown {
            self.unknown(at)
        } else {
            Vec::new()
        };
        let mut kept = self.near.borrow_mut();
        let is_forgiven = self.mercy >= Mercy::Spelling;
        let mut near = is_forgiven.then(|| kept.entry(slot).or_default());
        for length in 1..=longest {
            let near = near.as_deref_mut();
            let found = names.find(&words[..length], &self.engine.spoken(), near);
            let Some((found, entries)) = found else {
                continue;
            };
            let (more, how) = match found {
                Found::Whole => (0, How::Certain),
                Found::Part => (PART, How::Part),
                Found::Near(edits) => (EDIT * edits, How::Misspelt),
            };
            fills.push(Fill {
                end: at + length,
                cost: NAME * length as u32 + more,
                how,
                together: false,
                values: entries
                    .iter()
                    .map(|entry| (Value::from(entry.value.clone()), entry.label.clone()))
                    .collect(),
            });
        }
        fills
    }

    /// `tokyo japan`: two names that mean the same, or of which one tells what the other means.
    fn twice(&self, names: &Names, at: usize, once: &[Fill]) -> Vec<Fill> {
        let first: Vec<&Fill> = once
            .iter()
            .filter(|fill| fill.how == How::Certain)
            .collect();
        if first.is_empty() {
            return Vec::new();
        }
        let longest = (self.sentence.tokens.len() - at).min(LONGEST_NAME);
        let words: Vec<String> = self.sentence.tokens[at..at + longest]
            .iter()
            .map(|token| token.text.clone())
            .collect();
        let whole = |words: &[String]| {
            let found = names.find(words, &self.engine.spoken(), None)?;
            (found.0 == Found::Whole).then_some(found.1)
        };
        let mut fills = Vec::new();
        for first in first {
            let middle = first.end - at;
            for end in middle + 1..=longest {
                let second = whole(&words[middle..end]).unwrap_or_default();
                let is_both = |(value, _): &&(Value, String)| {
                    second.iter().any(|entry| *value == entry.value.as_str())
                };
                let values: Vec<_> = first.values.iter().filter(is_both).cloned().collect();
                if !values.is_empty() {
                    fills.push(Fill {
                        end: at + end,
                        cost: NAME * end as u32,
                        how: How::Certain,
                        together: false,
                        values,
                    });
                }
            }
        }
        fills
    }

    fn unknown(&self, at: usize) -> Vec<Fill> {
        let longest = (self.sentence.tokens.len() - at).min(LONGEST_NAME);
        let fill = |length: usize| {
            let text = self.sentence.written(at, at + length);
            let values = vec![(Value::from(text), text.to_owned())];
            Fill {
                end: at + length,
                cost: UNKNOWN + TEXT * length as u32,
                how: How::Unknown,
                together: false,
                values,
            }
        };
        (1..=longest).map(fill).collect()
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

#[derive(Clone, Copy)]
enum Via {
    Start,
    Nothing,
    Word { edits: u32 },
    Slot { edge: usize, fill: usize },
}

fn words_at(engine: &Engine, sentence: &Sentence<'_>, at: usize, mercy: Mercy) -> Vec<(u32, u32)> {
    let text = &sentence.tokens[at].text;
    // A word that is one of a template's is not another one misspelt: `increase` is not `decrease`.
    if let Some(id) = engine.vocabulary.get(text) {
        return vec![(*id, 0)];
    }
    if mercy < Mercy::Spelling {
        return Vec::new();
    }
    let near = engine
        .vocabulary
        .iter()
        .filter_map(|(word, id)| Some((*id, edits(word, text)? as u32)));
    near.collect()
}

fn skips_at(engine: &Engine, sentence: &Sentence<'_>, at: usize) -> Vec<(usize, bool)> {
    let rest = &sentence.tokens[at..];
    let is_here = |(filler, _): &&(Vec<String>, bool)| {
        let words = filler.iter().zip(rest);
        filler.len() <= rest.len() && words.into_iter().all(|(word, token)| *word == token.text)
    };
    let here = engine.fillers.iter().filter(is_here);
    here.map(|(filler, polite)| (filler.len(), *polite))
        .collect()
}
