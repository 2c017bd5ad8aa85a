//! Lets servers ask the model of this program (MCP's sampling), within limits of their own.
//!
//! A server that may ask has an allowance: how long one answer may be, and how many tokens all its
//! requests of a day may take. What a request may need is set aside before the model is asked, so
//! requests side by side can't exceed the allowance together.

use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use toolgate_core::Redactor;
use toolgate_core::text::escape;
use tracing::{info, warn};

use super::message::RpcError;
use super::questions::RequestingCall;
use crate::settings::SamplingSettings;

/// How long the model may take for one request.
const TIMEOUT: Duration = Duration::from_secs(120);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
// A server that asks again and again must not fill the log.
const WARNING_INTERVAL: Duration = Duration::from_secs(10);
const MAX_MESSAGES: usize = 200;
// Bytes of all texts together. The allowance usually ends sooner.
const MAX_TEXT: usize = 1 << 20;
const MAX_STOP_SEQUENCES: usize = 16;
// What MCP has for a request that a person or a rule has turned down.
const REJECTED: i64 = -1;
const INVALID_PARAMS: i64 = -32602;

/// Answers a server's sampling request with a model. Implemented by the embedding program.
pub trait SamplingHandler: Send + Sync {
    /// Asks the model. The future is dropped when the time is up or the server has gone. An error
    /// is logged, but not sent to the server.
    fn sample<'a>(
        &'a self,
        request: &'a SamplingRequest,
    ) -> BoxFuture<'a, Result<SamplingAnswer, String>>;

    /// Estimates the tokens that the model has to read, rather too high than too low.
    fn input_tokens(&self, request: &SamplingRequest) -> u64;
}

/// What a server asks a model. Its texts are untrusted.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SamplingRequest {
    pub server: String,
    /// The call during which the server asks. `None` if the call isn't known.
    pub call: Option<RequestingCall>,
    /// Empty: none.
    pub system: String,
    pub messages: Vec<SamplingMessage>,
    /// The longest answer, in tokens.
    pub max_tokens: u64,
    pub temperature: Option<f64>,
}

/// One message of a [`SamplingRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamplingMessage {
    /// False: it has the role `user`.
    pub is_assistant: bool,
    pub text: String,
}

/// A model's answer to a [`SamplingRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamplingAnswer {
    pub text: String,
    /// The name of the model.
    pub model: String,
    /// True if the answer ended because it reached the limit.
    pub is_cut: bool,
    /// Tokens that the model has read; 0 if the provider doesn't say.
    pub input_tokens: u64,
    /// Tokens that the model has written; 0 if the provider doesn't say.
    pub output_tokens: u64,
}

/// How much of its allowance a server has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SamplingUsage {
    /// Answered requests since the start.
    pub requests: u64,
    /// Requests that were refused since the start.
    pub refused: u64,
    /// Tokens used in the current 24 hours.
    pub tokens: u64,
    /// How many tokens there are for 24 hours.
    pub tokens_per_day: u64,
}

/// What one server may use, and what it has used.
pub(crate) struct SamplingAllowance {
    settings: SamplingSettings,
    spent: Mutex<SpentTokens>,
}

#[derive(Default)]
struct SpentTokens {
    requests: u64,
    refused: u64,
    tokens: u64,
    // Begins with the first request after the last period.
    period: Option<Instant>,
    warned: Option<Instant>,
}

/// Tokens that are set aside for a request. On drop they count as used, because a request that was
/// cut short may have cost them.
struct ReservedTokens<'a> {
    allowance: &'a SamplingAllowance,
    tokens: u64,
}

impl SamplingAllowance {
    pub(crate) fn new(settings: SamplingSettings) -> Self {
        Self {
            settings,
            spent: Mutex::default(),
        }
    }

    /// The same allowance with other limits. What was used of it stays used.
    pub(crate) fn with_settings(&self, settings: SamplingSettings) -> Self {
        let spent = std::mem::take(&mut *self.spent.lock());
        Self {
            settings,
            spent: Mutex::new(spent),
        }
    }

    pub(crate) fn settings(&self) -> SamplingSettings {
        self.settings
    }

