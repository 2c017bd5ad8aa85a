//! The JSON of chat completion chunks, with only the fields that we use.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::TokenUsage;

#[derive(Deserialize)]
pub(super) struct OpenAiChunk<'a> {
    #[serde(borrow)]
    pub(super) choices: Option<Vec<OpenAiChoice<'a>>>,
    pub(super) usage: Option<OpenAiUsage>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct OpenAiChoice<'a> {
    #[serde(default, deserialize_with = "count")]
    pub(super) index: Option<u64>,
    #[serde(borrow)]
    pub(super) delta: Option<OpenAiDelta<'a>>,
    // Takes the place of `delta` in an answer that isn't streamed.
    #[serde(borrow)]
    pub(super) message: Option<OpenAiDelta<'a>>,
    pub(super) finish_reason: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct OpenAiDelta<'a> {
    #[serde(borrow)]
    pub(super) content: Option<DeltaContent<'a>>,
    #[serde(borrow)]
    pub(super) refusal: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) reasoning_content: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) reasoning: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Vec<CallPiece<'a>>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum DeltaContent<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    Parts(Vec<ContentPart>),
}

#[derive(Deserialize)]
pub(super) struct ContentPart {
    pub(super) text: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct CallPiece<'a> {
    #[serde(default, deserialize_with = "count")]
    pub(super) index: Option<u64>,
    #[serde(default, deserialize_with = "id")]
    pub(super) id: Option<String>,
    #[serde(borrow)]
    pub(super) function: Option<FunctionPiece<'a>>,
}

#[derive(Deserialize, Default)]
pub(super) struct FunctionPiece<'a> {
    pub(super) name: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl FunctionPiece<'_> {
    // Some servers send the object itself instead of its text.
    pub(super) fn arguments(&self) -> Cow<'_, str> {
        let json = self.arguments.map_or("null", RawValue::get);
        match serde_json::from_str::<Option<String>>(json) {
            Ok(text) => Cow::Owned(text.unwrap_or_default()),
            Err(_) => Cow::Borrowed(json),
        }
    }
}

#[derive(Deserialize)]
pub(super) struct OpenAiUsage {
    #[serde(default, deserialize_with = "count")]
    prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<UsageDetails>,
}

#[derive(Deserialize)]
struct UsageDetails {
    #[serde(default, deserialize_with = "count")]
    cached_tokens: Option<u64>,
}

impl OpenAiUsage {
    pub(super) fn usage(&self) -> TokenUsage {
        let details = self.prompt_tokens_details.as_ref();
        TokenUsage {
            input: self.prompt_tokens.unwrap_or(0),
            output: self.completion_tokens.unwrap_or(0),
            cached: details
                .and_then(|details| details.cached_tokens)
                .unwrap_or(0),
        }
    }
}

// Some servers write `12.0`. A number that isn't a count, such as -1, is treated as missing.
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
