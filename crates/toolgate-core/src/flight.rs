//! One call on its way: what is known of it so far, and the promise that it is recorded however it ends.

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

use crate::call::Given;
use crate::executor::panic_text;
use crate::{
    ApprovalRecord, CallContext, CallId, CallRecord, CallStarted, Observer, Origin, Rules, Timings,
    Tool, ToolCall, ToolError, ToolExecutor, ToolOutcome, ToolOutput, Trace, ValidArguments,
};

#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    Check,
    Approval,
    Queue,
    /// From the end of the check on, but for what stands above.
    Invoke,
}

/// Lands by [`land`](Flight::land); if it is dropped before, the caller is gone, and it is recorded as cancelled.
pub(crate) struct Flight<'a> {
    executor: &'a ToolExecutor,
    /// What the call runs under from its start to its end.
    rules: &'a Rules,
    id: CallId,
    tool_name: String,
    origin: Origin,
    caller: Option<Arc<str>>,
    trace: Trace,
    told_started: bool,
    started: Instant,
    started_at: SystemTime,
    asked: Arc<Value>,
    tool: Option<Arc<dyn Tool>>,
    executed: Option<Arc<Value>>,
    approval: Option<ApprovalRecord>,
    renamed: Vec<(String, String)>,
    dropped: Vec<String>,
    timings: Timings,
    step: Step,
    step_began: Instant,
    context: Option<CallContext>,
    landed: bool,
}

impl<'a> Flight<'a> {
    pub(crate) fn start(executor: &'a ToolExecutor, rules: &'a Rules, call: &ToolCall) -> Self {
        let (Given::Object(asked) | Given::Unusable { raw: asked, .. }) = &call.arguments;
        let started = Instant::now();
        Self {
            rules,
            executor,
            id: call.id,
            tool_name: call.name.clone(),
            origin: call.origin,
            caller: call.scope.shared_caller(),
            trace: Trace::of(call.id, call.trace_parent.as_deref())
                .with_state(call.trace_state.as_deref())
                .begun_by(call.trace_of),
            told_started: false,
            started,
            started_at: SystemTime::now(),
            asked: Arc::clone(asked),
            tool: None,
            executed: None,
            approval: None,
            renamed: Vec::new(),
            dropped: Vec::new(),
            timings: Timings::default(),
            step: Step::Check,
            step_began: started,
            context: None,
            landed: false,
        }
    }

    pub(crate) fn found(&mut self, tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
        self.tool.insert(tool).clone()
    }

    pub(crate) fn checked(&mut self, renamed: Vec<(String, String)>, arguments: &ValidArguments) {
        self.executed = Some(arguments.shared());
        self.renamed = renamed;
        self.dropped = arguments.dropped().to_vec();
        self.enter(Step::Invoke);
    }

    /// Somebody was asked, and answered.
    pub(crate) fn decided(&mut self, approval: ApprovalRecord) {
        self.approval = Some(approval);
    }

    /// Ends a step, and begins another one.
    pub(crate) fn enter(&mut self, next: Step) -> Instant {
        let now = Instant::now();
        let took = now - self.step_began;
        *match self.step {
            Step::Check => &mut self.timings.check,
            Step::Approval => &mut self.timings.approval,
            Step::Queue => &mut self.timings.queue,
            Step::Invoke => &mut self.timings.invoke,
        } += took;
        (self.step, self.step_began) = (next, now);
        now
    }

    pub(crate) fn begin(&mut self, call: &mut ToolCall, timeout: Duration) -> CallContext {
        let is_traced = self.trace.is_callers() || self.executor.is_traced();
        let context = CallContext::new(
            call,
            timeout,
            &self.rules.limits,
            (self.trace.clone(), is_traced),
        );
        self.context.insert(context).clone()
    }

