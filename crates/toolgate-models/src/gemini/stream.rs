//! Reads the events of a reply, without touching a socket.
//!
//! Each event is a whole `GenerateContentResponse`. The last one has a finish reason, but other
//! events may follow it, so only the end of the stream ends the reply.

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::PROVIDER;
use super::transcript::SIGNATURE;
use crate::message::MAX_PARTS;
use crate::reply_buffer::ReplyBuffer;
use crate::wire_format::{
    ReadResult, ReplyReader, ReplyStreamError, StreamProgress, parse_utf8, unexpected_json_error,
};
use crate::{
    AssistantMessage, CallArguments, Catalog, MessagePart, ModelCall, ModelReply, StopReason,
    TokenUsage,
};

pub(crate) struct GeminiReader<'a> {
    catalog: &'a Catalog,
    parts: Vec<MessagePart>,
    reason: Option<String>,
    explanation: String,
    usage: TokenUsage,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiChunk<'a> {
    #[serde(borrow, default)]
    candidates: Vec<GeminiCandidate<'a>>,
    prompt_feedback: Option<PromptFeedback>,
    usage_metadata: Option<UsageMetadata>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiCandidate<'a> {
    #[serde(borrow)]
    content: Option<CandidateContent<'a>>,
    finish_reason: Option<String>,
    finish_message: Option<String>,
    #[serde(default)]
    index: u64,
}

#[derive(Deserialize)]
struct CandidateContent<'a> {
    #[serde(borrow, default)]
    parts: Vec<CandidatePart<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CandidatePart<'a> {
    text: Option<String>,
    #[serde(default)]
    thought: bool,
    thought_signature: Option<String>,
    #[serde(borrow)]
    function_call: Option<CandidateCall<'a>>,
}

