//! The messages of a conversation, independent of any provider. Each client converts them to its
//! API's format for every request.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use toolgate_core::{Arguments, Limits, ToolCall, parse_object_within};
use toolgate_intents::SentenceMemory;

use crate::Provider;

// Bounds what is read of one reply. The conversation bounds how many of its calls run.
pub(crate) const MAX_PARTS: usize = 1024;

/// One message of a conversation, independent of any provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    User {
        text: String,
    },
    Assistant(AssistantMessage),
    /// One result for each call of the message before, in the same order.
    Tool {
        results: Vec<ToolResult>,
    },
}

/// One reply of a model, or of the built-in sentences.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AssistantMessage {
    pub parts: Vec<MessagePart>,
}

/// A part of a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum MessagePart {
    Text {
        text: String,
    },
    Thinking {
        text: String,
        /// Proves to the provider that the thinking is its own. Must be sent back unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// A block that only its provider understands. Must be sent back unchanged.
    Opaque {
        provider: Provider,
        value: Value,
    },
    /// Marks a reply that sentences gave, without a model.
    Sentence {
        /// What the next sentence needs to know. Unreadable memory counts as empty.
        #[serde(deserialize_with = "deserialize_memory")]
        memory: SentenceMemory,
    },
    Call(ModelCall),
}

fn deserialize_memory<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<SentenceMemory, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(SentenceMemory::deserialize(value).unwrap_or_default())
}

/// A tool call that a model or a sentence asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelCall {
    /// The provider's id, or a generated one if it gave none. A provider may give one id to two
    /// calls; in a history it's unique.
    pub id: String,
    /// The tool's listed name, or what the model wrote if there is no such tool.
    pub name: String,
    pub arguments: CallArguments,
}

impl ModelCall {
    // An id stays as it is, because it shows whether the same call was sent twice.
    pub(crate) fn id_or_new(id: String) -> String {
        if id.trim().is_empty() {
            return Self::new_id();
        }
        id
    }

    // Nine letters and digits, which is all that the strictest servers accept.
    pub(crate) fn new_id() -> String {
        std::iter::repeat_with(fastrand::alphanumeric)
            .take(9)
            .collect()
    }
}

/// The arguments of a call as a model wrote them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallArguments {
    Object(Arguments),
    /// Not a JSON object. The call fails with an error that tells the model so.
    Unusable(String),
}

// How often an object may be wrapped in a JSON string.
const MAX_STRINGS: usize = 2;

impl CallArguments {
    /// Parses JSON text. Empty text means no arguments. An object in a JSON string counts as that
    /// object, even if it was encoded twice, because some models write it that way.
    pub fn parse(text: &str) -> Self {
        let trimmed = text.trim();
        if trimmed.is_empty() || trimmed == "null" || trimmed == "\"\"" {
            return Self::Object(Arguments::new());
        }
        if let Ok(object) = parse_object_within(trimmed.as_bytes(), Limits::MAX_VALUES) {
            return Self::Object(object);
        }
        let mut inner = trimmed.to_owned();
        for _ in 0..MAX_STRINGS {
            let Ok(unwrapped) = serde_json::from_str::<String>(inner.trim()) else {
                break;
            };
            inner = unwrapped;
            if let Ok(object) = parse_object_within(inner.trim().as_bytes(), Limits::MAX_VALUES) {
                return Self::Object(object);
            }
        }
        Self::Unusable(text.to_owned())
    }

    /// The arguments as a JSON object, which some providers require in replayed history. Unusable
    /// arguments become an empty object.
    pub fn as_object(&self) -> Cow<'_, Arguments> {
        match self {
            Self::Object(object) => Cow::Borrowed(object),
            Self::Unusable(_) => Cow::Owned(Arguments::new()),
        }
    }

    pub fn to_call(&self, name: &str) -> ToolCall {
        match self {
            Self::Object(object) => ToolCall::new(name, Value::Object(object.clone())),
            Self::Unusable(text) => {
                ToolCall::from_json_within(name, text.as_bytes(), Limits::MAX_VALUES)
            }
        }
    }
}

/// The result of a call as a model receives it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    pub id: String,
    pub name: String,
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageData>,
    #[serde(default)]
    pub is_error: bool,
    /// The executor's id of the call, if it was executed; the same as in the log and the journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
}

impl ToolResult {
    /// The text with a line for each image, for providers that accept only text here.
    pub(crate) fn text_with_images(&self) -> Cow<'_, str> {
        if self.images.is_empty() {
            return Cow::Borrowed(&self.text);
        }
        let text = Some(self.text.clone()).filter(|text| !text.trim().is_empty());
        let images = self.images.iter().map(ImageData::to_words);
        let lines: Vec<String> = text.into_iter().chain(images).collect();
        Cow::Owned(lines.join("\n"))
    }
}

/// An image in a tool's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImageData {
    pub mime_type: String,
    /// The image file, in base64.
    pub data: String,
}

impl ImageData {
    pub(crate) fn to_words(&self) -> String {
        let kind = toolgate_core::text::escape(&self.mime_type);
        let kilobytes = (self.data.len() / 4 * 3).div_ceil(1024);
        format!("[image {kind}, {kilobytes} KB, not shown]")
    }
}

impl AssistantMessage {
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            parts: vec![MessagePart::Text { text: text.into() }],
        }
    }

    /// All text parts joined, without thinking.
    pub fn to_text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            MessagePart::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// `None` if a model gave this answer.
    pub(crate) fn sentence_memory(&self) -> Option<&SentenceMemory> {
        self.parts.iter().find_map(|part| match part {
            MessagePart::Sentence { memory } => Some(memory),
            _ => None,
        })
    }

    pub fn calls(&self) -> impl Iterator<Item = &ModelCall> {
        self.parts.iter().filter_map(|part| match part {
            MessagePart::Call(call) => Some(call),
            _ => None,
        })
    }
}
