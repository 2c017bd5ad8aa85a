//! Calls as the API shows them: secrets out, everything bounded.

use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde_json::Value;
use toolgate_core::{
    ApprovalRecord, CallId, CallRecord, CallStarted, Origin, Redactor, Source, Tool,
    ToolDefinition, ToolOutput, kept,
};
use toolgate_journal::{ApprovalInfo, CallSummary};
use utoipa::ToSchema;

use crate::api::tools::{ToolForm, ToolInfo};

/// One call in a list.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Call {
    /// The call's id, 32 hexadecimal digits, sorted by time.
    #[schema(example = "0199f0c27b1a4fd2c39b5d0000000007")]
    pub(crate) id: String,
    /// The name that was asked for.
    #[schema(example = "echo")]
    pub(crate) tool: String,
    /// `builtin`, `mock`, `internal`, `custom` or `mcp:SERVER`; nothing if there was no tool of that name.
    #[schema(example = "builtin")]
    pub(crate) source: Option<String>,
    /// The MCP server behind it.
    pub(crate) server: Option<String>,
    /// What asked: `cli`, `chat`, `voice`, `http`, `mcp`, `library` or `worker`.
    #[schema(example = "http")]
    pub(crate) origin: String,
    /// The name of the token that was shown, where one is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "kitchen")]
    pub(crate) caller: Option<String>,
    /// The command that made the call, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "toolgate serve")]
    pub(crate) command: Option<String>,
    /// When, in UTC.
    #[schema(example = "2026-11-16T05:30:00.000Z", format = DateTime)]
    pub(crate) started_at: String,
    /// Validation and execution, not the wait for a person; nothing while it runs or if it was interrupted.
    #[schema(example = 0.125)]
    pub(crate) duration_ms: Option<f64>,
    /// `success`, an error kind such as `timeout`, `running` or `interrupted`.
    #[schema(example = "success")]
    pub(crate) outcome: String,
    /// Nothing while it runs and if nobody knows.
    #[schema(example = true)]
    pub(crate) success: Option<bool>,
    /// The sentence for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) error: Option<String>,
    /// As executed, or as asked if it did not come to that. A text if they are long, or were no JSON.
    #[schema(example = json!({ "text": "hello" }))]
    pub(crate) arguments: Value,
    /// How much JSON the result is.
    #[schema(example = 17)]
    pub(crate) result_bytes: Option<u64>,
}

/// Everything that is known of one call.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct CallDetail {
    #[serde(flatten)]
    pub(crate) call: Call,
    /// The arguments as they were asked; a text if they were no JSON, or too long to keep.
    #[schema(example = json!({ "text": "hello" }))]
    pub(crate) asked: Value,
    /// The arguments after renaming and validation, if it came to that.
    #[schema(example = json!({ "text": "hello" }))]
    pub(crate) executed: Option<Value>,
    /// Who agreed to it or refused it, if somebody was asked and answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) approval: Option<ApprovalAnswer>,
    /// Parameters that were renamed: from, to.
    #[schema(example = json!([["device_name", "deviceName"]]))]
    pub(crate) renamed: Vec<(String, String)>,
    /// Parameters that counted as not given.
    #[schema(example = json!([]))]
    pub(crate) dropped: Vec<String>,
    pub(crate) timings: Steps,
    /// The result as in the envelope; a text with its end missing if `result_cut`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = json!({ "echo": { "text": "hello" } }))]
    pub(crate) result: Option<Value>,
    /// True if the result was too long to keep.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub(crate) result_cut: bool,
    /// Content blocks beside a structured result, if one of them is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<Value>,
    /// A next step for the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) hint: Option<String>,
    /// For an operator: the end of a server's stderr, the words of a panic. Only with the right to see all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) details: Option<String>,
    /// The trace it belongs to.
    #[schema(example = "0af7651916cd43dd8448eb211c80319c")]
    pub(crate) trace_id: Option<String>,
    /// The caller's span in that trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "b7ad6b7169203331")]
    pub(crate) parent_span_id: Option<String>,
    /// The process that ran it, if it was another than this one or is known to the journal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) run: Option<Run>,
    /// The tool as it is now, if it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<ToolForm>)]
    pub(crate) tool_definition: Option<ToolInfo>,
}

/// A person's answer to the question whether a call may run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct ApprovalAnswer {
    /// False if the call was refused.
    #[schema(example = true)]
    granted: bool,
    /// How the answer came: `terminal`, `option` (`--yes`), `browser`, `token`, `voice` or `program`.
    #[schema(example = "browser")]
    means: String,
    /// The name of who answered, where people are told apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "local operator")]
    by: Option<String>,
    /// When, in UTC.
    #[schema(example = "2026-11-16T05:30:10.000Z", format = DateTime)]
    at: String,
}

