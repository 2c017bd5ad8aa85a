//! [`ExecutionRules`]: limits and policy, which can be replaced together while calls run.

use std::sync::Arc;

use crate::slots::CallSlots;
use crate::{Limits, Policy, PolicyDecision, Scope, ToolDefinition};

/// A snapshot of the limits and the policy of a [`ToolExecutor`](crate::ToolExecutor). A call keeps
/// the ones it started with.
#[non_exhaustive]
pub struct ExecutionRules {
    pub limits: Limits,
    pub policy: Policy,
    pub(crate) slots: Arc<CallSlots>,
}

impl ExecutionRules {
    pub(crate) fn new(limits: Limits, policy: Policy) -> Self {
        Self {
            slots: Arc::new(CallSlots::new(limits.concurrency)),
            limits,
            policy,
        }
    }

    // If `concurrency` changes, running calls keep their old slots and don't count towards the new
    // limit.
    pub(crate) fn with_update(&self, limits: Limits, policy: Policy) -> Self {
        match self.limits.concurrency == limits.concurrency {
            true => Self {
                slots: Arc::clone(&self.slots),
                limits,
                policy,
            },
            false => Self::new(limits, policy),
        }
    }

    /// True if this tool is offered to the caller: policy and scope both show it,
    /// and it isn't [withheld](ToolDefinition::withheld).
    pub fn offers(&self, tool: &ToolDefinition, scope: &Scope) -> bool {
        tool.withheld().is_none() && self.admits(tool, scope)
    }

    /// Like [`offers`](Self::offers), but also true for withheld tools: the caller may
    /// know that they exist.
    pub fn admits(&self, tool: &ToolDefinition, scope: &Scope) -> bool {
        scope.allows(tool) && self.policy.decide(tool) != PolicyDecision::Hide
    }
}
