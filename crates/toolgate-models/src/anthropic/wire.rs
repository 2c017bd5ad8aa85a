//! Event payloads of the Messages API, with only the fields that we use.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::TokenUsage;
use crate::wire_format::ReplyStreamError;

pub(super) fn parse_json<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, ReplyStreamError> {
    serde_json::from_str(json).map_err(|error| {
        let start: String = json.chars().take(200).collect();
        ReplyStreamError::Malformed(format!("{error}: {start}"))
    })
}

#[derive(Deserialize)]
pub(super) struct EventTag<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
pub(super) struct MessageStart {
    pub(super) message: MessageUsage,
}

#[derive(Deserialize)]
pub(super) struct MessageUsage {
    pub(super) usage: Option<WireUsage>,
}

#[derive(Deserialize)]
pub(super) struct BlockStart<'a> {
    pub(super) index: u64,
    #[serde(borrow)]
    pub(super) content_block: &'a RawValue,
}

#[derive(Deserialize)]
pub(super) struct BlockDelta<'a> {
    pub(super) index: u64,
    #[serde(borrow)]
    pub(super) delta: ContentDelta<'a>,
}

#[derive(Deserialize)]
pub(super) struct ContentDelta<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) text: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) thinking: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) signature: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) partial_json: Cow<'a, str>,
}

#[derive(Deserialize)]
pub(super) struct BlockStop {
    pub(super) index: u64,
}

#[derive(Deserialize)]
pub(super) struct MessageDelta {
    pub(super) delta: MessageStop,
    pub(super) usage: Option<WireUsage>,
}

#[derive(Deserialize)]
pub(super) struct MessageStop {
    pub(super) stop_reason: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct WholeMessage<'a> {
    #[serde(borrow)]
    pub(super) content: Vec<&'a RawValue>,
    pub(super) stop_reason: Option<String>,
    pub(super) usage: Option<WireUsage>,
}

#[derive(Deserialize)]
pub(super) struct TextBlock {
    #[serde(default)]
    pub(super) text: String,
}

#[derive(Deserialize)]
pub(super) struct ThinkingBlock {
    #[serde(default)]
    pub(super) thinking: String,
    #[serde(default)]
    pub(super) signature: String,
}

#[derive(Deserialize)]
pub(super) struct CallBlock<'a> {
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    // Kept as written, so that duplicate keys are found when the call is read.
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
}

#[derive(Clone, Copy, Default, Deserialize)]
pub(super) struct WireUsage {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

// The latest token counts. The API sends running totals, so a later number replaces an earlier one.
#[derive(Default)]
pub(super) struct AnthropicUsage(WireUsage);

impl AnthropicUsage {
    pub(super) fn update(&mut self, usage: Option<WireUsage>) {
        let new = usage.unwrap_or_default();
        let old = &mut self.0;
        for (old, new) in [
            (&mut old.input_tokens, new.input_tokens),
            (
                &mut old.cache_creation_input_tokens,
                new.cache_creation_input_tokens,
            ),
            (
                &mut old.cache_read_input_tokens,
                new.cache_read_input_tokens,
            ),
            (&mut old.output_tokens, new.output_tokens),
        ] {
            *old = new.or(*old);
        }
    }

    // `input_tokens` excludes tokens that were read from or written to the cache.
    pub(super) fn usage(&self) -> TokenUsage {
        let cached = self.0.cache_read_input_tokens.unwrap_or(0);
        let written = self.0.cache_creation_input_tokens.unwrap_or(0);
        let fresh = self.0.input_tokens.unwrap_or(0);
        TokenUsage {
            input: fresh.saturating_add(written).saturating_add(cached),
            output: self.0.output_tokens.unwrap_or(0),
            cached,
        }
    }
}
