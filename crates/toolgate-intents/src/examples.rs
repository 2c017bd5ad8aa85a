//! Example sentences, filled with names of things that exist.

use super::answer::fill_placeholders;
use super::engine::SentenceEngine;
use super::matcher::ListState;
use super::meaning::{MatchContext, MissingLists};

const NAME_PLACEHOLDER: &str = "…";

impl SentenceEngine {
    /// The examples of all intents whose tool is ready. Examples that need a name from an empty
    /// list are left out.
    pub(super) fn examples(&self, context: &MatchContext<'_>) -> Vec<(usize, String)> {
        let ready = self.ready_examples(context);
        ready
            .filter_map(|(index, example)| Some((index, self.with_names(example, context)?)))
            .collect()
    }

    pub(super) fn unread_example_lists(&self, context: &MatchContext<'_>) -> MissingLists {
        let mut unread = MissingLists::new();
        for (_, example) in self.ready_examples(context) {
            fill_placeholders(example, |name| {
                let slot = self.list_slot(name);
                unread.extend(slot.filter(|slot| !context.lists.contains_key(slot)));
                Some(String::new())
            });
        }
        unread
    }

    fn ready_examples(&self, context: &MatchContext<'_>) -> impl Iterator<Item = (usize, &str)> {
        let intents = self.pack.intents.iter().enumerate();
        let ready = intents.filter(|(index, _)| context.is_ready(*index));
        ready.filter_map(|(index, intent)| Some((index, intent.example.as_deref()?)))
    }

    fn with_names(&self, example: &str, context: &MatchContext<'_>) -> Option<String> {
        fill_placeholders(example, |name| {
            let Some(slot) = self.list_slot(name) else {
                return Some(format!("{{{name}}}"));
            };
            match context.lists.get(&slot) {
                Some(ListState::Known(names)) => {
                    let entries = names.everything();
                    entries.first().map(|first| lowercase_name(&first.label))
                }
                _ => Some(NAME_PLACEHOLDER.to_owned()),
            }
        })
    }
}

/// Lowercases a name for use inside a sentence, but keeps words such as `TV`.
fn lowercase_name(name: &str) -> String {
    let word = |word: &str| match word.chars().skip(1).any(char::is_uppercase) {
        true => word.to_owned(),
        false => word.to_lowercase(),
    };
    name.split_whitespace()
        .map(word)
        .collect::<Vec<_>>()
        .join(" ")
}
