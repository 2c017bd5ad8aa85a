//! How every call ends: one outcome, several renderings.

use std::time::Duration;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use crate::{CallId, ToolCall, ToolError, ToolOutput};

/// What came of a call. Serialized, it is the envelope `{success, result | error, tool_name, execution_time_ms, …}`.
///
/// ```
/// use serde_json::json;
/// use toolgate_core::{ToolCall, ToolError, ToolOutcome};
///
/// let outcome = ToolOutcome::refused(&ToolCall::new("echo", json!({})), ToolError::failed("Out of paper"));
/// let envelope = outcome.to_envelope();
/// assert_eq!((&envelope["success"], &envelope["error"]), (&json!(false), &json!("Out of paper")));
/// assert_eq!(outcome.to_model_text(), "Out of paper");
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolOutcome {
    /// Which call.
    pub call_id: CallId,
    /// The name that was asked for.
    pub tool_name: String,
    /// Validation and execution, not the wait for a person.
    pub elapsed: Duration,
    /// The tool's answer, or why there is none.
    pub result: Result<ToolOutput, ToolError>,
}

impl ToolOutcome {
    /// Of a call that was refused before it was executed.
    pub fn refused(call: &ToolCall, error: ToolError) -> Self {
        Self {
            call_id: call.id(),
            tool_name: call.name().to_owned(),
            elapsed: Duration::ZERO,
            result: Err(error),
        }
    }

    /// True if the tool answered.
    pub fn is_success(&self) -> bool {
        self.result.is_ok()
    }

    /// The sentence for a person, if it failed.
    pub fn error(&self) -> Option<String> {
        self.result.as_ref().err().map(ToString::to_string)
    }

    /// The execution time in milliseconds, fractions kept.
    pub fn execution_time_ms(&self) -> f64 {
        // Whole microseconds: more digits would be noise in every answer.
        self.elapsed.as_micros() as f64 / 1000.0
    }

    /// The envelope as JSON.
    pub fn to_envelope(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Text for a model: the answer, or what went wrong and what it needs to do better.
    pub fn to_model_text(&self) -> String {
        match &self.result {
            Ok(output) => output.to_text(),
            Err(ToolError::NotFound {
                name,
                known,
                nearest,
            }) => {
                let hint = ToolError::hint(&ToolError::NotFound {
                    name: String::new(),
                    known: Vec::new(),
                    nearest: nearest.clone(),
                });
                let hint = hint.map(|hint| format!(" {hint}")).unwrap_or_default();
                format!(
                    "Unknown tool: '{name}'.{hint} Available tools: {}",
                    listed(known)
                )
            }
            Err(error @ ToolError::InvalidArguments { required, .. }) if !required.is_empty() => {
                let required = required
                    .iter()
                    .map(|(name, kind)| format!("'{name}' ({kind})"))
                    .collect::<Vec<_>>();
                format!("{error}. Required parameters: {}", required.join(", "))
            }
            // A model that knows how can tell the person.
            Err(error @ ToolError::NeedsApproval { because, .. }) => {
                format!("{error}. {}", because.hint())
            }
            Err(error) => error.to_string(),
        }
    }

    /// A sentence to be spoken.
    pub fn to_speech(&self) -> String {
        match &self.result {
            Ok(output) => output.to_text(),
            Err(ToolError::NotFound { name, known, .. }) => {
                format!(
                    "I know of no tool called {name}. There are: {}.",
                    listed(known)
                )
            }
            Err(error) => error.to_string(),
        }
    }

    /// One line for an operator: everything, also what is kept from a model.
    pub fn to_operator_line(&self) -> String {
        let elapsed = self.execution_time_ms();
        let name = crate::escape(&self.tool_name);
        match &self.result {
            Ok(_) => format!("{name} ok in {elapsed} ms"),
            Err(error) => {
                let details = error
                    .details()
                    .map(|details| format!(" | {details}"))
                    .unwrap_or_default();
                crate::escape(&format!(
                    "{name} {} after {elapsed} ms: {}{details}",
                    error.kind(),
                    chain(error)
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

/// An error and its causes, for the log.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// Names for a text; nobody reads more than these.
fn listed(names: &[String]) -> String {
    const MOST: usize = 50;
    if names.is_empty() {
        return "none".to_owned();
    }
    let more = names.len().saturating_sub(MOST);
    let shown = names
        .iter()
        .take(MOST)
        .map(|name| crate::text::cut(name, 200))
        .collect::<Vec<_>>()
        .join(", ");
    if more > 0 {
        format!("{shown} and {more} more")
    } else {
        shown
    }
}
