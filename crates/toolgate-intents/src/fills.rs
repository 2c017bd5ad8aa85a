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
use super::pack::Range;

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
        if at >= self.sentence.tokens.len() {
            return Vec::new();
        }
        match &self.engine.slots[slot] {
            Filling::Number => self.number(at).into_iter().map(|(fill, _)| fill).collect(),
            Filling::Range(range) => self.in_range(range, at).into_iter().collect(),
            Filling::Date => self.date(at).into_iter().collect(),
            Filling::Expression => self.calculations(at),
            Filling::Text => self.free_text(at),
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
                Some(ListState::Unreadable(_)) | None => Vec::new(),
            },
        }
    }

    fn rest(&self, at: usize) -> Vec<&str> {
        let tokens = self.sentence.tokens[at..].iter();
        tokens.map(|token| token.text.as_str()).collect()
    }

    fn number(&self, at: usize) -> Option<(Fill, f64)> {
        let (value, taken) = self.engine.pack.numbers.read(&self.rest(at))?;
        let fill = Fill::certain(at, taken, NAME, (to_json(value), value.to_string()));
        Some((fill, value))
    }

    fn in_range(&self, range: &Range, at: usize) -> Option<Fill> {
        let (mut fill, value) = self.number(at)?;
        if !(range.from..=range.to).contains(&value) {
            fill.how = How::Outside;
            fill.cost += PART;
        }
        Some(fill)
    }

    fn date(&self, at: usize) -> Option<Fill> {
        let (date, taken) = self.engine.pack.dates.read(&self.rest(at), self.today)?;
        let date = date.to_string();
        let value = (Value::from(date.as_str()), date);
        Some(Fill::certain(at, taken, NAME, value))
    }

    fn calculations(&self, at: usize) -> Vec<Fill> {
        let pack = &self.engine.pack;
        let spans = (at + 1..=self.sentence.tokens.len()).filter_map(|end| {
            let text = self.sentence.around(at, end);
            let read = || pack.maths.read(text, &pack.numbers);
            let read = self.lookups.calculation(text, read)?;
            let value = (read.written.into(), read.said.unwrap_or_default());
            let mut fill = Fill::certain(at, end - at, CALCULATION, value);
            if read.unsure {
                fill.how = How::Free;
            }
            Some(fill)
        });
        spans.collect()
    }

    fn free_text(&self, at: usize) -> Vec<Fill> {
        let spans = (at + 1..=self.sentence.tokens.len()).filter_map(|end| {
            let text = self.sentence.around(at, end);
            let text = text
                .trim_start_matches([':', ',', ';', '-', ' '])
                .trim_end_matches(['.', '?', '!', ',', ' ']);
            let mut fill = Fill::certain(at, end - at, TEXT, (text.into(), text.to_owned()));
            fill.how = How::Free;
            (!text.is_empty()).then_some(fill)
        });
        spans.collect()
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

impl Fill {
    fn certain(at: usize, words: usize, cost: u32, value: (Value, String)) -> Self {
        Self {
            end: at + words,
            cost: cost * words as u32,
            how: How::Certain,
            together: false,
            values: vec![value],
        }
    }
}
