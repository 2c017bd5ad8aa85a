//! A template as a small graph whose edges lead forward only, so that a sentence is matched against it
//! in one walk from left to right.

use std::sync::Arc;

/// States with edges that lead to later ones only. A sentence that leads from the first to the last one fits.
#[derive(Default)]
pub(crate) struct Graph {
    pub(crate) states: Vec<Vec<Edge>>,
    /// For each state whether free text comes next, and whether it was just before.
    text: Vec<(bool, bool)>,
    /// The words of which one comes first; `None` if a slot may.
    pub(crate) firsts: Option<Vec<usize>>,
}

pub(crate) struct Edge {
    pub(crate) to: usize,
    pub(crate) on: On,
}

pub(crate) enum On {
    Nothing,
    Word(usize),
    Slot { name: Arc<str>, slot: usize },
}

impl Graph {
    /// Whether words that mean nothing may be skipped here: they belong to free text that begins, and to free text that ends
    /// unless they are mere politeness.
    pub(crate) fn may_skip(&self, state: usize, polite: bool) -> bool {
        let (before, after) = self.text[state];
        !before && (!after || polite)
    }

    /// False if no sentence fits that has only these words where its first one may be.
    pub(crate) fn may_begin(&self, words: &[usize]) -> bool {
        let firsts = self.firsts.as_ref();
        firsts.is_none_or(|firsts| firsts.iter().any(|first| words.contains(first)))
    }

    pub(crate) fn first_words(&self) -> Option<Vec<usize>> {
        let (mut firsts, mut reached) = (Vec::new(), vec![false; self.states.len()]);
        reached[0] = true;
        for (state, edges) in self.states.iter().enumerate() {
            if !reached[state] {
                continue;
            }
            for edge in edges {
                match edge.on {
                    On::Nothing => reached[edge.to] = true,
                    On::Word(word) => firsts.push(word),
                    On::Slot { .. } => return None,
                }
            }
        }
        Some(firsts)
    }

    pub(crate) fn mark_text(&mut self, is_text: impl Fn(usize) -> bool) {
        self.text = vec![(false, false); self.states.len()];
        for state in (0..self.states.len()).rev() {
            self.text[state].0 = self.states[state].iter().any(|edge| match edge.on {
                On::Nothing => self.text[edge.to].0,
                On::Slot { slot, .. } => is_text(slot),
                On::Word(_) => false,
            });
        }
        for state in 0..self.states.len() {
            for edge in &self.states[state] {
                self.text[edge.to].1 |= match edge.on {
                    On::Nothing => self.text[state].1,
                    On::Slot { slot, .. } => is_text(slot),
                    On::Word(_) => false,
                };
            }
        }
    }

    pub(crate) fn add(&mut self) -> usize {
        self.states.push(Vec::new());
        self.states.len() - 1
    }

    pub(crate) fn step(&mut self, from: usize, on: On) -> usize {
        let to = self.add();
        self.states[from].push(Edge { to, on });
        to
    }
}
