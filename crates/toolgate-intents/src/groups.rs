//! Several things at once: `the lamp and the fan`, `all the lights`, `everything`; and `it`, which was spoken of before.

use serde_json::Value;

use super::engine::Filling;
use super::lists::{Entry, Found, Names};
use super::matcher::{EDIT, Fill, How, LONGEST_NAME, NAME, PART, Reading};
use super::talk::MOST_TOGETHER;
use super::words::plain_words;

impl Reading<'_> {
    pub(super) fn groups(&self, slot: usize, names: &Names, at: usize) -> Vec<Fill> {
        let mut fills: Vec<Fill> = self.spoken_of(slot, names, at).into_iter().collect();
        fills.extend(self.everything(names, at));
        fills.extend(self.all_of(names, at));
        fills.extend(self.plural(slot, names, at));
        fills.extend(self.joined(slot, names, at));
        fills
    }

    /// `it`: what the last calls were about, if that is of this kind.
    fn spoken_of(&self, slot: usize, names: &Names, at: usize) -> Option<Fill> {
        let word = &self.sentence.tokens[at].text;
        if !self.engine.pack.pronouns.contains(word) {
            return None;
        }
        let slots = self.last.iter().flatten();
        let meant = slots.filter_map(|(name, value)| {
            let name = value
                .as_str()
                .filter(|_| self.engine.is_alike(slot, name))?;
            let found = names.find(&plain_words(name), &self.engine.spoken(), false);
            found.filter(|(found, _)| *found == Found::Whole)
        });
        let entries = meant.flat_map(|(_, entries)| entries).collect();
        // Never certain: something else may have been meant.
        group(entries, at + 1, NAME, How::Part)
    }

    fn everything(&self, names: &Names, at: usize) -> Option<Fill> {
        let length = self.phrase_at(&self.engine.everything, at)?;
        group(names.everything(), at + length, NAME, How::Everything)
    }

    /// `all the kitchen lights`: everything with these words in its name.
    fn all_of(&self, names: &Names, at: usize) -> Vec<Fill> {
        let Some(length) = self.phrase_at(&self.engine.all, at) else {
            return Vec::new();
        };
        let from = at + length;
        let longest = (self.sentence.tokens.len() - from).min(LONGEST_NAME);
        let fill = |length: usize| {
            let entries = self.with_words(names, from, from + length);
            group(entries, from + length, NAME * length as u32, How::Certain)
        };
        (1..=longest).filter_map(fill).collect()
    }

    /// `the kitchen lights`, `lights in the kitchen`: the same without a word for all. One light is never meant by it.
    fn plural(&self, slot: usize, names: &Names, at: usize) -> Vec<Fill> {
        let longest = (self.sentence.tokens.len() - at).min(LONGEST_NAME);
        let ends = (at + 1..=at + longest).take_while(|end| {
            let last = end - 1;
            last == at || !self.is_joined(last)
        });
        let fill = |end: usize| {
            let head = self
                .head(at, end)
                .filter(|head| !self.is_noun(slot, head))?;
            let endings = &self.engine.pack.groups.plural;
            if !names.is_plural(head, endings) {
                return None;
            }
            let entries = self.with_words(names, at, end);
            group(entries, end, NAME * (end - at) as u32, How::Plural)
        };
        ends.filter_map(fill).collect()
    }

    fn with_words<'n>(&self, names: &'n Names, from: usize, to: usize) -> Vec<&'n Entry> {
        let endings = &self.engine.pack.groups.plural;
        names.with_words(&self.texts[from..to], endings, &self.engine.spoken())
    }

    /// True if something else begins with this word.
    fn is_joined(&self, at: usize) -> bool {
        let word = &self.sentence.tokens[at].text;
        self.engine.pack.groups.and.contains(word) || self.sentence.has_comma(at)
    }

    /// The word that says what is meant, where no number does: `lights` of `kitchen lights`, and of `lights in the kitchen`.
    fn head(&self, from: usize, to: usize) -> Option<&String> {
        let words = &self.texts[from..to];
        let is_small = |word: &String| self.engine.pack.small.contains(word);
        let is_number = |word: &String| word.starts_with(|first: char| first.is_ascii_digit());
        let digits = self.engine.spoken().numbers.in_digits(words);
        if words.iter().take(1).chain(words.last()).any(is_small) || digits.iter().any(is_number) {
            return None;
        }
        let first = words.iter().position(is_small).unwrap_or(words.len());
        words.get(first.checked_sub(1)?)
    }

    /// True if a word is what all things of a list are called: not some of them.
    fn is_noun(&self, slot: usize, word: &str) -> bool {
        match &self.engine.slots[slot] {
            Filling::List(source) => source.nouns == word,
            _ => false,
        }
    }

    /// `the lamp, the fan and the radio`.
    fn joined(&self, slot: usize, names: &Names, at: usize) -> Vec<Fill> {
        // Where one ends and the next begins.
        let parted = |index: usize| {
            let word = &self.sentence.tokens[index].text;
            match self.engine.pack.groups.and.contains(word) {
                true => Some((index, index + 1)),
                false => self.sentence.has_comma(index).then_some((index, index)),
            }
        };
        let parts: Vec<(usize, usize)> = (at + 1..self.sentence.tokens.len())
            .filter_map(parted)
            .take(MOST_TOGETHER)
            .collect();
        let (mut from, mut before) = (at, Some((Vec::new(), 0, How::Certain)));
        let mut fills = Vec::new();
        for (index, (end, next)) in parts.iter().enumerate() {
            before = before.and_then(|before| self.and_one(before, slot, names, from, *end));
            let Some(before) = &before else { break };
            from = *next;
            let end = parts.get(index + 1).map(|(end, _)| *end);
            let end = end.unwrap_or(self.sentence.tokens.len());
            for end in from + 1..=end.min(from + LONGEST_NAME) {
                let all = self.and_one(before.clone(), slot, names, from, end);
                fills.extend(all.and_then(|(entries, cost, how)| group(entries, end, cost, how)));
            }
        }
        fills
    }

    fn and_one<'n>(
        &self,
        (mut entries, cost, how): (Vec<&'n Entry>, u32, How),
        slot: usize,
        names: &'n Names,
        from: usize,
        to: usize,
    ) -> Option<(Vec<&'n Entry>, u32, How)> {
        let words: Vec<String> = self.sentence.tokens[from..to]
            .iter()
            .map(|token| token.text.clone())
            .filter(|word| !self.engine.pack.small.contains(word))
            .collect();
        if words.is_empty() || words.len() > LONGEST_NAME {
            return None;
        }
        let (found, one) = self.named(slot, names, &words)?;
        let [one] = one[..] else { return None };
        entries.push(one);
        let (more, how) = match found {
            Found::Whole => (0, how),
            Found::Part => (PART, How::Part),
            Found::Near(edits) => (EDIT * edits, How::Misspelt),
        };
        Some((entries, cost + NAME * (to - from) as u32 + more, how))
    }

    fn phrase_at(&self, phrases: &[Vec<String>], at: usize) -> Option<usize> {
        let rest = &self.sentence.tokens[at..];
        let is_here = |phrase: &&Vec<String>| {
            let mut words = phrase.iter().zip(rest);
            phrase.len() <= rest.len() && words.all(|(word, token)| *word == token.text)
        };
        phrases.iter().filter(is_here).map(Vec::len).max()
    }
}

fn group(entries: Vec<&Entry>, end: usize, cost: u32, how: How) -> Option<Fill> {
    let mut values: Vec<(Value, String)> = Vec::new();
    for entry in entries {
        let value = (Value::from(entry.value.clone()), entry.label.clone());
        if !values.contains(&value) {
            values.push(value);
        }
    }
    // Doing half of it would be worse than doing nothing.
    let fits = (1..=MOST_TOGETHER).contains(&values.len());
    fits.then_some(Fill {
        end,
        cost,
        how,
        together: true,
        values,
    })
}
