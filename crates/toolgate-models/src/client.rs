//! What every model client can do.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::conversation::tokens_of;
use crate::{
    AssistantMessage, Catalog, Listener, Message, ModelError, Offer, Provider, ToolList, tokens,
};

/// A model that can be asked. Dropping the future of [`reply`](Self::reply) closes the connection to it.
pub trait ModelClient: Send + Sync {
    /// Whose model.
    fn provider(&self) -> Provider;

    /// Which model.
    fn model(&self) -> &str;

    /// Learns what has to be known before tools are chosen, as how much the model can hold, where that must be asked for.
    /// What can not be learned until the deadline does not keep the model from being asked.
    fn prepare(&self, _deadline: Instant) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// How many tokens it can hold, the answer included.
    fn window(&self) -> usize;

    /// The most tools that it may be offered at once, where the provider has a limit.
    fn most_tools(&self) -> Option<usize> {
        None
    }

    /// The tools in this model's form. Made once for a list of tools and kept.
    fn catalog(&self, tools: &Arc<ToolList>) -> Arc<Catalog>;

    /// Asks the model once; retries what may be retried until the request's deadline. Words are told as they arrive.
    fn reply<'a>(
        &'a self,
        request: Request<'a>,
        listener: &'a mut dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, ModelError>>;
}

/// What a model is asked.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// What it should know before anything else; may be empty.
    pub system: &'a str,
    /// All that was said, whole turns.
    pub messages: &'a [Message],
    /// About how many tokens both are.
    pub tokens: usize,
    /// The tools it knows of. They are needed where it must not use them too: history names them, and a provider's cache
    /// is kept by the same list.
    pub tools: &'a Offer,
    /// True if it must answer in words and may not use a tool.
    pub words_only: bool,
    /// When there must be an answer, all attempts included.
    pub deadline: Instant,
}

impl<'a> Request<'a> {
    /// A question that may be answered by calls; how many tokens it is, is guessed.
    pub fn new(
        system: &'a str,
        messages: &'a [Message],
        tools: &'a Offer,
        deadline: Instant,
    ) -> Self {
        let said: usize = messages.iter().map(tokens_of).sum();
        Self {
            system,
            messages,
            tokens: tokens::estimate(system) + said,
            tools,
            words_only: false,
            deadline,
        }
    }

    /// How many tokens the answer may have: many servers refuse a request whose prompt and answer exceed the window
    /// together. A quarter of it is free for the answer, as a conversation sees to.
    pub(crate) fn room(&self, window: usize, most: usize) -> usize {
        let prompt = self.tokens + self.tools.tokens();
        most.min(window.saturating_sub(prompt).max(window / 4))
    }
}

/// What a model answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The answer.
    pub message: AssistantMessage,
    /// Why it ended there.
    pub stop: Stop,
    /// What it cost.
    pub usage: Usage,
    /// When its first words or call came.
    pub first_token: Option<Instant>,
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Stop {
    /// It is done.
    End,
    /// It waits for tools.
    Calls,
    /// It ran out of tokens, or of time, in mid-sentence.
    Length,
    /// It ran out of tokens in the middle of a call, which is not in the message.
    CutCall,
    /// It will not answer this, or can not.
    Refusal,
    /// It made a pause and wants to be asked again with what it said so far.
    Pause,
}

/// Tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Read by the model, from a cache or not.
    pub input: u64,
    /// Written by the model.
    pub output: u64,
    /// Of those read, how many came from a cache.
    pub cached: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        // What a server counts is only what it says.
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = self.cached.saturating_add(other.cached);
    }
}
