//! Names that a slot may be filled with, and finding those that a person means.

use std::borrow::Borrow;
use std::collections::HashMap;

use super::items::{Item, forms};
use super::numbers::Numbers;
use super::pack::Kind;
use super::spelling::{NearWords, edit_of_joined};
use super::words::plain_words;

/// The most names of one list.
const MOST: usize = 5000;
/// The most of them that are told apart in one question.
const MOST_FOUND: usize = 50;
/// The longest name, in bytes.
const LONGEST: usize = 120;

#[derive(Debug, Default)]
pub(crate) struct Names {
    entries: Vec<Entry>,
    /// By the letters of a name without spaces: `bed room` is `bedroom`.
    exact: HashMap<String, Vec<usize>>,
    /// By the words of a name in any order: `light in the kitchen` is `kitchen light`.
    sets: HashMap<String, Vec<usize>>,
    /// By each word of it.
    words: HashMap<String, Vec<usize>>,
    /// By what several things are called together, whatever their names: `lights`.
    kinds: HashMap<String, Vec<usize>>,
    /// What `everything` means.
    everything: Vec<usize>,
    /// The words of all forms, to be compared with what was misspelt: their places in `spelt`.
    forms: Vec<(Vec<usize>, usize)>,
    spelt: Vec<String>,
    places: HashMap<String, usize>,
    /// All forms without spaces, which may have been written together or apart, by their digits: of those none may be wrong.
    joined: HashMap<String, Vec<(String, usize)>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    /// What the tool is given.
    pub(crate) value: String,
    /// What a person is told.
    pub(crate) label: String,
    pub(crate) place: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Found {
    Whole,
    Part,
    Near(u32),
}

pub(crate) struct Spoken<'a> {
    pub(crate) numbers: &'a Numbers,
    /// Words that say nothing inside a name: `the`, `in`.
    pub(crate) small: &'a [String],
}

impl Spoken<'_> {
    pub(super) fn words(&self, text: &str) -> Vec<String> {
        self.numbers.in_digits(&plain_words(text))
    }

    fn set(&self, words: &[String]) -> Vec<String> {
        let mut set: Vec<String> = words
            .iter()
            .filter(|word| !self.small.contains(word))
            .cloned()
            .collect();
        set.sort_unstable();
        set.dedup();
        set
    }
}