    pub(crate) fn usage(&self) -> SamplingUsage {
        let spent = self.spent.lock();
        let is_over = spent.period.is_none_or(|period| period.elapsed() >= DAY);
        SamplingUsage {
            requests: spent.requests,
            refused: spent.refused,
            tokens: if is_over { 0 } else { spent.tokens },
            tokens_per_day: self.settings.tokens_per_day,
        }
    }

    /// Answers `sampling/createMessage`.
    pub(crate) async fn answer(
        &self,
        handler: &dyn SamplingHandler,
        redactor: &Redactor,
        server: &str,
        params: &Value,
        call: Option<RequestingCall>,
    ) -> Result<Value, RpcError> {
        let result = self.answer_within(handler, server, params, call).await;
        if let Err(SamplingFailure { reason, .. }) = &result {
            let mut spent = self.spent.lock();
            spent.refused += 1;
            let is_due = spent
                .warned
                .is_none_or(|at| at.elapsed() >= WARNING_INTERVAL);
            if is_due {
                spent.warned = Some(Instant::now());
                let reason = redactor.line(reason, 300);
                let refused = spent.refused;
                warn!(server = %escape(server), %reason, refused, "sampling request refused");
            }
        }
        result.map_err(|failure| failure.error)
    }

    async fn answer_within(
        &self,
        handler: &dyn SamplingHandler,
        server: &str,
        params: &Value,
        call: Option<RequestingCall>,
    ) -> Result<Value, SamplingFailure> {
        let (mut request, stop_sequences) = read_request(server, params, call)?;
        request.max_tokens = request.max_tokens.min(self.settings.max_tokens);
        let needed = handler.input_tokens(&request);
        let reserved = self.reserve(needed.saturating_add(request.max_tokens))?;
        let asking = tokio::time::timeout(TIMEOUT, handler.sample(&request)).await;
        let answer =
            asking.map_err(|_| RpcError::new(-32603, "the model did not answer in time"))?;
        let answer = match answer {
            Ok(answer) => answer,
            Err(reason) => {
                reserved.release();
                // Which model there is, and where, is none of the server's business.
                let error = RpcError::new(-32603, "the model can't answer at the moment");
                return Err(SamplingFailure { error, reason });
            }
        };
        // Providers that don't count are counted by the estimate.
        let input = match answer.input_tokens {
            0 => needed,
            counted => counted,
        };
        let output = match answer.output_tokens {
            0 => request.max_tokens,
            counted => counted,
        };
        reserved.settle(input.saturating_add(output));
        let (call, tool, caller) = describe(request.call.as_ref());
        info!(
            server = %escape(server),
            %call,
            %tool,
            %caller,
            model = %escape(&answer.model),
            input_tokens = input,
            output_tokens = output,
            "answered a sampling request of a server"
        );
        Ok(to_result(&answer, &stop_sequences))
    }

    fn reserve(&self, tokens: u64) -> Result<ReservedTokens<'_>, RpcError> {
        let mut spent = self.spent.lock();
        if spent.period.is_none_or(|period| period.elapsed() >= DAY) {
            spent.period = Some(Instant::now());
            spent.tokens = 0;
        }
        let total = spent.tokens.saturating_add(tokens);
        if total > self.settings.tokens_per_day {
            let text = format!(
                "the request may take {tokens} tokens, but {} of {} per day are left for this server ('sampling.tokensPerDay')",
                self.settings.tokens_per_day.saturating_sub(spent.tokens),
                self.settings.tokens_per_day
            );
            return Err(RpcError::new(REJECTED, &text));
        }
        spent.tokens = total;
        Ok(ReservedTokens {
            allowance: self,
            tokens,
        })
    }
}

/// Why a request has no answer: what the server is told, and what is logged.
struct SamplingFailure {
    error: RpcError,
    reason: String,
}

impl From<RpcError> for SamplingFailure {
    fn from(error: RpcError) -> Self {
        let reason = error.message.clone();
        Self { error, reason }
    }
}

impl ReservedTokens<'_> {
    // The model has not taken the request.
    fn release(self) {
        let mut spent = self.allowance.spent.lock();
        spent.tokens = spent.tokens.saturating_sub(self.tokens);
    }

    fn settle(self, used: u64) {
        let mut spent = self.allowance.spent.lock();
        spent.tokens = spent
            .tokens
            .saturating_sub(self.tokens)
            .saturating_add(used);
        spent.requests += 1;
    }
}

