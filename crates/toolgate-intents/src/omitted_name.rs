//! Sentences without a name: `what is the temperature` means the only thermometer, or the person
//! is asked which one.

use serde_json::Value;

use super::engine::{CompiledSlot, SentenceEngine};
use super::matcher::{FillKind, ListState, SlotFill, TemplateMatch};
use super::meaning::{MatchContext, MissingLists, SentenceMeaning};
use super::name_index::NameEntry;

impl SentenceEngine {
    // Adds the candidates for a name that was left out, or returns the lists that must be read
    // first.
    pub(super) fn add_candidates(
        &self,
        found: &mut TemplateMatch,
        context: &MatchContext<'_>,
    ) -> MissingLists {
        let intent = &self.pack.intents[found.intent];
        if intent.help {
            return self.unread_example_lists(context);
        }
        let any = intent.any.as_deref();
        let any = any.filter(|_| context.is_ready(found.intent));
        let Some((name, slot)) = any.and_then(|name| Some((name, self.list_slot(name)?))) else {
            return MissingLists::new();
        };
        match context.lists.get(&slot) {
            Some(ListState::Known(names)) => {
                let fill = candidates_fill(&names.everything());
                found.slots.push((name.into(), slot, fill));
                MissingLists::new()
            }
            Some(ListState::Unreadable(_)) => MissingLists::new(),
            None => MissingLists::from([slot]),
        }
    }

    pub(super) fn explain_missing_name(
        &self,
        found: &TemplateMatch,
        context: &MatchContext<'_>,
    ) -> Option<SentenceMeaning> {
        let name = self.pack.intents[found.intent].any.as_deref()?;
        let slot = self.list_slot(name)?;
        let CompiledSlot::List(source) = &self.slots[slot] else {
            return None;
        };
        let mut about = vec![("noun", source.noun.as_str()), ("nouns", &source.nouns)];
        let key = match context.lists.get(&slot) {
            Some(ListState::Unreadable(reason)) => {
                about.push(("reason", reason));
                "no_list"
            }
            Some(ListState::Known(names)) if !names.everything().is_empty() => return None,
            _ => "none",
        };
        Some(SentenceMeaning::Fail(self.fill_text(key, &about)))
    }
}

// Takes no words, and is never certain, because the person didn't name anything.
fn candidates_fill(entries: &[&NameEntry]) -> SlotFill {
    let value = |entry: &&NameEntry| (Value::from(entry.value.clone()), entry.label.clone());
    SlotFill {
        end: 0,
        cost: 0,
        kind: FillKind::PartialName,
        together: false,
        values: entries.iter().map(value).collect(),
    }
}
