//! A guard against the lethal trifecta: a model that has read both a stranger's words and private
//! data must not send anything out unseen.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{Pattern, ToolDefinition};

const UNTRUSTED: u8 = 1;
const PRIVATE: u8 = 2;
const BOTH: u8 = UNTRUSTED | PRIVATE;

/// Which tools bring untrusted text in, which read private data, and which can send something out.
/// A conversation that has used the first two kinds asks before the third.
///
/// ```
/// use serde_json::json;
/// use toolgate_core::Policy;
///
/// let policy: Policy = serde_json::from_value(json!({ "flow": {
///     "untrusted": ["mail/*"], "private": ["notes/*"], "outward": ["http_post"]
/// } })).unwrap();
/// assert!(policy.flow.is_on());
/// assert!(!Policy::default().flow.is_on());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(
    description = "Asks before a conversation that has read untrusted text and private data sends something out; off unless all three lists have patterns"
)]
#[non_exhaustive]
pub struct FlowPolicy {
    /// Tools whose results may hold a stranger's words, such as mail and web pages.
    #[schemars(with = "Vec<String>")]
    pub untrusted: Vec<Pattern>,
    /// Tools whose results are nobody else's business.
    #[schemars(with = "Vec<String>")]
    pub private: Vec<Pattern>,
    /// Tools that can send something to others.
    #[schemars(with = "Vec<String>")]
    pub outward: Vec<Pattern>,
}

impl FlowPolicy {
    /// True if it can ever ask: a kind without a pattern is never met.
    pub fn is_on(&self) -> bool {
        !(self.untrusted.is_empty() || self.private.is_empty() || self.outward.is_empty())
    }

    /// The list that keeps it from ever asking, though others have patterns.
    pub fn missing_list(&self) -> Option<&'static str> {
        let lists = [
            ("untrusted", &self.untrusted),
            ("private", &self.private),
            ("outward", &self.outward),
        ];
        let is_meant = lists.iter().any(|(_, patterns)| !patterns.is_empty());
        let empty = lists.iter().find(|(_, patterns)| patterns.is_empty());
        empty.filter(|_| is_meant).map(|(name, _)| *name)
    }

    /// Both hold: whatever one of them marks is marked.
    pub(super) fn extend(&mut self, other: Self) {
        self.untrusted.extend(other.untrusted);
        self.private.extend(other.private);
        self.outward.extend(other.outward);
    }

    fn kinds(&self, tool: &ToolDefinition) -> u8 {
        let of = |patterns: &[Pattern], kind| match matches(patterns, tool) {
            true => kind,
            false => 0,
        };
        of(&self.untrusted, UNTRUSTED) | of(&self.private, PRIVATE)
    }

    /// True if a call whose arguments were written after this was met has to be asked about.
    pub(super) fn asks(&self, tool: &ToolDefinition, flow: Option<&CallFlow>) -> bool {
        flow.is_some_and(|flow| flow.met == BOTH) && matches(&self.outward, tool)
    }
}

fn matches(patterns: &[Pattern], tool: &ToolDefinition) -> bool {
    patterns.iter().any(|pattern| pattern.matches(tool))
}

/// What a conversation has met so far. It never forgets: a result stays in what the model is sent,
/// and what the model made of it stays in its answers. See [`ToolCall::flow`](crate::ToolCall::flow).
///
/// ```
/// use std::sync::Arc;
/// use serde_json::json;
/// use toolgate_core::{FlowState, ToolCall};
///
/// let conversation = Arc::new(FlowState::default());
/// let call = ToolCall::new("read_mail", json!({})).flow(&conversation);
/// ```
#[derive(Debug, Default)]
pub struct FlowState(AtomicU8);

impl FlowState {
    fn meet(&self, kinds: u8) {
        if kinds != 0 {
            self.0.fetch_or(kinds, Ordering::Relaxed);
        }
    }

    /// Counts a call that ran earlier, perhaps under another policy. Of a tool that is not there
    /// any more (`None`) nobody knows what it brought, so it counts as all.
    pub(crate) fn recall(&self, policy: &FlowPolicy, tool: Option<&ToolDefinition>) {
        self.meet(tool.map_or(BOTH, |tool| policy.kinds(tool)));
    }
}

/// A call's place in its conversation: what was met before its arguments were written. Calls of one
/// reply run side by side, and none of them can hold what another one brings.
pub(crate) struct CallFlow {
    state: Arc<FlowState>,
    met: u8,
}

impl CallFlow {
    pub(crate) fn of(state: &Arc<FlowState>) -> Self {
        Self {
            met: state.0.load(Ordering::Relaxed),
            state: Arc::clone(state),
        }
    }

    /// The call runs: whatever comes of it, even an error, may be in the tool's words.
    pub(crate) fn run(&self, policy: &FlowPolicy, tool: &ToolDefinition) {
        if policy.is_on() {
            self.state.meet(policy.kinds(tool));
        }
    }
}
