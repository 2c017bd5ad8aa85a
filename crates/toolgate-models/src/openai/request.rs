//! Builds the request body for chat completions, without touching a socket.

use serde::Serialize;
use serde_json::{Value, json};

use super::transcript::{self, OpenAiMessage};
use crate::compat::{RequestCompat, SentOptions, is_unsupported};
use crate::wire_format::RequestOptions;
use crate::{ModelError, ModelRequest, OfferedTools};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenAiCompat {
    // Servers report token usage only when asked to, and some refuse `stream_options`.
    asks_usage: bool,
    limit: LimitName,
    // The other name for the limit was tried already.
    swapped: bool,
    pub(super) sent: SentOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LimitName {
    MaxTokens,
    // Reasoning models require this one.
    MaxCompletionTokens,
}

impl OpenAiCompat {
    // OpenAI itself accepts the new name for the limit, most other servers the old one.
    pub(super) fn new(official: bool, sent: SentOptions) -> Self {
        Self {
            asks_usage: true,
            limit: if official {
                LimitName::MaxCompletionTokens
            } else {
                LimitName::MaxTokens
            },
            swapped: false,
            sent,
        }
    }
}

impl RequestCompat for OpenAiCompat {
    fn adapted_to(mut self, status: u16, message: &str) -> Self {
        if !matches!(status, 400 | 422) {
            return self;
        }
        let message = message.to_lowercase();
        let (name, other) = match self.limit {
            LimitName::MaxTokens => ("max_tokens", LimitName::MaxCompletionTokens),
            LimitName::MaxCompletionTokens => ("max_completion_tokens", LimitName::MaxTokens),
        };
        if message.contains("stream_options") {
            self.asks_usage = false;
        } else if !self.swapped && message.contains(name) && is_unsupported(status, &message) {
            self.limit = other;
            self.swapped = true;
        } else {
            self.sent = self.sent.adapted_to(status, &message);
        }
        self
    }

    fn notices(self, before: Self, model: &str, error: &ModelError) -> Vec<String> {
        self.sent.notices(before.sent, model, error)
    }
}

pub(super) fn body(
    options: &RequestOptions,
    compat: OpenAiCompat,
    request: &ModelRequest<'_>,
) -> Result<Vec<u8>, String> {
    let has_tools = !request.tools.is_empty();
    let room = request.answer_tokens(options.window, options.max_tokens);
    let limit = |name| (compat.limit == name).then_some(room);
    let body = OpenAiBody {
        model: &options.model,
        messages: transcript::messages(request),
        tools: has_tools.then_some(request.tools),
        // Tools are listed even if none may be called, because history refers to them.
        tool_choice: (has_tools && request.forbid_tools).then_some("none"),
        stream: true,
        stream_options: compat.asks_usage.then(|| json!({ "include_usage": true })),
        max_tokens: limit(LimitName::MaxTokens),
        max_completion_tokens: limit(LimitName::MaxCompletionTokens),
        temperature: request
            .temperature
            .or(options.temperature)
            .filter(|_| compat.sent.temperature),
        seed: options.seed.filter(|_| compat.sent.seed),
        // For self-hosted servers, which render the model's chat template themselves.
        chat_template_kwargs: options
            .think
            .filter(|_| compat.sent.think)
            .map(|enable_thinking| json!({ "enable_thinking": enable_thinking })),
    };
    serde_json::to_vec(&body).map_err(|error| error.to_string())
}

#[derive(Serialize)]
struct OpenAiBody<'a> {
    model: &'a str,
    messages: Vec<OpenAiMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a OfferedTools>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chat_template_kwargs: Option<Value>,
}

#[cfg(test)]
mod tests;