impl From<ApprovalInfo> for ApprovalAnswer {
    fn from(info: ApprovalInfo) -> Self {
        Self {
            granted: info.granted,
            means: info.means,
            by: info.by,
            at: info.at,
        }
    }
}

/// What is shown of an answer.
fn answer(approval: Option<&ApprovalRecord>, redactor: &Redactor) -> Option<ApprovalAnswer> {
    approval.map(|approval| ApprovalInfo::new(approval, redactor).into())
}

/// How long each step of a call took; nothing while it runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, ToSchema)]
pub(crate) struct Steps {
    /// Finding, renaming and validating.
    #[schema(example = 0.02)]
    pub(crate) check_ms: Option<f64>,
    /// Waiting for a person.
    #[schema(example = 0.0)]
    pub(crate) approval_ms: Option<f64>,
    /// Waiting for a free slot.
    #[schema(example = 0.0)]
    pub(crate) queue_ms: Option<f64>,
    /// The tool itself.
    #[schema(example = 0.1)]
    pub(crate) invoke_ms: Option<f64>,
}

/// A process that ran calls.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Run {
    /// Names the run.
    pub(crate) id: String,
    /// What it was started as.
    #[schema(example = "serve")]
    pub(crate) command: String,
    /// Its process id.
    #[schema(example = 4711)]
    pub(crate) pid: u32,
    /// The version of the program.
    #[schema(example = "0.1.0")]
    pub(crate) version: String,
    /// When, in UTC.
    #[schema(example = "2026-11-16T05:00:00.000Z", format = DateTime)]
    pub(crate) started_at: String,
}

/// What is known of a call from its beginning on.
struct Beginning<'a> {
    id: CallId,
    tool_name: &'a str,
    tool: Option<&'a ToolDefinition>,
    origin: Origin,
    caller: Option<&'a str>,
    command: &'a str,
    started_at: SystemTime,
    arguments: &'a Value,
}

impl Beginning<'_> {
    fn call(&self, redactor: &Redactor) -> Call {
        let source = self.tool.map(ToolDefinition::source);
        Call {
            id: self.id.to_string(),
            tool: kept::name(redactor, self.tool_name),
            source: source.map(Source::to_string),
            server: source.and_then(|source| match source {
                Source::Mcp(server) => Some(server.clone()),
                _ => None,
            }),
            origin: self.origin.to_string(),
            caller: self.caller.map(|name| kept::name(redactor, name)),
            command: (!self.command.is_empty()).then(|| self.command.to_owned()),
            started_at: timestamp(self.started_at),
            duration_ms: None,
            outcome: "running".to_owned(),
            success: None,
            error: None,
            arguments: kept::value(redactor, self.arguments, kept::SHOWN).0,
            result_bytes: None,
        }
    }
}

impl Call {
    /// A call that has begun, in a process that was started as `command`.
    pub(crate) fn started(call: &CallStarted, redactor: &Redactor, command: &str) -> Self {
        let beginning = Beginning {
            id: call.id,
            tool_name: &call.tool_name,
            tool: Some(call.tool.definition()),
            origin: call.origin,
            caller: call.caller.as_deref(),
            command,
            started_at: call.started_at,
            arguments: &call.executed,
        };
        beginning.call(redactor)
    }

    /// A call that has ended, in a process that was started as `command`.
    pub(crate) fn finished(record: &CallRecord, redactor: &Redactor, command: &str) -> Self {
        let redactor = &*redactor.of_call(&record.asked);
        let beginning = Beginning {
            id: record.outcome.call_id,
            tool_name: &record.outcome.tool_name,
            tool: record.tool.as_deref().map(Tool::definition),
            origin: record.origin,
            caller: record.caller.as_deref(),
            command,
            started_at: record.started_at,
            arguments: record.executed.as_ref().unwrap_or(&record.asked),
        };
        let mut call = beginning.call(redactor);
        call.duration_ms = Some(record.outcome.execution_time_ms());
        call.success = Some(record.outcome.is_success());
        match &record.outcome.result {
            Ok(output) => {
                "success".clone_into(&mut call.outcome);
                call.result_bytes = Some(json_length(&output.to_result()));
            }
            Err(error) => {
                error.kind().as_str().clone_into(&mut call.outcome);
                call.error = Some(kept::text(redactor, &error.to_string()));
            }
        }
        call
    }
}

