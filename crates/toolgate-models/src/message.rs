//! A conversation in nobody's wire format. Each client translates at its edge, history included.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use toolgate_core::{Arguments, Limits, ToolCall, parse_object_within};
use toolgate_intents::SentenceMemory;

use crate::Provider;

/// The most calls, or pieces of another kind, that are read of one reply; how many of them run is not decided here.
pub(crate) const MOST_PARTS: usize = 1024;

/// One entry of a conversation's history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// What the person said.
    User {
        /// In words.
        text: String,
    },
    /// What the model said and asked for.
    Assistant(AssistantMessage),
    /// What came of the calls of the message before: one result for each, in the same order.
    Tool {
        /// The results.
        results: Vec<ToolResult>,
    },
}

/// What a model answered, in the order it came.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AssistantMessage {
    /// Its pieces.
    pub parts: Vec<Part>,
}

/// A piece of a model's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Words for the person.
    Text {
        /// The words.
        text: String,
    },
    /// Words for itself.
    Thinking {
        /// The words.
        text: String,
        /// Proof of the provider that they are its own; to be given back unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// What a provider wants back as it came and nobody else understands.
    Opaque {
        /// Whose it is.
        provider: Provider,
        /// The block.
        value: Value,
    },
    /// Sentences gave this answer, or asked for its calls, and no model had a part in it.
    Sentence {
        /// What the next sentence has to know. One that cannot be read is an empty one.
        #[serde(deserialize_with = "memory")]
        memory: SentenceMemory,
    },
    /// A tool it wants to be called.
    Call(ModelCall),
}

fn memory<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SentenceMemory, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(SentenceMemory::deserialize(value).unwrap_or_default())
}

/// A call that a model asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelCall {
    /// The provider's, or one of ours where it gave none. A provider may give one id to two calls; in a history it is unique.
    pub id: String,
    /// The name the tool is listed under here; what the model wrote where there is no such tool.
    pub name: String,
    /// What for.
    pub arguments: CallArguments,
}

impl ModelCall {
    /// The provider's id, as it came: that a call was said twice is seen by its id.
    pub(crate) fn id_or_new(id: String) -> String {
        if id.trim().is_empty() {
            return Self::new_id();
        }
        id
    }

    /// An id where the provider gave none: nine letters and digits, which is all that the strictest servers take.
    pub(crate) fn new_id() -> String {
        std::iter::repeat_with(fastrand::alphanumeric)
            .take(9)
            .collect()
    }
}

/// Arguments as a model wrote them.
///
/// ```
/// use toolgate_models::CallArguments;
///
/// for nothing in ["", "null", " {} "] {
///     assert_eq!(CallArguments::read(nothing), CallArguments::Object(Default::default()));
/// }
/// let twice = CallArguments::read(r#""{\"city\": \"Oslo\"}""#);
/// assert_eq!(twice, CallArguments::read(r#"{"city": "Oslo"}"#));
/// assert!(matches!(CallArguments::read(r#"{"city": "#), CallArguments::Unusable(_)));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallArguments {
    /// As they should be.
    Object(Arguments),
    /// No JSON object, as it came: the call ends in an error that tells the model so.
    Unusable(String),
}

/// How many JSON strings an object may be wrapped in.
const MOST_STRINGS: usize = 2;

impl CallArguments {
    /// Reads what came as JSON text. Nothing at all means no arguments; an object inside a JSON string is that object, also
    /// where that was done twice.
    pub fn read(text: &str) -> Self {
        let trimmed = text.trim();
        if trimmed.is_empty() || trimmed == "null" || trimmed == "\"\"" {
            return Self::Object(Arguments::new());
        }
        if let Ok(object) = parse_object_within(trimmed.as_bytes(), Limits::MAX_VALUES) {
            return Self::Object(object);
        }
        let mut inner = trimmed.to_owned();
        for _ in 0..MOST_STRINGS {
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

    /// As a JSON object, which some providers insist on when history is replayed; unusable ones are an empty one there.
    pub fn as_object(&self) -> Cow<'_, Arguments> {
        match self {
            Self::Object(object) => Cow::Borrowed(object),
            Self::Unusable(_) => Cow::Owned(Arguments::new()),
        }
    }

    /// The call to be executed.
    pub fn to_call(&self, name: &str) -> ToolCall {
        match self {
            Self::Object(object) => ToolCall::new(name, Value::Object(object.clone())),
            Self::Unusable(text) => {
                ToolCall::from_json_within(name, text.as_bytes(), Limits::MAX_VALUES)
            }
        }
    }
}

/// What came of a call, as the model is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// Of which call: [`ModelCall::id`].
    pub id: String,
    /// The tool, as in [`ModelCall::name`].
    pub name: String,
    /// In words or JSON, cut to what the model can take.
    pub text: String,
    /// Pictures beside the words, for models that can look.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// True if it failed.
    #[serde(default)]
    pub is_error: bool,
    /// The executor's id of the call, where it was executed: the log and the journal know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
}

impl ToolResult {
    /// For a provider that takes only text here: of pictures it says that they were there.
    pub(crate) fn text_with_images(&self) -> Cow<'_, str> {
        if self.images.is_empty() {
            return Cow::Borrowed(&self.text);
        }
        let text = Some(self.text.clone()).filter(|text| !text.trim().is_empty());
        let images = self.images.iter().map(Image::to_words);
        let lines: Vec<String> = text.into_iter().chain(images).collect();
        Cow::Owned(lines.join("\n"))
    }
}

/// A picture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Image {
    /// `image/png` and the like.
    pub mime_type: String,
    /// In base64.
    pub data: String,
}

impl Image {
    /// What a model is told of it that can not look.
    pub(crate) fn to_words(&self) -> String {
        let kind = toolgate_core::escape(&self.mime_type);
        let kilobytes = (self.data.len() / 4 * 3).div_ceil(1024);
        format!("[image {kind}, {kilobytes} KB, not shown]")
    }
}

impl AssistantMessage {
    /// Only words.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            parts: vec![Part::Text { text: text.into() }],
        }
    }

    /// All words for the person, joined.
    pub fn to_text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// What sentences remember of it; none if a model said it.
    pub(crate) fn sentence_memory(&self) -> Option<&SentenceMemory> {
        self.parts.iter().find_map(|part| match part {
            Part::Sentence { memory } => Some(memory),
            _ => None,
        })
    }

    /// The calls it asks for, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ModelCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::Call(call) => Some(call),
            _ => None,
        })
    }
}
