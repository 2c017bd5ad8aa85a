//! What a tool answers.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

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

/// One block of a tool's answer, in MCP's wire form.
///
/// ```
/// use serde_json::json;
/// use toolgate_core::Content;
///
/// let block = Content::Text { text: "hello".to_owned() };
/// assert_eq!(serde_json::to_value(block).unwrap(), json!({ "type": "text", "text": "hello" }));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Content {
    /// Plain text.
    Text {
        /// The text itself.
        text: String,
    },
    /// A picture.
    #[serde(rename_all = "camelCase")]
    Image {
        /// Base64.
        data: String,
        /// For example `image/png`.
        mime_type: String,
    },
    /// A sound.
    #[serde(rename_all = "camelCase")]
    Audio {
        /// Base64.
        data: String,
        /// For example `audio/wav`.
        mime_type: String,
    },
    /// A reference to something the server holds.
    ResourceLink {
        /// Where it is.
        uri: String,
        /// What it is called.
        name: String,
    },
    /// Something the server holds, embedded.
    Resource {
        /// The resource as the server sent it.
        resource: Value,
    },
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
            content: vec![Content::Text { text: text.into() }],
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
        match (&self.structured, self.content.as_slice()) {
            (Some(value), _) => Cow::Borrowed(value),
            (None, [Content::Text { text }]) => Cow::Owned(Value::String(text.clone())),
            (None, blocks) => Cow::Owned(serde_json::to_value(blocks).unwrap_or_default()),
        }
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
        let mut total = structured;
        for block in &self.content {
            total += match block {
                Content::Text { text } => text.len() as u64,
                Content::Image { data, .. } | Content::Audio { data, .. } => data.len() as u64,
                Content::ResourceLink { uri, name } => (uri.len() + name.len()) as u64,
                Content::Resource { resource } => Size::of(resource, deepest).ok()?.bytes,
            };
        }
        Some(total)
    }

    fn joined_blocks(&self) -> String {
        let blocks = self.content.iter().map(|block| match block {
            Content::Text { text } => text.clone(),
            other => serde_json::to_string(other).unwrap_or_default(),
        });
        blocks.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(text: &str) -> Content {
        Content::Text {
            text: text.to_owned(),
        }
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
        let image = Content::Image {
            data: "aGk=".to_owned(),
            mime_type: "image/png".to_owned(),
        };
        for (output, expected) in [
            (ToolOutput::text("as it is\n"), "as it is\n"),
            (ToolOutput::json("as it is"), "as it is"),
            (
                ToolOutput::json(json!({ "b": 1, "a": [2] })),
                r#"{"b":1,"a":[2]}"#,
            ),
            (ToolOutput::blocks(vec![text("a"), text("b")]), "a\nb"),
            (
                ToolOutput::blocks(vec![image]),
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
