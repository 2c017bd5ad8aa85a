//! What others may see of calls.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;
use serde_json::Value;

use crate::{
    ApprovalRecord, CallId, Origin, Sent, Tool, ToolDefinition, ToolError, ToolOutcome, Trace,
};

/// Sees every call: the log, metrics, a journal, a live page. A failing, hanging or panicking observer changes no outcome,
/// unless it is a [`witness`](Self::witness).
///
/// ```
/// use futures::future::BoxFuture;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use toolgate_core::{CallRecord, Observer};
///
/// struct Failures(AtomicU64);
///
/// impl Observer for Failures {
///     fn finished<'a>(&'a self, record: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
///         self.0.fetch_add(u64::from(!record.outcome.is_success()), Ordering::Relaxed);
///         None
///     }
/// }
/// ```
pub trait Observer: Send + Sync {
    /// Asked before a call runs, and before anybody is told that it does. `None`, for nearly all calls: it may. A future is for
    /// what must not happen unrecorded: its error refuses the call, and so does a panic, or an answer that does not come.
    fn witness<'a>(
        &'a self,
        _call: &'a CallStarted,
    ) -> Option<BoxFuture<'a, Result<(), ToolError>>> {
        None
    }

    /// A call is about to run. A future is awaited before the tool is invoked; `None`: nothing to wait for.
    fn started<'a>(&'a self, _call: &'a CallStarted) -> Option<BoxFuture<'a, ()>> {
        None
    }

    /// A call has ended, one way or another, also when it never started. A future is awaited before the outcome is returned.
    fn finished<'a>(&'a self, record: &'a CallRecord) -> Option<BoxFuture<'a, ()>>;
}

/// A call that is about to run.
///
/// ```
/// use toolgate_core::CallStarted;
///
/// fn title(call: &CallStarted) -> String {
///     format!("{} {} from {}", call.id, call.tool_name, call.origin)
/// }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct CallStarted {
    /// Which call.
    pub id: CallId,
    /// The name that was asked for.
    pub tool_name: String,
    /// The tool that was found.
    pub tool: Arc<dyn Tool>,
    /// What asked.
    pub origin: Origin,
    /// The name of who asked, where callers are told apart: [`Scope::caller`](crate::Scope::caller).
    pub caller: Option<Arc<str>>,
    /// Its place in a trace.
    pub trace: Trace,
    /// The arguments as they were asked.
    pub asked: Arc<Value>,
    /// The arguments the tool gets.
    pub executed: Arc<Value>,
    /// Who agreed to it, if somebody was asked.
    pub approval: Option<ApprovalRecord>,
    /// Wall clock at the start.
    pub started_at: SystemTime,
}

/// A call that has ended.
///
/// ```
/// use toolgate_core::CallRecord;
///
/// fn source(record: &CallRecord) -> String {
///     record.definition().map_or("none".to_owned(), |tool| tool.source().to_string())
/// }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct CallRecord {
    /// What asked.
    pub origin: Origin,
    /// The name of who asked, where callers are told apart: [`Scope::caller`](crate::Scope::caller).
    pub caller: Option<Arc<str>>,
    /// Its place in a trace.
    pub trace: Trace,
    /// True if the tool was about to run, and [`Observer::started`] was told.
    pub started: bool,
    /// The tool, if there was one of that name.
    pub tool: Option<Arc<dyn Tool>>,
    /// The arguments as they were asked; a text if they were no JSON.
    pub asked: Arc<Value>,
    /// The arguments after renaming and validation, if it came to that.
    pub executed: Option<Arc<Value>>,
    /// Who agreed to it or refused it, if somebody was asked and answered.
    pub approval: Option<ApprovalRecord>,
    /// Parameters that were renamed.
    pub renamed: Vec<(String, String)>,
    /// Parameters that counted as not given.
    pub dropped: Vec<String>,
    /// What the tool asked another program, if it did.
    pub sent: Option<Sent>,
    /// Wall clock at the start.
    pub started_at: SystemTime,
    /// How long each step took.
    pub timings: Timings,
    /// True if it took longer than [`Limits::slow_after`](crate::Limits::slow_after).
    pub slow: bool,
    /// What came of it.
    pub outcome: ToolOutcome,
}

impl CallRecord {
    /// The definition of the tool, if there was one of that name.
    pub fn definition(&self) -> Option<&ToolDefinition> {
        self.tool.as_deref().map(Tool::definition)
    }

    /// Its start, as [`Observer::started`] was told of it; nothing if it never came to that.
    pub fn start(&self) -> Option<CallStarted> {
        Some(CallStarted {
            id: self.outcome.call_id,
            tool_name: self.outcome.tool_name.clone(),
            tool: self.tool.clone()?,
            origin: self.origin,
            caller: self.caller.clone(),
            trace: self.trace.clone(),
            asked: Arc::clone(&self.asked),
            executed: self.executed.clone()?,
            approval: self.approval.clone(),
            started_at: self.started_at,
        })
    }
}

/// How long each step of a call took.
///
/// ```
/// let timings = toolgate_core::Timings::default();
/// assert!(timings.approval.is_zero());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Timings {
    /// Finding, renaming and validating.
    pub check: Duration,
    /// Waiting for a person; not part of the execution time.
    pub approval: Duration,
    /// Waiting for a free slot.
    pub queue: Duration,
    /// The tool itself.
    pub invoke: Duration,
}
