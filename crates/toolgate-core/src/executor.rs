//! The path of a call. [`ToolExecutor::execute`] is the only place in the program that invokes a tool.

mod builder;
mod find;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arc_swap::ArcSwap;
use futures::FutureExt;
use serde_json::Value;
use tracing::warn;

use crate::arguments::Size;
use crate::flight::{Flight, Step};
use crate::policy::Permission;
use crate::slots::Slot;
use crate::{
    Approval, ApprovalRecord, ApprovalRequest, Approver, CallContext, Decision, FlowState,
    LONGEST_APPROVABLE, Limits, Observer, Policy, Rules, Scope, Tool, ToolCall, ToolDefinition,
    ToolError, ToolManager, ToolOutcome, ToolOutput, ValidArguments,
};

pub use builder::ToolExecutorBuilder;

/// Runs tool calls. Cheap to clone; all clones share one set of tools, limits and slots.
///
/// ```
/// use std::sync::Arc;
/// use serde_json::json;
/// use toolgate_core::{ToolCall, ToolExecutor, ToolManager};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let executor = ToolExecutor::new(Arc::new(ToolManager::new()));
/// let outcome = executor.execute(ToolCall::new("nope", json!({}))).await;
/// assert_eq!(outcome.error().as_deref(), Some("Tool 'nope' not found"));
/// # });
/// ```
#[derive(Clone)]
pub struct ToolExecutor {
    shared: Arc<Shared>,
}

struct Shared {
    manager: Arc<ToolManager>,
    rules: ArcSwap<Rules>,
    approver: Option<Arc<dyn Approver>>,
    observers: Vec<Arc<dyn Observer>>,
    traced: bool,
}

impl ToolExecutor {
    /// With the usual limits, everything allowed, and the log as the only observer.
    pub fn new(manager: Arc<ToolManager>) -> Self {
        Self::builder(manager).build()
    }

    /// Starts an executor with other than the usual settings.
    pub fn builder(manager: Arc<ToolManager>) -> ToolExecutorBuilder {
        ToolExecutorBuilder::new(manager)
    }

    /// Runs one call, once. Never fails and never panics: whatever happens, the outcome tells.
    ///
    /// Dropping the future cancels the call; its record is written all the same.
    pub async fn execute(&self, call: ToolCall) -> ToolOutcome {
        // One snapshot for all steps: a tool that is found must not run under a policy that hides it.
        let rules = self.rules();
        let mut flight = Flight::start(self, &rules, &call);
        let result = self.run(call, &rules, &mut flight).await;
        flight.land(result).await // 7 observe
    }

    async fn run(
        &self,
        mut call: ToolCall,
        rules: &Rules,
        flight: &mut Flight<'_>,
    ) -> Result<ToolOutput, ToolError> {
        let tool = match call.tool.take() {
            // What was found before may have been hidden since.
            Some(tool) if rules.shows(tool.definition(), &call.scope) => tool,
            _ => self.find_under(rules, &call.name, &call.scope)?, // 1 find
        };
        let tool = flight.found(tool);
        // Rename before validating: the schema speaks the server's names, the model may not.
        let named = tool.definition().names().apply(call.arguments()?)?; // 2 rename
        let arguments = validate(&rules.limits, &call.name, tool.definition(), named.checked)?; // 3 validate
        let arguments = arguments.renamed(named.to_send);
        flight.checked(named.changes, &arguments);
        self.permit(&call, rules, tool.definition(), &arguments, flight)
            .await?; // 4 permit
        if let Some(flow) = &call.flow {
            flow.run(&rules.policy.flow, tool.definition());
        }
        flight.tell_started().await?;
        let context = flight.begin(&mut call, tool.definition().timeout(&rules.limits));
        let _slot = slot(rules, &*tool, &context, flight).await?; // 5 queue
        let output = invoke(&*tool, arguments, &context).await?; // 6 invoke
        expect_bounded(output, rules.limits.max_result, &context)
    }

    /// What [`execute`](Self::execute) would do up to the point where the tool runs. Runs, asks and records nothing.
    pub fn rehearse(&self, call: &ToolCall) -> Result<Rehearsal, ToolError> {
        let rules = self.rules();
        let tool = self.find_under(&rules, &call.name, &call.scope)?;
        let named = tool.definition().names().apply(call.arguments()?)?;
        let arguments = validate(&rules.limits, &call.name, tool.definition(), named.checked)?;
        let decision = match rules.policy.permit(tool.definition(), call) {
            Permission::Granted => Decision::Allow,
            Permission::Ask(_) => Decision::Ask,
            Permission::Denied => return Err(destructive_denied(&call.name)),
        };
        Ok(Rehearsal {
            decision,
            tool,
            arguments: arguments.renamed(named.to_send),
            renamed: named.changes,
        })
    }

