//! What comes back, understood event by event, without a socket.

use serde_json::Value;
use serde_json::value::RawValue;

use super::calls::Calls;
use super::wire::{Choice, Chunk, Content, Delta};
use crate::message::MOST_PARTS;
use crate::reply_buffer::ReplyBuffer;
use crate::wire_format::{Progress, ReplyReader, StreamError, utf8};
use crate::{Offer, Reply, Stop, Usage};

pub(crate) struct Stream<'a> {
    tools: &'a Offer,
    refused: bool,
    calls: Calls,
    reason: Option<String>,
    usage: Usage,
    done: bool,
}

impl<'a> Stream<'a> {
    pub(super) fn new(tools: &'a Offer) -> Self {
        Self {
            tools,
            refused: false,
            calls: Calls::default(),
            reason: None,
            usage: Usage::default(),
            done: false,
        }
    }

    fn chunk(&mut self, json: &str, reply: &mut ReplyBuffer<'_>) -> Result<(), StreamError> {
        let chunk: Chunk<'_> = serde_json::from_str(json).map_err(|error| odd(json, &error))?;
        let is_error = chunk
            .error
            .map(RawValue::get)
            .is_some_and(|error| error != "null");
        if is_error || chunk.choices.is_none() && chunk.usage.is_none() {
            return complaint(json, is_error);
        }
        if let Some(counts) = chunk.usage {
            self.usage = counts.usage();
        }
        // Only one answer was asked for.
        let choices = chunk.choices.into_iter().flatten();
        for choice in choices.filter(|choice| choice.index.unwrap_or(0) == 0) {
            self.choice(choice, reply)?;
        }
        Ok(())
    }

    fn choice(
        &mut self,
        choice: Choice<'_>,
        reply: &mut ReplyBuffer<'_>,
    ) -> Result<(), StreamError> {
        for delta in choice.delta.into_iter().chain(choice.message) {
            self.delta(delta, reply)?;
        }
        let reason = choice.finish_reason.filter(|reason| !reason.is_empty());
        self.reason = reason.or(self.reason.take());
        Ok(())
    }

    fn delta(&mut self, delta: Delta<'_>, reply: &mut ReplyBuffer<'_>) -> Result<(), StreamError> {
        // Some servers send both names for the same words.
        let thinking = delta.reasoning_content.or(delta.reasoning);
        reply.thinking(thinking.as_deref().unwrap_or_default());
        match delta.content {
            Some(Content::Text(text)) => reply.text(&text),
            Some(Content::Parts(parts)) => {
                for text in parts.into_iter().filter_map(|part| part.text) {
                    reply.text(&text);
                }
            }
            None => {}
        }
        if let Some(refusal) = delta.refusal.filter(|refusal| !refusal.is_empty()) {
            self.refused = true;
            reply.text(&refusal);
        }
        for piece in delta.tool_calls.into_iter().flatten() {
            if !self.calls.add(&piece) {
                let reason = format!("it asks for more than {MOST_PARTS} tools at once");
                return Err(StreamError::Garbled(reason));
            }
        }
        Ok(())
    }
}

impl ReplyReader for Stream<'_> {
    fn read(
        &mut self,
        _name: &str,
        data: &[u8],
        reply: &mut ReplyBuffer<'_>,
    ) -> Result<(), StreamError> {
        match utf8(data)?.trim() {
            "" => Ok(()),
            "[DONE]" => {
                self.done = true;
                Ok(())
            }
            json => self.chunk(json, reply),
        }
    }

    fn read_whole(&mut self, body: &[u8], reply: &mut ReplyBuffer<'_>) -> Result<(), StreamError> {
        self.chunk(&String::from_utf8_lossy(body), reply)?;
        self.done = true;
        Ok(())
    }

    fn has_begun(&self, reply: &ReplyBuffer<'_>) -> bool {
        reply.has_begun() || !self.calls.is_empty()
    }

    fn progress(&self) -> Progress {
        match self.done {
            true => Progress::Done,
            false if self.reason.is_some() => Progress::Ended,
            false => Progress::Open,
        }
    }

    fn finish(self, reply: &mut ReplyBuffer<'_>) -> Result<Reply, StreamError> {
        // Without a reason, only a server that says so has come to its end, and not in the middle of a call.
        if self.reason.is_none() && (!self.done || self.calls.has_half()) {
            return Err(StreamError::Cut);
        }
        let reason = self.reason.as_deref().unwrap_or_default();
        let was_cut = matches!(reason, "length" | "max_tokens");
        let refused = self.refused || matches!(reason, "content_filter" | "refusal");
        let asked = self.calls.len();
        let native = self.calls.finish(self.tools.catalog(), was_cut);
        let is_half = native.len() < asked;
        let rescues = native.is_empty() && !refused;
        let offer = Some(self.tools).filter(|_| rescues);
        let mut said = reply.finish(offer, was_cut);
        said.calls.extend(native);
        if refused {
            // What a model refuses to finish is not done by halves.
            said.calls.clear();
        }
        let stop = match reason {
            _ if refused => Stop::Refusal,
            _ if was_cut && is_half => Stop::CutCall,
            _ if was_cut => Stop::Length,
            // Not what it says but what it wants: some servers end a turn of calls like any other.
            _ if !said.calls.is_empty() => Stop::Calls,
            _ => Stop::End,
        };
        Ok(Reply {
            message: said.message(),
            stop,
            usage: self.usage,
            first_token: None,
        })
    }
}

/// Something else than an answer. What says nothing at all is nothing.
fn complaint(json: &str, is_error: bool) -> Result<(), StreamError> {
    const COMPLAINTS: [&str; 5] = ["message", "detail", "errors", "error_message", "msg"];
    let value = serde_json::from_str::<Value>(json).unwrap_or_default();
    if is_error || COMPLAINTS.iter().any(|key| value.get(key).is_some()) {
        return Err(StreamError::Said(value));
    }
    Ok(())
}

/// What is JSON but not of the usual shape may be an error of a proxy, in its own words.
fn odd(json: &str, error: &serde_json::Error) -> StreamError {
    match serde_json::from_str::<Value>(json) {
        Ok(value) if value.get("error").is_some() => StreamError::Said(value),
        _ => StreamError::Garbled(format!("a piece is no part of an answer ({error})")),
    }
}

#[cfg(test)]
mod tests;
