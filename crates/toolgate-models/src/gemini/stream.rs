//! What comes back, understood event by event, without a socket. Every event is a whole `GenerateContentResponse`; the last one
//! has a reason to finish, and nothing says that no other comes.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::PROVIDER;
use super::transcript::SIGNATURE;
use crate::message::MOST_PARTS;
use crate::reply_buffer::ReplyBuffer;
use crate::wire_format::{Progress, ReplyReader, StreamError, utf8};
use crate::{AssistantMessage, CallArguments, Catalog, ModelCall, Part, Reply, Stop, Usage};

pub(crate) struct Stream<'a> {
    catalog: &'a Catalog,
    parts: Vec<Part>,
    reason: Option<String>,
    explanation: String,
    usage: Usage,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'a> {
    #[serde(borrow, default)]
    candidates: Vec<Candidate<'a>>,
    #[serde(default)]
    prompt_feedback: Option<PromptFeedback>,
    #[serde(default)]
    usage_metadata: Option<UsageMetadata>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow, default)]
    content: Option<Content<'a>>,
    #[serde(default)]
    finish_reason: Option<String>,
    #[serde(default)]
    finish_message: Option<String>,
    #[serde(default)]
    index: u64,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow, default)]
    parts: Vec<WirePart<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WirePart<'a> {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    thought: bool,
    #[serde(default)]
    thought_signature: Option<String>,
    #[serde(borrow, default)]
    function_call: Option<FunctionCall<'a>>,
}

#[derive(Deserialize)]
struct FunctionCall<'a> {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    /// As they were written: whether a key stands there twice is seen only in the text.
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedback {
    #[serde(default)]
    block_reason: Option<String>,
    #[serde(default)]
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

impl<'a> Stream<'a> {
    pub(super) fn new(catalog: &'a Catalog) -> Self {
        Self {
            catalog,
            parts: Vec::new(),
            reason: None,
            explanation: String::new(),
            usage: Usage::default(),
        }
    }

    fn part(&mut self, part: WirePart<'_>, reply: &mut ReplyBuffer<'_>) -> Result<(), StreamError> {
        if self.parts.len() >= MOST_PARTS {
            let reason = format!("it has more than {MOST_PARTS} parts");
            return Err(StreamError::Garbled(reason));
        }
        let is_signed = part.thought_signature.is_some();
        if let Some(signature) = part.thought_signature {
            self.parts.push(Part::Opaque {
                provider: PROVIDER,
                value: json!({ SIGNATURE: signature }),
            });
        }
        if let Some(call) = part.function_call {
            self.parts.push(Part::Call(self.call(call)));
        }
        match part.text {
            Some(text) if part.thought => {
                reply.tell_thinking(&text);
                self.thinking(text);
            }
            Some(text) => {
                reply.tell_text(&text);
                self.text(text, is_signed);
            }
            None => {}
        }
        Ok(())
    }

    /// A signature is for its own part: that one is not joined with what came before.
    fn text(&mut self, more: String, is_signed: bool) {
        match self.parts.last_mut() {
            Some(Part::Text { text }) if !is_signed => text.push_str(&more),
            _ if more.is_empty() => {}
            _ => self.parts.push(Part::Text { text: more }),
        }
    }

    fn thinking(&mut self, more: String) {
        match self.parts.last_mut() {
            Some(Part::Thinking { text, .. }) => text.push_str(&more),
            _ => self.parts.push(Part::Thinking {
                text: more,
                // Another provider would take a signature for its own.
                signature: None,
            }),
        }
    }

    fn call(&self, call: FunctionCall<'_>) -> ModelCall {
        ModelCall {
            id: ModelCall::id_or_new(call.id.unwrap_or_default()),
            name: self
                .catalog
                .listed_name(call.name.as_deref().unwrap_or_default()),
            arguments: CallArguments::read(call.args.map_or("", RawValue::get)),
        }
    }

    /// A call that the provider could not read: the model may write it well the next time.
    fn unread_call(&self, reason: &str) -> StreamError {
        let explanation = match self.explanation.as_str() {
            "" => String::new(),
            text => format!(": {text}"),
        };
        let message = format!("the model wrote a call that can't be read ({reason}{explanation})");
        StreamError::Said(json!({ "error": { "code": 500, "message": message } }))
    }
}

impl ReplyReader for Stream<'_> {
    fn read(
        &mut self,
        _name: &str,
        data: &[u8],
        reply: &mut ReplyBuffer<'_>,
    ) -> Result<(), StreamError> {
        let json = utf8(data)?.trim();
        if json.is_empty() {
            return Ok(());
        }
        // Some servers send what comes before its stream as a list, an error most of all.
        let chunks = match json.starts_with('[') {
            true => serde_json::from_str::<Vec<&RawValue>>(json),
            false => serde_json::from_str::<&RawValue>(json).map(|one| vec![one]),
        };
        for chunk in chunks.map_err(|error| odd(json, &error))? {
            self.chunk(chunk.get(), reply)?;
        }
        Ok(())
    }

    fn has_begun(&self, _: &ReplyBuffer<'_>) -> bool {
        !self.parts.is_empty()
    }

    fn progress(&self) -> Progress {
        match self.reason {
            Some(_) => Progress::Ended,
            None => Progress::Open,
        }
    }

    fn finish(mut self, _: &mut ReplyBuffer<'_>) -> Result<Reply, StreamError> {
        let Some(reason) = self.reason.take() else {
            return Err(StreamError::Cut);
        };
        let has_calls = self.parts.iter().any(|part| matches!(part, Part::Call(_)));
        let stop = match reason.as_str() {
            "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "TOO_MANY_TOOL_CALLS" => {
                return Err(self.unread_call(&reason));
            }
            "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
            | "IMAGE_SAFETY" | BLOCKED => Stop::Refusal,
            // Calls come whole: a limit cuts only words.
            _ if has_calls => Stop::Calls,
            "MAX_TOKENS" => Stop::Length,
            _ => Stop::End,
        };
        if stop == Stop::Refusal {
            // What a model refuses to finish is not done by halves.
            self.parts.retain(|part| !matches!(part, Part::Call(_)));
        }
        Ok(Reply {
            message: AssistantMessage { parts: self.parts },
            stop,
            usage: self.usage,
            first_token: None,
        })
    }
}

