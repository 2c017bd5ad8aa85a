//! Reads the events of a reply, without touching a socket.

use serde_json::value::RawValue;

use super::calls::CallAssembler;
use super::wire::{DeltaContent, OpenAiChoice, OpenAiChunk, OpenAiDelta};
use crate::message::MAX_PARTS;
use crate::reply_buffer::ReplyBuffer;
use crate::wire_format::{
    ReadResult, ReplyReader, ReplyStreamError, StreamProgress, expect_no_error, parse_utf8,
    unexpected_json_error,
};
use crate::{ModelReply, OfferedTools, StopReason, TokenUsage};

const ERROR_KEYS: &[&str] = &["message", "detail", "errors", "error_message", "msg"];

pub(crate) struct OpenAiReader<'a> {
    tools: &'a OfferedTools,
    refused: bool,
    calls: CallAssembler,
    reason: Option<String>,
    usage: TokenUsage,
    done: bool,
}

impl<'a> OpenAiReader<'a> {
    pub(super) fn new(tools: &'a OfferedTools) -> Self {
        Self {
            tools,
            refused: false,
            calls: CallAssembler::default(),
            reason: None,
            usage: TokenUsage::default(),
            done: false,
        }
    }

    fn read_chunk(&mut self, json: &str, reply: &mut ReplyBuffer<'_>) -> ReadResult {
        let chunk: OpenAiChunk<'_> =
            serde_json::from_str(json).map_err(|error| unexpected_json_error(json, &error))?;
        let is_error = chunk
            .error
            .map(RawValue::get)
            .is_some_and(|error| error != "null");
        if is_error {
            let error = serde_json::from_str(json).unwrap_or_default();
            return Err(ReplyStreamError::Reported(error));
        }
        if chunk.choices.is_none() && chunk.usage.is_none() {
            return expect_no_error(json.as_bytes(), ERROR_KEYS);
        }
        if let Some(usage) = chunk.usage {
            self.usage = usage.usage();
        }
        // We ask for one choice, so others are ignored.
        let choices = chunk.choices.into_iter().flatten();
        for choice in choices.filter(|choice| choice.index.unwrap_or(0) == 0) {
            self.read_choice(choice, reply)?;
        }
        Ok(())
    }

    fn read_choice(&mut self, choice: OpenAiChoice<'_>, reply: &mut ReplyBuffer<'_>) -> ReadResult {
        for delta in choice.delta.into_iter().chain(choice.message) {
            self.read_delta(delta, reply)?;
        }
        let reason = choice.finish_reason.filter(|reason| !reason.is_empty());
        self.reason = reason.or(self.reason.take());
        Ok(())
    }

    fn read_delta(&mut self, delta: OpenAiDelta<'_>, reply: &mut ReplyBuffer<'_>) -> ReadResult {
        // Some servers send the same thinking under both names.
        let thinking = delta.reasoning_content.or(delta.reasoning);
        reply.feed_thinking(thinking.as_deref().unwrap_or_default());
        match delta.content {
            Some(DeltaContent::Text(text)) => reply.feed_text(&text),
            Some(DeltaContent::Parts(parts)) => {
                for text in parts.into_iter().filter_map(|part| part.text) {
                    reply.feed_text(&text);
                }
            }
            None => {}
        }
        if let Some(refusal) = delta.refusal.filter(|refusal| !refusal.is_empty()) {
            self.refused = true;
            reply.feed_text(&refusal);
        }
        for piece in delta.tool_calls.into_iter().flatten() {
            if !self.calls.add(&piece) {
                let reason = format!("it asks for more than {MAX_PARTS} tools at once");
                return Err(ReplyStreamError::Malformed(reason));
            }
        }
        Ok(())
    }
}

impl ReplyReader for OpenAiReader<'_> {
    fn read_event(&mut self, _name: &str, data: &[u8], reply: &mut ReplyBuffer<'_>) -> ReadResult {
        match parse_utf8(data)?.trim() {
            "" => Ok(()),
            "[DONE]" => {
                self.done = true;
                Ok(())
            }
            json => self.read_chunk(json, reply),
        }
    }

    fn read_whole(&mut self, body: &[u8], reply: &mut ReplyBuffer<'_>) -> ReadResult {
        self.read_chunk(&String::from_utf8_lossy(body), reply)?;
        self.done = true;
        Ok(())
    }

    fn has_begun(&self, reply: &ReplyBuffer<'_>) -> bool {
        reply.has_begun() || !self.calls.is_empty()
    }

    fn progress(&self) -> StreamProgress {
        match self.done {
            true => StreamProgress::Done,
            false if self.reason.is_some() => StreamProgress::Ended,
            false => StreamProgress::Open,
        }
    }

    fn finish(self, reply: &mut ReplyBuffer<'_>) -> Result<ModelReply, ReplyStreamError> {
        // Without a finish reason, the reply is complete only if the server sent `[DONE]`, and not
        // in the middle of a call.
        if self.reason.is_none() && (!self.done || self.calls.has_open_arguments()) {
            return Err(ReplyStreamError::Truncated);
        }
        let reason = self.reason.as_deref().unwrap_or_default();
        let is_truncated = matches!(reason, "length" | "max_tokens");
        let refused = self.refused || matches!(reason, "content_filter" | "refusal");
        let asked = self.calls.len();
        let native = self.calls.finish(self.tools.catalog(), is_truncated);
        let is_half = native.len() < asked;
        let rescues = native.is_empty() && !refused;
        let offer = Some(self.tools).filter(|_| rescues);
        let mut said = reply.finish(offer, is_truncated);
        said.calls.extend(native);
        if refused {
            // None of the calls of a refused reply may run.
            said.calls.clear();
        }
        let stop = match reason {
            _ if refused => StopReason::Refusal,
            _ if is_truncated && is_half => StopReason::TruncatedCall,
            _ if is_truncated => StopReason::Length,
            // Some servers report a normal end even if the reply has calls, so the content decides,
            // not the reason.
            _ if !said.calls.is_empty() => StopReason::Calls,
            _ => StopReason::End,
        };
        Ok(ModelReply::new(said.message(), stop, self.usage))
    }
}

#[cfg(test)]
mod tests;
