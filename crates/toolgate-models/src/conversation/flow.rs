//! Tracks which kinds of data a conversation has seen, for `policy.flow`.

use std::sync::{Arc, Weak};

use toolgate_core::{ExecutionRules, FlowState};

use super::Conversation;
use crate::Message;

// Belongs to the conversation rather than a turn: a tool's output stays in the history that is
// sent, and its influence stays in the model's own replies.
#[derive(Default)]
pub(super) struct FlowTracker {
    state: Arc<FlowState>,
    // The rules that the history was last scanned under.
    seen_under: Weak<ExecutionRules>,
}

impl Conversation {
    /// What the conversation has read, for calls whose result a person adds to it.
    // A history that came from a file or predates a change of the policy is scanned first, because
    // its calls were not tracked under these rules.
    pub fn flow(&mut self) -> Arc<FlowState> {
        let executor = self.toolbox.executor();
        let rules = executor.rules();
        // The weak pointer keeps the allocation, so no other rules can have its address.
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
