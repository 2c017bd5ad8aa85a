//! Finds what can fill a slot at a given word of a sentence.

use std::rc::Rc;

use serde_json::Value;

use super::engine::SlotFilling;
use super::matcher::{
    CALCULATION, EDIT, FillKind, ListState, MAX_NAME_LEN, MatchTolerance, NAME, PART,
    SentenceMatcher, SlotFill, TEXT, UNKNOWN,
};
use super::name_index::{NameEntry, NameIndex, NameMatch};
use super::numbers::number_to_json;
use super::pack::NumberRange;

impl SentenceMatcher<'_> {
    pub(super) fn fills(&self, slot: usize, at: usize) -> Rc<[SlotFill]> {
        // Many templates share slots: each slot is read only once at each word.
        if let Some(found) = self.fills.borrow().get(&(slot, at)) {
            return Rc::clone(found);
        }
        let found: Rc<[SlotFill]> = self.find_fills(slot, at).into();
        self.fills
            .borrow_mut()
            .insert((slot, at), Rc::clone(&found));
        found
    }

    fn find_fills(&self, slot: usize, at: usize) -> Vec<SlotFill> {
        if at >= self.sentence.tokens.len() {
            return Vec::new();
        }
        match &self.engine.slots[slot] {
            SlotFilling::Number => self.number(at).into_iter().map(|(fill, _)| fill).collect(),
            SlotFilling::Range(range) => self.number_in_range(range, at).into_iter().collect(),
            SlotFilling::Date => self.date(at).into_iter().collect(),
            SlotFilling::Expression => self.calculations(at),
            SlotFilling::Text => self.free_text(at),
            SlotFilling::Values(names, noun) => {
                // Without a noun, no sentence could name the unknown value.
                let or_unknown = noun.is_some() && self.tolerance >= MatchTolerance::Unknown;
                let mut fills = self.names(slot, names, at, or_unknown);
                let twice = self.repeated_name_fills(names, at, &fills);
                fills.extend(twice);
                fills
            }
            SlotFilling::List(_) => match self.lists.get(&slot) {
                Some(ListState::Known(names)) => {
                    let mut fills =
                        self.names(slot, names, at, self.tolerance >= MatchTolerance::Unknown);
                    fills.extend(self.group_fills(slot, names, at));
                    fills
                }
                Some(ListState::Unreadable(_)) if self.tolerance >= MatchTolerance::Unknown => {
                    self.unknown_names(at)
                }
                Some(ListState::Unreadable(_)) | None => Vec::new(),
            },
        }
    }

    fn rest(&self, at: usize) -> Vec<&str> {
        let tokens = self.sentence.tokens[at..].iter();
        tokens.map(|token| token.text.as_str()).collect()
    }

    fn number(&self, at: usize) -> Option<(SlotFill, f64)> {
        let (value, taken) = self.engine.pack.numbers.parse(&self.rest(at))?;
        let fill =
            SlotFill::certain_fill(at, taken, NAME, (number_to_json(value), value.to_string()));
        Some((fill, value))
    }

    fn number_in_range(&self, range: &NumberRange, at: usize) -> Option<SlotFill> {
        let (mut fill, value) = self.number(at)?;
        if !(range.from..=range.to).contains(&value) {
            fill.kind = FillKind::Outside;
            fill.cost += PART;
        }
        Some(fill)
    }

    fn date(&self, at: usize) -> Option<SlotFill> {
        let (date, taken) = self.engine.pack.dates.parse(&self.rest(at), self.today)?;
        let date = date.to_string();
        let value = (Value::from(date.as_str()), date);
        Some(SlotFill::certain_fill(at, taken, NAME, value))
    }

    fn calculations(&self, at: usize) -> Vec<SlotFill> {
        let pack = &self.engine.pack;
        let spans = (at + 1..=self.sentence.tokens.len()).filter_map(|end| {
            let text = self.sentence.text_around(at, end);
            let read = || pack.maths.parse(text, &pack.numbers);
            let read = self.lookups.calculation(text, read)?;
            let value = (read.written.into(), read.said.unwrap_or_default());
            let mut fill = SlotFill::certain_fill(at, end - at, CALCULATION, value);
            if read.unsure {
                fill.kind = FillKind::Free;
            }
            Some(fill)
        });
        spans.collect()
    }

    fn free_text(&self, at: usize) -> Vec<SlotFill> {
        let spans = (at + 1..=self.sentence.tokens.len()).filter_map(|end| {
            let text = self.sentence.text_around(at, end);
            let text = text
                .trim_start_matches([':', ',', ';', '-', ' '])
                .trim_end_matches(['.', '?', '!', ',', ' ']);
            let mut fill =
                SlotFill::certain_fill(at, end - at, TEXT, (text.into(), text.to_owned()));
            fill.kind = FillKind::Free;
            (!text.is_empty()).then_some(fill)
        });
        spans.collect()
    }

    fn names(&self, slot: usize, names: &NameIndex, at: usize, or_unknown: bool) -> Vec<SlotFill> {
        let longest = (self.sentence.tokens.len() - at).min(MAX_NAME_LEN);
        let words = &self.texts[at..at + longest];
        let mut fills: Vec<SlotFill> = if or_unknown {
            self.unknown_names(at)
        } else {
            Vec::new()
        };
        for length in 1..=longest {
            let Some((found, entries)) = self.find_name(slot, names, &words[..length]) else {
                continue;
            };
            let (more, how) = match found {
                NameMatch::Whole => (0, FillKind::Certain),
                NameMatch::Part => (PART, FillKind::Part),
                NameMatch::Near(edits) => (EDIT * edits, FillKind::Misspelt),
            };
            fills.push(SlotFill {
                end: at + length,
                cost: NAME * length as u32 + more,
                kind: how,
                together: false,
                values: entries
                    .iter()
                    .map(|entry| (Value::from(entry.value.clone()), entry.label.clone()))
                    .collect(),
            });
        }
        fills
    }

    /// `tokyo japan`: two names in a row that share a meaning, where the second narrows the first.
    fn repeated_name_fills(
        &self,
        names: &NameIndex,
        at: usize,
        once: &[SlotFill],
    ) -> Vec<SlotFill> {
        let first: Vec<&SlotFill> = once
            .iter()
            .filter(|fill| fill.kind == FillKind::Certain)
            .collect();
        if first.is_empty() {
            return Vec::new();
        }
        let longest = (self.sentence.tokens.len() - at).min(MAX_NAME_LEN);
        let words = &self.texts[at..at + longest];
        let whole = |words: &[String]| {
            let found = names.find(words, &self.engine.normalizer(), false)?;
            (found.0 == NameMatch::Whole).then_some(found.1)
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
                    fills.push(SlotFill {
                        end: at + end,
                        cost: NAME * end as u32,
                        kind: FillKind::Certain,
                        together: false,
                        values,
                    });
                }
            }
        }
        fills
    }

    pub(super) fn find_name<'n>(
        &self,
        slot: usize,
        names: &'n NameIndex,
        words: &[String],
    ) -> Option<(NameMatch, Vec<&'n NameEntry>)> {
        let (spoken, tolerance) = (
            self.engine.normalizer(),
            self.tolerance >= MatchTolerance::Spelling,
        );
        self.lookups.names(slot, names, words, &spoken, tolerance)
    }

    fn unknown_names(&self, at: usize) -> Vec<SlotFill> {
        let longest = (self.sentence.tokens.len() - at).min(MAX_NAME_LEN);
        let fill = |length: usize| {
            let text = self.sentence.text_between(at, at + length);
            let values = vec![(Value::from(text), text.to_owned())];
            SlotFill {
                end: at + length,
                cost: UNKNOWN + TEXT * length as u32,
                kind: FillKind::Unknown,
                together: false,
                values,
            }
        };
        (1..=longest).map(fill).collect()
    }
}

impl SlotFill {
    fn certain_fill(at: usize, words: usize, cost: u32, value: (Value, String)) -> Self {
        Self {
            end: at + words,
            cost: cost * words as u32,
            kind: FillKind::Certain,
            together: false,
            values: vec![value],
        }
    }
}
