//! [`CallContext`]: what a running tool knows about its call, and how it learns to stop.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{CallId, Limits, Origin, ToolCall, TraceContext};

// A timer that fires late by more than this shows that the whole process was suspended, for example
// by SIGSTOP or because the machine slept. The answer may have arrived meanwhile.
const SUSPENSION: Duration = Duration::from_secs(1);
// How long to wait for such an answer to be read.
const CATCH_UP_TIME: Duration = Duration::from_millis(500);

pub(crate) type ProgressSink = Arc<dyn Fn(&Progress) + Send + Sync>;

/// What a running tool reports to its caller.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// How much is done, in a unit that the tool chooses.
    pub done: f64,
    /// How much there is to do, in the same unit, if known.
    pub total: Option<f64>,
    pub message: Option<String>,
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
    started: Instant,
    // Nanoseconds after `started`. Progress moves it, but never past `hard_limit`.
    deadline: AtomicU64,
    // How long the tool may run without reporting progress.
    idle_limit: Duration,
    // How long the tool may run in all.
    hard_limit: Duration,
    sent: OnceLock<SentRequest>,
}

/// The MCP request that a tool sent to its server, so that a call can be found in the server's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentRequest {
    /// The negotiated MCP revision.
    pub revision: Arc<str>,
    /// The JSON-RPC id.
    pub id: u64,
}

impl CallContext {
    // The caller's own limit is absolute, and takes precedence over the configured one.
    pub(crate) fn new(
        call: &mut ToolCall,
        configured: Duration,
        limits: &Limits,
        trace: (TraceContext, bool),
    ) -> Self {
        let idle_limit = call.timeout.unwrap_or(configured);
        let hard_limit = if call.timeout.is_some() {
            idle_limit
        } else {
            limits.max_total.max(idle_limit)
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
            started: Instant::now(),
            deadline: AtomicU64::new(nanos(idle_limit)),
            idle_limit,
            hard_limit,
            sent: OnceLock::new(),
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

    /// When the call times out. Reporting progress moves it.
    pub fn deadline(&self) -> Instant {
        let offset = Duration::from_nanos(self.0.deadline.load(Ordering::Relaxed));
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
        let extended = self.0.started.elapsed().saturating_add(self.0.idle_limit);
        let extended = extended.min(self.0.hard_limit);
        self.0
            .deadline
            .fetch_max(nanos(extended), Ordering::Relaxed);
        if let Some(listen) = &self.0.progress {
            listen(progress);
        }
    }

    /// Waits until the call times out, and returns the limit that was exceeded.
    pub(crate) async fn wait_for_timeout(&self) -> Duration {
        loop {
            let deadline = self.deadline();
            tokio::time::sleep_until(deadline).await;
            // After a suspension the answer may already have arrived: leave time to read it.
            if deadline.elapsed() > SUSPENSION {
                tokio::time::sleep(CATCH_UP_TIME).await;
            }
            if self.deadline() <= deadline {
                let deadline = self.0.deadline.load(Ordering::Relaxed);
                let reached_hard_limit = deadline >= nanos(self.0.hard_limit);
                return if reached_hard_limit {
                    self.0.hard_limit
                } else {
                    self.0.idle_limit
                };
            }
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
