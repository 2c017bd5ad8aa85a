//! What is read of the events of the Messages API. Only what is used is named: the rest may change.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Usage;
use crate::wire_format::StreamError;

pub(super) fn read<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, StreamError> {
    serde_json::from_str(json).map_err(|error| {
        let start: String = json.chars().take(200).collect();
        StreamError::Garbled(format!("{error}: {start}"))
    })
}

#[derive(Deserialize)]
pub(super) struct Kind<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
pub(super) struct MessageStart {
    pub(super) message: Started,
}

#[derive(Deserialize)]
pub(super) struct Started {
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
    pub(super) delta: Delta<'a>,
}

#[derive(Deserialize)]
pub(super) struct Delta<'a> {
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
    pub(super) delta: Stopped,
    pub(super) usage: Option<WireUsage>,
}

#[derive(Deserialize)]
pub(super) struct Stopped {
    pub(super) stop_reason: Option<String>,
}

/// A whole message, from a server that does not stream.
#[derive(Deserialize)]
pub(super) struct Whole<'a> {
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
    /// As it was written: what stands there twice is found where the call is read.
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

/// The tokens as far as they are known: each number that comes again replaces the one before.
#[derive(Default)]
pub(super) struct Counts(WireUsage);

impl Counts {
    pub(super) fn update(&mut self, usage: Option<WireUsage>) {
        let new = usage.unwrap_or_default();
        let old = &mut self.0;
        old.input_tokens = new.input_tokens.or(old.input_tokens);
        old.cache_creation_input_tokens = new
            .cache_creation_input_tokens
            .or(old.cache_creation_input_tokens);
        old.cache_read_input_tokens = new.cache_read_input_tokens.or(old.cache_read_input_tokens);
        old.output_tokens = new.output_tokens.or(old.output_tokens);
    }

    /// The provider counts apart what it read from its cache, what it wrote there, and the rest.
    pub(super) fn usage(&self) -> Usage {
        let cached = self.0.cache_read_input_tokens.unwrap_or(0);
        let written = self.0.cache_creation_input_tokens.unwrap_or(0);
        let fresh = self.0.input_tokens.unwrap_or(0);
        Usage {
            input: fresh.saturating_add(written).saturating_add(cached),
            output: self.0.output_tokens.unwrap_or(0),
            cached,
        }
    }
}
