//! The names that can fill a slot, indexed for lookup.

use std::borrow::Borrow;
use std::collections::{BTreeSet, HashMap};

use super::items::{ListItem, singular_forms};
use super::numbers::NumberWords;
use super::pack::ItemKind;
use super::spelling::{NearWords, edit_of_joined};
use super::words::plain_words;

// Lists come from tools and are untrusted. These limits bound their length, the matches kept for a
// phrase, and the bytes of a name.
const MAX_NAMES: usize = 5000;
const MAX_MATCHES: usize = 50;
const MAX_NAME_BYTES: usize = 120;

#[derive(Debug, Default)]
pub(crate) struct NameIndex {
    entries: Vec<NameEntry>,
    /// By the letters without spaces: `bed room` finds `bedroom`.
    by_letters: HashMap<String, Vec<usize>>,
    /// By the sorted words: `light in the kitchen` finds `kitchen light`.
    by_word_set: HashMap<String, Vec<usize>>,
    by_word: HashMap<String, Vec<usize>>,
    /// By the words for a kind, such as `light`, whatever the names are.
    by_kind: HashMap<String, Vec<usize>>,
    everything: Vec<usize>,
    /// The words of all forms, as indices into `words_by_id`, for comparison with misspelt words.
    forms: Vec<(Vec<usize>, usize)>,
    words_by_id: Vec<String>,
    word_ids: HashMap<String, usize>,
    /// All forms without spaces, by their digits, which must match exactly.
    by_digits: HashMap<String, Vec<(String, usize)>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NameEntry {
    pub(crate) value: String,
    pub(crate) label: String,
    pub(crate) location: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NameMatch {
    Whole,
    Part,
    Near(u32),
}

pub(crate) struct NameNormalizer<'a> {
    pub(crate) numbers: &'a NumberWords,
    /// Words that are ignored in names: `the`, `in`.
    pub(crate) small: &'a [String],
}

impl NameNormalizer<'_> {
    pub(super) fn normalize(&self, text: &str) -> Vec<String> {
        self.numbers.with_digits(&plain_words(text))
    }

    fn word_set(&self, words: &[String]) -> Vec<String> {
        let large = words.iter().filter(|word| !self.small.contains(word));
        let set: BTreeSet<&String> = large.collect();
        set.into_iter().cloned().collect()
    }
}