    /// The tools this executor works with.
    pub fn manager(&self) -> &Arc<ToolManager> {
        &self.shared.manager
    }

    /// The limits and the policy that new calls are run under.
    pub fn rules(&self) -> Arc<Rules> {
        self.shared.rules.load_full()
    }

    /// Runs new calls under these from now on; those under way keep theirs. Whoever follows the manager's tools is told, since
    /// other tools may be visible now.
    pub fn set_rules(&self, limits: Limits, policy: Policy) {
        let before = self.shared.rules.load();
        let is_other_policy = before.policy != policy;
        let rules = before.followed_by(limits, policy);
        self.shared.rules.store(Arc::new(rules));
        if is_other_policy {
            self.shared.manager.tell_changed();
        }
    }

    /// True if this tool is offered to callers: the policy lets them see it, and it isn't withheld.
    pub fn is_visible(&self, tool: &ToolDefinition) -> bool {
        tool.withheld().is_none() && self.decision(tool) != Decision::Hide
    }

    /// The same for a caller with a share of the tools.
    pub fn is_visible_in(&self, tool: &ToolDefinition, scope: &Scope) -> bool {
        self.shared.rules.load().shows(tool, scope)
    }

    /// What the policy says of a tool.
    pub fn decision(&self, tool: &ToolDefinition) -> Decision {
        self.shared.rules.load().policy.decide(tool)
    }

    /// Counts a call of an earlier run, by the name its tool is listed under, for `policy.flow`.
    pub fn recall(&self, name: &str, conversation: &FlowState) {
        let flow = &self.shared.rules.load().policy.flow;
        if flow.is_on() {
            let tool = self.shared.manager.find(name);
            conversation.recall(flow, tool.as_ref().map(|tool| tool.definition()));
        }
    }

    /// True if calls are recorded as traces, so that what they ask others belongs to them.
    pub(crate) fn is_traced(&self) -> bool {
        self.shared.traced
    }

    pub(crate) fn observers(&self) -> &[Arc<dyn Observer>] {
        &self.shared.observers
    }

