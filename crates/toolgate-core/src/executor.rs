//! [`ToolExecutor`]: runs every call. [`ToolExecutor::execute`] is the only place
//! that invokes a tool.

mod builder;
mod dry_run;
mod find;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use futures::FutureExt;
use serde_json::Value;
use tokio::time::error::Elapsed;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::arguments::JsonSize;
use crate::in_flight::{CallStep, InFlightCall};
use crate::policy::CallPermission;
use crate::slots::CallSlot;
use crate::{
    Approval, ApprovalRecord, ApprovalRequest, Approver, CallContext, ExecutionRules, FlowState,
    Limits, MAX_APPROVABLE_BYTES, Observer, Policy, PolicyDecision, Scope, Tool, ToolCall,
    ToolDefinition, ToolError, ToolManager, ToolOutcome, ToolOutput, ToolSource, ValidArguments,
};

pub use builder::ToolExecutorBuilder;
pub use dry_run::DryRun;

/// Runs tool calls. Cheap to clone: all clones share the same tools, limits and slots.
#[derive(Clone)]
pub struct ToolExecutor {
    shared: Arc<ExecutorShared>,
}

// The outer error is a panic of the approver, the inner one its timeout.
type ApprovalAnswer = Result<Result<Approval, Elapsed>, Box<dyn Any + Send>>;

struct ExecutorShared {
    manager: Arc<ToolManager>,
    rules: ArcSwap<ExecutionRules>,
    approver: Option<Arc<dyn Approver>>,
    observers: Vec<Arc<dyn Observer>>,
    traced: bool,
    leaving: CancellationToken,
}

impl ToolExecutor {
    /// Creates an executor with default limits, a policy that allows everything, and the log
    /// as its only observer.
    pub fn new(manager: Arc<ToolManager>) -> Self {
        Self::builder(manager).build()
    }

    pub fn builder(manager: Arc<ToolManager>) -> ToolExecutorBuilder {
        ToolExecutorBuilder::new(manager)
    }

    /// Runs one call, once. Never fails and never panics: every error is part of the outcome.
    ///
    /// Dropping the future cancels the call, which is still recorded.
    pub async fn execute(&self, call: ToolCall) -> ToolOutcome {
        // One snapshot for all steps: a tool that is found must not run under a
        // policy that hides it.
        let rules = self.rules();
        let mut flight = InFlightCall::start(self, &rules, &call);
        let result = self.run(call, &rules, &mut flight).await;
        flight.finish(result).await // 7 observe
    }

    async fn run(
        &self,
        mut call: ToolCall,
        rules: &ExecutionRules,
        flight: &mut InFlightCall<'_>,
    ) -> Result<ToolOutput, ToolError> {
        let tool = match call.tool.take() {
            // The policy may have changed since the caller looked the tool up.
            Some(tool) if rules.offers(tool.definition(), &call.scope) => tool,
            _ => self.find_with_rules(rules, &call.name, &call.scope)?, // 1 find
        };
        let tool = flight.set_tool(tool);
        check_can_resume(&call, tool.definition())?;
        // Rename before validating: the schema uses the server's names, and the model may not.
        let named = tool
            .definition()
            .parameter_names()
            .rename(call.arguments()?)?; // 2 rename
        let arguments = validate(
            &rules.limits,
            &call.name,
            tool.definition(),
            named.to_validate,
        )?; // 3 validate
        let arguments = arguments.rename(named.to_send);
        flight.set_arguments(named.changes, &arguments);
        flight.enter_step(CallStep::Invoke);
        self.permit(&call, rules, tool.definition(), &arguments, flight)
            .await?; // 4 permit
        if let Some(flow) = &call.flow {
            // Recorded before the tool runs: even an error message may contain what the tool read.
            flow.record(&rules.policy.flow, tool.definition());
        }
        flight.notify_started().await?;
        let context = flight.create_context(&mut call, tool.definition().timeout(&rules.limits));
        let slot = acquire_slot(rules, &*tool, &context, flight).await?; // 5 queue
        let _held = context.hold_slot(slot);
        let output = invoke(&*tool, arguments, &context).await?; // 6 invoke
        check_result_size(output, rules.limits.max_result, &context)
    }

    pub fn manager(&self) -> &Arc<ToolManager> {
        &self.shared.manager
    }

    /// The limits and the policy for new calls.
    pub fn rules(&self) -> Arc<ExecutionRules> {
        self.shared.rules.load_full()
    }

    /// Sets the limits and the policy for new calls; running calls keep theirs. If the policy
    /// changed, subscribers of the manager are notified, because other tools may be visible now.
    pub fn set_rules(&self, limits: Limits, policy: Policy) {
        let before = self.shared.rules.load();
        let policy_changed = before.policy != policy;
        let rules = before.with_update(limits, policy);
        self.shared.rules.store(Arc::new(rules));
        if policy_changed {
            self.shared.manager.notify_changed();
        }
    }

