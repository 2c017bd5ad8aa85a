//! What a reader gets: calls as JSON.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_core::{ApprovalRecord, Redactor, kept};

use crate::time;

/// One call in a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CallSummary {
    /// The call's id, 32 hexadecimal digits, sorted by time.
    pub id: String,
    /// The name that was asked for.
    pub tool: String,
    /// Where the tool comes from; nothing if there was none of that name.
    pub source: Option<String>,
    /// The MCP server behind it.
    pub server: Option<String>,
    /// What asked.
    pub origin: String,
    /// The name of who asked, where callers are told apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// The command that made the call, such as `toolgate chat`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// When.
    #[serde(serialize_with = "time::serialize")]
    pub started_at: Timestamp,
    /// Validation and execution, not the wait for a person; nothing while it runs or if it was interrupted.
    pub duration_ms: Option<f64>,
    /// `success`, an error kind, `running` or `interrupted`.
    pub outcome: String,
    /// Nothing while it runs and if nobody knows.
    pub success: Option<bool>,
    /// The sentence for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// As executed, or as asked if it did not come to that. A text if they are long, or were no JSON.
    pub arguments: Value,
    /// How much JSON the result is.
    pub result_bytes: Option<u64>,
}

/// Everything that is known of one call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CallDetail {
    /// What the list has.
    #[serde(flatten)]
    pub summary: CallSummary,
    /// The arguments as they were asked; a text if they were no JSON, or too long to keep.
    pub asked: Value,
    /// The arguments after renaming and validation, if it came to that.
    pub executed: Option<Value>,
    /// Who agreed to it or refused it, if somebody was asked and answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalInfo>,
    /// Parameters that were renamed.
    pub renamed: Vec<(String, String)>,
    /// Parameters that counted as not given.
    pub dropped: Vec<String>,
    /// How long each step took.
    pub timings: StepTimes,
    /// The result as in the envelope; a text with its end missing if `result_cut`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// True if the result was too long to keep.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub result_cut: bool,
    /// Content blocks beside a structured result, if one of them is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
    /// A next step for the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// For an operator only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    /// The trace it belongs to.
    pub trace_id: Option<String>,
    /// The caller's span in that trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_span_id: Option<String>,
    /// The process that ran it.
    pub run: Option<RunInfo>,
}

/// A person's answer to the question whether a call may run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ApprovalInfo {
    /// False if the call was refused.
    pub granted: bool,
    /// How the answer came: `terminal`, `option`, `browser`, `token`, `voice` or `program`.
    pub means: String,
    /// The name of who answered, where people are told apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When, in UTC.
    pub at: String,
}

impl ApprovalInfo {
    /// What is kept of an answer.
    pub fn new(approval: &ApprovalRecord, redactor: &Redactor) -> Self {
        let name = approval.by.name.as_deref();
        let at = Timestamp::try_from(approval.at).unwrap_or_default();
        Self {
            granted: approval.granted,
            means: approval.by.means.to_string(),
            by: name.map(|name| kept::name(redactor, name)),
            at: format!("{at:.3}"),
        }
    }
}

/// How long each step of a call took; nothing while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StepTimes {
    /// Finding, renaming and validating.
    pub check_ms: Option<f64>,
    /// Waiting for a person.
    pub approval_ms: Option<f64>,
    /// Waiting for a free slot; nothing of calls that an older version recorded.
    pub queue_ms: Option<f64>,
    /// The tool itself.
    pub invoke_ms: Option<f64>,
}

/// A process that ran calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RunInfo {
    /// Names the run.
    pub id: String,
    /// What it was started as.
    pub command: String,
    /// Its process id.
    pub pid: u32,
    /// The version of the program.
    pub version: String,
    /// When.
    #[serde(serialize_with = "time::serialize")]
    pub started_at: Timestamp,
}