    /// An error is why the call must not run.
    pub(crate) async fn tell_started(&mut self) -> Result<(), ToolError> {
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
            asked: Arc::clone(&self.asked),
            executed: Arc::clone(executed),
            approval: self.approval.clone(),
            started_at: self.started_at,
        };
        let observers = self.executor.observers();
        let patience = self.rules.limits.observer;
        witnessed(observers, patience, &call).await?;
        self.told_started = true;
        tell(observers, patience, |observer| observer.started(&call)).await;
        Ok(())
    }

    pub(crate) async fn land(mut self, result: Result<ToolOutput, ToolError>) -> ToolOutcome {
        let record = self.record(result);
        Landing::of(self.executor, self.rules, record).await
    }

    /// Closes the flight: from here on it counts as landed.
    fn record(&mut self, result: Result<ToolOutput, ToolError>) -> CallRecord {
        self.landed = true;
        if let (Err(_), Some(context)) = (&result, &self.context) {
            // Work that lives on in a thread or on a server learns that nobody waits for it any more.
            context.cancellation().cancel();
        }
        let ended = self.enter(Step::Invoke);
        let elapsed = ended - self.started - self.timings.approval;
        if self.context.is_none() {
            // It never came to the tool.
            self.timings.check += std::mem::take(&mut self.timings.invoke);
        }
        CallRecord {
            origin: self.origin,
            caller: self.caller.take(),
            trace: self.trace.clone(),
            started: self.told_started,
            tool: self.tool.take(),
            asked: Arc::clone(&self.asked),
            executed: self.executed.take(),
            approval: self.approval.take(),
            renamed: std::mem::take(&mut self.renamed),
            dropped: std::mem::take(&mut self.dropped),
            sent: self.context.as_ref().and_then(CallContext::sent).cloned(),
            started_at: self.started_at,
            timings: self.timings,
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

impl Drop for Flight<'_> {
    /// The caller is gone. Its call is recorded all the same.
    fn drop(&mut self) {
        if !self.landed {
            let tool = self.tool_name.clone();
            let record = self.record(Err(ToolError::Cancelled { tool }));
            drop(Landing::of(self.executor, self.rules, record));
        }
    }
}

/// Tells the observers. Dropped before it is done, it goes on in a task of its own where there is a runtime to run it.
struct Landing(Option<BoxFuture<'static, ToolOutcome>>);

impl Landing {
    fn of(executor: &ToolExecutor, rules: &Rules, record: CallRecord) -> Self {
        let (executor, patience) = (executor.clone(), rules.limits.observer);
        Self(Some(Box::pin(async move {
            tell(executor.observers(), patience, |observer| {
                observer.finished(&record)
            })
            .await;
            record.outcome
        })))
    }
}

impl Future for Landing {
    type Output = ToolOutcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<ToolOutcome> {
        let Some(telling) = &mut self.0 else {
            return Poll::Pending; // Nobody polls a future that is done.
        };
        let outcome = ready!(telling.as_mut().poll(context));
        self.0 = None;
        Poll::Ready(outcome)
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        // Most observers have nothing to wait for: they hear of it even if the runtime is about to end.
        if let Some(mut telling) = self.0.take()
            && telling.as_mut().now_or_never().is_none()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(telling);
        }
    }
}

/// Asks every observer in turn; without the answer of one that wants to be asked, a call does not run.
async fn witnessed(
    observers: &[Arc<dyn Observer>],
    patience: Duration,
    call: &CallStarted,
) -> Result<(), ToolError> {
    let nothing = || {
        let reason = "the call could not be recorded, so it was not made";
        Err(ToolError::unavailable(&call.tool_name, reason))
    };
    for observer in observers {
        match catch_unwind(AssertUnwindSafe(|| observer.witness(call))) {
            Ok(None) => {}
            Ok(Some(work)) => guarded(work, patience).await.unwrap_or_else(nothing)?,
            Err(_) => return nothing(),
        }
    }
    Ok(())
}

/// Tells every observer in turn; what one of them does wrong stays with it.
async fn tell<'a>(
    observers: &'a [Arc<dyn Observer>],
    patience: Duration,
    what: impl Fn(&'a dyn Observer) -> Option<BoxFuture<'a, ()>>,
) {
    for observer in observers {
        match catch_unwind(AssertUnwindSafe(|| what(&**observer))) {
            Ok(None) => {}
            Ok(Some(work)) => {
                guarded(work, patience).await;
            }
            Err(_) => warn!("an observer panicked"),
        }
    }
}

/// Runs an observer's code so that neither its panic nor its patience matters; both mean that there is no answer.
async fn guarded<T>(observer: impl Future<Output = T>, patience: Duration) -> Option<T> {
    // Without a runtime there is no clock: that too is a panic.
    let patient = async { tokio::time::timeout(patience, observer).await };
    match AssertUnwindSafe(patient).catch_unwind().await {
        Ok(Ok(answer)) => return Some(answer),
        Ok(Err(_)) => warn!("an observer did not finish in time"),
        Err(panic) => warn!(panic = panic_text(&*panic), "an observer panicked"),
    }
    None
}
