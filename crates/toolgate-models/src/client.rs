//! The interface of a model client, with its request and its reply.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::conversation::message_tokens;
use crate::{
    AssistantMessage, Catalog, Message, ModelError, ModelListener, OfferedTools, Provider,
    ToolList, tokens,
};

/// A model that can be asked.
///
/// Dropping the future of [`reply`](Self::reply) closes the connection.
pub trait ModelClient: Send + Sync {
    fn provider(&self) -> Provider;

    fn model(&self) -> &str;

    /// Fetches what is needed before tools are chosen, such as the context size. Failures are
    /// ignored: the model can be asked anyway.
    fn prepare(&self, _deadline: Instant) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// The context size in tokens, the answer included.
    fn window(&self) -> usize;

    /// The most tools the provider accepts in one request; `None` if unlimited.
    fn tool_limit(&self) -> Option<usize> {
        None
    }

    /// The tools in this provider's form. Cached for the latest list.
    fn catalog(&self, tools: &Arc<ToolList>) -> Arc<Catalog>;

    /// Asks the model once, with retries until the request's deadline. Text goes to the
    /// listener as it arrives, and is withdrawn by
    /// [`ModelEvent::Void`](crate::ModelEvent::Void) if an attempt fails.
    fn reply<'a>(
        &'a self,
        request: ModelRequest<'a>,
        listener: &'a mut dyn ModelListener,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>>;
}

/// One question to a model, with the conversation so far.
#[derive(Clone, Copy)]
pub struct ModelRequest<'a> {
    pub system: &'a str,
    pub messages: &'a [Message],
    /// Estimated tokens of `system` and `messages`.
    pub tokens: usize,
    /// Listed even if `forbid_tools` is set: history refers to them, and a provider's prompt cache
    /// depends on the list.
    pub tools: &'a OfferedTools,
    /// The model must answer in words.
    pub forbid_tools: bool,
    /// The longest answer in tokens, if it is shorter than that of the settings.
    pub max_tokens: Option<usize>,
    /// Replaces the temperature of the settings.
    pub temperature: Option<f64>,
    /// When the answer must be complete, retries included.
    pub deadline: Instant,
}

impl<'a> ModelRequest<'a> {
    pub fn new(
        system: &'a str,
        messages: &'a [Message],
        tools: &'a OfferedTools,
        deadline: Instant,
    ) -> Self {
        let message_tokens: usize = messages.iter().map(message_tokens).sum();
        Self {
            system,
            messages,
            tokens: tokens::estimate(system) + message_tokens,
            tools,
            forbid_tools: false,
            max_tokens: None,
            temperature: None,
            deadline,
        }
    }

    /// How many tokens the answer may have, at most `most`. Many servers refuse a request if prompt
    /// and answer together exceed the window. A quarter of the window is always available, because
    /// conversations reserve that much for the answer.
    pub(crate) fn answer_tokens(&self, window: usize, most: usize) -> usize {
        let prompt = self.tokens + self.tools.tokens();
        self.limit_tokens(most)
            .min(window.saturating_sub(prompt).max(window / 4))
    }

    /// The limit of this request, or that of the settings, whichever is lower.
    pub(crate) fn limit_tokens(&self, most: usize) -> usize {
        most.min(self.max_tokens.unwrap_or(most))
    }
}

/// A complete reply of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelReply {
    pub message: AssistantMessage,
    pub stop: StopReason,
    pub usage: TokenUsage,
    /// When the first text or call arrived.
    pub first_token: Option<Instant>,
}

impl ModelReply {
    pub(crate) fn new(message: AssistantMessage, stop: StopReason, usage: TokenUsage) -> Self {
        Self {
            message,
            stop,
            usage,
            first_token: None,
        }
    }
}

/// Why a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// The model was done.
    End,
    /// The model asks for calls.
    Calls,
    /// It ran out of tokens or time in the middle of its text.
    Length,
    /// It ran out of tokens in the middle of a call. That call is not in the message.
    TruncatedCall,
    /// The model or its provider declined to answer.
    Refusal,
    /// It paused, and continues when asked again with its reply so far.
    Pause,
}

/// The tokens of a reply or a turn, as the provider counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TokenUsage {
    /// All input tokens, including the cached ones.
    pub input: u64,
    pub output: u64,
    /// How many of the input tokens the provider read from its cache.
    pub cached: u64,
}

impl std::ops::AddAssign for TokenUsage {
    fn add_assign(&mut self, other: Self) {
        // Servers may report any number, so the sum must not overflow.
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = self.cached.saturating_add(other.cached);
    }
}
