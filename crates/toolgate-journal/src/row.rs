//! What is kept of a call, made on the caller's side: secrets out, everything bounded, JSON as text.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_core::{
    ApprovalRecord, CallId, CallRecord, CallStarted, Origin, Redactor, Source, ToolDefinition,
    ToolOutput, Trace, kept,
};

use crate::time::{micros, whole_micros};
use crate::{ApprovalInfo, VoiceTurn, turns};

/// Names of parameters beyond this are no names.
const LONGEST_CHANGES: usize = 64 << 10;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Row {
    Start(Box<StartRow>),
    End(Box<EndRow>),
    /// Nobody waits for these: they never come into a spool.
    #[serde(skip)]
    Turn(Box<VoiceTurn>),
}

/// A call that is about to run, or never did. What it lacks is left out of its line in the spool: calls wait for that.
#[derive(Serialize, Deserialize)]
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
    /// Only where they differ from what was asked.
    pub(crate) executed: Executed,
    /// An [`ApprovalInfo`] as JSON. Nothing in the spool of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) approval: Option<String>,
    /// The tool says of itself that what it does can't be undone. Nothing in the spool of an older version.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) destructive: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Executed {
    Not,
    AsAsked,
    Otherwise(String),
}

impl Executed {
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Otherwise(text) => Some(text),
            Self::Not | Self::AsAsked => None,
        }
    }
}

/// How a call ended, in the spool like its start.
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
    /// Nothing in the spool of an older version.
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
    /// Of a call that never started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) start: Option<Box<StartRow>>,
    /// Of one that did, for the case that its start was lost.
    #[serde(skip)]
    pub(crate) known: Option<Box<Known>>,
}

/// What is known of a call from its beginning on.
pub(crate) struct StartInfo<'a> {
    pub(crate) id: CallId,
    pub(crate) tool_name: &'a str,
    tool: Option<&'a ToolDefinition>,
    pub(crate) origin: Origin,
    pub(crate) caller: Option<&'a str>,
    pub(crate) trace: &'a Trace,
    pub(crate) asked: &'a Arc<Value>,
    pub(crate) executed: Option<&'a Arc<Value>>,
    pub(crate) approval: Option<&'a ApprovalRecord>,
    pub(crate) started_at: SystemTime,
}

impl Row {
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

    /// Roughly what it takes in memory.
    pub(crate) fn bytes(&self) -> usize {
        const FIELDS: usize = 512;
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        match self {
            Self::Turn(turn) => FIELDS + turns::bytes(turn),
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
            asked: &call.asked,
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
            asked: &record.asked,
            executed: record.executed.as_ref(),
            approval: record.approval.as_ref(),
            started_at: record.started_at,
        }
    }
}

impl StartInfo<'_> {
    pub(crate) fn source(&self) -> Option<&Source> {
        self.tool.map(ToolDefinition::source)
    }

    pub(crate) fn server(&self) -> Option<String> {
        match self.source()? {
            Source::Mcp(server) => Some(server.clone()),
            _ => None,
        }
    }
}

/// What a start row is made of, kept for as long as the row of its end.
pub(crate) struct Known {
    call: CallStarted,
    /// Roughly what its arguments take in memory.
    weight: usize,
}

impl Known {
    fn new(call: CallStarted) -> Self {
        let weight = weight(&call.asked) + weight(&call.executed);
        Self { call, weight }
    }

    pub(crate) fn row(&self, redactor: &Redactor) -> StartRow {
        StartRow::new(&(&self.call).into(), redactor)
    }
}

impl StartRow {
    fn new(call: &StartInfo<'_>, redactor: &Redactor) -> Self {
        let keep = |value: &Value| kept::json(redactor, value, kept::ARGUMENTS).text;
        let approval = call
            .approval
            .map(|answer| ApprovalInfo::new(answer, redactor));
        let is_destructive = |tool: &ToolDefinition| tool.annotations().destructive == Some(true);
        Self {
            id: call.id.to_string(),
            // Escaped: people read this column with other programs.
            tool: kept::name(redactor, call.tool_name),
            source: call.source().map(Source::to_string),
            server: call.server(),
            origin: call.origin.as_str().into(),
            caller: call.caller.map(|caller| kept::name(redactor, caller)),
            trace_id: Some(call.trace.trace_id()),
            parent_span_id: call.trace.parent_id(),
            started_at: micros(call.started_at),
            asked: keep(call.asked),
            executed: match call.executed {
                None => Executed::Not,
                Some(same) if Arc::ptr_eq(call.asked, same) || call.asked == same => {
                    Executed::AsAsked
                }
                Some(executed) => Executed::Otherwise(keep(executed)),
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
            source: None,
            server: None,
            origin: "library".into(),
            caller: None,
            trace_id: None,
            parent_span_id: None,
            started_at: 1,
            asked: "{}".to_owned(),
            executed: Executed::AsAsked,
            approval: None,
            destructive: false,
        }
    }

    fn bytes(&self) -> usize {
        self.asked.len() + self.executed.text().map_or(0, str::len)
    }
}

impl EndRow {
    fn new(record: &CallRecord, redactor: &Redactor) -> Self {
        let redactor = &*redactor.of_call(&record.asked);
        let text = |text: &str| kept::text(redactor, text);
        let known = record.start().map(Known::new);
        let start = match &known {
            None => Some(Box::new(StartRow::new(&record.into(), redactor))),
            Some(_) => None,
        };
        let mut row = Self {
            id: record.outcome.call_id.to_string(),
            outcome: "success".into(),
            duration: whole_micros(record.outcome.elapsed),
            check: whole_micros(record.timings.check),
            approval: whole_micros(record.timings.approval),
            queue: Some(whole_micros(record.timings.queue)),
            invoke: whole_micros(record.timings.invoke),
            renamed: list(redactor, &record.renamed),
            dropped: list(redactor, &record.dropped),
            start,
            known: known.map(Box::new),
            ..Self::default()
        };
        match &record.outcome.result {
            Ok(output) => row.answered(output, redactor),
            Err(error) => {
                row.outcome = error.kind().as_str().into();
                row.error = Some(text(&error.to_string()));
                row.hint = error.hint().as_deref().map(text);
                row.details = error.details().map(text);
            }
        }
        row
    }

    fn answered(&mut self, output: &ToolOutput, redactor: &Redactor) {
        let keep = |value: &Value| kept::json(redactor, value, kept::RESULT);
        let result = match &output.structured {
            Some(value) => keep(value),
            None => keep(&output.to_result()),
        };
        self.result_bytes = i64::try_from(result.bytes).ok();
        self.result_cut = result.is_cut;
        self.result = Some(result.text);
        self.content = output.beside().map(|blocks| keep(&blocks).text);
    }
}

/// A JSON list of names; nothing if it is empty. Names that models and servers made up may be secrets too.
fn list<T: Serialize>(redactor: &Redactor, names: &[T]) -> Option<String> {
    if names.is_empty() {
        return None;
    }
    let names = serde_json::to_value(names).unwrap_or_default();
    Some(redactor.compact(&names, LONGEST_CHANGES).0)
}

/// Roughly what a value takes in memory.
fn weight(value: &Value) -> usize {
    const NODE: usize = 32;
    NODE + match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| NODE + name.len() + weight(value);
            fields.iter().map(field).sum()
        }
        _ => 0,
    }
}
