//! Caches lookups while a sentence is interpreted, because its parts are tried many
//! times in many ways.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;

use super::maths::SpokenCalculation;
use super::name_index::{NameEntry, NameIndex, NameMatch, NameNormalizer};
use super::spelling::NearWords;

#[derive(Default)]
pub(crate) struct LookupCache {
    pub(super) templates: RefCell<NearWords>,
    names: RefCell<HashMap<usize, NameLookupCache>>,
    calculations: RefCell<HashMap<String, Option<SpokenCalculation>>>,
}

#[derive(Default)]
struct NameLookupCache {
    near: NearWords,
    /// For each phrase, the exact result, and the tolerant one once it is needed.
    found: HashMap<String, (CachedMatch, OnceCell<CachedMatch>)>,
}

type CachedMatch = Option<(NameMatch, Vec<usize>)>;

impl LookupCache {
    /// The entries of a slot's names that the words mean. With `tolerance`,
    /// also for misspelt words.
    pub(super) fn names<'n>(
        &self,
        slot: usize,
        names: &'n NameIndex,
        words: &[String],
        normalizer: &NameNormalizer<'_>,
        tolerance: bool,
    ) -> Option<(NameMatch, Vec<&'n NameEntry>)> {
        let key = words.join(" ");
        let mut cache = self.names.borrow_mut();
        let NameLookupCache { near, found } = cache.entry(slot).or_default();
        let found = found.entry(key);
        let (spelt, misspelt) =
            found.or_insert_with(|| (names.find_exact(words, normalizer), OnceCell::new()));
        let found = match spelt {
            None if tolerance => {
                misspelt.get_or_init(|| names.find_misspelt(words, normalizer, near))
            }
            spelt => spelt,
        };
        let (kind, indices) = found.as_ref()?;
        Some((*kind, names.entries_at(indices)))
    }

    pub(super) fn calculation(
        &self,
        text: &str,
        read: impl FnOnce() -> Option<SpokenCalculation>,
    ) -> Option<SpokenCalculation> {
        let mut cache = self.calculations.borrow_mut();
        if let Some(known) = cache.get(text) {
            return known.clone();
        }
        let found = read();
        cache.insert(text.to_owned(), found.clone());
        found
    }
}
