//! The rows that record a call. They are made in the task of the caller, with secrets redacted,
//! every length bounded, and JSON as text.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_core::{
    ApprovalRecord, CallId, CallRecord, CallStarted, Origin, Redactor, ToolDefinition, ToolOutput,
    ToolSource, TraceContext, sanitize,
};

use crate::task_rows::TaskRow;
use crate::time::{micros, whole_micros};
use crate::{ApprovalInfo, VoiceTurn, turn_store};

// Longer lists can't be real parameter names.
const MAX_CHANGES_BYTES: usize = 64 << 10;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JournalRow {
    Start(Box<StartRow>),
    End(Box<EndRow>),
    // Nobody waits for these, so they never go into a spool.
    #[serde(skip)]
    Turn(Box<VoiceTurn>),
    #[serde(skip)]
    Task(Box<TaskRow>),
}

/// A call that is about to run, or never did. Absent fields are left out of its line in the spool,
/// because calls wait for that line.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct StartRow {
    pub(crate) id: String,
    pub(crate) tool: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<String>,
    pub(crate) origin: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) caller: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trace_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent_span_id: Option<String>,
    pub(crate) started_at: i64,
    pub(crate) asked: String,
    pub(crate) executed: ExecutedArguments,
    /// An [`ApprovalInfo`] as JSON. Absent in the spool of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) approval: Option<String>,
    /// The tool declares that its effects can't be undone. Absent in the spool of an older version.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) destructive: bool,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExecutedArguments {
    #[serde(rename = "not")]
    NotExecuted,
    #[default]
    AsAsked,
    #[serde(rename = "otherwise")]
    Changed(String),
}

impl ExecutedArguments {
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Changed(text) => Some(text),
            Self::NotExecuted | Self::AsAsked => None,
        }
    }
}

/// How a call ended. Goes into the spool like its start.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct EndRow {
    pub(crate) id: String,
    pub(crate) outcome: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) details: Option<String>,
    pub(crate) duration: i64,
    pub(crate) check: i64,
    pub(crate) approval: i64,
    /// Absent in the spool of an older version.
    #[serde(default)]
    pub(crate) queue: Option<i64>,
    pub(crate) invoke: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) renamed: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dropped: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) result_bytes: Option<i64>,
    pub(crate) result_cut: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<String>,
    /// The start of a call that never ran, so that one row records both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) start: Option<Box<StartRow>>,
    /// The start of a call that did run, in case its own row was lost.
    #[serde(skip)]
    pub(crate) known: Option<Box<KnownStart>>,
}

pub(crate) struct StartInfo<'a> {
    pub(crate) id: CallId,
    pub(crate) tool_name: &'a str,
    tool: Option<&'a ToolDefinition>,
    pub(crate) origin: Origin,
    pub(crate) caller: Option<&'a str>,
    pub(crate) trace: &'a TraceContext,
    pub(crate) requested: &'a Arc<Value>,
    pub(crate) executed: Option<&'a Arc<Value>>,
    pub(crate) approval: Option<&'a ApprovalRecord>,
    pub(crate) started_at: SystemTime,
}

impl JournalRow {
    pub(crate) fn started(call: &CallStarted, redactor: &Redactor) -> Self {
        Self::Start(Box::new(StartRow::new(&call.into(), redactor)))
    }

    pub(crate) fn finished(record: &CallRecord, redactor: &Redactor) -> Self {
        Self::End(Box::new(EndRow::new(record, redactor)))
    }

    #[cfg(test)]
    pub(crate) fn sample() -> Self {
        Self::Start(Box::new(StartRow::sample(&"0".repeat(32))))
    }

    /// The approximate size in memory.
    pub(crate) fn bytes(&self) -> usize {
        const FIELDS: usize = 512;
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        match self {
            Self::Turn(turn) => FIELDS + turn_store::bytes(turn),
            Self::Task(task) => FIELDS + task.bytes(),
            Self::Start(row) => FIELDS + row.bytes(),
            Self::End(row) => {
                let start = row.start.as_ref().map_or(0, |start| start.bytes());
                let known = row.known.as_ref().map_or(0, |known| FIELDS + known.weight);
                let texts = [&row.error, &row.details, &row.result, &row.content];
                FIELDS + start + known + texts.into_iter().map(length).sum::<usize>()
            }
        }
    }
}

impl<'a> From<&'a CallStarted> for StartInfo<'a> {
    fn from(call: &'a CallStarted) -> Self {
        Self {
            id: call.id,
            tool_name: &call.tool_name,
            tool: Some(call.tool.definition()),
            origin: call.origin,
            caller: call.caller.as_deref(),
            trace: &call.trace,
            requested: &call.requested,
            executed: Some(&call.executed),
            approval: call.approval.as_ref(),
            started_at: call.started_at,
        }
    }
}

impl<'a> From<&'a CallRecord> for StartInfo<'a> {
    fn from(record: &'a CallRecord) -> Self {
        Self {
            id: record.outcome.call_id,
            tool_name: &record.outcome.tool_name,
            tool: record.definition(),
            origin: record.origin,
            caller: record.caller.as_deref(),
            trace: &record.trace,
            requested: &record.requested,
            executed: record.executed.as_ref(),
            approval: record.approval.as_ref(),
            started_at: record.started_at,
        }
    }
}

