//! Interprets results and errors of servers.

use serde_json::Value;
use toolgate_core::text::escape;
use toolgate_core::{ServerFailure, ToolContent, ToolError, ToolOutput};

use super::session::SessionError;
use super::transport::{SessionEnd, UnreadableAnswer};

pub(crate) enum ServerAnswer {
    Complete(Value),
    /// Of a kind that an extension defines.
    Extension(Value),
    InputRequired {
        requests: Value,
        state: Value,
    },
    Task,
}

/// Tells a result from a request for input. A result of an unknown kind is a failure, unless
/// `is_shared` knows that its caller and its server share an extension with this kind.
pub(crate) fn parse_answer(
    tool: &str,
    mut result: Value,
    is_shared: impl FnOnce(&str) -> bool,
) -> Result<ServerAnswer, ToolError> {
    match result["resultType"].as_str() {
        None | Some("complete") => Ok(ServerAnswer::Complete(result)),
        Some("input_required") => Ok(ServerAnswer::InputRequired {
            requests: result["inputRequests"].take(),
            state: result["requestState"].take(),
        }),
        Some("task") => Ok(ServerAnswer::Task),
        Some(kind) if is_shared(kind) => Ok(ServerAnswer::Extension(result)),
        Some(other) => {
            let other: String = other.chars().take(50).collect();
            let problem = format!("a result of the unknown kind '{}'", escape(&other));
            Err(unreadable_error(tool, problem))
        }
    }
}

/// Parses the result of a tool. One that can't be understood becomes a failure.
pub(crate) fn parse_output(tool: &str, result: Value) -> Result<ToolOutput, ToolError> {
    let Value::Object(mut result) = result else {
        return Err(unreadable_error(
            tool,
            "the result is not an object".to_owned(),
        ));
    };
    let content = match result.shift_remove("content") {
        None => Vec::new(),
        Some(Value::Array(blocks)) if blocks.iter().all(Value::is_object) => {
            blocks.into_iter().map(ToolContent::from).collect()
        }
        Some(_) => {
            return Err(unreadable_error(
                tool,
                "its content is not a list of blocks".to_owned(),
            ));
        }
    };
    let is_error = result.shift_remove("isError") == Some(Value::Bool(true));
    let message = is_error.then(|| failure_text(&content));
    let mut output = ToolOutput::blocks(content);
    // Beside content blocks, `null` means that the structured result is missing.
    let is_answer = |value: &Value| !value.is_null() || output.content.is_empty();
    output.structured = result.shift_remove("structuredContent").filter(is_answer);
    output.meta = match result.shift_remove("_meta") {
        Some(Value::Object(meta)) if !meta.is_empty() => Some(meta),
        _ => None,
    };
    // It was interpreted before.
    result.shift_remove("resultType");
    output.extra = (!result.is_empty()).then(|| Box::new(result));
    match message {
        Some(message) => Err(ToolError::failed_with(
            message,
            ServerFailure::Result(output),
        )),
        None => Ok(output),
    }
}

pub(crate) fn unreadable_error(tool: &str, problem: String) -> ToolError {
    let text = format!("The server of '{tool}' sent an unreadable response");
    ToolError::failed(text).with_details(problem)
}

fn failure_text(content: &[ToolContent]) -> String {
    let texts: Vec<&str> = content.iter().filter_map(ToolContent::as_text).collect();
    if texts.iter().all(|text| text.trim().is_empty()) {
        return "The tool failed and did not say why".to_owned();
    }
    texts.join("\n")
}

pub(crate) fn with_details(error: ToolError, details: Option<String>) -> ToolError {
    match details {
        Some(details) => error.with_details(details),
        None => error,
    }
}

pub(crate) fn to_tool_error(server: &str, tool: &str, failure: SessionError) -> ToolError {
    match failure {
        SessionError::Rpc(error) => {
            let details = match &error.data {
                Value::Null => format!("JSON-RPC error {}", error.code),
                data => format!(
                    "JSON-RPC error {}: {}",
                    error.code,
                    data.to_string().chars().take(2000).collect::<String>()
                ),
            };
            let message = if error.message.trim().is_empty() {
                format!("The server refused the call (code {})", error.code)
            } else {
                error.message
            };
            let answer = ServerFailure::Rpc {
                code: error.code,
                data: (!error.data.is_null()).then_some(error.data),
            };
            ToolError::failed_with(message, answer).with_details(details)
        }
        SessionError::Stopped(SessionEnd { status, stderr }) => {
            let stderr = (!stderr.is_empty()).then(|| format!("stderr: {}", stderr.join("\n")));
            ToolError::ServerStopped {
                server: server.to_owned(),
                status: status.without_cause(),
                details: stderr.or_else(|| status.cause().map(str::to_owned)),
            }
        }
        SessionError::NotSent(reason) | SessionError::Interrupted(reason) => {
            let error = ToolError::unavailable(tool, reason.without_cause());
            with_details(error, reason.cause().map(str::to_owned))
        }
        SessionError::Refused { status, body } => {
            with_details(ToolError::unavailable(tool, status.to_string()), body)
        }
        SessionError::Unreadable(UnreadableAnswer::TooLarge { bytes, limit }) => {
            ToolError::TooLarge {
                tool: tool.to_owned(),
                what: "result",
                problem: format!("takes at least {bytes} bytes; the limit is {limit}"),
            }
        }
        SessionError::Unreadable(UnreadableAnswer::Broken(problem)) => {
            unreadable_error(tool, problem)
        }
    }
}
