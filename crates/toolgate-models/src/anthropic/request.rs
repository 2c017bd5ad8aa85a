//! What is asked, as the Messages API wants it: bytes out of a request, without a socket.
//!
//! Three marks tell the provider what to keep in its cache: the tools, the system text, and all that was said so far. The
//! next round of a turn begins with the same bytes, so that it is read at a tenth of the price.

use std::collections::BTreeSet;

use serde::ser::{Error, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::transcript::{self, Message};
use crate::learned::Sent;
use crate::{Offer, Request};

#[derive(Debug, Clone)]
pub(super) struct Options {
    pub(super) model: String,
    pub(super) max_tokens: usize,
    /// How many tokens the model can hold.
    pub(super) window: usize,
    pub(super) temperature: Option<f64>,
}

pub(super) fn body(
    options: &Options,
    sent: Sent,
    request: &Request<'_>,
) -> Result<Vec<u8>, String> {
    let system = Some(request.system).filter(|system| !system.trim().is_empty());
    let messages = transcript::messages(request.messages, request.tools.catalog());
    let tools = Tools::of(request.tools, &messages);
    let no_use = request.words_only || matches!(tools, Some(Tools::Gone(_)));
    let body = Body {
        model: &options.model,
        max_tokens: request.room(options.window, options.max_tokens),
        stream: true,
        temperature: options.temperature.filter(|_| sent.temperature),
        thinking: sent.think.then_some(Kind { kind: "adaptive" }),
        system: system.map(|text| {
            [System {
                kind: "text",
                text,
                cache_control: CACHE,
            }]
        }),
        // Tools are listed also where none may be used: history speaks of them, and the cache goes by them.
        tool_choice: (tools.is_some() && no_use).then_some(Kind { kind: "none" }),
        tools,
        messages,
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

enum Tools<'a> {
    /// As they were converted, the last one with a mark for the cache.
    Offered(&'a Offer),
    /// Only names: history with calls is refused where no tool is listed at all.
    Gone(BTreeSet<String>),
}

impl<'a> Tools<'a> {
    fn of(offer: &'a Offer, messages: &[Message<'_>]) -> Option<Self> {
        if !offer.is_empty() {
            return Some(Self::Offered(offer));
        }
        let names = messages.iter().flat_map(Message::called);
        let names: BTreeSet<String> = names.map(str::to_owned).collect();
        (!names.is_empty()).then_some(Self::Gone(names))
    }
}

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let offer = match self {
            Self::Offered(offer) => offer,
            Self::Gone(names) => {
                return serializer.collect_seq(names.iter().map(|name| gone(name)));
            }
        };
        let last = offer.len().saturating_sub(1);
        let mut list = serializer.serialize_seq(Some(offer.len()))?;
        for (index, tool) in offer.iter().enumerate() {
            if index == last {
                list.serialize_element(&marked(&tool.json).map_err(S::Error::custom)?)?;
            } else {
                list.serialize_element(&*tool.json)?;
            }
        }
        list.end()
    }
}

fn gone(name: &str) -> Value {
    json!({
        "name": name,
        "description": "Not there any more",
        "input_schema": { "type": "object", "properties": {} },
    })
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
