//! Outcomes, as MCP answers them.

use rmcp::model::{CallToolResult, ContentBlock, ErrorData};
use serde::Deserialize;
use serde_json::json;
use toolgate_core::{Content, ToolError, ToolOutcome, ToolOutput};

/// A failure is a result with `isError`, so that a model reads it and does better. Only a tool that does not exist is an
/// error of the protocol, as MCP wants it.
pub(super) fn answer(outcome: ToolOutcome, modern: bool) -> Result<CallToolResult, ErrorData> {
    match outcome.result {
        Ok(output) => Ok(success(output, modern)),
        Err(ToolError::NotFound { .. }) => {
            let data = json!({ "error": outcome.error(), "error_kind": "not_found" });
            Err(ErrorData::invalid_params(
                outcome.to_model_text(),
                Some(data),
            ))
        }
        Err(_) => {
            let text = ContentBlock::text(outcome.to_model_text());
            Ok(CallToolResult::error(vec![text]))
        }
    }
}

fn success(output: ToolOutput, modern: bool) -> CallToolResult {
    let as_text = (output.content.is_empty() && output.structured.is_some())
        .then(|| ContentBlock::text(output.to_text()));
    let blocks = output.content.iter().map(block).chain(as_text);
    let mut result = CallToolResult::success(blocks.collect());
    // Up to 2025-11-25 it is an object; clients of that time refuse the whole result otherwise.
    result.structured_content = output
        .structured
        .filter(|value| modern || value.is_object());
    result
}

/// What is no block in rmcp's eyes is still told, as text.
fn block(content: &Content) -> ContentBlock {
    let value = content.as_value();
    ContentBlock::deserialize(value).unwrap_or_else(|_| ContentBlock::text(value.to_string()))
}
