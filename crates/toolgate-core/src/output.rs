//! What a tool answers.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::arguments::Size;

/// The answer of a tool: content blocks as MCP has them, or a JSON value, or both.
///
/// ```
/// use serde_json::json;
/// use toolgate_core::ToolOutput;
///
/// assert_eq!(ToolOutput::text("21 °C").to_result(), "21 °C");
/// assert_eq!(ToolOutput::json(json!({ "celsius": 21 })).to_text(), r#"{"celsius":21}"#);
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ToolOutput {
    /// Blocks in the order the tool gave them.
    pub content: Vec<Content>,
    /// The machine-readable answer; it wins over `content` in the envelope.
    pub structured: Option<Value>,
}

/// One block of a tool's answer, in MCP's wire form. Whatever a server sent comes out as it came in: its annotations, its
/// order, and kinds that are not known here.
///
/// ```
/// use serde_json::json;
/// use toolgate_core::Content;
///
/// assert_eq!(Content::text("hello").as_value(), &json!({ "type": "text", "text": "hello" }));
/// let block = Content::from(json!({ "type": "image", "data": "aGk=", "mimeType": "image/png" }));
/// assert_eq!((block.kind(), block.as_text()), ("image", None));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Content(Value);

impl Content {
    /// A block of plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self(json!({ "type": "text", "text": text.into() }))
    }

    /// What it is: `text`, `image`, `audio`, `resource_link`, `resource`, or anything else; empty if it does not tell.
    pub fn kind(&self) -> &str {
        self.0.get("type").and_then(Value::as_str).unwrap_or("")
    }

    /// The text of a block of text.
    pub fn as_text(&self) -> Option<&str> {
        let text = self.0.get("text").filter(|_| self.kind() == "text");
        text.and_then(Value::as_str)
    }

    /// The block as it came.
    pub fn as_value(&self) -> &Value {
        &self.0
    }

    /// The same, for keeps.
    pub fn into_value(self) -> Value {
        self.0
    }

    /// Of a text that has nothing else to it, only the text counts: that is what comes out.
    fn bytes(&self, deepest: usize) -> Option<u64> {
        let fields = self.0.as_object().map_or(0, serde_json::Map::len);
        match self.as_text() {
            Some(text) if fields == 2 => Some(text.len() as u64),
            _ => Some(Size::of(&self.0, deepest).ok()?.bytes),
        }
    }
}

impl From<Value> for Content {
    fn from(block: Value) -> Self {
        Self(block)
    }
}

impl ToolOutput {
    /// An answer that is one JSON value.
    pub fn json(value: impl Into<Value>) -> Self {
        Self {
            content: Vec::new(),
            structured: Some(value.into()),
        }
    }

    /// An answer that is one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![Content::text(text)],
            structured: None,
        }
    }

    /// An answer made of blocks.
    pub fn blocks(content: Vec<Content>) -> Self {
        Self {
            content,
            structured: None,
        }
    }

    /// The envelope's `result`: the structured value if there is one, else the text of a single text block, else the blocks.
    pub fn to_result(&self) -> Value {
        self.as_result().into_owned()
    }

    /// The same, copied only where it has to be made.
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

    /// The content blocks beside a structured answer, if one of them is not text.
    pub fn beside(&self) -> Option<Value> {
        let has_more = self.content.iter().any(|block| block.as_text().is_none());
        let blocks = || self.content.iter().map(|block| block.0.clone()).collect();
        (self.structured.is_some() && has_more).then(blocks)
    }

    /// The answer as text for a model or for speech: a string as it is, text blocks joined by newlines, else compact JSON.
    pub fn to_text(&self) -> String {
        let text = match &self.structured {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) => String::new(),
            Some(value) => value.to_string(),
            None => self.joined_blocks(),
        };
        if text.is_empty() {
            "(no output)".to_owned()
        } else {
            text
        }
    }

    /// Roughly how much JSON it makes; `None` if it is nested deeper than `deepest`.
    pub(crate) fn bytes(&self, deepest: usize) -> Option<u64> {
        let structured = match &self.structured {
            Some(value) => Size::of(value, deepest).ok()?.bytes,
            None => 0,
        };
        let blocks = self.content.iter();
        blocks
            .map(|block| block.bytes(deepest))
            .try_fold(structured, |total, bytes| {
                Some(total.saturating_add(bytes?))
            })
    }

    fn joined_blocks(&self) -> String {
        let blocks = self.content.iter().map(|block| {
            let text = block.as_text().map(str::to_owned);
            text.unwrap_or_else(|| block.0.to_string())
        });
        blocks.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Content {
        Content::text(text)
    }

    #[test]
    fn the_result_is_the_structured_value_else_the_single_text_else_the_blocks() {
        let both = ToolOutput {
            content: vec![text("4")],
            structured: Some(json!({ "sum": 4 })),
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
    fn the_text_is_the_string_or_the_joined_blocks_or_compact_json() {
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
                ToolOutput::blocks(vec![Content::from(image)]),
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
