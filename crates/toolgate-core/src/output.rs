//! [`ToolOutput`]: what a tool returns.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::arguments::JsonSize;

/// What a tool returns: MCP content blocks, a JSON value, or both.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ToolOutput {
    pub content: Vec<ToolContent>,
    /// The machine-readable result. It takes precedence over `content` in the envelope.
    pub structured: Option<Value>,
    /// The `_meta` of an MCP result, for the caller's program. Models never see it.
    pub meta: Option<Map<String, Value>>,
    /// Members of an MCP result that no revision defines, for the caller's program. Boxed, because
    /// few results have any.
    pub extra: Option<Box<Map<String, Value>>>,
    /// True if an extension of MCP defines what kind of result this is. `structured` is then all of
    /// it, as the server sent it.
    pub is_extension_result: bool,
}

/// One content block, in MCP's wire format. A server's block is passed on unchanged, including
/// annotations, key order and unknown kinds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToolContent(Value);

impl ToolContent {
    pub fn text(text: impl Into<String>) -> Self {
        Self(json!({ "type": "text", "text": text.into() }))
    }

    /// The block's type, such as `text`, `image`, `audio`, `resource_link` or `resource`. Empty
    /// if it has none.
    pub fn kind(&self) -> &str {
        self.0.get("type").and_then(Value::as_str).unwrap_or("")
    }

    pub fn as_text(&self) -> Option<&str> {
        let text = self.0.get("text").filter(|_| self.kind() == "text");
        text.and_then(Value::as_str)
    }

    pub fn as_value(&self) -> &Value {
        &self.0
    }

    pub fn into_value(self) -> Value {
        self.0
    }

    // In the envelope a plain text block is a bare string, so only its text counts.
    fn bytes(&self, max_depth: usize) -> Option<u64> {
        let fields = self.0.as_object().map_or(0, serde_json::Map::len);
        match self.as_text() {
            Some(text) if fields == 2 => Some(text.len() as u64),
            _ => Some(JsonSize::measure(&self.0, max_depth).ok()?.bytes),
        }
    }
}

impl From<Value> for ToolContent {
    fn from(block: Value) -> Self {
        Self(block)
    }
}

impl ToolOutput {
    /// Creates a structured result without content blocks.
    pub fn json(value: impl Into<Value>) -> Self {
        Self {
            structured: Some(value.into()),
            ..Self::default()
        }
    }

    pub fn text(text: impl Into<String>) -> Self {
        Self::blocks(vec![ToolContent::text(text)])
    }

    pub fn blocks(content: Vec<ToolContent>) -> Self {
        Self {
            content,
            ..Self::default()
        }
    }

    /// A result of a kind that only an extension of MCP knows.
    pub fn extension_result(result: Value) -> Self {
        Self {
            is_extension_result: true,
            ..Self::json(result)
        }
    }

    /// The envelope's `result`: the structured value, else the text of a single text block, else
    /// the list of blocks.
    pub fn to_result(&self) -> Value {
        self.as_result().into_owned()
    }

    /// Like [`to_result`](Self::to_result), but borrows where it can.
    pub(crate) fn as_result(&self) -> Cow<'_, Value> {
        if let Some(value) = &self.structured {
            return Cow::Borrowed(value);
        }
        let text = match self.content.as_slice() {
            [only] => only.as_text(),
            _ => None,
        };
        let blocks = || self.content.iter().map(|block| block.0.clone()).collect();
        Cow::Owned(text.map_or_else(blocks, Value::from))
    }

    /// The content blocks that accompany a structured result, if at least one is not text.
    pub fn extra_content(&self) -> Option<Value> {
        let has_more = self.content.iter().any(|block| block.as_text().is_none());
        let blocks = || self.content.iter().map(|block| block.0.clone()).collect();
        (self.structured.is_some() && has_more).then(blocks)
    }

    /// The result as text for a model or for speech: a string unchanged, text blocks joined by
    /// newlines, or compact JSON. Never empty: without any output it is `(no output)`.
    pub fn to_text(&self) -> String {
        let text = match &self.structured {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) => String::new(),
            Some(value) => value.to_string(),
            None => self.join_blocks(),
        };
        if text.is_empty() {
            "(no output)".to_owned()
        } else {
            text
        }
    }

    /// The approximate size as JSON; `None` if it is nested deeper than `max_depth`.
    pub(crate) fn bytes(&self, max_depth: usize) -> Option<u64> {
        let mut structured = match &self.structured {
            Some(value) => JsonSize::measure(value, max_depth).ok()?.bytes,
            None => 0,
        };
        for (name, value) in self.meta.iter().chain(self.extra.as_deref()).flatten() {
            structured += name.len() as u64 + JsonSize::measure(value, max_depth).ok()?.bytes;
        }
        let blocks = self.content.iter();
        blocks
            .map(|block| block.bytes(max_depth))
            .try_fold(structured, |total, bytes| {
                Some(total.saturating_add(bytes?))
            })
    }

    fn join_blocks(&self) -> String {
        let blocks = self.content.iter().map(|block| match block.as_text() {
            Some(text) => text.to_owned(),
            None => block.0.to_string(),
        });
        crate::text::join(blocks, "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> ToolContent {
        ToolContent::text(text)
    }

    #[test]
    fn the_result_prefers_structured_content_then_text_then_blocks() {
        let both = ToolOutput {
            content: vec![text("4")],
            structured: Some(json!({ "sum": 4 })),
            ..ToolOutput::default()
        };
        for (output, expected) in [
            (both, json!({ "sum": 4 })),
            (ToolOutput::json(Value::Null), json!(null)),
            (ToolOutput::text("four"), json!("four")),
            (ToolOutput::blocks(vec![]), json!([])),
            (
                ToolOutput::blocks(vec![text("a"), text("b")]),
                json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]),
            ),
        ] {
            assert_eq!(output.to_result(), expected);
        }
    }

    #[test]
    fn members_that_nothing_knows_count_for_the_size_and_not_for_the_result() {
        let mut output = ToolOutput::text("four");
        let before = output.bytes(8).unwrap();
        output.extra = json!({ "x": "12345678" })
            .as_object()
            .cloned()
            .map(Box::new);
        assert_eq!(output.bytes(8), Some(before + 11));
        assert_eq!(output.to_result(), json!("four"));
        output.extra = json!({ "x": [[[]]] }).as_object().cloned().map(Box::new);
        assert_eq!(output.bytes(2), None);
    }

    #[test]
    fn text_is_the_string_joined_blocks_or_compact_json() {
        let image = json!({ "type": "image", "data": "aGk=", "mimeType": "image/png" });
        for (output, expected) in [
            (ToolOutput::text("as it is\n"), "as it is\n"),
            (ToolOutput::json("as it is"), "as it is"),
            (
                ToolOutput::json(json!({ "b": 1, "a": [2] })),
                r#"{"b":1,"a":[2]}"#,
            ),
            (ToolOutput::blocks(vec![text("a"), text("b")]), "a\nb"),
            (
                ToolOutput::blocks(vec![ToolContent::from(image)]),
                r#"{"type":"image","data":"aGk=","mimeType":"image/png"}"#,
            ),
            (ToolOutput::json(Value::Null), "(no output)"),
            (ToolOutput::text(""), "(no output)"),
            (ToolOutput::blocks(vec![]), "(no output)"),
        ] {
            assert_eq!(output.to_text(), expected);
        }
    }
}