impl CallDetail {
    /// A call that has begun.
    pub(crate) fn started(call: &CallStarted, redactor: &Redactor, command: &str) -> Self {
        Self {
            call: Call::started(call, redactor, command),
            asked: kept::value(redactor, &call.asked, kept::ARGUMENTS).0,
            executed: Some(kept::value(redactor, &call.executed, kept::ARGUMENTS).0),
            approval: answer(call.approval.as_ref(), redactor),
            renamed: Vec::new(),
            dropped: Vec::new(),
            timings: Steps::default(),
            result: None,
            result_cut: false,
            content: None,
            hint: None,
            details: None,
            trace_id: Some(call.trace.trace_id()),
            parent_span_id: call.trace.parent_id(),
            run: None,
            tool_definition: None,
        }
    }

    /// A call that has ended.
    pub(crate) fn finished(record: &CallRecord, redactor: &Redactor, command: &str) -> Self {
        let redactor = &*redactor.of_call(&record.asked);
        let arguments = |value: &Value| kept::value(redactor, value, kept::ARGUMENTS).0;
        let name = |name: &String| kept::name(redactor, name);
        let mut detail = Self {
            call: Call::finished(record, redactor, command),
            asked: arguments(&record.asked),
            executed: record.executed.as_deref().map(arguments),
            approval: answer(record.approval.as_ref(), redactor),
            renamed: record
                .renamed
                .iter()
                .map(|(from, to)| (name(from), name(to)))
                .collect(),
            dropped: record.dropped.iter().map(name).collect(),
            timings: Steps {
                check_ms: Some(millis(record.timings.check)),
                approval_ms: Some(millis(record.timings.approval)),
                queue_ms: Some(millis(record.timings.queue)),
                invoke_ms: Some(millis(record.timings.invoke)),
            },
            result: None,
            result_cut: false,
            content: None,
            hint: None,
            details: None,
            trace_id: Some(record.trace.trace_id()),
            parent_span_id: record.trace.parent_id(),
            run: None,
            tool_definition: None,
        };
        match &record.outcome.result {
            Ok(output) => detail.answered(output, redactor),
            Err(error) => {
                let text = |text: &str| kept::text(redactor, text);
                detail.hint = error.hint().as_deref().map(text);
                detail.details = error.details().map(text);
            }
        }
        detail
    }

    fn answered(&mut self, output: &ToolOutput, redactor: &Redactor) {
        let keep = |value: &Value| kept::value(redactor, value, kept::RESULT);
        let (result, is_cut) = keep(&output.to_result());
        self.result = Some(result);
        self.result_cut = is_cut;
        self.content = output.beside().map(|blocks| keep(&blocks).0);
    }
}

/// What the journal has of a call.
impl From<CallSummary> for Call {
    fn from(call: CallSummary) -> Self {
        Self {
            id: call.id,
            tool: call.tool,
            source: call.source,
            server: call.server,
            origin: call.origin,
            caller: call.caller,
            command: call.command,
            started_at: format!("{:.3}", call.started_at),
            duration_ms: call.duration_ms,
            outcome: call.outcome,
            success: call.success,
            error: call.error,
            arguments: call.arguments,
            result_bytes: call.result_bytes,
        }
    }
}

impl From<toolgate_journal::CallDetail> for CallDetail {
    fn from(call: toolgate_journal::CallDetail) -> Self {
        Self {
            call: call.summary.into(),
            asked: call.asked,
            executed: call.executed,
            approval: call.approval.map(ApprovalAnswer::from),
            renamed: call.renamed,
            dropped: call.dropped,
            timings: Steps {
                check_ms: call.timings.check_ms,
                approval_ms: call.timings.approval_ms,
                queue_ms: call.timings.queue_ms,
                invoke_ms: call.timings.invoke_ms,
            },
            result: call.result,
            result_cut: call.result_cut,
            content: call.content,
            hint: call.hint,
            details: call.details,
            trace_id: call.trace_id,
            parent_span_id: call.parent_span_id,
            run: call.run.map(|run| Run {
                id: run.id,
                command: run.command,
                pid: run.pid,
                version: run.version,
                started_at: format!("{:.3}", run.started_at),
            }),
            tool_definition: None,
        }
    }
}

/// The length of a value as compact JSON.
pub(crate) fn json_length(value: &Value) -> u64 {
    struct Count(u64);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting does not fail.
    drop(serde_json::to_writer(&mut count, value));
    count.0
}

/// RFC 3339 in UTC with milliseconds.
pub(crate) fn timestamp(time: SystemTime) -> String {
    let time = jiff::Timestamp::try_from(time).unwrap_or_default();
    format!("{time:.3}")
}

fn millis(time: Duration) -> f64 {
    time.as_micros() as f64 / 1000.0
}
