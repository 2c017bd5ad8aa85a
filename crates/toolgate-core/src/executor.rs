//! The path of a call. [`ToolExecutor::execute`] is the only place in the program that invokes a tool.

mod builder;
mod find;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures::FutureExt;
use serde_json::Value;
use tracing::warn;

use crate::arguments::Size;
use crate::flight::{Flight, Step};
use crate::slots::{Slot, Slots};
use crate::{
    Approval, ApprovalRequest, Approver, CallContext, Decision, Limits, Observer, Policy, Scope,
    Tool, ToolCall, ToolDefinition, ToolError, ToolManager, ToolOutcome, ToolOutput,
    ValidArguments,
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
    limits: Limits,
    policy: Policy,
    approver: Option<Arc<dyn Approver>>,
    observers: Vec<Arc<dyn Observer>>,
    slots: Slots,
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
        let mut flight = Flight::start(self, &call);
        let result = self.run(call, &mut flight).await;
        flight.land(result).await // 7 observe
    }

    async fn run(
        &self,
        mut call: ToolCall,
        flight: &mut Flight<'_>,
    ) -> Result<ToolOutput, ToolError> {
        let tool = flight.found(self.find_in(&call.name, &call.scope)?); // 1 find
        // Rename before validating: the schema speaks the server's names, the model may not.
        let (named, renamed) = tool.definition().names().apply(call.arguments()?)?; // 2 rename
        let arguments = self.validate(&call.name, tool.definition(), named)?; // 3 validate
        flight.checked(renamed, &arguments);
        self.permit(&call, tool.definition(), &arguments, flight)
            .await?; // 4 permit
        flight.tell_started().await?;
        let context = flight.begin(&mut call, tool.definition().timeout(self.limits()));
        let _slot = self.slot(&*tool, &context, flight).await?; // 5 queue
        self.invoke(&*tool, arguments, &context).await // 6 invoke
    }

    /// What [`execute`](Self::execute) would do up to the point where the tool runs. Runs, asks and records nothing.
    pub fn rehearse(&self, call: &ToolCall) -> Result<Rehearsal, ToolError> {
        let tool = self.find_in(&call.name, &call.scope)?;
        let (named, renamed) = tool.definition().names().apply(call.arguments()?)?;
        let arguments = self.validate(&call.name, tool.definition(), named)?;
        Ok(Rehearsal {
            decision: self.shared.policy.decide(tool.definition()),
            tool,
            arguments,
            renamed,
        })
    }

    /// The tools this executor works with.
    pub fn manager(&self) -> &Arc<ToolManager> {
        &self.shared.manager
    }

    /// The bounds it keeps.
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// True if the policy lets callers see this tool.
    pub fn is_visible(&self, tool: &ToolDefinition) -> bool {
        self.shared.policy.decide(tool) != Decision::Hide
    }

    /// True if the policy and the caller's share of the tools let it see this one.
    pub fn is_visible_in(&self, tool: &ToolDefinition, scope: &Scope) -> bool {
        scope.has(tool) && self.is_visible(tool)
    }

    /// What the policy says of a tool.
    pub fn decision(&self, tool: &ToolDefinition) -> Decision {
        self.shared.policy.decide(tool)
    }

    /// True if calls are recorded as traces, so that what they ask others belongs to them.
    pub(crate) fn is_traced(&self) -> bool {
        self.shared.traced
    }

    pub(crate) fn observers(&self) -> &[Arc<dyn Observer>] {
        &self.shared.observers
    }

    fn validate(
        &self,
        tool: &str,
        definition: &ToolDefinition,
        arguments: Arc<Value>,
    ) -> Result<ValidArguments, ToolError> {
        let limits = self.limits();
        let size = Size::of(&arguments, limits.max_depth)?;
        if size.bytes > limits.max_arguments as u64 {
            return Err(too_large(
                tool,
                "arguments",
                size.bytes,
                limits.max_arguments,
            ));
        }
        definition.schema().check_sized(arguments, size)
    }

    async fn permit(
        &self,
        call: &ToolCall,
        tool: &ToolDefinition,
        arguments: &ValidArguments,
        flight: &mut Flight<'_>,
    ) -> Result<(), ToolError> {
        if self.shared.policy.decide(tool) != Decision::Ask {
            return Ok(());
        }
        let denied = |reason: &str| ToolError::Denied {
            tool: call.name.clone(),
            reason: reason.to_owned(),
        };
        let Some(approver) = &self.shared.approver else {
            return Err(denied("needs approval"));
        };
        let request = ApprovalRequest {
            id: call.id,
            origin: call.origin,
            caller: call.scope.caller(),
            tool,
            arguments: arguments.as_value(),
        };
        // The call of `ask` itself may panic, not only its future.
        let answer =
            async { tokio::time::timeout(self.limits().approval, approver.ask(request)).await };
        flight.enter(Step::Approval);
        let answer = tokio::select! {
            answer = AssertUnwindSafe(answer).catch_unwind() => answer,
            () = cancelled(call) => return Err(ToolError::Cancelled { tool: call.name.clone() }),
        };
        flight.enter(Step::Invoke);
        match answer {
            Ok(Ok(Approval::Granted)) => Ok(()),
            Ok(Ok(Approval::Refused)) => Err(denied("was refused by the person who was asked")),
            Ok(Ok(Approval::Nobody)) | Err(_) => Err(denied("needs approval")),
            Ok(Err(_)) => Err(denied("needs approval, and nobody answered in time")),
        }
    }

    async fn invoke(
        &self,
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
            Ok(Ok(output)) => self.expect_bounded(output, context),
            Ok(Err(error)) => Err(error),
            Err(panic) => Err(ToolError::Panicked {
                tool: name(),
                panic: panic_text(&*panic),
            }),
        }
    }

    /// Waits for a slot as long as the call itself may take.
    async fn slot(
        &self,
        tool: &dyn Tool,
        context: &CallContext,
        flight: &mut Flight<'_>,
    ) -> Result<Slot, ToolError> {
        let slots = match self.shared.slots.try_take(tool.definition().source()) {
            Ok(slot) => return Ok(slot),
            Err(taken) => taken,
        };
        flight.enter(Step::Queue);
        let overloaded = || ToolError::Overloaded {
            tool: context.tool_name().to_owned(),
            limit: self.limits().concurrency,
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
        &self,
        output: ToolOutput,
        context: &CallContext,
    ) -> Result<ToolOutput, ToolError> {
        /// Deeper than this, writing the result as JSON could overflow a stack.
        const DEEPEST: usize = 512;
        let limit = self.limits().max_result;
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
    crate::redact::cut(text.unwrap_or("panic without a message"), 500)
}