impl NameIndex {
    pub(crate) fn from_values<'a>(
        values: impl IntoIterator<Item = (&'a str, &'a [String])>,
        normalizer: &NameNormalizer<'_>,
    ) -> Self {
        let mut names = Self::default();
        for (value, forms) in values {
            let (label, location) = (value.to_owned(), None);
            let index = names.push(NameEntry {
                value: label.clone(),
                label,
                location,
            });
            let own = forms.is_empty().then_some(value);
            for form in forms.iter().map(String::as_str).chain(own) {
                names.add_form(index, &normalizer.normalize(form));
            }
        }
        names
    }

    pub(crate) fn from_items(
        items: Vec<ListItem>,
        kinds: &[ItemKind],
        normalizer: &NameNormalizer<'_>,
    ) -> Self {
        let mut names = Self::default();
        // Every kind gets an entry even if no item is of that kind, so that `lights` never falls
        // back to names: a light sensor is not switched with the lights.
        let called = kinds.iter().flat_map(|kind| &kind.words);
        names.by_kind = called.map(|word| (word.clone(), Vec::new())).collect();
        let usable = items
            .into_iter()
            .filter(|item| item.name.len() <= MAX_NAME_BYTES);
        let usable = usable.take(MAX_NAMES);
        let items: Vec<_> = usable
            .map(|item| (normalizer.normalize(&item.name), item))
            .collect();
        let mut count = HashMap::<&[String], usize>::new();
        for (words, _) in &items {
            *count.entry(words).or_default() += 1;
        }
        let mut known = HashMap::new();
        for (words, item) in items.iter().filter(|(words, _)| !words.is_empty()) {
            let (name, location) = (&item.name, item.location.as_deref());
            let location = location.filter(|location| !location.trim().is_empty());
            let is_shared = count.get(words.as_slice()).is_some_and(|count| *count > 1);
            let label = match location {
                Some(location) if is_shared => format!("{location} {name}"),
                _ => name.clone(),
            };
            // A second item with the same label could never be chosen, so it is dropped.
            if known.insert(normalizer.normalize(&label), ()).is_some() {
                continue;
            }
            let index = names.push(NameEntry {
                value: label.clone(),
                label,
                location: location.map(str::to_owned),
            });
            names.everything.extend(item.in_everything.then_some(index));
            names.add_form(index, words);
            let location_words = location.map_or_else(Vec::new, |text| normalizer.normalize(text));
            if !location_words.is_empty() {
                names.add_form(index, &[location_words.as_slice(), words].concat());
            }
            let all = [words.as_slice(), &location_words].concat();
            for set in [normalizer.word_set(words), normalizer.word_set(&all)] {
                add_to_list(&mut names.by_word_set, set.join(" "), index);
            }
            for word in normalizer.word_set(&all) {
                add_to_list(&mut names.by_word, word, index);
            }
            for word in item.kinds.iter().flat_map(|kind| &kinds[*kind].words) {
                add_to_list(&mut names.by_kind, word.clone(), index);
            }
        }
        names
    }

    fn push(&mut self, entry: NameEntry) -> usize {
        self.entries.push(entry);
        self.entries.len() - 1
    }

    fn add_form(&mut self, index: usize, words: &[String]) {
        let letters = words.concat();
        add_to_list(&mut self.by_letters, letters.clone(), index);
        let joined = self.by_digits.entry(digits(&letters)).or_default();
        joined.push((letters, index));
        let ids = words.iter().map(|word| {
            let next = self.words_by_id.len();
            *self.word_ids.entry(word.clone()).or_insert_with(|| {
                self.words_by_id.push(word.clone());
                next
            })
        });
        let ids = ids.collect();
        self.forms.push((ids, index));
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The entries that the words mean, found by the most exact method that finds any.
    pub(crate) fn find(
        &self,
        words: &[String],
        normalizer: &NameNormalizer<'_>,
        tolerance: bool,
    ) -> Option<(NameMatch, Vec<&NameEntry>)> {
        let (how, indices) = match self.find_exact(words, normalizer) {
            None if tolerance => {
                self.find_misspelt(words, normalizer, &mut NearWords::default())?
            }
            found => found?,
        };
        Some((how, self.entries_at(&indices)))
    }

    pub(super) fn find_exact(
        &self,
        words: &[String],
        normalizer: &NameNormalizer<'_>,
    ) -> Option<(NameMatch, Vec<usize>)> {
        let words = normalizer.numbers.with_digits(words);
        if let Some(found) = self.by_letters.get(&words.concat()) {
            return Some((NameMatch::Whole, first_matches(found)));
        }
        let set = normalizer.word_set(&words);
        if let Some(found) = self
            .by_word_set
            .get(&set.join(" "))
            .filter(|_| !set.is_empty())
        {
            return Some((NameMatch::Whole, first_matches(found)));
        }
        Some((NameMatch::Part, first_matches(&self.containing_all(&set)?)))
    }

    /// Like `find_exact`, but tolerates wrong letters. `near` caches the candidates for each word.
    pub(super) fn find_misspelt(
        &self,
        words: &[String],
        normalizer: &NameNormalizer<'_>,
        near: &mut NearWords,
    ) -> Option<(NameMatch, Vec<usize>)> {
        let words = normalizer.numbers.with_digits(words);
        for word in &words {
            near.look_up(word, &self.words_by_id);
        }
        let set = normalizer.word_set(&words);
        let found = self.nearest_forms(&words, near);
        let (edits, found) = found.or_else(|| self.containing_similar(&set, near))?;
        Some((NameMatch::Near(edits), first_matches(&found)))
    }

    pub(super) fn entries_at(&self, indices: &[usize]) -> Vec<&NameEntry> {
        indices.iter().map(|index| &self.entries[*index]).collect()
    }

    fn containing_all(&self, set: &[String]) -> Option<Vec<usize>> {
        intersect(set, |word| self.by_word.get(word))
    }

    // The names with the fewest wrong letters. Words are compared one by one, because `bathroom
    // light` and `bedroom light` share most letters and still differ.
    fn nearest_forms(&self, words: &[String], near: &NearWords) -> Option<(u32, Vec<usize>)> {
        const MAX_EDITS: usize = 3;
        let tables: Vec<&[(usize, usize)]> = words.iter().map(|word| near.get(word)).collect();
        let is_hopeless = tables.iter().any(|table| table.is_empty());
        let forms = self.forms.iter().filter(|_| !is_hopeless);
        let by_words = forms
            .filter(|(form, _)| form.len() == words.len())
            .filter_map(|(form, index)| {
                let words = form.iter().zip(&tables);
                let wrong = words.map(|(id, table)| edits_for(table, *id));
                let edits = wrong.sum::<Option<usize>>()?;
                (edits <= MAX_EDITS).then_some((edits, *index))
            });
        let letters = words.concat();
        let joined = self.by_digits.get(&digits(&letters));
        let together = joined
            .into_iter()
            .flatten()
            .filter_map(|(form, index)| Some((edit_of_joined(form, &letters)?, *index)));
        let mut best = usize::MAX;
        let mut found = Vec::new();
        for (edits, index) in by_words.chain(together) {
            if edits < best {
                best = edits;
                found.clear();
            }
            if edits == best && !found.contains(&index) {
                found.push(index);
            }
        }
        (!found.is_empty()).then_some((best as u32, found))
    }

    fn containing_similar(&self, set: &[String], near: &NearWords) -> Option<(u32, Vec<usize>)> {
        let mut total = 0;
        let mut right = Vec::new();
        for word in set {
            let known = near
                .get(word)
                .iter()
                .map(|(id, edits)| (*edits, &self.words_by_id[*id]));
            let (wrong, known) = known
                .filter(|(_, known)| self.by_word.contains_key(*known))
                .min()?;
            total += wrong;
            right.push(known.clone());
        }
        Some((total as u32, self.containing_all(&right)?))
    }

    pub(crate) fn everything(&self) -> Vec<&NameEntry> {
        self.entries_at(&self.everything)
    }

    /// The entries with these words in their names or kinds: both a `kitchen light` and a dimmer
    /// are lights. Plural endings are optional.
    pub(crate) fn with_words(
        &self,
        words: &[String],
        plural: &[String],
        normalizer: &NameNormalizer<'_>,
    ) -> Vec<&NameEntry> {
        let set = normalizer.word_set(&normalizer.numbers.with_digits(words));
        let found = intersect(&set, |word| {
            let forms = singular_forms(word, plural);
            if let Some(kind) = forms.iter().find_map(|form| self.by_kind.get(form)) {
                return Some(kind.clone());
            }
            let named = forms.iter().filter_map(|form| self.by_word.get(form));
            let named: BTreeSet<usize> = named.flatten().copied().collect();
            (!named.is_empty()).then(|| named.into_iter().collect())
        });
        self.entries_at(&found.unwrap_or_default())
    }

    /// True if a word is the plural of a known word or kind: `lights`, where one is called `light`.
    pub(crate) fn is_plural(&self, word: &str, plural: &[String]) -> bool {
        let is_known =
            |form: &String| self.by_kind.contains_key(form) || self.by_word.contains_key(form);
        singular_forms(word, plural).iter().skip(1).any(is_known)
    }

    pub(crate) fn location_of(&self, value: &str) -> Option<&str> {
        let entry = self.entries.iter().find(|entry| entry.value == value)?;
        entry.location.as_deref()
    }

    /// Labels similar to a text. A text with more words than a label is not a misspelling of it:
    /// `the fan in 5 minutes` is not `fan`.
    pub(crate) fn suggestions(
        &self,
        text: &str,
        most: usize,
        normalizer: &NameNormalizer<'_>,
    ) -> Vec<String> {
        let count = |text: &str| normalizer.word_set(&normalizer.normalize(text)).len();
        let said = count(text);
        let labels = self.entries.iter().map(|entry| entry.label.as_str());
        let mut near = toolgate_core::text::nearest_names(text, labels, most);
        near.retain(|label| said <= count(label) + self.location_of(label).map_or(0, count));
        near
    }
}

fn intersect<L: Borrow<Vec<usize>>>(
    words: &[String],
    list: impl Fn(&String) -> Option<L>,
) -> Option<Vec<usize>> {
    let (first, others) = words.split_first()?;
    let mut found = list(first)?.borrow().clone();
    for word in others {
        let with = list(word)?;
        found.retain(|index| with.borrow().binary_search(index).is_ok());
    }
    (!found.is_empty()).then_some(found)
}

fn first_matches(indices: &[usize]) -> Vec<usize> {
    indices[..indices.len().min(MAX_MATCHES)].to_vec()
}

fn edits_for(near: &[(usize, usize)], id: usize) -> Option<usize> {
    let at = near.binary_search_by_key(&id, |(id, _)| *id);
    at.ok().map(|at| near[at].1)
}

fn digits(letters: &str) -> String {
    letters.chars().filter(char::is_ascii_digit).collect()
}

fn add_to_list(to: &mut HashMap<String, Vec<usize>>, key: String, index: usize) {
    let list = to.entry(key).or_default();
    if list.last() != Some(&index) && !list.contains(&index) {
        list.push(index);
    }
}

#[cfg(test)]
mod tests;
