//! What calls are run under: bounds and policy, swapped as a whole while calls run.

use std::sync::Arc;

use crate::slots::Slots;
use crate::{Decision, Limits, Policy, Scope, ToolDefinition};

/// The limits and the policy of a [`ToolExecutor`](crate::ToolExecutor) at one moment. A call keeps those it started with.
///
/// ```
/// use std::sync::Arc;
/// use toolgate_core::{Limits, Policy, ToolExecutor, ToolManager};
///
/// let executor = ToolExecutor::new(Arc::new(ToolManager::new()));
/// let mut limits = Limits::default();
/// limits.concurrency = 2;
/// executor.set_rules(limits, Policy::default());
/// assert_eq!(executor.rules().limits.concurrency, 2);
/// ```
#[non_exhaustive]
pub struct Rules {
    /// What a call may cost.
    pub limits: Limits,
    /// Which tools exist, and which wait for approval.
    pub policy: Policy,
    pub(crate) slots: Arc<Slots>,
}

impl Rules {
    pub(crate) fn new(limits: Limits, policy: Policy) -> Self {
        Self {
            slots: Arc::new(Slots::new(limits.concurrency)),
            limits,
            policy,
        }
    }

    /// The next ones. Calls that run keep their slots: with another `concurrency` they don't count among the new ones.
    pub(crate) fn followed_by(&self, limits: Limits, policy: Policy) -> Self {
        match self.limits.concurrency == limits.concurrency {
            true => Self {
                slots: Arc::clone(&self.slots),
                limits,
                policy,
            },
            false => Self::new(limits, policy),
        }
    }

    /// True if this tool is offered to the caller: the policy and its share of the tools let it see it, and it isn't
    /// [withheld](ToolDefinition::withheld).
    pub fn shows(&self, tool: &ToolDefinition, scope: &Scope) -> bool {
        tool.withheld().is_none() && self.admits(tool, scope)
    }

    /// Like [`shows`](Self::shows), but true of withheld tools as well: the caller may know that there is one.
    pub fn admits(&self, tool: &ToolDefinition, scope: &Scope) -> bool {
        scope.has(tool) && self.policy.decide(tool) != Decision::Hide
    }
}
