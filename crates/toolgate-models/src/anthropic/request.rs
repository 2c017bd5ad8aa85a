//! Builds the request body for the Messages API, without touching a socket.
//!
//! Three `cache_control` marks tell the provider what to cache: the tools, the system prompt, and
//! the conversation so far. The next round of a turn starts with the same bytes, and cached input
//! costs a tenth of the price.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::transcript::{self, AnthropicMessage};
use crate::compat::SentOptions;
use crate::wire_format::RequestOptions;
use crate::{ModelRequest, OfferedTools};

pub(super) fn body(
    options: &RequestOptions,
    sent: SentOptions,
    request: &ModelRequest<'_>,
) -> Result<Vec<u8>, String> {
    let system = Some(request.system).filter(|system| !system.trim().is_empty());
    let messages = transcript::messages(request.messages, request.tools.catalog());
    let tools = tools(request.tools, &messages).map_err(|error| error.to_string())?;
    let no_calls = request.forbid_tools || request.tools.is_empty();
    let body = AnthropicBody {
        model: &options.model,
        max_tokens: request.answer_tokens(options.window, options.max_tokens),
        stream: true,
        temperature: request
            .temperature
            .or(options.temperature)
            .filter(|_| sent.temperature),
        thinking: sent.think.then_some(TypedObject { kind: "adaptive" }),
        system: system.map(|text| {
            [SystemBlock::Text {
                text,
                cache_control: CACHE,
            }]
        }),
        // Tools are listed even if none may be called: history refers to them, and the provider's
        // cache depends on the list.
        tool_choice: (!tools.is_empty() && no_calls).then_some(TypedObject { kind: "none" }),
        tools,
        messages,
    };
    serde_json::to_vec(&body).map_err(|error| error.to_string())
}

#[derive(Serialize)]
struct AnthropicBody<'a> {
    model: &'a str,
    max_tokens: usize,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<TypedObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[SystemBlock<'a>; 1]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Cow<'a, RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<TypedObject>,
    messages: Vec<AnthropicMessage<'a>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct TypedObject {
    #[serde(rename = "type")]
    kind: &'static str,
}

// Marks the end of a prefix that the provider may cache for five minutes.
pub(super) const CACHE: TypedObject = TypedObject { kind: "ephemeral" };

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum SystemBlock<'a> {
    Text {
        text: &'a str,
        cache_control: TypedObject,
    },
}

// The offered tools, with a cache mark on the last one. If none are offered, placeholders for the
// tools that history refers to, because the API refuses a history with calls if no tool is listed.
fn tools<'a>(
    offer: &'a OfferedTools,
    messages: &[AnthropicMessage<'_>],
) -> serde_json::Result<Vec<Cow<'a, RawValue>>> {
    let offered = offer.iter().map(|tool| Cow::Borrowed(&*tool.json));
    let mut tools: Vec<Cow<'a, RawValue>> = offered.collect();
    if let Some(last) = tools.last_mut() {
        *last = Cow::Owned(with_cache_mark(last)?);
        return Ok(tools);
    }
    let names = messages.iter().flat_map(AnthropicMessage::called_names);
    let names: BTreeSet<&str> = names.collect();
    let removed = names
        .into_iter()
        .map(|name| to_raw_value(&removed_tool(name)));
    removed.map(|tool| tool.map(Cow::Owned)).collect()
}

fn removed_tool(name: &str) -> Value {
    json!({
        "name": name,
        "description": "No longer available",
        "input_schema": { "type": "object", "properties": {} },
    })
}

fn with_cache_mark(tool: &RawValue) -> Result<Box<RawValue>, serde_json::Error> {
    let json = tool.get().trim_end();
    let open = json.strip_suffix('}').unwrap_or(json);
    RawValue::from_string(format!(
        "{open},\"cache_control\":{{\"type\":\"ephemeral\"}}}}"
    ))
}

#[cfg(test)]
mod tests;
