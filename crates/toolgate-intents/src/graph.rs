//! Templates as small acyclic graphs.

use std::sync::Arc;

// Edges lead only to later states, so one pass from left to right matches a sentence. A sentence
// fits if it leads from the first state to the last.
#[derive(Default)]
pub(crate) struct TemplateGraph {
    pub(crate) states: Vec<Vec<GraphEdge>>,
    /// For each state, whether free text comes next, and whether it came just before.
    text: Vec<(bool, bool)>,
    /// The possible first words; `None` if a slot may come first.
    pub(crate) firsts: Option<Vec<usize>>,
}

pub(crate) struct GraphEdge {
    pub(crate) to: usize,
    pub(crate) label: EdgeLabel,
}

pub(crate) enum EdgeLabel {
    Empty,
    Word(usize),
    Slot { name: Arc<str>, slot: usize },
}

impl TemplateGraph {
    /// Whether a filler may be skipped here. Next to free text, fillers belong to the text; only
    /// polite phrases at its end are skipped.
    pub(crate) fn may_skip(&self, state: usize, polite: bool) -> bool {
        let (before, after) = self.text[state];
        !before && (!after || polite)
    }

    /// False if no sentence that begins with one of these words can fit.
    pub(crate) fn may_begin(&self, words: &[usize]) -> bool {
        let firsts = self.firsts.as_ref();
        firsts.is_none_or(|firsts| firsts.iter().any(|first| words.contains(first)))
    }

    pub(crate) fn find_first_words(&self) -> Option<Vec<usize>> {
        let (mut firsts, mut reached) = (Vec::new(), vec![false; self.states.len()]);
        reached[0] = true;
        for (state, edges) in self.states.iter().enumerate() {
            if !reached[state] {
                continue;
            }
            for edge in edges {
                match edge.label {
                    EdgeLabel::Empty => reached[edge.to] = true,
                    EdgeLabel::Word(word) => firsts.push(word),
                    EdgeLabel::Slot { .. } => return None,
                }
            }
        }
        Some(firsts)
    }

    pub(crate) fn mark_text(&mut self, is_text: impl Fn(usize) -> bool) {
        self.text = vec![(false, false); self.states.len()];
        for state in (0..self.states.len()).rev() {
            self.text[state].0 = self.states[state].iter().any(|edge| match edge.label {
                EdgeLabel::Empty => self.text[edge.to].0,
                EdgeLabel::Slot { slot, .. } => is_text(slot),
                EdgeLabel::Word(_) => false,
            });
        }
        for state in 0..self.states.len() {
            for edge in &self.states[state] {
                self.text[edge.to].1 |= match edge.label {
                    EdgeLabel::Empty => self.text[state].1,
                    EdgeLabel::Slot { slot, .. } => is_text(slot),
                    EdgeLabel::Word(_) => false,
                };
            }
        }
    }

    pub(crate) fn add_state(&mut self) -> usize {
        self.states.push(Vec::new());
        self.states.len() - 1
    }

    pub(crate) fn add_step(&mut self, from: usize, label: EdgeLabel) -> usize {
        let to = self.add_state();
        self.states[from].push(GraphEdge { to, label });
        to
    }
}