#[derive(Deserialize)]
struct CandidateCall<'a> {
    id: Option<String>,
    name: Option<String>,
    // Kept as written, so that duplicate keys are found when the call is read.
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedback {
    block_reason: Option<String>,
    block_reason_message: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct UsageMetadata {
    prompt_token_count: u64,
    cached_content_token_count: u64,
    candidates_token_count: u64,
    thoughts_token_count: u64,
}

impl<'a> GeminiReader<'a> {
    pub(super) fn new(catalog: &'a Catalog) -> Self {
        Self {
            catalog,
            parts: Vec::new(),
            reason: None,
            explanation: String::new(),
            usage: TokenUsage::default(),
        }
    }

    fn read_part(&mut self, part: CandidatePart<'_>, reply: &mut ReplyBuffer<'_>) -> ReadResult {
        if self.parts.len() >= MAX_PARTS {
            let reason = format!("it has more than {MAX_PARTS} parts");
            return Err(ReplyStreamError::Malformed(reason));
        }
        let is_signed = part.thought_signature.is_some();
        if let Some(signature) = part.thought_signature {
            self.parts.push(MessagePart::Opaque {
                provider: PROVIDER,
                value: json!({ SIGNATURE: signature }),
            });
        }
        if let Some(call) = part.function_call {
            self.parts.push(MessagePart::Call(self.model_call(call)));
        }
        match part.text {
            Some(text) if part.thought => {
                reply.forward_thinking(&text);
                self.push_thinking(text);
            }
            Some(text) => {
                reply.forward_text(&text);
                self.push_text(text, is_signed);
            }
            None => {}
        }
        Ok(())
    }

    // A signed part is kept apart from the one before it, because the signature is only for that
    // part.
    fn push_text(&mut self, more: String, is_signed: bool) {
        match self.parts.last_mut() {
            Some(MessagePart::Text { text }) if !is_signed => text.push_str(&more),
            _ if more.is_empty() => {}
            _ => self.parts.push(MessagePart::Text { text: more }),
        }
    }

    fn push_thinking(&mut self, more: String) {
        match self.parts.last_mut() {
            Some(MessagePart::Thinking { text, .. }) => text.push_str(&more),
            _ => self.parts.push(MessagePart::Thinking {
                text: more,
                // Gemini's signatures are kept as opaque parts. Here, Anthropic would take one for
                // its own.
                signature: None,
            }),
        }
    }

    fn model_call(&self, call: CandidateCall<'_>) -> ModelCall {
        ModelCall {
            id: ModelCall::id_or_new(call.id.unwrap_or_default()),
            name: self
                .catalog
                .listed_name(call.name.as_deref().unwrap_or_default()),
            arguments: CallArguments::parse(call.args.map_or("", RawValue::get)),
        }
    }

    // The provider couldn't parse the model's call. Reported as a server error, which is retried:
    // the model may write the call correctly the next time.
    fn unreadable_call_error(&self, reason: &str) -> ReplyStreamError {
        let explanation = match self.explanation.as_str() {
            "" => String::new(),
            text => format!(": {text}"),
        };
        let message = format!("the model wrote a call that can't be read ({reason}{explanation})");
        ReplyStreamError::Reported(json!({ "error": { "code": 500, "message": message } }))
    }
}

impl ReplyReader for GeminiReader<'_> {
    fn read_event(&mut self, _name: &str, data: &[u8], reply: &mut ReplyBuffer<'_>) -> ReadResult {
        let json = parse_utf8(data)?.trim();
        if json.is_empty() {
            return Ok(());
        }
        // Some servers send a list of chunks before the stream begins, mostly with errors.
        let chunks = match json.starts_with('[') {
            true => serde_json::from_str::<Vec<&RawValue>>(json),
            false => serde_json::from_str::<&RawValue>(json).map(|one| vec![one]),
        };
        for chunk in chunks.map_err(|error| unexpected_json_error(json, &error))? {
            self.read_chunk(chunk.get(), reply)?;
        }
        Ok(())
    }

    fn has_begun(&self, _: &ReplyBuffer<'_>) -> bool {
        !self.parts.is_empty()
    }

    fn progress(&self) -> StreamProgress {
        match self.reason {
            Some(_) => StreamProgress::Ended,
            None => StreamProgress::Open,
        }
    }

    fn finish(mut self, _: &mut ReplyBuffer<'_>) -> Result<ModelReply, ReplyStreamError> {
        let Some(reason) = self.reason.take() else {
            return Err(ReplyStreamError::Truncated);
        };
        let has_calls = self
            .parts
            .iter()
            .any(|part| matches!(part, MessagePart::Call(_)));
        let stop = match reason.as_str() {
            "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "TOO_MANY_TOOL_CALLS" => {
                return Err(self.unreadable_call_error(&reason));
            }
            "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
            | "IMAGE_SAFETY" | BLOCKED => StopReason::Refusal,
            // Calls arrive whole, so a token limit cuts only text.
            _ if has_calls => StopReason::Calls,
            "MAX_TOKENS" => StopReason::Length,
            _ => StopReason::End,
        };
        if stop == StopReason::Refusal {
            // None of the calls of a refused reply may run.
            self.parts
                .retain(|part| !matches!(part, MessagePart::Call(_)));
        }
        let message = AssistantMessage { parts: self.parts };
        Ok(ModelReply::new(message, stop, self.usage))
    }
}

// Our own finish reason for a prompt that was blocked.
const BLOCKED: &str = "blockReason";

impl GeminiReader<'_> {
    fn read_chunk(&mut self, json: &str, reply: &mut ReplyBuffer<'_>) -> ReadResult {
        let chunk: GeminiChunk<'_> =
            serde_json::from_str(json).map_err(|error| unexpected_json_error(json, &error))?;
        if chunk.error.is_some_and(|error| error.get() != "null") {
            return Err(ReplyStreamError::Reported(
                serde_json::from_str(json).unwrap_or_default(),
            ));
        }
        if let Some(usage) = chunk.usage_metadata {
            self.usage = TokenUsage {
                input: usage.prompt_token_count,
                output: usage
                    .candidates_token_count
                    .saturating_add(usage.thoughts_token_count),
                cached: usage.cached_content_token_count,
            };
        }
        if let Some(feedback) = chunk.prompt_feedback
            && feedback.block_reason.is_some()
        {
            reply.forward_text(feedback.block_reason_message.as_deref().unwrap_or_default());
            self.push_text(feedback.block_reason_message.unwrap_or_default(), false);
            self.reason = Some(BLOCKED.to_owned());
        }
        // We ask for one candidate, so others are ignored.
        for candidate in chunk.candidates.into_iter().filter(|one| one.index == 0) {
            for part in candidate.content.into_iter().flat_map(|it| it.parts) {
                self.read_part(part, reply)?;
            }
            self.reason = candidate.finish_reason.or(self.reason.take());
            self.explanation += candidate.finish_message.as_deref().unwrap_or_default();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
