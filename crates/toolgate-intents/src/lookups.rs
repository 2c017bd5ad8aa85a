//! What was looked up for a sentence. Its parts are read again and again, each in many ways: nothing is to be searched twice.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;

use super::lists::{Entry, Found, Names, Spoken};
use super::maths::Calculation;
use super::spelling::NearWords;

#[derive(Default)]
pub(crate) struct Lookups {
    pub(super) templates: RefCell<NearWords>,
    names: RefCell<HashMap<usize, NameLookups>>,
    calculations: RefCell<HashMap<String, Option<Calculation>>>,
}

#[derive(Default)]
struct NameLookups {
    near: NearWords,
    /// By the words: what they mean as they are, and what if they are misspelt.
    found: HashMap<String, (Places, OnceCell<Places>)>,
}

type Places = Option<(Found, Vec<usize>)>;

impl Lookups {
    /// What some words mean among the names of a slot; with `mercy` also if they are misspelt.
    pub(super) fn names<'n>(
        &self,
        slot: usize,
        names: &'n Names,
        words: &[String],
        spoken: &Spoken<'_>,
        mercy: bool,
    ) -> Option<(Found, Vec<&'n Entry>)> {
        let key = words.join(" ");
        let mut kept = self.names.borrow_mut();
        let NameLookups { near, found } = kept.entry(slot).or_default();
        let found = found.entry(key);
        let (spelt, misspelt) =
            found.or_insert_with(|| (names.spelt(words, spoken), OnceCell::new()));
        let found = match spelt {
            None if mercy => misspelt.get_or_init(|| names.misspelt(words, spoken, near)),
            spelt => spelt,
        };
        let (how, places) = found.as_ref()?;
        Some((*how, names.entries(places)))
    }

    /// The calculation that a text is, as `read` reads it.
    pub(super) fn calculation(
        &self,
        text: &str,
        read: impl FnOnce() -> Option<Calculation>,
    ) -> Option<Calculation> {
        let mut kept = self.calculations.borrow_mut();
        if let Some(known) = kept.get(text) {
            return known.clone();
        }
        let found = read();
        kept.insert(text.to_owned(), found.clone());
        found
    }
}
