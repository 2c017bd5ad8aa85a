//! [`ToolExecutor::dry_run`]: the first steps of a call, without running the tool.

use std::sync::Arc;

use super::{ToolExecutor, destructive_denied_error, validate};
use crate::policy::CallPermission;
use crate::{PolicyDecision, Tool, ToolCall, ToolError, ValidArguments};

/// The result of [`ToolExecutor::dry_run`]: the call as it would run.
#[non_exhaustive]
pub struct DryRun {
    pub tool: Arc<dyn Tool>,
    pub arguments: ValidArguments,
    /// Parameters that would be renamed, from and to.
    pub renamed: Vec<(String, String)>,
    pub decision: PolicyDecision,
}

impl ToolExecutor {
    /// Finds the tool, renames and validates like [`execute`](Self::execute), then stops. No tool
    /// runs, nobody is asked, and nothing is recorded.
    pub fn dry_run(&self, call: &ToolCall) -> Result<DryRun, ToolError> {
        let rules = self.rules();
        let tool = self.find_with_rules(&rules, &call.name, &call.scope)?;
        let named = tool
            .definition()
            .parameter_names()
            .rename(call.arguments()?)?;
        let arguments = validate(
            &rules.limits,
            &call.name,
            tool.definition(),
            named.to_validate,
        )?;
        let decision = match rules.policy.permission_for(tool.definition(), call) {
            CallPermission::Granted => PolicyDecision::Allow,
            CallPermission::Ask(_) => PolicyDecision::Ask,
            CallPermission::Denied => return Err(destructive_denied_error(&call.name)),
        };
        Ok(DryRun {
            decision,
            tool,
            arguments: arguments.rename(named.to_send),
            renamed: named.changes,
        })
    }
}
