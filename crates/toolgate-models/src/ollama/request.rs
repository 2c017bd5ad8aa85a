//! What goes to `/api/chat`.

use std::borrow::Cow;

use serde::Serialize;
use toolgate_core::Arguments;

use crate::{AssistantMessage, Message, ModelSettings, Offer, Part, Request, ToolResult};

pub(super) fn tokens(request: &Request<'_>) -> usize {
    request.tokens + offered(request).map_or(0, Offer::tokens)
}

/// There is no way to offer tools and forbid them: a model that must answer in words is not told of any.
fn offered<'a>(request: &Request<'a>) -> Option<&'a Offer> {
    Some(request.tools).filter(|tools| !request.words_only && !tools.is_empty())
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) window: usize,
    /// Whether the model thinks; `None`: as it likes.
    pub(super) think: Option<bool>,
    /// Whether the model can look at them; else they are told in words.
    pub(super) pictures: bool,
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: &'a [Wire<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a Offer>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<bool>,
    options: Options,
    keep_alive: i64,
}

#[derive(Serialize)]
struct Options {
    num_ctx: usize,
    num_predict: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
}

#[derive(Serialize, Default)]
struct Wire<'a> {
    role: &'static str,
    content: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    thinking: Cow<'a, str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: &'a str,
    function: WireFunction<'a>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    index: usize,
    name: Cow<'a, str>,
    /// A text instead of an object would be refused.
    arguments: Cow<'a, Arguments>,
}

/// The bytes of a question.
pub(super) fn body(
    request: &Request<'_>,
    model: &str,
    settings: &ModelSettings,
    wanted: Wanted,
) -> Result<Vec<u8>, serde_json::Error> {
    let catalog = request.tools;
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        messages.push(Wire::said("system", request.system));
    }
    for message in request.messages {
        match message {
            Message::User { text } => messages.push(Wire::said("user", text)),
            Message::Assistant(said) => messages.extend(assistant(said, catalog)),
            Message::Tool { results } => {
                let results = results.iter();
                messages.extend(results.map(|result| tool(result, catalog, wanted.pictures)));
            }
        }
    }
    let tools = offered(request);
    let mut bytes = Vec::with_capacity(about_bytes(&messages, tools));
    let body = Body {
        model,
        messages: &messages,
        tools,
        stream: true,
        think: wanted.think,
        options: Options {
            num_ctx: wanted.window,
            // An answer that fills the window pushes its question out of it.
            num_predict: settings.max_tokens.min((wanted.window / 2).max(1)),
            temperature: settings.temperature,
            seed: settings.seed,
        },
        keep_alive: settings.keep_alive,
    };
    serde_json::to_writer(&mut bytes, &body)?;
    Ok(bytes)
}

/// Rather too many than too few: a body that grows is copied again and again.
fn about_bytes(messages: &[Wire<'_>], tools: Option<&Offer>) -> usize {
    const AROUND: usize = 512;
    let messages = messages.iter().map(Wire::about_bytes);
    let tools = tools.into_iter().flat_map(Offer::iter);
    let tools = tools.map(|tool| tool.json.get().len() + 1);
    AROUND + messages.sum::<usize>() + tools.sum::<usize>()
}

impl<'a> Wire<'a> {
    fn said(role: &'static str, content: impl Into<Cow<'a, str>>) -> Self {
        Self {
            role,
            content: content.into(),
            ..Self::default()
        }
    }

    fn about_bytes(&self) -> usize {
        const AROUND: usize = 128;
        const CALL: usize = 256;
        let words = self.content.len() + self.thinking.len();
        let images: usize = self.images.iter().map(|image| image.len() + 3).sum();
        // Line breaks and quotes take two bytes each.
        AROUND + words + words / 16 + images + CALL * self.tool_calls.len()
    }
}

/// Nothing where nothing is left: another provider's blocks mean nothing here.
///
/// Thinking goes back as far as the history has it: within a turn a model goes on where its thoughts were, and whether they
/// outlive the turn is up to the conversation.
fn assistant<'a>(said: &'a AssistantMessage, tools: &'a Offer) -> Option<Wire<'a>> {
    let calls = said.calls().enumerate().map(|(index, call)| WireCall {
        id: &call.id,
        function: WireFunction {
            index,
            name: tools.catalog().wire_name(&call.name),
            arguments: call.arguments.as_object(),
        },
    });
    let thoughts = said.parts.iter().filter_map(|part| match part {
        Part::Thinking { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let message = Wire {
        thinking: Cow::Owned(thoughts.collect()),
        tool_calls: calls.collect(),
        ..Wire::said("assistant", said.to_text())
    };
    let empty =
        message.content.is_empty() && message.thinking.is_empty() && message.tool_calls.is_empty();
    (!empty).then_some(message)
}

/// Calls of the same tool are matched by their order, which the history keeps.
fn tool<'a>(result: &'a ToolResult, tools: &'a Offer, pictures: bool) -> Wire<'a> {
    let mut message = Wire {
        tool_name: Some(tools.catalog().wire_name(&result.name)),
        tool_call_id: Some(&result.id),
        ..Wire::said("tool", result.text.as_str())
    };
    if pictures {
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