    /// True if this tool is offered to callers: the policy shows it, and it isn't withheld.
    pub fn is_visible(&self, tool: &ToolDefinition) -> bool {
        tool.withheld().is_none() && self.decision(tool) != PolicyDecision::Hide
    }

    /// Like [`is_visible`](Self::is_visible), within a scope.
    pub fn is_visible_in_scope(&self, tool: &ToolDefinition, scope: &Scope) -> bool {
        self.shared.rules.load().offers(tool, scope)
    }

    /// What the policy says about the tool, for all callers.
    pub fn decision(&self, tool: &ToolDefinition) -> PolicyDecision {
        self.shared.rules.load().policy.decide(tool)
    }

    /// Records that a resumed conversation has called this tool before, so that `policy.flow`
    /// counts what it read. `name` is the one that the tool was listed under.
    pub fn restore_flow(&self, name: &str, conversation: &FlowState) {
        let flow = &self.shared.rules.load().policy.flow;
        if flow.is_on() {
            let tool = self.shared.manager.find(name);
            conversation.restore(flow, tool.as_ref().map(|tool| tool.definition()));
        }
    }

    /// From now on, calls that wait for tasks of servers end here, while their servers go on with
    /// them. For a process that stops, if another one [continues](ToolCall::resume) these calls.
    pub fn leave_tasks(&self) {
        self.shared.leaving.cancel();
    }

    pub(crate) fn leaving(&self) -> &CancellationToken {
        &self.shared.leaving
    }

    pub(crate) fn is_traced(&self) -> bool {
        self.shared.traced
    }

    pub(crate) fn observers(&self) -> &[Arc<dyn Observer>] {
        &self.shared.observers
    }

    async fn permit(
        &self,
        call: &ToolCall,
        rules: &ExecutionRules,
        tool: &ToolDefinition,
        arguments: &ValidArguments,
        flight: &mut InFlightCall<'_>,
    ) -> Result<(), ToolError> {
        let because = match rules.policy.permission_for(tool, call) {
            CallPermission::Granted => return Ok(()),
            // The tool doesn't run again, and a person has agreed to what it did.
            CallPermission::Ask(_) if call.resumes.is_some() => return Ok(()),
            CallPermission::Ask(because) => because,
            CallPermission::Denied => return Err(destructive_denied_error(&call.name)),
        };
        let needs_approval = |was_asked, hint| ToolError::NeedsApproval {
            tool: call.name.clone(),
            because,
            was_asked,
            hint,
        };
        let Some(approver) = &self.shared.approver else {
            return Err(needs_approval(false, None));
        };
        // Checked before any approver is asked, so that no approver decides on arguments it
        // can't show in full.
        let bytes = JsonSize::measure(arguments.as_value(), rules.limits.max_depth)?.bytes;
        if bytes > MAX_APPROVABLE_BYTES as u64 {
            return Err(ToolError::too_long_to_approve(&call.name, bytes));
        }
        let request = ApprovalRequest {
            id: call.id,
            origin: call.origin,
            caller: call.scope.caller(),
            tool,
            arguments: arguments.as_value(),
            reason: because,
            questions: call.questions.as_deref(),
        };
        flight.enter_step(CallStep::Approval);
        let answer = ask(&**approver, request, rules.limits.approval_timeout, call).await?;
        flight.enter_step(CallStep::Invoke);
        match answer {
            Ok(Ok(Approval::Granted(by))) => {
                flight.set_approval(ApprovalRecord::new(true, by));
                Ok(())
            }
            Ok(Ok(Approval::Refused(by))) => {
                flight.set_approval(ApprovalRecord::new(false, by));
                let reason = "was declined by the person who was asked";
                Err(ToolError::denied(&call.name, reason))
            }
            Ok(Ok(Approval::Nobody)) | Err(_) => Err(needs_approval(false, approver.hint())),
            Ok(Err(_)) => Err(needs_approval(true, approver.hint())),
        }
    }
}

/// Asks the approver until it answers, panics or runs out of time, or the call is cancelled.
async fn ask(
    approver: &dyn Approver,
    request: ApprovalRequest<'_>,
    limit: Duration,
    call: &ToolCall,
) -> Result<ApprovalAnswer, ToolError> {
    // The method itself may panic before it returns a future.
    let answer = async { tokio::time::timeout(limit, approver.ask(request)).await };
    tokio::select! {
        answer = AssertUnwindSafe(answer).catch_unwind() => Ok(answer),
        () = wait_for_cancellation(call) => Err(ToolError::Cancelled { tool: call.name.clone() }),
    }
}

fn destructive_denied_error(tool: &str) -> ToolError {
    ToolError::denied(
        tool,
        "is destructive, and 'policy.destructive' denies such calls",
    )
}