    async fn permit(
        &self,
        call: &ToolCall,
        rules: &Rules,
        tool: &ToolDefinition,
        arguments: &ValidArguments,
        flight: &mut Flight<'_>,
    ) -> Result<(), ToolError> {
        let because = match rules.policy.permit(tool, call) {
            Permission::Granted => return Ok(()),
            Permission::Ask(because) => because,
            Permission::Denied => return Err(destructive_denied(&call.name)),
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
        // The same for every approver: what one of them can't show whole, another must not be asked.
        let bytes = Size::of(arguments.as_value(), rules.limits.max_depth)?.bytes;
        if bytes > LONGEST_APPROVABLE as u64 {
            return Err(ToolError::too_long_to_approve(&call.name, bytes));
        }
        let request = ApprovalRequest {
            id: call.id,
            origin: call.origin,
            caller: call.scope.caller(),
            tool,
            arguments: arguments.as_value(),
            reason: because,
        };
        // The call of `ask` itself may panic, not only its future.
        let answer =
            async { tokio::time::timeout(rules.limits.approval, approver.ask(request)).await };
        flight.enter(Step::Approval);
        let answer = tokio::select! {
            answer = AssertUnwindSafe(answer).catch_unwind() => answer,
            () = cancelled(call) => return Err(ToolError::Cancelled { tool: call.name.clone() }),
        };
        flight.enter(Step::Invoke);
        match answer {
            Ok(Ok(Approval::Granted(by))) => {
                flight.decided(ApprovalRecord::new(true, by));
                Ok(())
            }
            Ok(Ok(Approval::Refused(by))) => {
                flight.decided(ApprovalRecord::new(false, by));
                let reason = "was refused by the person who was asked";
                Err(ToolError::denied(&call.name, reason))
            }
            Ok(Ok(Approval::Nobody)) | Err(_) => Err(needs_approval(false, approver.hint())),
            Ok(Err(_)) => Err(needs_approval(true, approver.hint())),
        }
    }
}

/// What a call would do.
///
/// ```
/// use std::sync::Arc;
/// use serde_json::json;
/// use toolgate_core::{FunctionTool, ToolCall, ToolError, ToolExecutor, ToolManager};
///
/// # #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # struct Nothing {}
/// let manager = ToolManager::new();
/// manager.add(FunctionTool::new("ping", "Answers", |_: Nothing, _| async { Ok::<_, ToolError>("pong") })?);
/// let rehearsal = ToolExecutor::new(Arc::new(manager)).rehearse(&ToolCall::new("ping", json!({}))).unwrap();
/// assert_eq!(rehearsal.tool.definition().name(), "ping");
/// # Ok::<_, toolgate_core::DefinitionError>(())
/// ```
#[non_exhaustive]
pub struct Rehearsal {
    /// The tool that was found.
    pub tool: Arc<dyn Tool>,
    /// What it would get.
    pub arguments: ValidArguments,
    /// Parameters that would be renamed.
    pub renamed: Vec<(String, String)>,
    /// Whether a person would be asked.
    pub decision: Decision,
}

fn destructive_denied(tool: &str) -> ToolError {
    ToolError::denied(
        tool,
        "is destructive, and 'policy.destructive' denies such calls",
    )
}

fn validate(
    limits: &Limits,
    tool: &str,
    definition: &ToolDefinition,
    arguments: Arc<Value>,
) -> Result<ValidArguments, ToolError> {
    let size = Size::of(&arguments, limits.max_depth)?;
    if size.values > limits.max_values as u64 {
        return Err(ToolError::too_many_values(tool, limits.max_values));
    }
    let limit = limits.max_arguments;
    if size.bytes > limit as u64 {
        return Err(too_large(tool, "arguments", size.bytes, limit));
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
    // The call of `invoke` itself may panic, not only its future.
    let work = AssertUnwindSafe(async { tool.invoke(arguments, context).await }).catch_unwind();
    let mut work = Box::pin(work);
    let answer = tokio::select! {
        biased; // A tool that is done at once costs no timer.
        answer = &mut work => answer,
        () = context.cancellation().cancelled() => Ok(Err(ToolError::Cancelled { tool: name() })),
        after = context.expired() => Ok(Err(ToolError::TimedOut { tool: name(), after })),
    };
    // So may the end of a future that is not done.
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(work))) {
        warn!(tool = %name(), panic = panic_text(&*panic), "a tool panicked while it was stopped");
    }
    match answer {
        // Whoever cancels calls often stops their server as well: which of the two this call notices first is chance.
        Ok(Err(ToolError::ServerStopped { .. } | ToolError::Unavailable { .. }))
            if context.cancellation().is_cancelled() =>
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

/// Waits for a slot as long as the call itself may take.
async fn slot(
    rules: &Rules,
    tool: &dyn Tool,
    context: &CallContext,
    flight: &mut Flight<'_>,
) -> Result<Slot, ToolError> {
    let slots = match rules.slots.try_take(tool.definition().source()) {
        Ok(slot) => return Ok(slot),
        Err(taken) => taken,
    };
    flight.enter(Step::Queue);
    let overloaded = || ToolError::Overloaded {
        tool: context.tool_name().to_owned(),
        limit: rules.limits.concurrency,
    };
    tokio::select! {
        slot = slots.acquire_owned() => {
            flight.enter(Step::Invoke);
            slot.map_err(|_| overloaded())
        }
        () = context.cancellation().cancelled() => Err(ToolError::Cancelled { tool: context.tool_name().to_owned() }),
        _ = context.expired() => Err(overloaded()),
    }
}

fn expect_bounded(
    output: ToolOutput,
    limit: usize,
    context: &CallContext,
) -> Result<ToolOutput, ToolError> {
    /// Deeper than this, writing the result as JSON could overflow a stack.
    const DEEPEST: usize = 512;
    let Some(bytes) = output.bytes(DEEPEST) else {
        let problem = format!("is nested deeper than {DEEPEST}");
        return Err(ToolError::TooLarge {
            tool: context.tool_name().to_owned(),
            what: "result",
            problem,
        });
    };
    if bytes > limit as u64 {
        return Err(too_large(context.tool_name(), "result", bytes, limit));
    }
    Ok(output)
}

async fn cancelled(call: &ToolCall) {
    match &call.cancellation {
        Some(token) => token.cancelled().await,
        None => std::future::pending().await,
    }
}

fn too_large(tool: &str, what: &'static str, bytes: u64, limit: usize) -> ToolError {
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
    crate::text::cut(text.unwrap_or("panic without a message"), 500)
}
