//! [`CallDetail`]: everything about one call, from the journal or while it runs in this process.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_core::{ApprovalRecord, CallRecord, CallStarted, Redactor, ToolOutput, sanitize};
use utoipa::ToSchema;

use crate::columns::column;
use crate::fields::{json, list, millis, number, text};
use crate::row::StartInfo;
use crate::runs::DeadRuns;
use crate::{CallSummary, time};

/// Everything that is known of one call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = RecordedCall)]
#[non_exhaustive]
pub struct CallDetail {
    #[serde(flatten)]
    pub summary: CallSummary,
    /// The arguments as they were requested. A string if they were not JSON, or too long to keep.
    #[serde(rename = "asked")]
    #[schema(example = json!({ "text": "hello" }))]
    pub requested: Value,
    /// The arguments after renaming and validation, if the call got that far.
    #[schema(example = json!({ "text": "hello" }))]
    pub executed: Option<Value>,
    /// Who approved or denied the call, if a person was asked and answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub approval: Option<ApprovalInfo>,
    /// Parameters that were renamed, as pairs of old and new name.
    #[schema(example = json!([["device_name", "deviceName"]]))]
    pub renamed: Vec<(String, String)>,
    /// Parameters that were dropped because they counted as not given.
    #[schema(example = json!([]))]
    pub dropped: Vec<String>,
    /// How long each step took.
    pub timings: StepTimes,
    /// The result as in the envelope; a truncated string if `result_cut`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = json!({ "echo": { "text": "hello" } }))]
    pub result: Option<Value>,
    /// True if the result was too long to keep.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub result_cut: bool,
    /// Content blocks besides a structured result, if one of them is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
    /// What the caller can do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub hint: Option<String>,
    /// For an operator: the end of a server's stderr, the message of a panic. Shown only to callers
    /// that may see everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub details: Option<String>,
    /// The id of the call's trace.
    #[schema(example = "0af7651916cd43dd8448eb211c80319c")]
    pub trace_id: Option<String>,
    /// The caller's span in that trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "b7ad6b7169203331")]
    pub parent_span_id: Option<String>,
    /// The process that ran the call, if the journal knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub run: Option<RunInfo>,
}

impl CallDetail {
    /// Leaves out the run, which [`RunInfo::read`] reads.
    pub(crate) fn read(row: &Row<'_>, dead: &DeadRuns) -> rusqlite::Result<Self> {
        let requested = json(row, column!(asked))?.unwrap_or_default();
        let executed = match number(row, column!(is_as_asked))? {
            Some(1) => Some(requested.clone()),
            _ => json(row, column!(executed))?,
        };
        let approval = text(row, column!(approval))?;
        Ok(Self {
            summary: CallSummary::read(row, dead)?,
            requested,
            executed,
            approval: approval.and_then(|text| serde_json::from_str(&text).ok()),
            renamed: list(row, column!(renamed))?,
            dropped: list(row, column!(dropped))?,
            timings: StepTimes {
                check_ms: millis(row, column!(check_time))?,
                approval_ms: millis(row, column!(approval_time))?,
                queue_ms: millis(row, column!(queue_time))?,
                invoke_ms: millis(row, column!(invoke_time))?,
            },
            result: json(row, column!(result))?,
            result_cut: number(row, column!(result_cut))? == Some(1),
            content: json(row, column!(content))?,
            hint: text(row, column!(hint))?,
            details: text(row, column!(details))?,
            trace_id: text(row, column!(trace_id))?,
            parent_span_id: text(row, column!(parent_span_id))?,
            run: None,
        })
    }

    /// A call that started in this process, which was started as `command`.
    pub fn started(call: &CallStarted, redactor: &Redactor, command: &str) -> Self {
        let summary = CallSummary::started(call, redactor, command);
        Self::running(summary, &call.into(), redactor)
    }

    /// A call that has ended in this process, which was started as `command`.
    pub fn finished(record: &CallRecord, redactor: &Redactor, command: &str) -> Self {
        let redactor = &*redactor.for_call(&record.requested);
        let name = |name: &String| sanitize::name(redactor, name);
        let pair = |(from, to): &(String, String)| (name(from), name(to));
        let millis = |time| Some(time::whole_micros(time) as f64 / 1000.0);
        let summary = CallSummary::finished(record, redactor, command);
        let mut call = Self {
            renamed: record.renamed.iter().map(pair).collect(),
            dropped: record.dropped.iter().map(name).collect(),
            timings: StepTimes {
                check_ms: millis(record.timings.check),
                approval_ms: millis(record.timings.approval),
                queue_ms: millis(record.timings.queue),
                invoke_ms: millis(record.timings.invoke),
            },
            ..Self::running(summary, &record.into(), redactor)
        };
        match &record.outcome.result {
            Ok(output) => call.set_result(output, redactor),
            Err(error) => {
                let text = |text: &str| sanitize::text(redactor, text);
                call.hint = error.hint().as_deref().map(text);
                call.details = error.details().map(text);
            }
        }
        call
    }

