//! What a conversation has met, for `policy.flow`.

use std::sync::{Arc, Weak};

use toolgate_core::{FlowState, Rules};

use super::Conversation;
use crate::Message;

/// Sticky for the whole conversation, not for a turn: what a tool brought stays in what the model
/// is sent, and what it was talked into stays in its own words.
#[derive(Default)]
pub(super) struct Flow {
    state: Arc<FlowState>,
    /// The rules that the history was last looked at under.
    seen_under: Weak<Rules>,
}

impl Conversation {
    /// For the next calls. A history from a file, or from before the policy changed, is looked at
    /// first: nobody else knows what it brought.
    pub(super) fn flow(&mut self) -> Arc<FlowState> {
        let executor = self.toolbox.executor();
        let rules = executor.rules();
        // A weak pointer keeps the address taken: no other rules can have it.
        if self.flow.seen_under.as_ptr() != Arc::as_ptr(&rules) {
            let results = self.history.messages().iter().flat_map(|message| {
                let results = match message {
                    Message::Tool { results } => results.as_slice(),
                    _ => &[],
                };
                results.iter()
            });
            for result in results {
                executor.recall(&result.name, &self.flow.state);
            }
            self.flow.seen_under = Arc::downgrade(&rules);
        }
        Arc::clone(&self.flow.state)
    }
}
