//! [`CallContext`]: what a running tool knows about its call, and how it learns to stop.

mod extensions;
mod guards;
mod task_report;
mod tasks;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::policy::CallFlow;
use crate::slots::CallSlot;
use crate::{
    CallId, ExtensionListener, FlowState, Limits, LogHandler, LogLevel, LogMessage, Origin,
    QuestionHandler, RemoteTask, Scope, ToolCall, ToolExecutor, ToolOutcome, TraceContext,
};

use guards::ClockPauses;
pub(crate) use guards::HeldSlot;
pub use guards::PausedClock;
pub use task_report::TaskReport;
pub use tasks::TaskHandle;

// A timer that fires late by more than this shows that the whole process was suspended, for example
// by SIGSTOP or because the machine slept. The answer may have arrived meanwhile.
const SUSPENSION: Duration = Duration::from_secs(1);
// How long to wait for such an answer to be read.
const CATCH_UP_TIME: Duration = Duration::from_millis(500);

pub(crate) type ProgressSink = Arc<dyn Fn(&Progress) + Send + Sync>;

/// What a running tool reports to its caller.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Progress {
    /// How much is done, in a unit that the tool chooses.
    pub done: f64,
    /// How much there is to do, in the same unit, if known.
    pub total: Option<f64>,
    pub message: Option<String>,
    /// What the tool's server adds for the caller's client.
    pub meta: Option<Map<String, Value>>,
}

/// A running call, as its tool sees it. Cheap to clone.
#[derive(Clone)]
pub struct CallContext(Arc<CallContextState>);

struct CallContextState {
    id: CallId,
    tool_name: String,
    origin: Origin,
    trace: TraceContext,
    is_traced: bool,
    cancellation: CancellationToken,
    progress: Option<ProgressSink>,
    questions: Option<Arc<dyn QuestionHandler>>,
    client_may_approve: bool,
    logs: Option<Arc<dyn LogHandler>>,
    meta: Option<Arc<Map<String, Value>>>,
    extensions: Option<Arc<Map<String, Value>>>,
    extension_listener: Option<Arc<dyn ExtensionListener>>,
    resumed_task: Option<RemoteTask>,
    task_handle: Option<TaskHandle>,
    is_left_to_server: AtomicBool,
    executor: ToolExecutor,
    scope: Scope,
    flow: Option<Arc<FlowState>>,
    user_initiated: bool,
    started: Instant,
    // Nanoseconds after `started`, not counting pauses. Progress extends it. The call ends at this
    // or at `hard_limit`, whichever is earlier.
    deadline: AtomicU64,
    slot: Mutex<Option<CallSlot>>,
    pauses: Mutex<ClockPauses>,
    clock_resumed: Notify,
    // How long the tool may run without reporting progress.
    idle_limit: Duration,
    // How long the tool may run in all, in nanoseconds.
    hard_limit: AtomicU64,
    // Replaces `hard_limit` once the call is a task, of its client or of its server.
    task_limit: Duration,
    sent: OnceLock<SentRequest>,
    // Set once the server continues the call as a task.
    last_report: OnceLock<Mutex<TaskReport>>,
}

/// The MCP request that a tool sent to its server, so that a call can be found in the server's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentRequest {
    /// The negotiated MCP revision.
    pub revision: Arc<str>,
    /// The id of the JSON-RPC request.
    pub id: u64,
}

