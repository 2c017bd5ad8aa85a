//! What is asked, as the chat completions want it: bytes out of a request, without a socket.

use serde::Serialize;

use super::transcript::{self, Message};
use crate::learned::{Habits, Sent, is_unwanted};
use crate::{ModelError, Offer, Request};

#[derive(Debug, Clone)]
pub(super) struct Options {
    pub(super) model: String,
    pub(super) max_tokens: usize,
    /// How many tokens the model can hold.
    pub(super) window: usize,
    pub(super) temperature: Option<f64>,
    pub(super) seed: Option<i64>,
    /// For servers that run a model's template themselves.
    pub(super) enable_thinking: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServerHabits {
    /// It tells what an answer cost only when it is asked to, and some do not understand the question.
    asks_usage: bool,
    limit: LimitName,
    swapped: bool,
    pub(super) sent: Sent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LimitName {
    MaxTokens,
    /// The one that models want which reason.
    MaxCompletionTokens,
}

impl ServerHabits {
    /// OpenAI itself knows the new names, others rather the old ones.
    pub(super) fn new(official: bool, options: &Options) -> Self {
        Self {
            asks_usage: true,
            limit: if official {
                LimitName::MaxCompletionTokens
            } else {
                LimitName::MaxTokens
            },
            swapped: false,
            sent: Sent {
                temperature: options.temperature.is_some(),
                seed: options.seed.is_some(),
                think: options.enable_thinking.is_some(),
            },
        }
    }
}

impl Habits for ServerHabits {
    fn after(mut self, status: u16, message: &str) -> Self {
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
        } else if !self.swapped && message.contains(name) && is_unwanted(status, &message) {
            self.limit = other;
            self.swapped = true;
        } else {
            self.sent = self.sent.after(status, &message);
        }
        self
    }

    fn notices(self, before: Self, model: &str, error: &ModelError) -> Vec<String> {
        self.sent.notices(before.sent, model, error)
    }
}

pub(super) fn body(
    options: &Options,
    habits: ServerHabits,
    request: &Request<'_>,
) -> Result<Vec<u8>, String> {
    let has_tools = !request.tools.is_empty();
    let room = request.room(options.window, options.max_tokens);
    let limit = |name| (habits.limit == name).then_some(room);
    let body = Body {
        model: &options.model,
        messages: transcript::messages(request),
        tools: has_tools.then_some(request.tools),
        // Tools are listed also where none may be used: history speaks of them.
        tool_choice: (has_tools && request.words_only).then_some("none"),
        stream: true,
        stream_options: habits.asks_usage.then_some(StreamOptions {
            include_usage: true,
        }),
        max_tokens: limit(LimitName::MaxTokens),
        max_completion_tokens: limit(LimitName::MaxCompletionTokens),
        temperature: options.temperature.filter(|_| habits.sent.temperature),
        seed: options.seed.filter(|_| habits.sent.seed),
        chat_template_kwargs: options
            .enable_thinking
            .filter(|_| habits.sent.think)
            .map(|enable_thinking| TemplateOptions { enable_thinking }),
    };
    serde_json::to_vec(&body).map_err(|error| error.to_string())
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a Offer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chat_template_kwargs: Option<TemplateOptions>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct TemplateOptions {
    enable_thinking: bool,
}

#[cfg(test)]
mod tests;
