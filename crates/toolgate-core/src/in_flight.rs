//! [`InFlightCall`]: the state of one running call. Guarantees that every call is recorded.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::time::Instant;
use tracing::warn;

use crate::call::RawArguments;
use crate::executor::panic_text;
use crate::{
    ApprovalRecord, CallContext, CallId, CallRecord, CallStarted, ExecutionRules, Observer, Origin,
    Timings, Tool, ToolCall, ToolError, ToolExecutor, ToolOutcome, ToolOutput, TraceContext,
    ValidArguments,
};

#[derive(Debug, Clone, Copy)]
pub(crate) enum CallStep {
    Check,
    Approval,
    Queue,
    // Everything after `Check`, except the waits above.
    Invoke,
}

/// A call ends in [`finish`](Self::finish). If this is dropped earlier, the caller is gone and the
/// call is recorded as cancelled.
pub(crate) struct InFlightCall<'a> {
    executor: &'a ToolExecutor,
    // One snapshot for the whole call: changed rules apply to new calls only.
    rules: &'a ExecutionRules,
    id: CallId,
    tool_name: String,
    origin: Origin,
    caller: Option<Arc<str>>,
    trace: TraceContext,
    was_announced: bool,
    start: Instant,
    start_time: SystemTime,
    requested: Arc<Value>,
    tool: Option<Arc<dyn Tool>>,
    executed: Option<Arc<Value>>,
    approval: Option<ApprovalRecord>,
    renamed: Vec<(String, String)>,
    dropped: Vec<String>,
    timings: Timings,
    step: CallStep,
    step_start: Instant,
    context: Option<CallContext>,
    is_recorded: bool,
}

impl<'a> InFlightCall<'a> {
    pub(crate) fn start(
        executor: &'a ToolExecutor,
        rules: &'a ExecutionRules,
        call: &ToolCall,
    ) -> Self {
        let (RawArguments::Object(requested) | RawArguments::Invalid { raw: requested, .. }) =
            &call.arguments;
        let start = Instant::now();
        Self {
            rules,
            executor,
            id: call.id,
            tool_name: call.name.clone(),
            origin: call.origin,
            caller: call.scope.shared_caller(),
            trace: TraceContext::for_call(call.id, call.trace_parent.as_deref())
                .with_state(call.trace_state.as_deref())
                .in_trace_of(call.trace_of),
            was_announced: false,
            start,
            start_time: SystemTime::now(),
            requested: Arc::clone(requested),
            tool: None,
            executed: None,
            approval: None,
            renamed: Vec::new(),
            dropped: Vec::new(),
            timings: Timings::default(),
            step: CallStep::Check,
            step_start: start,
            context: None,
            is_recorded: false,
        }
    }

    pub(crate) fn set_tool(&mut self, tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
        self.tool.insert(tool).clone()
    }

    pub(crate) fn set_arguments(
        &mut self,
        renamed: Vec<(String, String)>,
        arguments: &ValidArguments,
    ) {
        self.executed = Some(arguments.shared());
        self.renamed = renamed;
        self.dropped = arguments.dropped().to_vec();
    }

    pub(crate) fn set_approval(&mut self, approval: ApprovalRecord) {
        self.approval = Some(approval);
    }

    /// Ends the current step and starts the next; returns the time of the switch.
    pub(crate) fn enter_step(&mut self, next: CallStep) -> Instant {
        let now = self.close_step();
        self.step = next;
        now
    }

    /// Adds the time since the step's start to its timing; returns the current time.
    fn close_step(&mut self) -> Instant {
        let now = Instant::now();
        let took = now - self.step_start;
        *match self.step {
            CallStep::Check => &mut self.timings.check,
            CallStep::Approval => &mut self.timings.approval,
            CallStep::Queue => &mut self.timings.queue,
            CallStep::Invoke => &mut self.timings.invoke,
        } += took;
        self.step_start = now;
        now
    }

    pub(crate) fn create_context(&mut self, call: &mut ToolCall, timeout: Duration) -> CallContext {
        let is_traced = self.trace.has_remote_parent() || self.executor.is_traced();
        let context = CallContext::new(
            call,
            timeout,
            &self.rules.limits,
            (self.trace.clone(), is_traced),
            self.executor.clone(),
        );
        self.context.insert(context).clone()
    }

    /// Fails if an observer requires a record of the call and could not write it.
    pub(crate) async fn notify_started(&mut self) -> Result<(), ToolError> {
        let (Some(tool), Some(executed)) = (&self.tool, &self.executed) else {
            return Ok(());
        };
        let call = CallStarted {
            id: self.id,
            tool_name: self.tool_name.clone(),
            tool: Arc::clone(tool),
            origin: self.origin,
            caller: self.caller.clone(),
            trace: self.trace.clone(),
            requested: Arc::clone(&self.requested),
            executed: Arc::clone(executed),
            approval: self.approval.clone(),
            started_at: self.start_time,
        };
        let observers = self.executor.observers();
        let time_limit = self.rules.limits.observer_timeout;
        run_before_start(observers, time_limit, &call).await?;
        self.was_announced = true;
        notify_observers(observers, time_limit, |observer| observer.started(&call)).await;
        Ok(())
    }

