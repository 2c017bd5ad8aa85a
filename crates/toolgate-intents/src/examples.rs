//! What can be said, with the names of things that are there.

use std::collections::BTreeSet;

use super::answer::fill;
use super::engine::Engine;
use super::matcher::ListState;
use super::meaning::Moment;

/// Stands for a name that is not known.
const GAP: &str = "…";

impl Engine {
    /// An example for each intent that is ready and has one. What there is nothing for is left out.
    pub(super) fn examples(&self, moment: &Moment<'_>) -> Vec<(usize, String)> {
        let ready = self.ready_examples(moment);
        ready
            .filter_map(|(index, example)| Some((index, self.with_names(example, moment)?)))
            .collect()
    }

    pub(super) fn unread(&self, moment: &Moment<'_>) -> BTreeSet<usize> {
        let mut unread = BTreeSet::new();
        for (_, example) in self.ready_examples(moment) {
            fill(example, |name| {
                let slot = self.list_of(name);
                unread.extend(slot.filter(|slot| !moment.lists.contains_key(slot)));
                Some(String::new())
            });
        }
        unread
    }

    fn ready_examples(&self, moment: &Moment<'_>) -> impl Iterator<Item = (usize, &str)> {
        let intents = self.pack.intents.iter().enumerate();
        let ready = intents.filter(|(index, _)| moment.is_ready(*index));
        ready.filter_map(|(index, intent)| Some((index, intent.example.as_deref()?)))
    }

    fn with_names(&self, example: &str, moment: &Moment<'_>) -> Option<String> {
        fill(example, |name| {
            let Some(slot) = self.list_of(name) else {
                return Some(format!("{{{name}}}"));
            };
            match moment.lists.get(&slot) {
                Some(ListState::Known(names)) => {
                    let entries = names.everything();
                    entries.first().map(|first| in_a_sentence(&first.label))
                }
                _ => Some(GAP.to_owned()),
            }
        })
    }
}

/// `Kitchen Light` as it stands within a sentence; a `TV` stays one.
fn in_a_sentence(name: &str) -> String {
    let word = |word: &str| match word.chars().skip(1).any(char::is_uppercase) {
        true => word.to_owned(),
        false => word.to_lowercase(),
    };
    name.split_whitespace()
        .map(word)
        .collect::<Vec<_>>()
        .join(" ")
}
