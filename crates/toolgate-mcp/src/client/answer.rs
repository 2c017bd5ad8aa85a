//! What a server's answer to `tools/call` means.

use serde_json::Value;
use toolgate_core::{Content, ToolError, ToolOutput, escape};

use super::session::Failure;
use super::transport::{End, Lost};

pub(crate) enum Answer {
    Done(Result<ToolOutput, ToolError>),
    /// The server wants something first (modern era).
    Wants {
        requests: Value,
        /// Goes back as it came.
        state: Value,
    },
}

/// Reads a result. What is no result is a failure: an answer must not get lost in silence.
pub(crate) fn read(tool: &str, mut result: Value) -> Answer {
    match result["resultType"].as_str() {
        None | Some("complete") => Answer::Done(output(tool, result)),
        Some("input_required") => Answer::Wants {
            requests: result["inputRequests"].take(),
            state: result["requestState"].take(),
        },
        Some(other) => {
            let other: String = other.chars().take(50).collect();
            let problem = format!("a result of the unknown kind '{}'", escape(&other));
            Answer::Done(Err(unreadable(tool, problem)))
        }
    }
}

fn output(tool: &str, result: Value) -> Result<ToolOutput, ToolError> {
    let Value::Object(mut result) = result else {
        return Err(unreadable(tool, "the result is no object".to_owned()));
    };
    let content = match result.shift_remove("content") {
        None => Vec::new(),
        Some(Value::Array(blocks)) if blocks.iter().all(Value::is_object) => {
            blocks.into_iter().map(Content::from).collect()
        }
        Some(_) => {
            return Err(unreadable(
                tool,
                "its content is no list of blocks".to_owned(),
            ));
        }
    };
    if result.get("isError") == Some(&Value::Bool(true)) {
        return Err(ToolError::failed(failure_text(&content)));
    }
    let mut output = ToolOutput::blocks(content);
    // A null beside blocks is a field that was left empty, not an answer.
    let is_answer = |value: &Value| !value.is_null() || output.content.is_empty();
    output.structured = result.shift_remove("structuredContent").filter(is_answer);
    Ok(output)
}

fn unreadable(tool: &str, problem: String) -> ToolError {
    let text = format!("The server of '{tool}' gave an answer that can not be read");
    ToolError::failed(text).with_details(problem)
}

/// The server's own words, unchanged.
fn failure_text(content: &[Content]) -> String {
    let texts: Vec<&str> = content.iter().filter_map(Content::as_text).collect();
    if texts.iter().all(|text| text.trim().is_empty()) {
        return "The tool failed and did not say why".to_owned();
    }
    texts.join("\n")
}

pub(crate) fn failed(server: &str, tool: &str, failure: Failure) -> ToolError {
    match failure {
        Failure::Rpc(error) => {
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
            ToolError::failed(message).with_details(details)
        }
        Failure::Stopped(End { status, stderr }) => {
            let stderr = (!stderr.is_empty()).then(|| format!("stderr: {}", stderr.join("\n")));
            ToolError::ServerStopped {
                server: server.to_owned(),
                status: status.without_cause(),
                details: stderr.or_else(|| status.cause().map(str::to_owned)),
            }
        }
        Failure::NotSent(reason) | Failure::Interrupted(reason) => {
            let error = ToolError::unavailable(tool, reason.without_cause());
            match reason.cause() {
                Some(cause) => error.with_details(cause),
                None => error,
            }
        }
        Failure::Refused { status, body } => {
            let error = ToolError::unavailable(tool, status.to_string());
            match body {
                Some(body) => error.with_details(body),
                None => error,
            }
        }
        Failure::Lost(Lost::TooLarge { bytes, limit }) => ToolError::TooLarge {
            tool: tool.to_owned(),
            what: "result",
            problem: format!("takes at least {bytes} bytes; the limit is {limit}"),
        },
        Failure::Lost(Lost::Broken(problem)) => unreadable(tool, problem),
    }
}