    pub(crate) async fn finish(mut self, result: Result<ToolOutput, ToolError>) -> ToolOutcome {
        let record = self.take_record(result);
        FinishNotification::new(self.executor, self.rules, record).await
    }

    // Sets `is_recorded` first, so that dropping `self` doesn't record the call again.
    fn take_record(&mut self, result: Result<ToolOutput, ToolError>) -> CallRecord {
        self.is_recorded = true;
        if let (Err(_), Some(context)) = (&result, &self.context) {
            // Tells work that continues on a thread or a server that nobody waits for it any more.
            context.cancellation().cancel();
        }
        let is_left = (self.context.as_ref()).is_some_and(CallContext::is_left_to_server);
        let end = self.close_step();
        let elapsed = end - self.start - self.timings.approval;
        if self.context.is_none() {
            // The tool was never invoked, so this time was spent on checks.
            self.timings.check += std::mem::take(&mut self.timings.invoke);
        }
        CallRecord {
            origin: self.origin,
            caller: self.caller.take(),
            trace: self.trace.clone(),
            started: self.was_announced,
            tool: self.tool.take(),
            requested: Arc::clone(&self.requested),
            executed: self.executed.take(),
            approval: self.approval.take(),
            renamed: std::mem::take(&mut self.renamed),
            dropped: std::mem::take(&mut self.dropped),
            sent: self.context.as_ref().and_then(CallContext::sent).cloned(),
            started_at: self.start_time,
            timings: self.timings,
            left_to_server: is_left && result.is_err(),
            slow: elapsed > self.rules.limits.slow_after,
            outcome: ToolOutcome {
                call_id: self.id,
                tool_name: std::mem::take(&mut self.tool_name),
                elapsed,
                result,
            },
        }
    }
}

impl Drop for InFlightCall<'_> {
    // The caller is gone, but its call is still recorded.
    fn drop(&mut self) {
        if !self.is_recorded {
            let tool = self.tool_name.clone();
            let record = self.take_record(Err(ToolError::Cancelled { tool }));
            drop(FinishNotification::new(self.executor, self.rules, record));
        }
    }
}

// Notifies the observers that a call has ended. If dropped early, it continues in a task of its
// own, provided that there is a runtime.
struct FinishNotification(Option<BoxFuture<'static, ToolOutcome>>);

impl FinishNotification {
    fn new(executor: &ToolExecutor, rules: &ExecutionRules, record: CallRecord) -> Self {
        let (executor, time_limit) = (executor.clone(), rules.limits.observer_timeout);
        Self(Some(Box::pin(async move {
            notify_observers(executor.observers(), time_limit, |observer| {
                observer.finished(&record)
            })
            .await;
            record.outcome
        })))
    }
}

impl Future for FinishNotification {
    type Output = ToolOutcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<ToolOutcome> {
        let Some(notification) = &mut self.0 else {
            return Poll::Pending; // Completed futures must not be polled.
        };
        let outcome = ready!(notification.as_mut().poll(context));
        self.0 = None;
        Poll::Ready(outcome)
    }
}

impl Drop for FinishNotification {
    fn drop(&mut self) {
        // Most observers don't wait for anything, so polling once notifies them even while
        // the runtime shuts down.
        if let Some(mut notification) = self.0.take()
            && notification.as_mut().now_or_never().is_none()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(notification);
        }
    }
}

// Asks one observer after the other. If one refuses the call or fails, the call doesn't run.
async fn run_before_start(
    observers: &[Arc<dyn Observer>],
    time_limit: Duration,
    call: &CallStarted,
) -> Result<(), ToolError> {
    let not_recorded = || {
        let reason = "the call could not be recorded, so it was not made";
        Err(ToolError::unavailable(&call.tool_name, reason))
    };
    for observer in observers {
        match catch_unwind(AssertUnwindSafe(|| observer.before_start(call))) {
            Ok(None) => {}
            Ok(Some(work)) => {
                let permission = run_observer(work, time_limit).await;
                permission.unwrap_or_else(not_recorded)?;
            }
            Err(_) => return not_recorded(),
        }
    }
    Ok(())
}

// A failing observer must not affect the others or the outcome.
async fn notify_observers<'a>(
    observers: &'a [Arc<dyn Observer>],
    time_limit: Duration,
    notify: impl Fn(&'a dyn Observer) -> Option<BoxFuture<'a, ()>>,
) {
    for observer in observers {
        match catch_unwind(AssertUnwindSafe(|| notify(&**observer))) {
            Ok(None) => {}
            Ok(Some(work)) => {
                run_observer(work, time_limit).await;
            }
            Err(_) => warn!("an observer panicked"),
        }
    }
}

/// Runs an observer's future. Returns `None` if it panics or exceeds the time limit.
async fn run_observer<T>(observer: impl Future<Output = T>, time_limit: Duration) -> Option<T> {
    // Creating a timeout outside a runtime panics, so it is created where panics are caught.
    let bounded = async { tokio::time::timeout(time_limit, observer).await };
    match AssertUnwindSafe(bounded).catch_unwind().await {
        Ok(Ok(answer)) => return Some(answer),
        Ok(Err(_)) => warn!("an observer did not finish in time"),
        Err(panic) => warn!(panic = panic_text(&*panic), "an observer panicked"),
    }
    None
}