/// A task can only be continued at its own server: any other tool would run from the start.
fn check_can_resume(call: &ToolCall, tool: &ToolDefinition) -> Result<(), ToolError> {
    match &call.resumes {
        Some(task) if !matches!(tool.source(), ToolSource::Mcp(server) if *server == task.server) =>
        {
            let (tool, server) = (&call.name, &task.server);
            let text =
                format!("'{tool}' is not a tool of MCP server '{server}', which has the task");
            Err(ToolError::failed(text))
        }
        _ => Ok(()),
    }
}

fn validate(
    limits: &Limits,
    tool: &str,
    definition: &ToolDefinition,
    arguments: Arc<Value>,
) -> Result<ValidArguments, ToolError> {
    let size = JsonSize::measure(&arguments, limits.max_depth)?;
    if size.values > limits.max_values as u64 {
        return Err(ToolError::too_many_values(tool, limits.max_values));
    }
    let limit = limits.max_arguments;
    if size.bytes > limit as u64 {
        return Err(too_large_error(tool, "arguments", size.bytes, limit));
    }
    definition.schema().check_sized(arguments, size)
}

async fn invoke(
    tool: &dyn Tool,
    arguments: ValidArguments,
    context: &CallContext,
) -> Result<ToolOutput, ToolError> {
    let name = || context.tool_name().to_owned();
    if context.cancellation().is_cancelled() {
        return Err(ToolError::Cancelled { tool: name() });
    }
    // The method itself may panic before it returns a future.
    let work = AssertUnwindSafe(async { tool.invoke(arguments, context).await }).catch_unwind();
    let mut work = Box::pin(work);
    let answer = tokio::select! {
        biased; // A tool that is ready at once never arms a timer.
        answer = &mut work => answer,
        () = context.cancellation().cancelled() => Ok(Err(ToolError::Cancelled { tool: name() })),
        after = context.wait_for_timeout() => Ok(Err(ToolError::TimedOut { tool: name(), after })),
    };
    // Dropping an unfinished future runs its destructors, which may panic too.
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(work))) {
        warn!(tool = %name(), panic = panic_text(&*panic), "a tool panicked while being stopped");
    }
    match answer {
        // A shutdown cancels calls and stops their servers, and chance decides which of the two
        // this call notices first. Report the cancellation, because it is the cause.
        Ok(Err(ToolError::ServerStopped { .. } | ToolError::Unavailable { .. }))
            if context.cancellation().is_cancelled() && !context.is_left_to_server() =>
        {
            Err(ToolError::Cancelled { tool: name() })
        }
        Ok(answer) => answer,
        Err(panic) => Err(ToolError::Panicked {
            tool: name(),
            panic: panic_text(&*panic),
        }),
    }
}

// The time in the queue counts towards the call's time limit.
async fn acquire_slot(
    rules: &ExecutionRules,
    tool: &dyn Tool,
    context: &CallContext,
    flight: &mut InFlightCall<'_>,
) -> Result<CallSlot, ToolError> {
    let semaphore = match rules.slots.try_acquire(tool.definition().source()) {
        Ok(slot) => return Ok(slot),
        Err(semaphore) => semaphore,
    };
    flight.enter_step(CallStep::Queue);
    let overloaded = || ToolError::Overloaded {
        tool: context.tool_name().to_owned(),
        limit: rules.limits.concurrency,
    };
    tokio::select! {
        slot = semaphore.acquire_owned() => {
            flight.enter_step(CallStep::Invoke);
            slot.map_err(|_| overloaded())
        }
        () = context.cancellation().cancelled() => Err(ToolError::Cancelled { tool: context.tool_name().to_owned() }),
        _ = context.wait_for_timeout() => Err(overloaded()),
    }
}

fn check_result_size(
    output: ToolOutput,
    limit: usize,
    context: &CallContext,
) -> Result<ToolOutput, ToolError> {
    // Serializing a deeper result could overflow the stack.
    const MAX_DEPTH: usize = 512;
    let Some(bytes) = output.bytes(MAX_DEPTH) else {
        let problem = format!("is nested deeper than {MAX_DEPTH}");
        return Err(ToolError::TooLarge {
            tool: context.tool_name().to_owned(),
            what: "result",
            problem,
        });
    };
    if bytes > limit as u64 {
        return Err(too_large_error(context.tool_name(), "result", bytes, limit));
    }
    Ok(output)
}

async fn wait_for_cancellation(call: &ToolCall) {
    match &call.cancellation {
        Some(token) => token.cancelled().await,
        None => std::future::pending().await,
    }
}

fn too_large_error(tool: &str, what: &'static str, bytes: u64, limit: usize) -> ToolError {
    let take = if what == "result" { "takes" } else { "take" };
    let problem = format!("{take} {bytes} bytes; the limit is {limit}");
    ToolError::TooLarge {
        tool: tool.to_owned(),
        what,
        problem,
    }
}

pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    crate::text::escape_truncated(text.unwrap_or("panic without a message"), 500)
}