impl StartInfo<'_> {
    pub(crate) fn source(&self) -> Option<&ToolSource> {
        self.tool.map(ToolDefinition::source)
    }

    pub(crate) fn server(&self) -> Option<String> {
        match self.source()? {
            ToolSource::Mcp(server) => Some(server.clone()),
            _ => None,
        }
    }
}

/// The data of a start row, kept with the end row in case the start row was lost.
pub(crate) struct KnownStart {
    call: CallStarted,
    weight: usize,
}

impl KnownStart {
    fn new(call: CallStarted) -> Self {
        let weight = memory_size(&call.requested) + memory_size(&call.executed);
        Self { call, weight }
    }

    pub(crate) fn row(&self, redactor: &Redactor) -> StartRow {
        StartRow::new(&(&self.call).into(), redactor)
    }
}

impl StartRow {
    fn new(call: &StartInfo<'_>, redactor: &Redactor) -> Self {
        let keep = |value: &Value| sanitize::json(redactor, value, sanitize::MAX_ARGUMENTS).text;
        let approval = call
            .approval
            .map(|answer| ApprovalInfo::new(answer, redactor));
        let is_destructive = |tool: &ToolDefinition| tool.annotations().destructive == Some(true);
        Self {
            id: call.id.to_string(),
            // Escaped: people read this column with other programs.
            tool: sanitize::name(redactor, call.tool_name),
            source: call.source().map(ToolSource::to_string),
            server: call.server(),
            origin: call.origin.as_str().into(),
            caller: call.caller.map(|caller| sanitize::name(redactor, caller)),
            trace_id: Some(call.trace.trace_id()),
            parent_span_id: call.trace.parent_id(),
            started_at: micros(call.started_at),
            asked: keep(call.requested),
            executed: match call.executed {
                None => ExecutedArguments::NotExecuted,
                // Most calls run with the arguments as they were asked, so these are stored once.
                Some(same) if Arc::ptr_eq(call.requested, same) || call.requested == same => {
                    ExecutedArguments::AsAsked
                }
                Some(executed) => ExecutedArguments::Changed(keep(executed)),
            },
            // A struct of texts is always JSON.
            approval: approval.and_then(|info| serde_json::to_string(&info).ok()),
            destructive: call.tool.is_some_and(is_destructive),
        }
    }

    #[cfg(test)]
    pub(crate) fn sample(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            tool: id.to_owned(),
            origin: "library".into(),
            started_at: 1,
            asked: "{}".to_owned(),
            ..Self::default()
        }
    }

    fn bytes(&self) -> usize {
        self.asked.len() + self.executed.text().map_or(0, str::len)
    }
}

impl EndRow {
    fn new(record: &CallRecord, redactor: &Redactor) -> Self {
        let redactor = &*redactor.for_call(&record.requested);
        let text = |text: &str| sanitize::text(redactor, text);
        let known = record.to_started().map(KnownStart::new);
        let start = || Box::new(StartRow::new(&record.into(), redactor));
        let start = known.is_none().then(start);
        let mut row = Self {
            id: record.outcome.call_id.to_string(),
            outcome: "success".into(),
            duration: whole_micros(record.outcome.elapsed),
            check: whole_micros(record.timings.check),
            approval: whole_micros(record.timings.approval),
            queue: Some(whole_micros(record.timings.queue)),
            invoke: whole_micros(record.timings.invoke),
            renamed: redacted_names(redactor, &record.renamed),
            dropped: redacted_names(redactor, &record.dropped),
            start,
            known: known.map(Box::new),
            ..Self::default()
        };
        match &record.outcome.result {
            Ok(output) => row.set_result(output, redactor),
            Err(error) => {
                row.outcome = error.kind().as_str().into();
                row.error = Some(text(&error.to_string()));
                row.hint = error.hint().as_deref().map(text);
                row.details = error.details().map(text);
            }
        }
        row
    }

    fn set_result(&mut self, output: &ToolOutput, redactor: &Redactor) {
        let keep = |value: &Value| sanitize::json(redactor, value, sanitize::MAX_RESULT);
        let result = match &output.structured {
            Some(value) => keep(value),
            None => keep(&output.to_result()),
        };
        self.result_bytes = i64::try_from(result.bytes).ok();
        self.result_cut = result.is_cut;
        self.result = Some(result.text);
        self.content = output.extra_content().map(|blocks| keep(&blocks).text);
    }
}

// Redacted, because names that a model or a server chose may contain secrets too.
fn redacted_names<T: Serialize>(redactor: &Redactor, names: &[T]) -> Option<String> {
    if names.is_empty() {
        return None;
    }
    let names = serde_json::to_value(names).unwrap_or_default();
    Some(redactor.compact(&names, MAX_CHANGES_BYTES).0)
}

fn memory_size(value: &Value) -> usize {
    const NODE: usize = 32;
    NODE + match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(memory_size).sum(),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| NODE + name.len() + memory_size(value);
            fields.iter().map(field).sum()
        }
        _ => 0,
    }
}
