//! [`ToolOutcome`]: how a call ended, and its text for programs, models, speech and operators.

use std::time::Duration;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use crate::text::{escape, escape_truncated, join};
use crate::{CallId, ToolCall, ToolError, ToolOutput};

/// How a call ended. It serializes to the envelope
/// `{success, result | error, tool_name, execution_time_ms, …}`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolOutcome {
    pub call_id: CallId,
    /// The name that the caller used.
    pub tool_name: String,
    /// Time for validation and execution. It excludes the wait for a person's approval.
    pub elapsed: Duration,
    pub result: Result<ToolOutput, ToolError>,
}

impl ToolOutcome {
    /// Creates the outcome of a call that was rejected before it reached an executor.
    pub fn rejected(call: &ToolCall, error: ToolError) -> Self {
        Self {
            call_id: call.id(),
            tool_name: call.name().to_owned(),
            elapsed: Duration::ZERO,
            result: Err(error),
        }
    }

    pub fn is_success(&self) -> bool {
        self.result.is_ok()
    }

    pub fn error(&self) -> Option<String> {
        self.result.as_ref().err().map(ToString::to_string)
    }

    /// The execution time in milliseconds, with microseconds as the fraction.
    pub fn execution_time_ms(&self) -> f64 {
        // Whole microseconds: more digits would be noise in every answer.
        self.elapsed.as_micros() as f64 / 1000.0
    }

    pub fn to_envelope(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Text for a model: the result, or the error and how to correct the call.
    pub fn to_model_text(&self) -> String {
        match &self.result {
            Ok(output) => output.to_text(),
            Err(error @ ToolError::NotFound { name, known, .. }) => {
                let hint = error.hint().map(|hint| format!(" {hint}"));
                let (hint, known) = (hint.unwrap_or_default(), join_names(known));
                format!("Unknown tool: '{name}'.{hint} Available tools: {known}")
            }
            Err(error @ ToolError::InvalidArguments { required, .. }) if !required.is_empty() => {
                let required = required.iter();
                let required = required.map(|(name, kind)| format!("'{name}' ({kind})"));
                format!("{error}. Required parameters: {}", join(required, ", "))
            }
            // With the hint, a model can tell the person how to approve the call.
            Err(error @ ToolError::NeedsApproval { because, .. }) => {
                format!("{error}. {}", because.hint())
            }
            Err(error) => error.to_string(),
        }
    }

    /// Text to be spoken: the result or the error.
    pub fn to_speech(&self) -> String {
        match &self.result {
            Ok(output) => output.to_text(),
            Err(ToolError::NotFound { name, known, .. }) => {
                let known = join_names(known);
                format!("There is no tool called {name}. I have: {known}.")
            }
            Err(error) => error.to_string(),
        }
    }

    /// One line for an operator, with the causes and details that a model never sees.
    pub fn to_operator_line(&self) -> String {
        let elapsed = self.execution_time_ms();
        let name = escape(&self.tool_name);
        match &self.result {
            Ok(_) => format!("{name} ok in {elapsed} ms"),
            Err(error) => {
                let details = error.details().map(|details| format!(" | {details}"));
                let (kind, details) = (error.kind(), details.unwrap_or_default());
                let chain = error_chain(error);
                escape(&format!(
                    "{name} {kind} after {elapsed} ms: {chain}{details}"
                ))
            }
        }
    }
}

impl Serialize for ToolOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut envelope = serializer.serialize_map(None)?;
        envelope.serialize_entry("success", &self.is_success())?;
        match &self.result {
            Ok(output) => envelope.serialize_entry("result", &*output.as_result())?,
            Err(error) => envelope.serialize_entry("error", &error.to_string())?,
        }
        envelope.serialize_entry("tool_name", &self.tool_name)?;
        envelope.serialize_entry("execution_time_ms", &self.execution_time_ms())?;
        envelope.serialize_entry("call_id", &self.call_id.to_string())?;
        if let Err(error) = &self.result {
            envelope.serialize_entry("error_kind", error.kind().as_str())?;
            if let Some(hint) = error.hint() {
                envelope.serialize_entry("hint", &hint)?;
            }
            if let Some(details) = error.details() {
                envelope.serialize_entry("details", details)?;
            }
        }
        envelope.end()
    }
}

/// Formats an error and all of its causes on one line, for operators.
pub fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

// Not all of thousands of tools: a model gets the names it probably meant from the hint.
fn join_names(names: &[String]) -> String {
    const MAX_LISTED: usize = 50;
    if names.is_empty() {
        return "none".to_owned();
    }
    let more = names.len().saturating_sub(MAX_LISTED);
    let shown = names.iter().take(MAX_LISTED);
    let shown = join(shown.map(|name| escape_truncated(name, 200)), ", ");
    match more {
        0 => shown,
        _ => format!("{shown} and {more} more"),
    }
}
