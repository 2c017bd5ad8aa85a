//! The pieces of an answer.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::Usage;

#[derive(Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow, default)]
    pub(super) choices: Option<Vec<Choice<'a>>>,
    #[serde(default)]
    pub(super) usage: Option<Counts>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(default, deserialize_with = "count")]
    pub(super) index: Option<u64>,
    /// In a stream.
    #[serde(borrow, default)]
    pub(super) delta: Option<Delta<'a>>,
    /// In a whole answer.
    #[serde(borrow, default)]
    pub(super) message: Option<Delta<'a>>,
    #[serde(default)]
    pub(super) finish_reason: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, default)]
    pub(super) content: Option<Content<'a>>,
    #[serde(borrow, default)]
    pub(super) refusal: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) reasoning_content: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) reasoning: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) tool_calls: Option<Vec<CallPiece<'a>>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    Parts(Vec<ContentPart>),
}

#[derive(Deserialize)]
pub(super) struct ContentPart {
    #[serde(default)]
    pub(super) text: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct CallPiece<'a> {
    #[serde(default, deserialize_with = "count")]
    pub(super) index: Option<u64>,
    #[serde(default, deserialize_with = "id")]
    pub(super) id: Option<String>,
    #[serde(borrow, default)]
    pub(super) function: Option<FunctionPiece<'a>>,
}

#[derive(Deserialize, Default)]
pub(super) struct FunctionPiece<'a> {
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

impl FunctionPiece<'_> {
    /// A piece of JSON as text; some servers send the object itself.
    pub(super) fn arguments(&self) -> Cow<'_, str> {
        let json = self.arguments.map_or("null", RawValue::get);
        match serde_json::from_str::<Option<String>>(json) {
            Ok(text) => Cow::Owned(text.unwrap_or_default()),
            Err(_) => Cow::Borrowed(json),
        }
    }
}

#[derive(Deserialize)]
pub(super) struct Counts {
    #[serde(default, deserialize_with = "count")]
    prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    completion_tokens: Option<u64>,
    #[serde(default)]
    prompt_tokens_details: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    #[serde(default, deserialize_with = "count")]
    cached_tokens: Option<u64>,
}

impl Counts {
    pub(super) fn usage(&self) -> Usage {
        let details = self.prompt_tokens_details.as_ref();
        Usage {
            input: self.prompt_tokens.unwrap_or(0),
            output: self.completion_tokens.unwrap_or(0),
            cached: details
                .and_then(|details| details.cached_tokens)
                .unwrap_or(0),
        }
    }
}

/// A whole number, also one that is written `12.0`. What is none, as an index of -1, is as good as missing.
fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let float = value.as_f64().filter(|number| *number >= 0.0);
    Ok(value.as_u64().or(float.map(|number| number as u64)))
}

fn id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(id) => Some(id),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    })
}
