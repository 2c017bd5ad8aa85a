//! Builds the request body for `/api/chat`.

use std::borrow::Cow;

use serde::Serialize;
use toolgate_core::Arguments;

use crate::{
    AssistantMessage, Message, MessagePart, ModelRequest, ModelSettings, OfferedTools, ToolResult,
};

pub(super) fn prompt_tokens(request: &ModelRequest<'_>) -> usize {
    request.tokens + offered(request).map_or(0, OfferedTools::tokens)
}

// Ollama has no `tool_choice`, so a model that must answer in words is offered no tools.
fn offered<'a>(request: &ModelRequest<'a>) -> Option<&'a OfferedTools> {
    Some(request.tools).filter(|tools| !request.forbid_tools && !tools.is_empty())
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ChatRequestOptions {
    pub(super) window: usize,
    // `None` leaves it to the model.
    pub(super) think: Option<bool>,
    // Whether the model can see images. Otherwise they are described in words.
    pub(super) images: bool,
}

#[derive(Serialize)]
struct OllamaBody<'a> {
    model: &'a str,
    messages: &'a [OllamaMessage<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a OfferedTools>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<bool>,
    options: OllamaOptions,
    keep_alive: i64,
}

#[derive(Serialize)]
struct OllamaOptions {
    num_ctx: usize,
    num_predict: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
}

#[derive(Serialize, Default)]
struct OllamaMessage<'a> {
    role: &'static str,
    content: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    thinking: Cow<'a, str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<OllamaCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Serialize)]
struct OllamaCall<'a> {
    id: &'a str,
    function: OllamaFunction<'a>,
}

#[derive(Serialize)]
struct OllamaFunction<'a> {
    index: usize,
    name: Cow<'a, str>,
    // Ollama refuses a string instead of an object.
    arguments: Cow<'a, Arguments>,
}

pub(super) fn body(
    request: &ModelRequest<'_>,
    model: &str,
    settings: &ModelSettings,
    wanted: ChatRequestOptions,
) -> Result<Vec<u8>, serde_json::Error> {
    let catalog = request.tools;
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        messages.push(OllamaMessage::with_content("system", request.system));
    }
    for message in request.messages {
        match message {
            Message::User { text } => messages.push(OllamaMessage::with_content("user", text)),
            Message::Assistant(said) => messages.extend(assistant(said, catalog)),
            Message::Tool { results } => {
                let results = results.iter();
                messages.extend(results.map(|result| tool(result, catalog, wanted.images)));
            }
        }
    }
    let body = OllamaBody {
        model,
        messages: &messages,
        tools: offered(request),
        stream: true,
        think: wanted.think,
        options: OllamaOptions {
            num_ctx: wanted.window,
            // A longer answer would push its own question out of the window.
            num_predict: request
                .limit_tokens(settings.max_tokens)
                .min((wanted.window / 2).max(1)),
            temperature: request.temperature.or(settings.temperature),
            seed: settings.seed,
        },
        keep_alive: settings.keep_alive,
    };
    serde_json::to_vec(&body)
}

impl<'a> OllamaMessage<'a> {
    fn with_content(role: &'static str, content: impl Into<Cow<'a, str>>) -> Self {
        Self {
            role,
            content: content.into(),
            ..Self::default()
        }
    }
}

// Drops other providers' blocks; `None` if nothing is left.
//
// Sends all thinking in history. Within a turn a model continues from its thinking, and the
// conversation decides whether to keep it after the turn.
fn assistant<'a>(said: &'a AssistantMessage, tools: &'a OfferedTools) -> Option<OllamaMessage<'a>> {
    let calls = said.calls().enumerate().map(|(index, call)| OllamaCall {
        id: &call.id,
        function: OllamaFunction {
            index,
            name: tools.catalog().wire_name(&call.name),
            arguments: call.arguments.as_object(),
        },
    });
    let thoughts = said.parts.iter().filter_map(|part| match part {
        MessagePart::Thinking { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let message = OllamaMessage {
        thinking: Cow::Owned(thoughts.collect()),
        tool_calls: calls.collect(),
        ..OllamaMessage::with_content("assistant", said.to_text())
    };
    let empty =
        message.content.is_empty() && message.thinking.is_empty() && message.tool_calls.is_empty();
    (!empty).then_some(message)
}

// Calls of the same tool are matched by their order, which history keeps.
fn tool<'a>(result: &'a ToolResult, tools: &'a OfferedTools, images: bool) -> OllamaMessage<'a> {
    let mut message = OllamaMessage {
        tool_name: Some(tools.catalog().wire_name(&result.name)),
        tool_call_id: Some(&result.id),
        ..OllamaMessage::with_content("tool", result.text.as_str())
    };
    if images {
        message.images = result
            .images
            .iter()
            .map(|image| image.data.as_str())
            .collect();
        return message;
    }
    for image in &result.images {
        let content = message.content.to_mut();
        if !content.is_empty() {
            content.push('\n');
        }
        content.push_str(&image.to_words());
    }
    message
}

#[cfg(test)]
mod tests;
