//! Outcomes, as MCP answers them.

use rmcp::model::{CallToolResult, ContentBlock};
use serde::Deserialize;
use serde_json::Value;
use toolgate_core::{Content, ToolError, ToolOutcome, ToolOutput};

/// A failure is a result with `isError`, so that a model reads it and does better; also where there is no such tool, which MCP
/// would let us answer with an error of the protocol that most clients keep from the model.
pub(super) fn answer(outcome: ToolOutcome, modern: bool) -> CallToolResult {
    match outcome.result {
        Ok(output) => success(output, modern),
        Err(_) => CallToolResult::error(vec![ContentBlock::text(failure(&outcome))]),
    }
}

/// The error as it stands in the envelope, and what helps beyond it: a model's text says the same of an unknown tool in other
/// words, and of an approval nothing at all.
fn failure(outcome: &ToolOutcome) -> String {
    let Err(error) = &outcome.result else {
        return String::new();
    };
    let advice = outcome.to_model_text();
    let beyond = match error {
        ToolError::NotFound { name, .. } => {
            let same = format!("Unknown tool: '{name}'. ");
            Some(advice.strip_prefix(&same).unwrap_or(&advice).to_owned())
        }
        ToolError::Denied { .. } | ToolError::Withheld { .. } => error.hint(),
        _ => return advice,
    };
    match beyond {
        Some(beyond) => format!("{error}. {beyond}"),
        None => error.to_string(),
    }
}

fn success(output: ToolOutput, modern: bool) -> CallToolResult {
    let as_text = (output.content.is_empty() && output.structured.is_some())
        .then(|| ContentBlock::text(output.to_text()));
    let blocks = output.content.into_iter().map(block).chain(as_text);
    let mut result = CallToolResult::success(blocks.collect());
    // Up to 2025-11-25 it is an object; clients of that time refuse the whole result otherwise.
    result.structured_content = output
        .structured
        .filter(|value| modern || value.is_object());
    result
}

/// What is no block in rmcp's eyes is still told, as text.
fn block(content: Content) -> ContentBlock {
    let is_text = content.as_text().is_some();
    match content.into_value() {
        // Nearly every block is text and nothing else; rmcp would try one kind after the other.
        Value::Object(mut block) if is_text && block.len() == 2 => {
            match block.swap_remove("text") {
                Some(Value::String(text)) => ContentBlock::text(text),
                _ => ContentBlock::text(Value::Object(block).to_string()),
            }
        }
        value => ContentBlock::deserialize(&value)
            .unwrap_or_else(|_| ContentBlock::text(value.to_string())),
    }
}
