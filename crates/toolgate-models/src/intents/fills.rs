//! What a slot can be filled with at a word of a sentence.

use std::rc::Rc;

use serde_json::Value;

use super::engine::Filling;
use super::lists::{Entry, Found, Names};
use super::matcher::{
    CALCULATION, EDIT, Fill, How, LONGEST_NAME, ListState, Mercy, NAME, PART, Reading, TEXT,
    UNKNOWN,
};
use super::numbers::to_json;

impl Reading<'_> {
    pub(super) fn fills(&self, slot: usize, at: usize) -> Rc<[Fill]> {
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
        let rest = || -> Vec<&str> {
            let tokens = self.sentence.tokens[at..].iter();
            tokens.map(|token| token.text.as_str()).collect()
        };
        let certain = |taken: usize, cost: u32, value: Value, label: String| Fill {
            end: at + taken,
            cost: cost * taken as u32,
            how: How::Certain,
            together: false,
            values: vec![(value, label)],
        };
        match &self.engine.slots[slot] {
            Filling::Number => {
                let number = self.engine.pack.numbers.read(&rest());
                let fill = number
                    .map(|(value, taken)| certain(taken, NAME, to_json(value), value.to_string()));
                fill.into_iter().collect()
            }
            Filling::Range(range) => {
                let number = self.engine.pack.numbers.read(&rest());
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
                let date = self.engine.pack.dates.read(&rest(), self.today);
                let fill = date.map(|(date, taken)| {
                    certain(taken, NAME, date.to_string().into(), date.to_string())
                });
                fill.into_iter().collect()
            }
            Filling::Expression => {
                let spans = (at + 1..=count).filter_map(|end| {
                    let text = self.sentence.around(at, end);
                    let pack = &self.engine.pack;
                    let read = || pack.maths.read(text, &pack.numbers);
                    let read = self.lookups.calculation(text, read)?;
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
            Filling::Values(names, noun) => {
                let or_unknown = noun.is_some() && self.mercy >= Mercy::Unknown;
                let mut fills = self.names(slot, names, at, or_unknown);
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
        let words = &self.texts[at..at + longest];
        let mut fills: Vec<Fill> = if or_unknown {
            self.unknown(at)
        } else {
            Vec::new()
        };
        for length in 1..=longest {
            let Some((found, entries)) = self.named(slot, names, &words[..length]) else {
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
        let words = &self.texts[at..at + longest];
        let whole = |words: &[String]| {
            let found = names.find(words, &self.engine.spoken(), false)?;
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

    /// What some words mean among the names of a slot.
    pub(super) fn named<'n>(
        &self,
        slot: usize,
        names: &'n Names,
        words: &[String],
    ) -> Option<(Found, Vec<&'n Entry>)> {
        let (spoken, mercy) = (self.engine.spoken(), self.mercy >= Mercy::Spelling);
        self.lookups.names(slot, names, words, &spoken, mercy)
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
