//! Every bound there is, in one place.

use std::collections::HashMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};

use crate::text::units::{self, BytesText, DurationText};

/// Bounds of a call. The defaults are the documented ones of the configuration's `limits`.
///
/// ```
/// use std::time::Duration;
/// use toolgate_core::{Limits, ToolLimits};
///
/// let mut limits = Limits::default();
/// assert_eq!(limits.timeout, Duration::from_secs(30));
/// limits.per_tool.insert("slow_tool".to_owned(), ToolLimits::timeout(Duration::from_secs(120)));
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(description = "Bounds of a call")]
#[non_exhaustive]
pub struct Limits {
    /// How long a call may take unless its tool or its caller says otherwise. Progress starts it anew.
    #[serde(deserialize_with = "units::deserialize_duration")]
    #[schemars(with = "DurationText")]
    pub timeout: Duration,
    /// The hard end of a call that keeps reporting progress.
    #[serde(deserialize_with = "units::deserialize_duration")]
    #[schemars(with = "DurationText")]
    pub max_total: Duration,
    /// A call longer than this is logged as slow.
    #[serde(deserialize_with = "units::deserialize_duration")]
    #[schemars(with = "DurationText")]
    pub slow_after: Duration,
    /// How long to wait for a person's approval; it does not count into `timeout`.
    #[serde(skip)]
    pub approval: Duration,
    /// How long an observer may hold up an outcome.
    #[serde(skip)]
    pub observer: Duration,
    /// Bytes of JSON a caller may send as arguments.
    #[serde(deserialize_with = "units::deserialize_bytes")]
    #[schemars(with = "BytesText")]
    pub max_arguments: usize,
    /// Values (objects, arrays, strings, numbers, …) that arguments may hold: in memory each takes
    /// hundreds of bytes, however short it is written.
    #[serde(deserialize_with = "at_least_one")]
    #[schemars(range(min = 1))]
    pub max_values: usize,
    /// Nesting of arguments.
    #[serde(skip)]
    pub max_depth: usize,
    /// Bytes of JSON a tool may answer with.
    #[serde(deserialize_with = "units::deserialize_bytes")]
    #[schemars(with = "BytesText")]
    pub max_result: usize,
    /// Calls of one server, or of all local tools, that run at the same time; the next ones wait within their own timeout.
    #[serde(deserialize_with = "at_least_one")]
    #[schemars(range(min = 1))]
    pub concurrency: usize,
    /// Exceptions by tool name.
    pub per_tool: HashMap<String, ToolLimits>,
}

/// What a tool has of its own.
///
/// ```
/// use std::time::Duration;
/// use toolgate_core::ToolLimits;
///
/// assert_eq!(ToolLimits::timeout(Duration::from_secs(2)).timeout, Some(Duration::from_secs(2)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(description = "What a tool has of its own")]
#[non_exhaustive]
pub struct ToolLimits {
    /// Instead of `limits.timeout`.
    #[serde(deserialize_with = "units::deserialize_some_duration")]
    #[schemars(with = "DurationText")]
    pub timeout: Option<Duration>,
}

/// Bounds of a schema, counted before it is compiled, so that every accepted schema validates in bounded time on the spot.
///
/// ```
/// use serde_json::json;
/// use toolgate_core::{Schema, SchemaLimits};
///
/// let mut limits = SchemaLimits::default();
/// limits.subschemas = 2;
/// let wide = json!({ "properties": { "a": {}, "b": {}, "c": {} } });
/// assert!(Schema::compile(wide, &limits).is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchemaLimits {
    /// Nesting of the schema document.
    pub depth: usize,
    /// Sub-schemas in all, references and combinators expanded.
    pub subschemas: usize,
    /// Size of all regular expressions, repetitions expanded.
    pub pattern: u64,
    /// Steps that one validation may take; what would take more is refused before it starts.
    pub steps: u64,
}

impl Limits {
    /// The default of [`max_values`](Self::max_values), and the bound where arguments are parsed far
    /// from the configuration.
    pub const MAX_VALUES: usize = 10_000;

    /// Values that a message may hold which carries arguments beside other things, such as MCP's `_meta`.
    pub fn max_message_values(&self) -> usize {
        const BESIDE: usize = 1_000;
        self.max_values.saturating_add(BESIDE)
    }
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
            subschemas: 10_000,
            pattern: 50_000,
            steps: 20_000_000,
        }
    }
}