/// The reason where the question itself was refused.
const BLOCKED: &str = "blockReason";

impl Stream<'_> {
    fn chunk(&mut self, json: &str, reply: &mut ReplyBuffer<'_>) -> Result<(), StreamError> {
        let chunk: Chunk<'_> = serde_json::from_str(json).map_err(|error| odd(json, &error))?;
        if chunk.error.is_some_and(|error| error.get() != "null") {
            return Err(StreamError::Said(
                serde_json::from_str(json).unwrap_or_default(),
            ));
        }
        if let Some(counts) = chunk.usage_metadata {
            self.usage = Usage {
                input: counts.prompt_token_count,
                output: counts
                    .candidates_token_count
                    .saturating_add(counts.thoughts_token_count),
                cached: counts.cached_content_token_count,
            };
        }
        if let Some(feedback) = chunk.prompt_feedback
            && feedback.block_reason.is_some()
        {
            reply.tell_text(feedback.block_reason_message.as_deref().unwrap_or_default());
            self.text(feedback.block_reason_message.unwrap_or_default(), false);
            self.reason = Some(BLOCKED.to_owned());
        }
        // Only one answer was asked for.
        for candidate in chunk.candidates.into_iter().filter(|one| one.index == 0) {
            for part in candidate.content.into_iter().flat_map(|it| it.parts) {
                self.part(part, reply)?;
            }
            self.reason = candidate.finish_reason.or(self.reason.take());
            self.explanation += candidate.finish_message.as_deref().unwrap_or_default();
        }
        Ok(())
    }
}

/// What is JSON but not of the usual shape may be an error of a proxy, in its own words.
fn odd(json: &str, error: &serde_json::Error) -> StreamError {
    match serde_json::from_str::<Value>(json) {
        Ok(value) if value.get("error").is_some() => StreamError::Said(value),
        _ => StreamError::Garbled(format!("a piece is not part of an answer ({error})")),
    }
}

#[cfg(test)]
mod tests;