impl Names {
    pub(crate) fn fixed<'a>(
        values: impl IntoIterator<Item = (&'a str, &'a [String])>,
        spoken: &Spoken<'_>,
    ) -> Self {
        let mut names = Self::default();
        for (value, forms) in values {
            let entry = Entry {
                value: value.to_owned(),
                label: value.to_owned(),
                place: None,
            };
            let index = names.push(entry);
            let own = forms.is_empty().then_some(value);
            for form in forms.iter().map(String::as_str).chain(own) {
                names.add_form(index, &spoken.words(form));
            }
        }
        names
    }

    pub(crate) fn live(items: Vec<Item>, kinds: &[Kind], spoken: &Spoken<'_>) -> Self {
        let mut names = Self::default();
        // Also what none of these is must be known: a sensor for light is not switched with the lights.
        let called = kinds.iter().flat_map(|kind| &kind.words);
        names.kinds = called.map(|word| (word.clone(), Vec::new())).collect();
        let usable = items.into_iter().filter(|item| item.name.len() <= LONGEST);
        let items: Vec<_> = usable
            .take(MOST)
            .map(|item| (spoken.words(&item.name), item))
            .collect();
        let mut count = HashMap::<&[String], usize>::new();
        for (words, _) in &items {
            *count.entry(words).or_default() += 1;
        }
        let mut known = HashMap::new();
        for (words, item) in items.iter().filter(|(words, _)| !words.is_empty()) {
            let (name, place) = (&item.name, item.place.as_deref());
            let place = place.filter(|place| !place.trim().is_empty());
            let is_shared = count.get(words.as_slice()).is_some_and(|count| *count > 1);
            let label = match place {
                Some(place) if is_shared => format!("{place} {name}"),
                _ => name.clone(),
            };
            // Things that nobody can tell apart are one.
            if known.insert(spoken.words(&label), ()).is_some() {
                continue;
            }
            let index = names.push(Entry {
                value: label.clone(),
                label,
                place: place.map(str::to_owned),
            });
            names.everything.extend(item.counts.then_some(index));
            names.add_form(index, words);
            let places = place.map(|place| spoken.words(place)).unwrap_or_default();
            if !places.is_empty() {
                names.add_form(index, &[places.as_slice(), words].concat());
            }
            let all = [words.as_slice(), &places].concat();
            for set in [spoken.set(words), spoken.set(&all)] {
                add(&mut names.sets, set.join(" "), index);
            }
            for word in spoken.set(&all) {
                add(&mut names.words, word, index);
            }
            for word in item.kinds.iter().flat_map(|kind| &kinds[*kind].words) {
                add(&mut names.kinds, word.clone(), index);
            }
        }
        names
    }

    fn push(&mut self, entry: Entry) -> usize {
        self.entries.push(entry);
        self.entries.len() - 1
    }

    fn add_form(&mut self, index: usize, words: &[String]) {
        let letters = words.concat();
        add(&mut self.exact, letters.clone(), index);
        let joined = self.joined.entry(digits(&letters)).or_default();
        joined.push((letters, index));
        let places = words.iter().map(|word| {
            let next = self.spelt.len();
            *self.places.entry(word.clone()).or_insert_with(|| {
                self.spelt.push(word.clone());
                next
            })
        });
        let places = places.collect();
        self.forms.push((places, index));
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// What some words mean, by the best way that finds anything.
    pub(crate) fn find(
        &self,
        words: &[String],
        spoken: &Spoken<'_>,
        mercy: bool,
    ) -> Option<(Found, Vec<&Entry>)> {
        let (how, places) = match self.spelt(words, spoken) {
            None if mercy => self.misspelt(words, spoken, &mut NearWords::default())?,
            found => found?,
        };
        Some((how, self.entries(&places)))
    }

    /// The places of what some words mean that are spelt as they should be.
    pub(super) fn spelt(
        &self,
        words: &[String],
        spoken: &Spoken<'_>,
    ) -> Option<(Found, Vec<usize>)> {
        let words = spoken.numbers.in_digits(words);
        if let Some(found) = self.exact.get(&words.concat()) {
            return Some((Found::Whole, few(found)));
        }
        let set = spoken.set(&words);
        if let Some(found) = self.sets.get(&set.join(" ")).filter(|_| !set.is_empty()) {
            return Some((Found::Whole, few(found)));
        }
        Some((Found::Part, few(&self.having(&set)?)))
    }

    /// The same of words of which some letters may be wrong; `near` keeps what was found of each.
    pub(super) fn misspelt(
        &self,
        words: &[String],
        spoken: &Spoken<'_>,
        near: &mut NearWords,
    ) -> Option<(Found, Vec<usize>)> {
        let words = spoken.numbers.in_digits(words);
        for word in &words {
            near.look_up(word, &self.spelt);
        }
        let set = spoken.set(&words);
        let found = self
            .near(&words, near)
            .or_else(|| self.having_near(&set, near));
        let (edits, found) = found?;
        Some((Found::Near(edits), few(&found)))
    }

    pub(super) fn entries(&self, places: &[usize]) -> Vec<&Entry> {
        places.iter().map(|place| &self.entries[*place]).collect()
    }

    fn having(&self, set: &[String]) -> Option<Vec<usize>> {
        in_all(set, |word| self.words.get(word))
    }

    /// Names that differ in the fewest letters, if these are few enough. Each word by itself: a `bathroom light` is no
    /// `bedroom light`, however much of both is the same.
    fn near(&self, words: &[String], near: &NearWords) -> Option<(u32, Vec<usize>)> {
        const MOST: usize = 3;
        let tables: Vec<&[(usize, usize)]> = words.iter().map(|word| near.of(word)).collect();
        let is_hopeless = tables.iter().any(|table| table.is_empty());
        let forms = self.forms.iter().filter(|_| !is_hopeless);
        let by_words = forms
            .filter(|(form, _)| form.len() == words.len())
            .filter_map(|(form, index)| {
                let wrong = form
                    .iter()
                    .zip(&tables)
                    .map(|(place, table)| edits_at(table, *place));
                Some((
                    wrong
                        .sum::<Option<usize>>()
                        .filter(|edits| *edits <= MOST)?,
                    *index,
                ))
            });
        let letters = words.concat();
        let joined = self.joined.get(&digits(&letters));
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

    /// Names that have all these words once they are spelt like words of names.
    fn having_near(&self, set: &[String], near: &NearWords) -> Option<(u32, Vec<usize>)> {
        let mut total = 0;
        let mut right = Vec::new();
        for word in set {
            let known = near
                .of(word)
                .iter()
                .map(|(place, edits)| (*edits, &self.spelt[*place]));
            let (wrong, known) = known
                .filter(|(_, known)| self.words.contains_key(*known))
                .min()?;
            total += wrong;
            right.push(known.clone());
        }
        Some((total as u32, self.having(&right)?))
    }

    /// All that `everything` means.
    pub(crate) fn everything(&self) -> Vec<&Entry> {
        self.entries(&self.everything)
    }

    /// All that have these words in their names, or are of a kind that is called so: a `light` and a `kitchen light` are
    /// lights, and so is a dimmer. What a word for several ends in may be missing.
    pub(crate) fn with_words(
        &self,
        words: &[String],
        plural: &[String],
        spoken: &Spoken<'_>,
    ) -> Vec<&Entry> {
        let set = spoken.set(&spoken.numbers.in_digits(words));
        let found = in_all(&set, |word| {
            let forms = forms(word, plural);
            if let Some(kind) = forms.iter().find_map(|form| self.kinds.get(form)) {
                return Some(kind.clone());
            }
            let named = forms.iter().filter_map(|form| self.words.get(form));
            let mut named: Vec<usize> = named.flatten().copied().collect();
            named.sort_unstable();
            named.dedup();
            (!named.is_empty()).then_some(named)
        });
        self.entries(&found.unwrap_or_default())
    }

    /// True if a word is one for several of the things there are: `lights`, where one is called `light`.
    pub(crate) fn is_plural(&self, word: &str, plural: &[String]) -> bool {
        let is_known =
            |form: &String| self.kinds.contains_key(form) || self.words.contains_key(form);
        forms(word, plural).iter().skip(1).any(is_known)
    }

    pub(crate) fn place_of(&self, value: &str) -> Option<&str> {
        let entry = self.entries.iter().find(|entry| entry.value == value)?;
        entry.place.as_deref()
    }

    /// Names that look a little like this. What has more words than a name says more than it: `the fan in 5 minutes` is not
    /// `fan` misspelt.
    pub(crate) fn suggestions(&self, text: &str, most: usize, spoken: &Spoken<'_>) -> Vec<String> {
        let count = |text: &str| spoken.set(&spoken.words(text)).len();
        let said = count(text);
        let labels = self.entries.iter().map(|entry| entry.label.as_str());
        let mut near = toolgate_core::nearest(text, labels, most);
        near.retain(|label| said <= count(label) + self.place_of(label).map_or(0, count));
        near
    }
}

fn in_all<L: Borrow<Vec<usize>>>(
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

fn few(places: &[usize]) -> Vec<usize> {
    places[..places.len().min(MOST_FOUND)].to_vec()
}

/// The letters that are wrong in a word, if it may be the one at this place.
fn edits_at(near: &[(usize, usize)], place: usize) -> Option<usize> {
    let at = near.binary_search_by_key(&place, |(place, _)| *place);
    at.ok().map(|at| near[at].1)
}

fn digits(letters: &str) -> String {
    letters.chars().filter(char::is_ascii_digit).collect()
}

fn add(to: &mut HashMap<String, Vec<usize>>, key: String, index: usize) {
    let list = to.entry(key).or_default();
    if list.last() != Some(&index) && !list.contains(&index) {
        list.push(index);
    }
}

#[cfg(test)]
mod tests;
