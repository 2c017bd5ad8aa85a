//! [`FlowPolicy`]: guards against the lethal trifecta. A model that has read untrusted text and
//! private data must not send anything out without asking.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{ToolDefinition, ToolPattern};

const UNTRUSTED: u8 = 1;
const PRIVATE: u8 = 2;
const BOTH: u8 = UNTRUSTED | PRIVATE;

/// Guards against data leaks: once a conversation has read untrusted text and private data, sending
/// anything out needs approval.
///
/// The three lists say which tools bring in untrusted text, which read private data, and which
/// can send something out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(
    description = "Asks before a conversation that has read untrusted text and private data sends something out; off unless all three lists have patterns"
)]
#[non_exhaustive]
pub struct FlowPolicy {
    /// Tools whose results may contain text written by strangers, such as mail and web pages.
    #[schemars(with = "Vec<String>")]
    pub untrusted: Vec<ToolPattern>,
    /// Tools whose results are private.
    #[schemars(with = "Vec<String>")]
    pub private: Vec<ToolPattern>,
    /// Tools that can send something to others.
    #[schemars(with = "Vec<String>")]
    pub outward: Vec<ToolPattern>,
}

impl FlowPolicy {
    /// True if each list has a pattern. Otherwise the guard never asks.
    pub fn is_on(&self) -> bool {
        !(self.untrusted.is_empty() || self.private.is_empty() || self.outward.is_empty())
    }

    /// The name of the first empty list, which disables the guard, if another list has patterns.
    pub fn missing_list(&self) -> Option<&'static str> {
        let lists = [
            ("untrusted", &self.untrusted),
            ("private", &self.private),
            ("outward", &self.outward),
        ];
        let is_configured = lists.iter().any(|(_, patterns)| !patterns.is_empty());
        let empty = lists.iter().find(|(_, patterns)| patterns.is_empty());
        empty.filter(|_| is_configured).map(|(name, _)| *name)
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.untrusted.extend(other.untrusted);
        self.private.extend(other.private);
        self.outward.extend(other.outward);
    }

    fn kinds(&self, tool: &ToolDefinition) -> u8 {
        let flag_if_matching = |patterns: &[ToolPattern], kind| match matches(patterns, tool) {
            true => kind,
            false => 0,
        };
        flag_if_matching(&self.untrusted, UNTRUSTED) | flag_if_matching(&self.private, PRIVATE)
    }

    pub(super) fn needs_approval(&self, tool: &ToolDefinition, flow: Option<&CallFlow>) -> bool {
        flow.is_some_and(|flow| flow.seen == BOTH) && matches(&self.outward, tool)
    }
}

fn matches(patterns: &[ToolPattern], tool: &ToolDefinition) -> bool {
    patterns.iter().any(|pattern| pattern.matches(tool))
}

/// Remembers whether a conversation has read untrusted text and private data, for [`FlowPolicy`].
///
/// It is never cleared, because what was read stays in the
/// model's history. See [`ToolCall::flow`](crate::ToolCall::flow).
#[derive(Debug, Default)]
pub struct FlowState(AtomicU8);

impl FlowState {
    fn mark_as_read(&self, kinds: u8) {
        if kinds != 0 {
            self.0.fetch_or(kinds, Ordering::Relaxed);
        }
    }

    // The call ran earlier, perhaps under another policy. If its tool no longer exists (`None`),
    // what it read is unknown, so it counts as both kinds.
    pub(crate) fn restore(&self, policy: &FlowPolicy, tool: Option<&ToolDefinition>) {
        self.mark_as_read(tool.map_or(BOTH, |tool| policy.kinds(tool)));
    }
}

// What the conversation had read when the model wrote the call's arguments. Calls from one reply
// run in parallel, so the arguments of one can't contain what another one reads.
pub(crate) struct CallFlow {
    state: Arc<FlowState>,
    seen: u8,
}

impl CallFlow {
    pub(crate) fn new(state: &Arc<FlowState>) -> Self {
        Self {
            seen: state.0.load(Ordering::Relaxed),
            state: Arc::clone(state),
        }
    }

    pub(crate) fn state(&self) -> Arc<FlowState> {
        Arc::clone(&self.state)
    }

    // Counts even if the call fails: an error message may quote what was read.
    pub(crate) fn record(&self, policy: &FlowPolicy, tool: &ToolDefinition) {
        if policy.is_on() {
            self.state.mark_as_read(policy.kinds(tool));
        }
    }
}
