//! Tracks what kinds of data a conversation has seen, for `policy.flow`.

use std::sync::{Arc, Weak};

use toolgate_core::{ExecutionRules, FlowState};

use super::Conversation;
use crate::Message;

// Holds for the whole conversation rather than one turn: what a tool returned stays in the history
// that is sent, and what the model was talked into stays in its own words.
#[derive(Default)]
pub(super) struct FlowTracker {
    state: Arc<FlowState>,
    // The rules that the history was last scanned under.
    seen_under: Weak<ExecutionRules>,
}

impl Conversation {
    // A history from a file, or from before the policy changed, is scanned first: nothing else
    // knows what its tools returned.
    pub(super) fn flow(&mut self) -> Arc<FlowState> {
        let executor = self.toolbox.executor();
        let rules = executor.rules();
        // A weak pointer keeps the allocation, so no other rules can get its address.
        if self.flow.seen_under.as_ptr() != Arc::as_ptr(&rules) {
            let results = self.history.messages().iter().flat_map(|message| {
                let results = match message {
                    Message::Tool { results } => results.as_slice(),
                    _ => &[],
                };
                results.iter()
            });
            for result in results {
                executor.restore_flow(&result.name, &self.flow.state);
            }
            self.flow.seen_under = Arc::downgrade(&rules);
        }
        Arc::clone(&self.flow.state)
    }
}