/// The call's id, its tool and its caller, for the log. Empty if they are unknown.
fn describe(call: Option<&RequestingCall>) -> (String, String, String) {
    let Some(call) = call else {
        return Default::default();
    };
    let caller = call.caller.as_deref().unwrap_or_default();
    (call.id.to_string(), escape(&call.tool), escape(caller))
}

/// Returns the request, and the texts that end its answer.
fn read_request(
    server: &str,
    params: &Value,
    call: Option<RequestingCall>,
) -> Result<(SamplingRequest, Vec<String>), RpcError> {
    let rejected = |text: &str| RpcError::new(REJECTED, text);
    let has_tools = params["tools"]
        .as_array()
        .is_some_and(|tools| !tools.is_empty());
    if has_tools || params["toolChoice"]["mode"] == "required" {
        return Err(rejected(
            "the model answers without tools: leave out 'tools'",
        ));
    }
    let max_tokens = params["maxTokens"].as_u64().filter(|tokens| *tokens > 0);
    let invalid = |text: &str| RpcError::new(INVALID_PARAMS, text);
    let max_tokens = max_tokens.ok_or_else(|| invalid("'maxTokens' must be a positive number"))?;
    let listed = params["messages"]
        .as_array()
        .filter(|list| !list.is_empty());
    let listed = listed.ok_or_else(|| invalid("'messages' must be a list of messages"))?;
    if listed.len() > MAX_MESSAGES {
        return Err(invalid("there are too many messages"));
    }
    let system = params["systemPrompt"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let messages = listed.iter().map(read_message);
    let messages: Vec<SamplingMessage> = messages.collect::<Result<_, _>>()?;
    let texts = messages.iter().map(|message| message.text.len());
    if texts.sum::<usize>().saturating_add(system.len()) > MAX_TEXT {
        return Err(invalid("the messages are too long"));
    }
    let stops = params["stopSequences"].as_array().into_iter().flatten();
    let stops = stops
        .filter_map(Value::as_str)
        .filter(|stop| !stop.is_empty());
    let request = SamplingRequest {
        server: server.to_owned(),
        call,
        system,
        messages,
        max_tokens,
        temperature: params["temperature"].as_f64(),
    };
    let stops = stops.take(MAX_STOP_SEQUENCES).map(str::to_owned);
    Ok((request, stops.collect()))
}

fn read_message(message: &Value) -> Result<SamplingMessage, RpcError> {
    let is_assistant = match message["role"].as_str() {
        Some("user") => false,
        Some("assistant") => true,
        _ => {
            let text = "the role of a message must be 'user' or 'assistant'";
            return Err(RpcError::new(INVALID_PARAMS, text));
        }
    };
    let content = &message["content"];
    let blocks = match content {
        Value::Array(blocks) => blocks.as_slice(),
        one => std::slice::from_ref(one),
    };
    let texts = blocks.iter().map(
        |block| match (block["type"].as_str(), block["text"].as_str()) {
            (Some("text"), Some(text)) => Ok(text),
            (kind, _) => {
                let kind = escape(
                    &kind
                        .unwrap_or("unknown")
                        .chars()
                        .take(40)
                        .collect::<String>(),
                );
                let text = format!("the model is only sent text, not content of the type '{kind}'");
                Err(RpcError::new(REJECTED, &text))
            }
        },
    );
    let texts: Vec<&str> = texts.collect::<Result<_, _>>()?;
    Ok(SamplingMessage {
        is_assistant,
        text: texts.join("\n"),
    })
}

/// The stop sequences are applied here, because not every provider has them.
fn to_result(answer: &SamplingAnswer, stop_sequences: &[String]) -> Value {
    let ends = stop_sequences
        .iter()
        .filter_map(|stop| answer.text.find(stop.as_str()));
    let (text, reason) = match (ends.min(), answer.is_cut) {
        (Some(end), _) => (&answer.text[..end], "stopSequence"),
        (None, true) => (&*answer.text, "maxTokens"),
        (None, false) => (&*answer.text, "endTurn"),
    };
    json!({
        "role": "assistant",
        "content": { "type": "text", "text": text },
        "model": answer.model,
        "stopReason": reason,
    })
}

#[cfg(test)]
mod tests;