impl CallContext {
    // The caller's own limit is absolute, and takes precedence over the configured one.
    pub(crate) fn new(
        call: &mut ToolCall,
        configured: Duration,
        limits: &Limits,
        trace: (TraceContext, bool),
        executor: ToolExecutor,
    ) -> Self {
        let idle_limit = call.timeout.unwrap_or(configured);
        let (hard_limit, task_limit) = match call.timeout {
            Some(own) => (own, own),
            None => {
                let hard_limit = limits.max_total.max(idle_limit);
                (hard_limit, limits.max_task.max(hard_limit))
            }
        };
        let cancellation = match &call.cancellation {
            Some(parent) => parent.child_token(),
            None => CancellationToken::new(),
        };
        Self(Arc::new(CallContextState {
            id: call.id,
            tool_name: call.name.clone(),
            origin: call.origin,
            trace: trace.0,
            is_traced: trace.1,
            cancellation,
            progress: call.progress.take(),
            questions: call.questions.take(),
            client_may_approve: call.client_may_approve,
            logs: call.logs.take(),
            meta: call.meta.take(),
            extensions: call.extensions.take(),
            extension_listener: call.extension_listener.take(),
            resumed_task: call.resumes.take(),
            task_handle: call.task_handle.take(),
            is_left_to_server: AtomicBool::new(false),
            executor,
            scope: call.scope.clone(),
            flow: call.flow.as_ref().map(CallFlow::state),
            user_initiated: call.user_initiated,
            pauses: Mutex::default(),
            clock_resumed: Notify::new(),
            started: Instant::now(),
            deadline: AtomicU64::new(nanos(idle_limit)),
            slot: Mutex::new(None),
            idle_limit,
            hard_limit: AtomicU64::new(nanos(hard_limit)),
            task_limit,
            sent: OnceLock::new(),
            last_report: OnceLock::new(),
        }))
    }

    pub fn id(&self) -> CallId {
        self.0.id
    }

    pub fn tool_name(&self) -> &str {
        &self.0.tool_name
    }

    pub fn origin(&self) -> Origin {
        self.0.origin
    }

    /// The executor that runs this call. It isn't restricted to the caller: to make another call
    /// for the caller, use [`execute`](Self::execute).
    pub fn executor(&self) -> &ToolExecutor {
        &self.0.executor
    }

    /// Which tools exist for the caller.
    pub fn scope(&self) -> &Scope {
        &self.0.scope
    }

