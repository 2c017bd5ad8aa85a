//! [`Limits`] of calls, [`ToolLimits`] of single tools, and [`SchemaLimits`].

use std::collections::HashMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};

use crate::text::units::{self, BytesText, DurationText};

/// Limits of time, size and concurrency for calls: the configuration's `limits` section,
/// with the same defaults.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(description = "Limits of a call")]
#[non_exhaustive]
pub struct Limits {
    /// How long a call may take unless its tool or its caller says otherwise. Progress restarts it.
    #[serde(deserialize_with = "units::deserialize_duration")]
    #[schemars(with = "DurationText")]
    pub timeout: Duration,
    /// The hard end of a call that keeps reporting progress and isn't a task.
    #[serde(deserialize_with = "units::deserialize_duration")]
    #[schemars(with = "DurationText")]
    pub max_total: Duration,
    /// The hard end of a task: of a call that its MCP server continues as a task, instead of
    /// `timeout` and `maxTotal`, or that its MCP client has as a task, instead of `maxTotal`.
    #[serde(deserialize_with = "units::deserialize_duration")]
    #[schemars(with = "DurationText")]
    pub max_task: Duration,
    /// A call longer than this is logged as slow.
    #[serde(deserialize_with = "units::deserialize_duration")]
    #[schemars(with = "DurationText")]
    pub slow_after: Duration,
    /// How long to wait for a person's approval. It doesn't count towards `timeout`.
    #[serde(skip)]
    pub approval_timeout: Duration,
    /// How long an observer may delay an outcome.
    #[serde(skip)]
    pub observer_timeout: Duration,
    /// Bytes of JSON a caller may send as arguments.
    #[serde(deserialize_with = "units::deserialize_bytes")]
    #[schemars(with = "BytesText")]
    pub max_arguments: usize,
    /// Values (objects, arrays, strings, numbers, …) that arguments may hold: in memory each takes
    /// hundreds of bytes, however short it is written.
    #[serde(deserialize_with = "at_least_one")]
    #[schemars(range(min = 1))]
    pub max_values: usize,
    /// Maximum nesting of arguments.
    #[serde(skip)]
    pub max_depth: usize,
    /// Bytes of JSON a tool may answer with.
    #[serde(deserialize_with = "units::deserialize_bytes")]
    #[schemars(with = "BytesText")]
    pub max_result: usize,
    /// Calls of one server, or of all local tools, that run at the same time; the next ones wait
    /// within their own timeout.
    #[serde(deserialize_with = "at_least_one")]
    #[schemars(range(min = 1))]
    pub concurrency: usize,
    /// Exceptions by tool name.
    pub per_tool: HashMap<String, ToolLimits>,
}

/// Limits of one tool, which replace the general ones: see [`Limits::per_tool`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(description = "Limits of one tool")]
#[non_exhaustive]
pub struct ToolLimits {
    /// Replaces `limits.timeout` for this tool.
    #[serde(deserialize_with = "units::deserialize_some_duration")]
    #[schemars(with = "DurationText")]
    pub timeout: Option<Duration>,
}

/// Limits of a JSON Schema, checked before it is compiled. Validation with any accepted
/// schema takes bounded time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchemaLimits {
    /// Maximum nesting of the schema document.
    pub depth: usize,
    /// Maximum number of sub-schemas, with references and combinators expanded.
    pub subschemas: usize,
    /// Maximum total cost of all regular expressions: about one per automaton
    /// state, with repetitions expanded.
    pub pattern: u64,
    /// Maximum steps of one validation. One that could take more is refused before it starts.
    pub steps: u64,
}

impl Limits {
    /// The default of [`max_values`](Self::max_values), for code that parses arguments without
    /// access to the configuration.
    pub const MAX_VALUES: usize = 10_000;

    /// The maximum number of values in a message that holds arguments and more,
    /// such as MCP's `_meta`.
    pub fn max_message_values(&self) -> usize {
        const BESIDE_ARGUMENTS: usize = 1_000;
        self.max_values.saturating_add(BESIDE_ARGUMENTS)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            max_total: Duration::from_secs(150),
            max_task: Duration::from_secs(86_400),
            slow_after: Duration::from_secs(1),
            approval_timeout: Duration::from_secs(120),
            observer_timeout: Duration::from_secs(5),
            max_arguments: 1 << 20,
            max_values: Self::MAX_VALUES,
            max_depth: 64,
            max_result: 8 << 20,
            concurrency: 64,
            per_tool: HashMap::new(),
        }
    }
}

fn at_least_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    match usize::deserialize(deserializer)? {
        0 => Err(de::Error::custom("must be at least 1")),
        slots => Ok(slots),
    }
}

impl ToolLimits {
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
            subschemas: 10_000,
            pattern: 50_000,
            steps: 20_000_000,
        }
    }
}
