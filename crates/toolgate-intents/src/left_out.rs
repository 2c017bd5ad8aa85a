//! A name that nobody said: `what is the temperature` may be that of any thermometer, and the only one is meant.

use std::collections::BTreeSet;

use serde_json::Value;

use super::engine::{Engine, Filling};
use super::lists::Entry;
use super::matcher::{Fill, How, ListState, Match};
use super::meaning::{Meaning, Moment};

impl Engine {
    /// Adds what any of may be meant to a match, or tells the lists that have to be read for what is said.
    pub(super) fn add_any(&self, found: &mut Match, moment: &Moment<'_>) -> BTreeSet<usize> {
        let intent = &self.pack.intents[found.intent];
        if intent.help {
            return self.unread(moment);
        }
        let any = intent.any.as_deref();
        let any = any.filter(|_| moment.is_ready(found.intent));
        let Some((name, slot)) = any.and_then(|name| Some((name, self.list_of(name)?))) else {
            return BTreeSet::new();
        };
        match moment.lists.get(&slot) {
            Some(ListState::Known(names)) => {
                let fill = any_of(&names.everything());
                found.slots.push((name.into(), slot, fill));
                BTreeSet::new()
            }
            Some(ListState::Unreadable(_)) => BTreeSet::new(),
            None => BTreeSet::from([slot]),
        }
    }

    /// What is said where no name was, and there is none that could be meant.
    pub(super) fn nobody(&self, found: &Match, moment: &Moment<'_>) -> Option<Meaning> {
        let name = self.pack.intents[found.intent].any.as_deref()?;
        let slot = self.list_of(name)?;
        let Filling::List(source) = &self.slots[slot] else {
            return None;
        };
        let mut about = vec![("noun", source.noun.as_str()), ("nouns", &source.nouns)];
        let key = match moment.lists.get(&slot) {
            Some(ListState::Unreadable(reason)) => {
                about.push(("reason", reason));
                "no_list"
            }
            Some(ListState::Known(names)) if !names.everything().is_empty() => return None,
            _ => "none",
        };
        Some(Meaning::Fail(self.filled(key, &about)))
    }
}

/// One of these, where nothing was said. It takes no words, and is never certain.
fn any_of(entries: &[&Entry]) -> Fill {
    let value = |entry: &&Entry| (Value::from(entry.value.clone()), entry.label.clone());
    Fill {
        end: 0,
        cost: 0,
        how: How::Part,
        together: false,
        values: entries.iter().map(value).collect(),
    }
}
