//! What is asked, as the Messages API wants it: bytes out of a request, without a socket.
//!
//! Three marks tell the provider what to keep in its cache: the tools, the system text, and all that was said so far. The
//! next round of a turn begins with the same bytes, so that it is read at a tenth of the price.

use std::borrow::Cow;

use serde::ser::{Error, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::transcript::{self, Message};
use crate::{Offer, Request};

/// What is the same in all requests of one client.
#[derive(Debug, Clone)]
pub(super) struct Options {
    pub(super) model: String,
    pub(super) max_tokens: usize,
    pub(super) think: bool,
    pub(super) temperature: Option<f64>,
}

/// The body of a request.
pub(super) fn body(options: &Options, request: &Request<'_>) -> Result<Vec<u8>, String> {
    let system = Some(request.system).filter(|system| !system.trim().is_empty());
    let has_tools = !request.tools.is_empty();
    let body = Body {
        model: &options.model,
        max_tokens: options.max_tokens,
        stream: true,
        temperature: options.temperature,
        thinking: options.think.then_some(Kind { kind: "adaptive" }),
        system: system.map(|text| {
            [System {
                kind: "text",
                text,
                cache_control: CACHE,
            }]
        }),
        tools: has_tools.then_some(Tools(request.tools)),
        // Tools are listed also where none may be used: history speaks of them, and the cache goes by them.
        tool_choice: (has_tools && request.words_only).then_some(Kind { kind: "none" }),
        messages: transcript::messages(request.messages, request.tools.catalog()),
    };
    serde_json::to_vec(&body).map_err(|error| error.to_string())
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: usize,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Kind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[System<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Tools<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Kind>,
    messages: Vec<Message<'a>>,
}

/// An object that is nothing but its type.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Kind {
    #[serde(rename = "type")]
    kind: &'static str,
}

/// All up to here may be kept for the next request; for five minutes.
pub(super) const CACHE: Kind = Kind { kind: "ephemeral" };

#[derive(Serialize)]
struct System<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
    cache_control: Kind,
}

/// The tools as they were converted, the last one with a mark for the cache.
struct Tools<'a>(&'a Offer);

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let last = self.0.len().saturating_sub(1);
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for (index, tool) in self.0.iter().enumerate() {
            let json: Cow<'_, RawValue> = if index == last {
                Cow::Owned(marked(&tool.json).map_err(S::Error::custom)?)
            } else {
                Cow::Borrowed(&tool.json)
            };
            list.serialize_element(&json)?;
        }
        list.end()
    }
}

fn marked(tool: &RawValue) -> Result<Box<RawValue>, serde_json::Error> {
    let json = tool.get().trim_end();
    let open = json.strip_suffix('}').unwrap_or(json);
    RawValue::from_string(format!(
        "{open},\"cache_control\":{{\"type\":\"ephemeral\"}}}}"
    ))
}

#[cfg(test)]
mod tests;
