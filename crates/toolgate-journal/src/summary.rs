//! One call in a list: what the journal has of it, and what is known of it while it runs here.

use jiff::Timestamp;
use rusqlite::Row;
use serde::Serialize;
use serde_json::Value;
use toolgate_core::{CallRecord, CallStarted, Redactor, Source, kept, marked};
use utoipa::ToSchema;

use crate::columns::{COUNT, column};
use crate::fields::{millis, number, parsed, text};
use crate::row::StartInfo;
use crate::runs::DeadRuns;
use crate::takeover::INTERRUPTED;
use crate::time;

/// What a summary reads beside the columns of a call. Of long arguments only the beginning is read.
pub(crate) const BESIDE: &str = "
    substr(coalesce(executed, asked), 1, 2049), octet_length(coalesce(executed, asked)),
    (SELECT command FROM runs WHERE runs.seq = calls.run)";
const ARGUMENTS: usize = COUNT;
const ARGUMENTS_BYTES: usize = COUNT + 1;
const COMMAND: usize = COUNT + 2;
/// The number of the first column after these.
pub(crate) const NEXT: usize = COUNT + 3;

/// One call in a list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = Call)]
#[non_exhaustive]
pub struct CallSummary {
    /// The call's id, 32 hexadecimal digits, sorted by time.
    #[schema(example = "0199f0c27b1a4fd2c39b5d0000000007")]
    pub id: String,
    /// The name that was asked for.
    #[schema(example = "echo")]
    pub tool: String,
    /// `builtin`, `mock`, `internal`, `custom` or `mcp:SERVER`; nothing if there was no tool of that name.
    #[schema(example = "builtin")]
    pub source: Option<String>,
    /// The MCP server behind it.
    pub server: Option<String>,
    /// What asked: `cli`, `chat`, `voice`, `http`, `mcp`, `library` or `worker`.
    #[schema(example = "http")]
    pub origin: String,
    /// The name of the token that was shown, where one is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "kitchen")]
    pub caller: Option<String>,
    /// The command that made the call, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "toolgate serve")]
    pub command: Option<String>,
    /// When, in UTC.
    #[serde(serialize_with = "time::serialize")]
    #[schema(value_type = String, example = "2026-11-16T05:30:00.000Z", format = DateTime)]
    pub started_at: Timestamp,
    /// Validation and execution, not the wait for a person; nothing while it runs or if it was interrupted.
    #[schema(example = 0.125)]
    pub duration_ms: Option<f64>,
    /// `success`, an error kind such as `timeout`, `running` or `interrupted`.
    #[schema(example = "success")]
    pub outcome: String,
    /// Nothing while it runs and if nobody knows.
    #[schema(example = true)]
    pub success: Option<bool>,
    /// The sentence for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error: Option<String>,
    /// As executed, or as asked if it did not come to that. A text if they are long, or were no JSON.
    #[schema(example = json!({ "text": "hello" }))]
    pub arguments: Value,
    /// How much JSON the result is.
    #[schema(example = 17)]
    pub result_bytes: Option<u64>,
}

impl CallSummary {
    pub(crate) fn read(row: &Row<'_>, dead: &DeadRuns) -> rusqlite::Result<Self> {
        let run = number(row, column!(run))?.unwrap_or(0);
        let outcome = match text(row, column!(outcome))? {
            Some(outcome) => outcome,
            None if dead.has(run) => "interrupted".to_owned(),
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
            arguments: shown(&arguments, bytes),
            result_bytes: number(row, column!(result_bytes))?.map(i64::unsigned_abs),
        })
    }

    /// A call that has begun, in a process that was started as `command`.
    pub fn started(call: &CallStarted, redactor: &Redactor, command: &str) -> Self {
        Self::running(&call.into(), redactor, command)
    }

    /// A call that has ended, in a process that was started as `command`.
    pub fn finished(record: &CallRecord, redactor: &Redactor, command: &str) -> Self {
        let redactor = &*redactor.of_call(&record.asked);
        let mut call = Self::running(&record.into(), redactor, command);
        call.duration_ms = Some(record.outcome.execution_time_ms());
        call.success = Some(record.outcome.is_success());
        match &record.outcome.result {
            Ok(output) => {
                "success".clone_into(&mut call.outcome);
                call.result_bytes = Some(kept::length(&output.to_result()));
            }
            Err(error) => {
                error.kind().as_str().clone_into(&mut call.outcome);
                call.error = Some(kept::text(redactor, &error.to_string()));
            }
        }
        call
    }

    fn running(call: &StartInfo<'_>, redactor: &Redactor, command: &str) -> Self {
        let arguments = call.executed.unwrap_or(call.asked);
        Self {
            id: call.id.to_string(),
            tool: kept::name(redactor, call.tool_name),
            source: call.source().map(Source::to_string),
            server: call.server(),
            origin: call.origin.to_string(),
            caller: call.caller.map(|name| kept::name(redactor, name)),
            command: (!command.is_empty()).then(|| command.to_owned()),
            started_at: time::timestamp(time::micros(call.started_at)),
            outcome: "running".to_owned(),
            arguments: kept::value(redactor, arguments, kept::SHOWN).0,
            ..Self::default()
        }
    }
}

/// Arguments for a list: whole if they are short.
fn shown(text: &str, bytes: u64) -> Value {
    if bytes <= kept::SHOWN as u64 {
        return parsed(text);
    }
    let start = &text[..text.floor_char_boundary(kept::SHOWN)];
    let missing = bytes.saturating_sub(start.len() as u64);
    marked(start.to_owned(), missing).into()
}
