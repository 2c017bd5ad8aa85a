//! [`CallSummary`]: one call in a list, from the journal or while it runs in this process.

use jiff::Timestamp;
use rusqlite::Row;
use serde::Serialize;
use serde_json::Value;
use toolgate_core::text::mark_truncated;
use toolgate_core::{CallRecord, CallStarted, Redactor, ToolSource, sanitize};
use utoipa::ToSchema;

use crate::columns::{COUNT, column};
use crate::fields::{millis, number, parse_or_text, text};
use crate::row::StartInfo;
use crate::runs::DeadRuns;
use crate::takeover::INTERRUPTED;
use crate::time;

/// The columns that a summary reads besides those of a call. Only the beginning of
/// long arguments is read.
pub(crate) const EXTRA_COLUMNS: &str = "
    substr(coalesce(executed, asked), 1, 2049), octet_length(coalesce(executed, asked)),
    (SELECT command FROM runs WHERE runs.seq = calls.run)";
const ARGUMENTS: usize = COUNT;
const ARGUMENTS_BYTES: usize = COUNT + 1;
const COMMAND: usize = COUNT + 2;
pub(crate) const NEXT_COLUMN: usize = COUNT + 3;

/// One call in a list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = Call)]
#[non_exhaustive]
pub struct CallSummary {
    /// The call's id, 32 hexadecimal digits, sorted by time.
    #[schema(example = "0199f0c27b1a4fd2c39b5d0000000007")]
    pub id: String,
    /// The tool name that the caller asked for.
    #[schema(example = "echo")]
    pub tool: String,
    /// `builtin`, `mock`, `internal`, `custom` or `mcp:SERVER`. Absent if there was no
    /// tool of that name.
    #[schema(example = "builtin")]
    pub source: Option<String>,
    /// The MCP server that offers the tool.
    pub server: Option<String>,
    /// Where the call came from: `cli`, `chat`, `voice`, `http`, `mcp`, `library` or `worker`.
    #[schema(example = "http")]
    pub origin: String,
    /// The name of the caller's token, where one is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "kitchen")]
    pub caller: Option<String>,
    /// The command that made the call, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "toolgate serve")]
    pub command: Option<String>,
    /// The time of its start, in UTC.
    #[serde(serialize_with = "time::serialize")]
    #[schema(value_type = String, example = "2026-11-16T05:30:00.000Z", format = DateTime)]
    pub started_at: Timestamp,
    /// The time for validation and execution, without the wait for a person. Absent while the call
    /// runs or if it was interrupted.
    #[schema(example = 0.125)]
    pub duration_ms: Option<f64>,
    /// `success`, an error kind such as `timeout`, `running` or `interrupted`.
    #[schema(example = "success")]
    pub outcome: String,
    /// Absent while the call runs or if its outcome is unknown.
    #[schema(example = true)]
    pub success: Option<bool>,
    /// A sentence that says what went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error: Option<String>,
    /// The arguments as executed, or as asked if the call did not get that far. A string if they
    /// are long or were not JSON.
    #[schema(example = json!({ "text": "hello" }))]
    pub arguments: Value,
    /// The size of the result as JSON, in bytes.
    #[schema(example = 17)]
    pub result_bytes: Option<u64>,
}

impl CallSummary {
    pub(crate) fn read(row: &Row<'_>, dead: &DeadRuns) -> rusqlite::Result<Self> {
        let run = number(row, column!(run))?.unwrap_or(0);
        let outcome = match text(row, column!(outcome))? {
            Some(outcome) => outcome,
            None if dead.contains(run) => "interrupted".to_owned(),
            None => "running".to_owned(),
        };
        let success = match outcome.as_str() {
            "running" | "interrupted" => None,
            outcome => Some(outcome == "success"),
        };
        let error = match outcome.as_str() {
            "interrupted" => Some(INTERRUPTED.to_owned()),
            _ => text(row, column!(error))?,
        };
        let arguments = text(row, ARGUMENTS)?.unwrap_or_default();
        let bytes = number(row, ARGUMENTS_BYTES)?.unwrap_or(0).unsigned_abs();
        Ok(Self {
            id: text(row, column!(id))?.unwrap_or_default(),
            tool: text(row, column!(tool))?.unwrap_or_default(),
            source: text(row, column!(source))?,
            server: text(row, column!(server))?,
            origin: text(row, column!(origin))?.unwrap_or_default(),
            caller: text(row, column!(caller))?,
            command: text(row, COMMAND)?,
            started_at: time::timestamp(number(row, column!(started_at))?.unwrap_or(0)),
            duration_ms: millis(row, column!(duration))?,
            outcome,
            success,
            error,
            arguments: preview(&arguments, bytes),
            result_bytes: number(row, column!(result_bytes))?.map(i64::unsigned_abs),
        })
    }

    /// A call that started in this process, which was started as `command`.
    pub fn started(call: &CallStarted, redactor: &Redactor, command: &str) -> Self {
        Self::running(&call.into(), redactor, command)
    }

    /// A call that has ended in this process, which was started as `command`.
    pub fn finished(record: &CallRecord, redactor: &Redactor, command: &str) -> Self {
        let redactor = &*redactor.for_call(&record.requested);
        let mut call = Self::running(&record.into(), redactor, command);
        call.duration_ms = Some(record.outcome.execution_time_ms());
        call.success = Some(record.outcome.is_success());
        match &record.outcome.result {
            Ok(output) => {
                "success".clone_into(&mut call.outcome);
                call.result_bytes = Some(sanitize::length(&output.to_result()));
            }
            Err(error) => {
                error.kind().as_str().clone_into(&mut call.outcome);
                call.error = Some(sanitize::text(redactor, &error.to_string()));
            }
        }
        call
    }

    fn running(call: &StartInfo<'_>, redactor: &Redactor, command: &str) -> Self {
        let arguments = call.executed.unwrap_or(call.requested);
        Self {
            id: call.id.to_string(),
            tool: sanitize::name(redactor, call.tool_name),
            source: call.source().map(ToolSource::to_string),
            server: call.server(),
            origin: call.origin.to_string(),
            caller: call.caller.map(|name| sanitize::name(redactor, name)),
            command: (!command.is_empty()).then(|| command.to_owned()),
            started_at: time::timestamp(time::micros(call.started_at)),
            outcome: "running".to_owned(),
            arguments: sanitize::value(redactor, arguments, sanitize::MAX_LISTED_ARGUMENTS).0,
            ..Self::default()
        }
    }
}

fn preview(text: &str, bytes: u64) -> Value {
    if bytes <= sanitize::MAX_LISTED_ARGUMENTS as u64 {
        return parse_or_text(text);
    }
    let start = &text[..text.floor_char_boundary(sanitize::MAX_LISTED_ARGUMENTS)];
    let missing = bytes.saturating_sub(start.len() as u64);
    mark_truncated(start.to_owned(), missing).into()
}