    /// Makes another call for the same caller: in the same scope, conversation and trace, and
    /// cancelled together with this one. The clock of this call stops meanwhile.
    pub fn execute(&self, call: ToolCall) -> BoxFuture<'_, ToolOutcome> {
        let mut call = call
            .origin(self.0.origin)
            .scope(self.0.scope.clone())
            .cancellation(self.0.cancellation.clone())
            .client_may_approve(self.0.client_may_approve)
            .trace_parent(self.0.trace.to_string());
        if let Some(state) = self.0.trace.state() {
            call = call.trace_state(state);
        }
        if let Some(flow) = &self.0.flow {
            call = call.flow(flow);
        }
        if self.0.user_initiated {
            call = call.user_initiated();
        }
        if let Some(questions) = &self.0.questions {
            call = call.on_question(Arc::clone(questions));
        }
        if let Some(logs) = &self.0.logs {
            call = call.on_log(Arc::clone(logs));
        }
        if let Some(handle) = &self.0.task_handle {
            call = call.task_handle(handle.clone());
        }
        // Boxed, because a call that makes calls would be a future of infinite size.
        Box::pin(async move {
            let _paused = self.pause_clock();
            self.0.executor.execute(call).await
        })
    }

    /// The W3C `traceparent` to send with the tool's own requests, if this trace is recorded.
    pub fn trace_parent(&self) -> Option<String> {
        self.0.is_traced.then(|| self.0.trace.to_string())
    }

    /// The W3C `tracestate` to send with the `traceparent`, if the caller sent one.
    pub fn trace_state(&self) -> Option<&str> {
        self.0.trace.state()
    }

    /// Records the MCP request that the tool sent, for observers. Only the first one is kept.
    pub fn record_sent(&self, sent: SentRequest) {
        drop(self.0.sent.set(sent));
    }

    pub(crate) fn sent(&self) -> Option<&SentRequest> {
        self.0.sent.get()
    }

    /// Puts a server's questions to the caller; `None` if the caller can't be asked.
    pub fn questions(&self) -> Option<&Arc<dyn QuestionHandler>> {
        self.0.questions.as_ref()
    }

    /// Says something to the caller's log, if the caller wants messages of this level.
    pub fn log(&self, level: LogLevel, data: impl Into<Value>) {
        let wants = |handler: &&Arc<dyn LogHandler>| {
            let wanted = handler.level();
            wanted.is_some_and(|wanted| level >= wanted)
        };
        if let Some(handler) = self.logs().filter(wants) {
            handler.log(LogMessage {
                level,
                logger: None,
                data: data.into(),
                meta: None,
            });
        }
    }

    /// Where log messages of this call go; `None` if the caller never wants any.
    pub fn logs(&self) -> Option<&Arc<dyn LogHandler>> {
        self.0.logs.as_ref()
    }

    /// The caller's `_meta` for the tool's server.
    pub fn meta(&self) -> Option<&Map<String, Value>> {
        self.0.meta.as_deref()
    }

    /// Stops the call's clock until the guard is dropped, for example while a person is asked. A
    /// paused call doesn't time out.
    pub fn pause_clock(&self) -> PausedClock {
        let mut pauses = self.0.pauses.lock();
        if pauses.open == 0 {
            pauses.since = Some(Instant::now());
        }
        pauses.open += 1;
        PausedClock(self.clone())
    }

    /// When the call times out. Reporting progress moves it, and so does a pause of the clock.
    pub fn deadline(&self) -> Instant {
        let offset = Duration::from_nanos(self.0.deadline.load(Ordering::Relaxed));
        let offset = offset.min(self.hard_limit());
        let offset = offset.saturating_add(self.0.pauses.lock().total);
        // A limit of centuries overflows the clock. A day from now is as good as never.
        self.0
            .started
            .checked_add(offset)
            .unwrap_or_else(|| Instant::now() + Duration::from_secs(86_400))
    }

    /// A token that is cancelled on timeout, at the caller's request, and when the caller is gone.
    ///
    /// Async tools don't need it, because their future is dropped. Work that continues elsewhere,
    /// such as on a blocking thread, does.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.0.cancellation
    }

    /// Reports progress to the caller and restarts the idle timeout.
    pub fn report(&self, progress: &Progress) {
        let running = self.0.started.elapsed();
        let running = running.saturating_sub(self.0.pauses.lock().total);
        let extended = running.saturating_add(self.0.idle_limit);
        self.0
            .deadline
            .fetch_max(nanos(extended), Ordering::Relaxed);
        self.keep_report(progress);
        if let Some(listen) = &self.0.progress {
            listen(progress);
        }
    }

    /// Waits until the call times out, and returns the limit that was exceeded.
    pub(crate) async fn wait_for_timeout(&self) -> Duration {
        loop {
            self.wait_while_paused().await;
            let deadline = self.deadline();
            tokio::time::sleep_until(deadline).await;
            // After a suspension the answer may already have arrived: leave time to read it.
            if deadline.elapsed() > SUSPENSION {
                tokio::time::sleep(CATCH_UP_TIME).await;
            }
            if self.deadline() <= deadline && !self.is_paused() {
                let deadline = self.0.deadline.load(Ordering::Relaxed);
                let hard_limit = self.hard_limit();
                return if deadline >= nanos(hard_limit) {
                    hard_limit
                } else {
                    self.0.idle_limit
                };
            }
        }
    }
}

impl CallContext {
    /// Keeps the slot until the guard is dropped or the call becomes a task.
    pub(crate) fn hold_slot(&self, slot: CallSlot) -> HeldSlot<'_> {
        *self.0.slot.lock() = Some(slot);
        HeldSlot(self)
    }

    fn release_slot(&self) {
        let slot = self.0.slot.lock().take();
        drop(slot);
    }

    fn hard_limit(&self) -> Duration {
        let handle = self.0.task_handle.as_ref();
        match handle.is_some_and(TaskHandle::is_task) {
            true => self.0.task_limit,
            false => Duration::from_nanos(self.0.hard_limit.load(Ordering::Relaxed)),
        }
    }

    /// True while the call's clock is stopped, for example because a person is asked.
    pub fn is_paused(&self) -> bool {
        self.0.pauses.lock().open > 0
    }

    async fn wait_while_paused(&self) {
        let mut resumed = std::pin::pin!(self.0.clock_resumed.notified());
        // Registered before the check, so that a resumption in between isn't missed.
        resumed.as_mut().enable();
        while self.is_paused() {
            resumed.as_mut().await;
            resumed.set(self.0.clock_resumed.notified());
            resumed.as_mut().enable();
        }
    }
}

impl fmt::Debug for CallContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallContext")
            .field("id", &self.0.id)
            .field("tool_name", &self.0.tool_name)
            .field("origin", &self.0.origin)
            .finish_non_exhaustive()
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
