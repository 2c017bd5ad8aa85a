//! Names for several things at once (`the lamp and the fan`, `all the lights`, `everything`), and
//! `it` for what was mentioned last.

use serde_json::Value;

use super::engine::CompiledSlot;
use super::matcher::{
    EDIT_COST, FillKind, MAX_NAME_LEN, NAME_WORD_COST, PARTIAL_NAME_COST, SentenceMatcher, SlotFill,
};
use super::name_index::{NameEntry, NameIndex, NameMatch};
use super::understanding::MAX_CALLS;
use super::words::plain_words;

impl SentenceMatcher<'_> {
    pub(super) fn group_fills(&self, slot: usize, names: &NameIndex, at: usize) -> Vec<SlotFill> {
        let mut fills: Vec<SlotFill> = self.pronoun_fill(slot, names, at).into_iter().collect();
        fills.extend(self.everything_fill(names, at));
        fills.extend(self.all_of_fills(names, at));
        fills.extend(self.plural_fills(slot, names, at));
        fills.extend(self.enumeration_fills(slot, names, at));
        fills
    }

    /// `it` means the subject of the last calls, if it comes from the same list.
    fn pronoun_fill(&self, slot: usize, names: &NameIndex, at: usize) -> Option<SlotFill> {
        let word = &self.sentence.tokens[at].text;
        if !self.engine.pack.pronouns.contains(word) {
            return None;
        }
        let slots = self.last_slots.iter().flatten();
        let meant = slots.filter_map(|(name, value)| {
            let name = value
                .as_str()
                .filter(|_| self.engine.is_same_list(slot, name))?;
            let found = names.find(&plain_words(name), &self.engine.normalizer(), false);
            found.filter(|(found, _)| *found == NameMatch::Whole)
        });
        let entries = meant.flat_map(|(_, entries)| entries).collect();
        // `it` is never certain: the person may mean something else.
        group_fill(entries, at + 1, NAME_WORD_COST, FillKind::PartialName)
    }

    fn everything_fill(&self, names: &NameIndex, at: usize) -> Option<SlotFill> {
        let length = self.longest_phrase_at(&self.engine.everything_phrases, at)?;
        group_fill(
            names.everything(),
            at + length,
            NAME_WORD_COST,
            FillKind::Everything,
        )
    }

    /// `all the kitchen lights`: everything whose name has these words.
    fn all_of_fills(&self, names: &NameIndex, at: usize) -> Vec<SlotFill> {
        let Some(length) = self.longest_phrase_at(&self.engine.all_phrases, at) else {
            return Vec::new();
        };
        let from = at + length;
        let longest = (self.sentence.tokens.len() - from).min(MAX_NAME_LEN);
        let fill = |length: usize| {
            let entries = self.with_words(names, from, from + length);
            group_fill(
                entries,
                from + length,
                NAME_WORD_COST * length as u32,
                FillKind::Certain,
            )
        };
        (1..=longest).filter_map(fill).collect()
    }

    /// `the kitchen lights`, `lights in the kitchen`: like `all_of_fills`, but without
    /// a word for `all`.
    fn plural_fills(&self, slot: usize, names: &NameIndex, at: usize) -> Vec<SlotFill> {
        let longest = (self.sentence.tokens.len() - at).min(MAX_NAME_LEN);
        let ends = (at + 1..=at + longest).take_while(|end| {
            let last = end - 1;
            last == at || !self.starts_next_item(last)
        });
        let fill = |end: usize| {
            let head = self
                .head_noun(at, end)
                .filter(|head| !self.is_noun(slot, head))?;
            let endings = &self.engine.pack.groups.plural;
            if !names.is_plural(head, endings) {
                return None;
            }
            let entries = self.with_words(names, at, end);
            group_fill(
                entries,
                end,
                NAME_WORD_COST * (end - at) as u32,
                FillKind::Plural,
            )
        };
        ends.filter_map(fill).collect()
    }

    fn with_words<'n>(&self, names: &'n NameIndex, from: usize, to: usize) -> Vec<&'n NameEntry> {
        let endings = &self.engine.pack.groups.plural;
        names.with_words(&self.texts[from..to], endings, &self.engine.normalizer())
    }

    /// True if this word starts the next item of an enumeration.
    fn starts_next_item(&self, at: usize) -> bool {
        let word = &self.sentence.tokens[at].text;
        self.engine.pack.groups.and.contains(word) || self.sentence.has_comma(at)
    }

    /// The noun of a group: `lights` in both `kitchen lights` and `lights in the kitchen`. `None`
    /// if a number is part of the name.
    fn head_noun(&self, from: usize, to: usize) -> Option<&String> {
        let words = &self.texts[from..to];
        let is_small = |word: &String| self.engine.pack.small.contains(word);
        let is_number = |word: &String| word.starts_with(|first: char| first.is_ascii_digit());
        let digits = self.engine.normalizer().numbers.with_digits(words);
        if words.iter().take(1).chain(words.last()).any(is_small) || digits.iter().any(is_number) {
            return None;
        }
        let first = words.iter().position(is_small).unwrap_or(words.len());
        words.get(first.checked_sub(1)?)
    }

    /// True if a word is the list's own noun, such as `devices`, which doesn't select anything.
    fn is_noun(&self, slot: usize, word: &str) -> bool {
        match &self.engine.slots[slot] {
            CompiledSlot::List(source) => source.nouns == word,
            _ => false,
        }
    }

    /// `the lamp, the fan and the radio`.
    fn enumeration_fills(&self, slot: usize, names: &NameIndex, at: usize) -> Vec<SlotFill> {
        // The end of one item and the start of the next.
        let separator = |index: usize| {
            let word = &self.sentence.tokens[index].text;
            match self.engine.pack.groups.and.contains(word) {
                true => Some((index, index + 1)),
                false => self.sentence.has_comma(index).then_some((index, index)),
            }
        };
        let parts: Vec<(usize, usize)> = (at + 1..self.sentence.tokens.len())
            .filter_map(separator)
            .take(MAX_CALLS)
            .collect();
        let (mut from, mut before) = (at, Some((Vec::new(), 0, FillKind::Certain)));
        let mut fills = Vec::new();
        for (index, (end, next)) in parts.iter().enumerate() {
            before = before.and_then(|before| self.extend_group(before, slot, names, from, *end));
            let Some(before) = &before else { break };
            from = *next;
            let end = parts.get(index + 1).map(|(end, _)| *end);
            let end = end.unwrap_or(self.sentence.tokens.len());
            for end in from + 1..=end.min(from + MAX_NAME_LEN) {
                let all = self.extend_group(before.clone(), slot, names, from, end);
                fills.extend(
                    all.and_then(|(entries, cost, kind)| group_fill(entries, end, cost, kind)),
                );
            }
        }
        fills
    }

    fn extend_group<'n>(
        &self,
        (mut entries, cost, kind): (Vec<&'n NameEntry>, u32, FillKind),
        slot: usize,
        names: &'n NameIndex,
        from: usize,
        to: usize,
    ) -> Option<(Vec<&'n NameEntry>, u32, FillKind)> {
        let words: Vec<String> = self.sentence.tokens[from..to]
            .iter()
            .map(|token| token.text.clone())
            .filter(|word| !self.engine.pack.small.contains(word))
            .collect();
        if words.is_empty() || words.len() > MAX_NAME_LEN {
            return None;
        }
        let (found, one) = self.find_name(slot, names, &words)?;
        let [one] = one[..] else { return None };
        entries.push(one);
        let (more, kind) = match found {
            NameMatch::Whole => (0, kind),
            NameMatch::Part => (PARTIAL_NAME_COST, FillKind::PartialName),
            NameMatch::Near(edits) => (EDIT_COST * edits, FillKind::Misspelt),
        };
        Some((
            entries,
            cost + NAME_WORD_COST * (to - from) as u32 + more,
            kind,
        ))
    }

    fn longest_phrase_at(&self, phrases: &[Vec<String>], at: usize) -> Option<usize> {
        let rest = &self.sentence.tokens[at..];
        let is_here = |phrase: &&Vec<String>| {
            let mut words = phrase.iter().zip(rest);
            phrase.len() <= rest.len() && words.all(|(word, token)| *word == token.text)
        };
        phrases.iter().filter(is_here).map(Vec::len).max()
    }
}

fn group_fill(entries: Vec<&NameEntry>, end: usize, cost: u32, kind: FillKind) -> Option<SlotFill> {
    let mut values: Vec<(Value, String)> = Vec::new();
    for entry in entries {
        let value = (Value::from(entry.value.clone()), entry.label.clone());
        if !values.contains(&value) {
            values.push(value);
        }
    }
    // A group that is too large is rejected, because acting on a part of it would be worse than
    // doing nothing.
    let fits = (1..=MAX_CALLS).contains(&values.len());
    fits.then_some(SlotFill {
        end,
        cost,
        kind,
        together: true,
        values,
    })
}
