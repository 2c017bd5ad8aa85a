//! Every bound there is, in one place.

use std::collections::HashMap;
use std::time::Duration;

/// Bounds of a call. The defaults are the documented ones of the configuration's `limits`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// How long a call may take unless its tool or its caller says otherwise. Progress starts it anew.
    pub timeout: Duration,
    /// The hard end of a call that keeps reporting progress.
    pub max_total: Duration,
    /// A call longer than this is logged as slow.
    pub slow_after: Duration,
    /// How long to wait for a person's approval; it does not count into `timeout`.
    pub approval: Duration,
    /// How long an observer may hold up an outcome.
    pub observer: Duration,
    /// Bytes of JSON a caller may send as arguments.
    pub max_arguments: usize,
    /// Nesting of arguments.
    pub max_depth: usize,
    /// Bytes of JSON a tool may answer with.
    pub max_result: usize,
    /// Calls that run at the same time; the next ones wait within their own timeout.
    pub concurrency: usize,
    /// Exceptions by tool name.
    pub per_tool: HashMap<String, ToolLimits>,
}

/// What a tool has of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ToolLimits {
    /// Instead of [`Limits::timeout`].
    pub timeout: Option<Duration>,
}

/// Bounds of a schema, counted before it is compiled, so that every accepted schema validates in bounded time on the spot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchemaLimits {
    /// Nesting of the schema document.
    pub depth: usize,
    /// Sub-schemas that one value can meet, references and combinators expanded.
    pub width: u64,
    /// Sub-schemas in all, references expanded.
    pub subschemas: usize,
    /// Size of one regular expression, repetitions expanded.
    pub pattern: u64,
    /// Steps that one validation may take; what would take more is refused before it starts.
    pub steps: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            max_total: Duration::from_secs(150),
            slow_after: Duration::from_secs(1),
            approval: Duration::from_secs(120),
            observer: Duration::from_secs(5),
            max_arguments: 1 << 20,
            max_depth: 64,
            max_result: 8 << 20,
            concurrency: 64,
            per_tool: HashMap::new(),
        }
    }
}

impl ToolLimits {
    /// A tool's own timeout.
    pub fn timeout(timeout: Duration) -> Self {
        Self {
            timeout: Some(timeout),
        }
    }
}

impl Default for SchemaLimits {
    fn default() -> Self {
        Self {
            depth: 64,
            width: 10_000,
            subschemas: 10_000,
            pattern: 5_000,
            steps: 20_000_000,
        }
    }
}
