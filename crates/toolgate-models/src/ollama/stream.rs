//! Reads the reply of `/api/chat`: one JSON object per line, until one has `done`.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::message::MAX_PARTS;
use crate::reply_buffer::ReplyBuffer;
use crate::wire_format::{
    ReadResult, ReplyReader, ReplyStreamError, StreamProgress, expect_no_error,
};
use crate::{CallArguments, ModelCall, ModelReply, OfferedTools, StopReason, TokenUsage};

// In Ollama 0.11, the key can be the error's text itself.
const ERROR_KEYS: &[&str] = &[
    "detail",
    "errors",
    "error_message",
    "error parsing tool call",
    "msg",
    "title",
];

pub(crate) struct OllamaReader<'a> {
    tools: &'a OfferedTools,
    calls: Vec<ModelCall>,
    done: Option<StreamEnd>,
}

#[derive(Debug, Default)]
struct StreamEnd {
    length: bool,
    usage: TokenUsage,
}

#[derive(Deserialize)]
struct OllamaLine<'a> {
    #[serde(borrow)]
    message: Option<ChatDelta<'a>>,
    #[serde(default)]
    done: bool,
    #[serde(borrow)]
    done_reason: Option<Cow<'a, str>>,
    prompt_eval_count: Option<u64>,
    eval_count: Option<u64>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ChatDelta<'a> {
    #[serde(borrow)]
    content: Option<Cow<'a, str>>,
    #[serde(borrow)]
    thinking: Option<Cow<'a, str>>,
    #[serde(borrow)]
    tool_calls: Option<Vec<ReceivedCall<'a>>>,
}

#[derive(Deserialize)]
struct ReceivedCall<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    function: Option<ReceivedFunction<'a>>,
}

#[derive(Deserialize, Default)]
struct ReceivedFunction<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    // Kept as written, so that duplicate keys are found when the call is read.
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl<'a> OllamaReader<'a> {
    pub(super) fn new(tools: &'a OfferedTools) -> Self {
        Self {
            tools,
            calls: Vec::new(),
            done: None,
        }
    }

    fn message(&mut self, said: ChatDelta<'_>, reply: &mut ReplyBuffer<'_>) -> ReadResult {
        reply.feed_thinking(&said.thinking.unwrap_or_default());
        reply.feed_text(&said.content.unwrap_or_default());
        for call in said.tool_calls.into_iter().flatten() {
            if self.calls.len() >= MAX_PARTS {
                let reason = format!("it asks for more than {MAX_PARTS} tools at once");
                return Err(ReplyStreamError::Malformed(reason));
            }
            self.calls.push(self.model_call(&call));
        }
        Ok(())
    }

    fn model_call(&self, wire: &ReceivedCall<'_>) -> ModelCall {
        let function = wire.function.as_ref();
        let name = function.and_then(|function| function.name.as_deref());
        let name = name.unwrap_or_default();
        let arguments = function.and_then(|function| function.arguments);
        let id = wire
            .id
            .map(RawValue::get)
            .map(serde_json::from_str::<String>);
        ModelCall {
            id: ModelCall::id_or_new(id.and_then(Result::ok).unwrap_or_default()),
            name: self.tools.catalog().listed_name(name),
            arguments: CallArguments::parse(arguments.map_or("", RawValue::get)),
        }
    }
}

impl ReplyReader for OllamaReader<'_> {
    fn read_event(&mut self, _name: &str, line: &[u8], reply: &mut ReplyBuffer<'_>) -> ReadResult {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let parsed = match parse_line(line) {
            Ok(parsed) if parsed.is_error() => return Err(reported_error(line)),
            Ok(parsed) => parsed,
            Err(error) => return Err(unexpected_line(line, &error)),
        };
        self.done = parsed.to_done();
        match parsed.message {
            Some(message) => self.message(message, reply),
            None if self.done.is_some() => Ok(()),
            None => expect_no_error(line, ERROR_KEYS),
        }
    }

    fn has_begun(&self, reply: &ReplyBuffer<'_>) -> bool {
        reply.has_begun() || !self.calls.is_empty()
    }

    fn progress(&self) -> StreamProgress {
        if self.done.is_some() {
            StreamProgress::Done
        } else {
            StreamProgress::Open
        }
    }

    // Calls written as text are extracted here, because the whole text is needed.
    fn finish(mut self, reply: &mut ReplyBuffer<'_>) -> Result<ModelReply, ReplyStreamError> {
        let Some(done) = self.done.take() else {
            return Err(ReplyStreamError::Truncated);
        };
        let call_count = self.calls.len();
        if done.length {
            // The token limit cut the reply, so arguments that aren't an object may be the first
            // half of one.
            self.calls
                .retain(|call| matches!(call.arguments, CallArguments::Object(_)));
        }
        let is_half = self.calls.len() < call_count;
        let offer = Some(self.tools).filter(|_| self.calls.is_empty());
        let mut said = reply.finish(offer, done.length);
        said.calls.extend(self.calls);
        let stop = match done.length {
            _ if !said.calls.is_empty() => StopReason::Calls,
            true if is_half => StopReason::TruncatedCall,
            true => StopReason::Length,
            false => StopReason::End,
        };
        Ok(ModelReply::new(said.message(), stop, done.usage))
    }
}

impl OllamaLine<'_> {
    fn is_error(&self) -> bool {
        self.error.is_some_and(|error| error.get() != "null")
    }

    fn to_done(&self) -> Option<StreamEnd> {
        self.done.then(|| StreamEnd {
            length: self.done_reason.as_deref() == Some("length"),
            usage: TokenUsage {
                input: self.prompt_eval_count.unwrap_or(0),
                output: self.eval_count.unwrap_or(0),
                cached: 0,
            },
        })
    }
}

// Validating UTF-8 once for the line is faster than for each string in it.
fn parse_line(line: &[u8]) -> serde_json::Result<OllamaLine<'_>> {
    match str::from_utf8(line) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(line),
    }
}

fn unexpected_line(line: &[u8], error: &serde_json::Error) -> ReplyStreamError {
    let value = serde_json::from_slice::<Value>(line).unwrap_or_default();
    if value.get("message").is_some_and(Value::is_string) || value.get("error").is_some() {
        return ReplyStreamError::Reported(value);
    }
    ReplyStreamError::Malformed(format!("a line is not a chat message ({error})"))
}

fn reported_error(line: &[u8]) -> ReplyStreamError {
    ReplyStreamError::Reported(serde_json::from_slice(line).unwrap_or_default())
}

#[cfg(test)]
mod tests;
