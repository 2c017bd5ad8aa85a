//! What a running tool knows of its call, and how it is told to stop.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{CallId, Limits, Origin, ToolCall, Trace};

/// A clock that comes later than this tells that the whole process stood still, as under SIGSTOP or in a machine that was
/// suspended: an answer may have come meanwhile.
const LATE: Duration = Duration::from_secs(1);
/// How long such an answer has to be read.
const CATCH_UP: Duration = Duration::from_millis(500);

pub(crate) type ProgressSink = Arc<dyn Fn(&Progress) + Send + Sync>;

/// How far a tool has come.
///
/// ```
/// use toolgate_core::Progress;
///
/// let half = Progress { done: 5.0, total: Some(10.0), message: Some("reading".to_owned()) };
/// assert_eq!(half.total.map(|total| half.done / total), Some(0.5));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// How much is done, in any unit.
    pub done: f64,
    /// How much there is to do, if known.
    pub total: Option<f64>,
    /// What happens now.
    pub message: Option<String>,
}

/// One running call, as its tool sees it. Cheap to clone.
///
/// ```
/// use toolgate_core::{CallContext, Progress, ToolError};
///
/// /// Copies files; called by a tool.
/// async fn copy(files: &[&str], context: &CallContext) -> Result<(), ToolError> {
///     for (done, file) in files.iter().enumerate() {
///         context.report(&Progress { done: done as f64, total: Some(files.len() as f64), message: Some((*file).to_owned()) });
///         // … copy it …
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct CallContext(Arc<Running>);

struct Running {
    id: CallId,
    tool_name: String,
    origin: Origin,
    trace: Trace,
    is_traced: bool,
    cancellation: CancellationToken,
    progress: Option<ProgressSink>,
    started: Instant,
    /// Nanoseconds after `started`; moved by progress, never past `hard`.
    deadline: AtomicU64,
    idle: Duration,
    hard: Duration,
    sent: OnceLock<Sent>,
}

/// What a tool asked another program for its call, in the words of the protocol between them.
///
/// ```
/// let sent = toolgate_core::Sent { revision: "2025-11-25".into(), id: 7 };
/// assert_eq!(sent.id, 7);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// The revision of the protocol.
    pub revision: Arc<str>,
    /// The id of the request.
    pub id: u64,
}

impl CallContext {
    /// `configured` is the tool's own limit; a limit that came with the call is absolute and wins.
    pub(crate) fn new(
        call: &mut ToolCall,
        configured: Duration,
        limits: &Limits,
        trace: (Trace, bool),
    ) -> Self {
        let idle = call.timeout.unwrap_or(configured);
        let hard = if call.timeout.is_some() {
            idle
        } else {
            limits.max_total.max(idle)
        };
        let cancellation = match &call.cancellation {
            Some(parent) => parent.child_token(),
            None => CancellationToken::new(),
        };
        Self(Arc::new(Running {
            id: call.id,
            tool_name: call.name.clone(),
            origin: call.origin,
            trace: trace.0,
            is_traced: trace.1,
            cancellation,
            progress: call.progress.take(),
            started: Instant::now(),
            deadline: AtomicU64::new(nanos(idle)),
            idle,
            hard,
            sent: OnceLock::new(),
        }))
    }

    /// The call's id.
    pub fn id(&self) -> CallId {
        self.0.id
    }

    /// The name the tool was called by.
    pub fn tool_name(&self) -> &str {
        &self.0.tool_name
    }

    /// Who asked.
    pub fn origin(&self) -> Origin {
        self.0.origin
    }

    /// The W3C `traceparent` for whatever the tool asks others, if this call is part of a trace that anybody records.
    pub fn trace_parent(&self) -> Option<String> {
        self.0.is_traced.then(|| self.0.trace.to_string())
    }

    /// The W3C `tracestate` that goes with it, if the caller sent one.
    pub fn trace_state(&self) -> Option<&str> {
        self.0.trace.state()
    }

    /// Tells observers that another program was asked. Only the first time counts.
    pub fn tell_sent(&self, sent: Sent) {
        drop(self.0.sent.set(sent));
    }

    pub(crate) fn sent(&self) -> Option<&Sent> {
        self.0.sent.get()
    }

    /// When the call will be cut off, unless it reports progress.
    pub fn deadline(&self) -> Instant {
        let offset = Duration::from_nanos(self.0.deadline.load(Ordering::Relaxed));
        // A limit of centuries overflows the clock; a day is then as good as for ever.
        self.0
            .started
            .checked_add(offset)
            .unwrap_or_else(|| Instant::now() + Duration::from_secs(86_400))
    }

    /// Cancelled on timeout, on the caller's wish and when the caller is gone.
    ///
    /// An async tool need not look: its future is dropped. Work that lives on elsewhere, as in a blocking thread, must.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.0.cancellation
    }

    /// Tells the caller how far the work has come, and starts the idle limit anew.
    pub fn report(&self, progress: &Progress) {
        let extended = self.0.started.elapsed().saturating_add(self.0.idle);
        let extended = extended.min(self.0.hard);
        self.0
            .deadline
            .fetch_max(nanos(extended), Ordering::Relaxed);
        if let Some(listen) = &self.0.progress {
            listen(progress);
        }
    }

    /// Returns when the call's time is over, with the limit that ran out.
    pub(crate) async fn expired(&self) -> Duration {
        loop {
            let deadline = self.deadline();
            tokio::time::sleep_until(deadline).await;
            if deadline.elapsed() > LATE {
                tokio::time::sleep(CATCH_UP).await;
            }
            if self.deadline() <= deadline {
                let at_the_hard_end = self.0.deadline.load(Ordering::Relaxed) >= nanos(self.0.hard);
                return if at_the_hard_end {
                    self.0.hard
                } else {
                    self.0.idle
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
