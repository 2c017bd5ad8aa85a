//! The [`Observer`] trait and the records it receives.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;
use serde_json::Value;

use crate::{
    ApprovalRecord, CallId, Origin, RemoteTask, SentRequest, Tool, ToolDefinition, ToolError,
    ToolOutcome, TraceContext,
};

/// Is notified of every call. Only [`before_start`](Self::before_start) can stop a call; other
/// failures of an observer are ignored.
///
/// Logs, metrics, journals and live views are observers.
///
/// ```
/// use futures::future::BoxFuture;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use toolgate_core::{CallRecord, Observer};
///
/// struct FailureCounter(AtomicU64);
///
/// impl Observer for FailureCounter {
///     fn finished<'a>(&'a self, record: &'a CallRecord) -> Option<BoxFuture<'a, ()>> {
///         self.0.fetch_add(u64::from(!record.outcome.is_success()), Ordering::Relaxed);
///         None
///     }
/// }
/// ```
pub trait Observer: Send + Sync {
    /// Called before [`started`](Self::started), and can refuse the call. For a call that must not
    /// run unrecorded, return a future that records it: if the future fails, panics or times out,
    /// the call doesn't run. `None` lets it run.
    fn before_start<'a>(
        &'a self,
        _call: &'a CallStarted,
    ) -> Option<BoxFuture<'a, Result<(), ToolError>>> {
        None
    }

    /// Called when a call is about to run. A returned future is awaited before the tool is invoked.
    fn started<'a>(&'a self, _call: &'a CallStarted) -> Option<BoxFuture<'a, ()>> {
        None
    }

    /// Called when the server of a running call continues it as a task.
    fn became_task(&self, _call: CallId, _task: &RemoteTask) {}

    /// Called when a call has ended, even if it never started. A returned future is awaited before
    /// the caller gets the outcome.
    fn finished<'a>(&'a self, record: &'a CallRecord) -> Option<BoxFuture<'a, ()>>;
}

/// A call that is about to run: it was found, validated and permitted.
#[derive(Clone)]
#[non_exhaustive]
pub struct CallStarted {
    pub id: CallId,
    /// The name that the caller used.
    pub tool_name: String,
    pub tool: Arc<dyn Tool>,
    pub origin: Origin,
    /// The caller's name, where callers are told apart: [`Scope::caller`](crate::Scope::caller).
    pub caller: Option<Arc<str>>,
    pub trace: TraceContext,
    /// The arguments as the caller sent them.
    pub requested: Arc<Value>,
    /// The arguments that the tool receives.
    pub executed: Arc<Value>,
    /// Who approved the call, if anybody was asked.
    pub approval: Option<ApprovalRecord>,
    pub started_at: SystemTime,
}

/// Everything known about a call that has ended, even one that was rejected before its tool ran.
#[derive(Clone)]
#[non_exhaustive]
pub struct CallRecord {
    pub origin: Origin,
    /// The caller's name, where callers are told apart: [`Scope::caller`](crate::Scope::caller).
    pub caller: Option<Arc<str>>,
    pub trace: TraceContext,
    /// True if [`Observer::started`] was called, that is, if the tool was about to run.
    pub started: bool,
    pub tool: Option<Arc<dyn Tool>>,
    /// The arguments as the caller sent them; a string if they were not JSON.
    pub requested: Arc<Value>,
    /// The arguments after renaming and validation, if the call got that far.
    pub executed: Option<Arc<Value>>,
    /// Who approved or refused the call, if anybody answered.
    pub approval: Option<ApprovalRecord>,
    /// Parameters that were renamed, from and to.
    pub renamed: Vec<(String, String)>,
    /// Arguments that validation left out:
    /// [`ValidArguments::dropped`](crate::ValidArguments::dropped).
    pub dropped: Vec<String>,
    /// The MCP request that the tool sent to its server, if any.
    pub sent: Option<SentRequest>,
    pub started_at: SystemTime,
    pub timings: Timings,
    /// True if its server goes on with it as a task while this process ends. Another process will
    /// record how it ended.
    pub left_to_server: bool,
    /// True if it took longer than [`Limits::slow_after`](crate::Limits::slow_after).
    pub slow: bool,
    pub outcome: ToolOutcome,
}

impl CallRecord {
    pub fn definition(&self) -> Option<&ToolDefinition> {
        self.tool.as_deref().map(Tool::definition)
    }

    /// Returns what [`Observer::started`] received; `None` if the tool was never about to run.
    pub fn to_started(&self) -> Option<CallStarted> {
        Some(CallStarted {
            id: self.outcome.call_id,
            tool_name: self.outcome.tool_name.clone(),
            tool: self.tool.clone()?,
            origin: self.origin,
            caller: self.caller.clone(),
            trace: self.trace.clone(),
            requested: Arc::clone(&self.requested),
            executed: self.executed.clone()?,
            approval: self.approval.clone(),
            started_at: self.started_at,
        })
    }
}

/// How long each step of a call took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Timings {
    /// Finding the tool, and renaming and validating arguments.
    pub check: Duration,
    /// Waiting for a person's approval. Not part of the execution time.
    pub approval: Duration,
    pub queue: Duration,
    pub invoke: Duration,
}