    fn running(summary: CallSummary, call: &StartInfo<'_>, redactor: &Redactor) -> Self {
        let arguments = |value: &Value| sanitize::value(redactor, value, sanitize::MAX_ARGUMENTS).0;
        Self {
            summary,
            requested: arguments(call.requested),
            executed: call.executed.map(|value| arguments(value)),
            approval: call
                .approval
                .map(|answer| ApprovalInfo::new(answer, redactor)),
            trace_id: Some(call.trace.trace_id()),
            parent_span_id: call.trace.parent_id(),
            ..Self::default()
        }
    }

    fn set_result(&mut self, output: &ToolOutput, redactor: &Redactor) {
        let keep = |value: &Value| sanitize::value(redactor, value, sanitize::MAX_RESULT);
        let (result, is_cut) = keep(&output.to_result());
        self.result = Some(result);
        self.result_cut = is_cut;
        self.content = output.extra_content().map(|blocks| keep(&blocks).0);
    }
}

/// A person's answer to the question whether a call may run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ApprovalAnswer)]
#[non_exhaustive]
pub struct ApprovalInfo {
    /// False if the call was denied.
    #[schema(example = true)]
    pub granted: bool,
    /// How the answer was given: `terminal`, `option` (`--yes`), `browser`,
    /// `token`, `voice` or `program`.
    #[schema(example = "browser")]
    #[serde(rename = "means")]
    pub channel: String,
    /// The name of the person who answered, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "local operator")]
    pub by: Option<String>,
    /// The time, in UTC with milliseconds.
    #[schema(example = "2026-11-16T05:30:10.000Z", format = DateTime)]
    pub at: String,
}

impl ApprovalInfo {
    pub(crate) fn new(approval: &ApprovalRecord, redactor: &Redactor) -> Self {
        let name = approval.by.name.as_deref();
        let at = Timestamp::try_from(approval.at).unwrap_or_default();
        Self {
            granted: approval.granted,
            channel: approval.by.channel.to_string(),
            by: name.map(|name| sanitize::name(redactor, name)),
            at: format!("{at:.3}"),
        }
    }
}

/// How long each step of a call took, in milliseconds. Absent while it runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = Steps)]
#[non_exhaustive]
pub struct StepTimes {
    /// Finding the tool, renaming and validating arguments.
    #[schema(example = 0.02)]
    pub check_ms: Option<f64>,
    /// Waiting for a person's approval.
    #[schema(example = 0.0)]
    pub approval_ms: Option<f64>,
    /// Waiting for a free slot.
    #[schema(example = 0.0)]
    pub queue_ms: Option<f64>,
    /// Running the tool itself.
    #[schema(example = 0.1)]
    pub invoke_ms: Option<f64>,
}

/// A process that ran calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Run)]
#[non_exhaustive]
pub struct RunInfo {
    /// The id of this run.
    pub id: String,
    /// The command it was started as.
    #[schema(example = "serve")]
    pub command: String,
    /// The id of the operating system's process.
    #[schema(example = 4711)]
    pub pid: u32,
    /// The version of the program that ran.
    #[schema(example = "0.1.0")]
    pub version: String,
    /// The time, in UTC with milliseconds.
    #[serde(serialize_with = "time::serialize")]
    #[schema(value_type = String, example = "2026-11-16T05:00:00.000Z", format = DateTime)]
    pub started_at: Timestamp,
}

impl RunInfo {
    pub(crate) fn read(connection: &Connection, run: i64) -> rusqlite::Result<Option<Self>> {
        let sql = "SELECT id, command, pid, version, started_at FROM runs WHERE seq = ?";
        let info = connection.query_row(sql, [run], |row| {
            let pid = number(row, "pid")?.and_then(|pid| pid.try_into().ok());
            Ok(Self {
                id: text(row, "id")?.unwrap_or_default(),
                command: text(row, "command")?.unwrap_or_default(),
                pid: pid.unwrap_or(0),
                version: text(row, "version")?.unwrap_or_default(),
                started_at: time::timestamp(number(row, "started_at")?.unwrap_or(0)),
            })
        });
        info.optional()
    }
}
