//! Finds the values that can fill a slot at a given word of a sentence.

use std::rc::Rc;

use serde_json::Value;

use super::engine::CompiledSlot;
use super::matcher::{
    CALCULATION_WORD_COST, EDIT_COST, FillKind, ListState, MAX_NAME_LEN, MatchTolerance,
    NAME_WORD_COST, PARTIAL_NAME_COST, SentenceMatcher, SlotFill, TEXT_WORD_COST,
    UNKNOWN_NAME_COST,
};
use super::name_index::{NameEntry, NameIndex, NameMatch};
use super::numbers::number_to_json;
use super::pack::NumberRange;

impl SentenceMatcher<'_> {
    pub(super) fn fills_at(&self, slot: usize, at: usize) -> Rc<[SlotFill]> {
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
            CompiledSlot::Number => self
                .number_fill(at)
                .into_iter()
                .map(|(fill, _)| fill)
                .collect(),
            CompiledSlot::Range(range) => self.range_fill(range, at).into_iter().collect(),
            CompiledSlot::Date => self.date_fill(at).into_iter().collect(),
            CompiledSlot::Expression => self.calculation_fills(at),
            CompiledSlot::Text => self.text_fills(at),
            CompiledSlot::Values(names, noun) => {
                // Without a noun, an answer couldn't say what kind of value is unknown.
                let or_unknown = noun.is_some() && self.tolerance >= MatchTolerance::Unknown;
                let mut fills = self.name_fills(slot, names, at, or_unknown);
                let twice = self.repeated_name_fills(names, at, &fills);
                fills.extend(twice);
                fills
            }
            CompiledSlot::List(_) => match self.lists.get(&slot) {
                Some(ListState::Known(names)) => {
                    let mut fills =
                        self.name_fills(slot, names, at, self.tolerance >= MatchTolerance::Unknown);
                    fills.extend(self.group_fills(slot, names, at));
                    fills
                }
                Some(ListState::Unreadable(_)) if self.tolerance >= MatchTolerance::Unknown => {
                    self.unknown_name_fills(at)
                }
                Some(ListState::Unreadable(_)) | None => Vec::new(),
            },
        }
    }

    fn words_from(&self, at: usize) -> Vec<&str> {
        let tokens = self.sentence.tokens[at..].iter();
        tokens.map(|token| token.text.as_str()).collect()
    }

    fn number_fill(&self, at: usize) -> Option<(SlotFill, f64)> {
        let (value, taken) = self.engine.pack.numbers.parse(&self.words_from(at))?;
        let fill = SlotFill::certain_fill(
            at,
            taken,
            NAME_WORD_COST,
            (number_to_json(value), value.to_string()),
        );
        Some((fill, value))
    }

    fn range_fill(&self, range: &NumberRange, at: usize) -> Option<SlotFill> {
        let (mut fill, value) = self.number_fill(at)?;
        if !(range.from..=range.to).contains(&value) {
            fill.kind = FillKind::OutOfRange;
            fill.cost += PARTIAL_NAME_COST;
        }
        Some(fill)
    }

    fn date_fill(&self, at: usize) -> Option<SlotFill> {
        let (date, taken) = self
            .engine
            .pack
            .dates
            .parse(&self.words_from(at), self.today)?;
        let date = date.to_string();
        let value = (Value::from(date.as_str()), date);
        Some(SlotFill::certain_fill(at, taken, NAME_WORD_COST, value))
    }

    fn calculation_fills(&self, at: usize) -> Vec<SlotFill> {
        let pack = &self.engine.pack;
        let spans = (at + 1..=self.sentence.tokens.len()).filter_map(|end| {
            let text = self.sentence.text_around(at, end);
            let read = || pack.maths.parse(text, &pack.numbers);
            let read = self.lookups.calculation(text, read)?;
            let value = (read.written.into(), read.said.unwrap_or_default());
            let mut fill = SlotFill::certain_fill(at, end - at, CALCULATION_WORD_COST, value);
            if read.unsure {
                fill.kind = FillKind::FreeText;
            }
            Some(fill)
        });
        spans.collect()
    }

    fn text_fills(&self, at: usize) -> Vec<SlotFill> {
        let spans = (at + 1..=self.sentence.tokens.len()).filter_map(|end| {
            let text = self.sentence.text_around(at, end);
            let text = text
                .trim_start_matches([':', ',', ';', '-', ' '])
                .trim_end_matches(['.', '?', '!', ',', ' ']);
            let mut fill = SlotFill::certain_fill(
                at,
                end - at,
                TEXT_WORD_COST,
                (text.into(), text.to_owned()),
            );
            fill.kind = FillKind::FreeText;
            (!text.is_empty()).then_some(fill)
        });
        spans.collect()
    }

    fn name_fills(
        &self,
        slot: usize,
        names: &NameIndex,
        at: usize,
        or_unknown: bool,
    ) -> Vec<SlotFill> {
        let longest = (self.sentence.tokens.len() - at).min(MAX_NAME_LEN);
        let words = &self.texts[at..at + longest];
        let mut fills: Vec<SlotFill> = if or_unknown {
            self.unknown_name_fills(at)
        } else {
            Vec::new()
        };
        for length in 1..=longest {
            let Some((found, entries)) = self.find_name(slot, names, &words[..length]) else {
                continue;
            };
            let (more, kind) = match found {
                NameMatch::Whole => (0, FillKind::Certain),
                NameMatch::Part => (PARTIAL_NAME_COST, FillKind::PartialName),
                NameMatch::Near(edits) => (EDIT_COST * edits, FillKind::Misspelt),
            };
            fills.push(SlotFill {
                end: at + length,
                cost: NAME_WORD_COST * length as u32 + more,
                kind,
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
                        cost: NAME_WORD_COST * end as u32,
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
        let (normalizer, tolerance) = (
            self.engine.normalizer(),
            self.tolerance >= MatchTolerance::Spelling,
        );
        self.lookups
            .names(slot, names, words, &normalizer, tolerance)
    }

    fn unknown_name_fills(&self, at: usize) -> Vec<SlotFill> {
        let longest = (self.sentence.tokens.len() - at).min(MAX_NAME_LEN);
        let fill = |length: usize| {
            let text = self.sentence.text_between(at, at + length);
            let values = vec![(Value::from(text), text.to_owned())];
            SlotFill {
                end: at + length,
                cost: UNKNOWN_NAME_COST + TEXT_WORD_COST * length as u32,
                kind: FillKind::UnknownName,
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
