//! What comes back, understood event by event, without a socket.

use serde_json::Value;
use serde_json::value::RawValue;

use super::calls::Calls;
use super::wire::{Choice, Chunk, Content, Delta};
use crate::message::MOST_PARTS;
use crate::words::Words;
use crate::{Listener, Offer, Reply, Stop, Usage};

/// Why there is no reply.
#[derive(Debug, PartialEq)]
pub(super) enum Trouble {
    /// The provider says so: an error in the stream, or instead of an answer.
    Said(Value),
    /// This is not what the provider sends.
    Garbled(String),
    /// The answer ended before its end.
    Cut,
}

/// An answer while it comes.
pub(super) struct Stream<'a> {
    tools: &'a Offer,
    /// Whether a call that was written as text counts.
    rescue: bool,
    words: Words,
    /// What it says instead of an answer.
    refused: bool,
    calls: Calls,
    reason: Option<String>,
    usage: Usage,
    done: bool,
}

impl<'a> Stream<'a> {
    pub(super) fn new(tools: &'a Offer, rescue: bool) -> Self {
        Self {
            tools,
            rescue,
            words: Words::new(rescue),
            refused: false,
            calls: Calls::default(),
            reason: None,
            usage: Usage::default(),
            done: false,
        }
    }

    /// True once the first words or the first call came.
    pub(super) fn has_begun(&self) -> bool {
        self.words.have_begun() || !self.calls.is_empty()
    }

    /// True once the model is done; what it cost may still come.
    pub(super) fn has_ended(&self) -> bool {
        self.done || self.reason.is_some()
    }

    /// True once nothing more comes.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// The data of one event.
    pub(super) fn data(&mut self, data: &str, listener: &mut dyn Listener) -> Result<(), Trouble> {
        match data.trim() {
            "" => Ok(()),
            "[DONE]" => {
                self.done = true;
                Ok(())
            }
            json => self.chunk(json, listener),
        }
    }

    /// The answer of a server that does not stream.
    pub(super) fn whole(
        &mut self,
        body: &[u8],
        listener: &mut dyn Listener,
    ) -> Result<(), Trouble> {
        self.chunk(&String::from_utf8_lossy(body), listener)?;
        self.done = true;
        Ok(())
    }

    fn chunk(&mut self, json: &str, listener: &mut dyn Listener) -> Result<(), Trouble> {
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
            self.choice(choice, listener)?;
        }
        Ok(())
    }

    fn choice(&mut self, choice: Choice<'_>, listener: &mut dyn Listener) -> Result<(), Trouble> {
        for delta in choice.delta.into_iter().chain(choice.message) {
            self.delta(delta, listener)?;
        }
        let reason = choice.finish_reason.filter(|reason| !reason.is_empty());
        self.reason = reason.or(self.reason.take());
        Ok(())
    }

    fn delta(&mut self, delta: Delta<'_>, listener: &mut dyn Listener) -> Result<(), Trouble> {
        // Some servers send both names for the same words.
        let thinking = delta.reasoning_content.or(delta.reasoning);
        self.words
            .thinking(thinking.as_deref().unwrap_or_default(), listener);
        match delta.content {
            Some(Content::Text(text)) => self.words.text(&text, listener),
            Some(Content::Parts(parts)) => {
                for text in parts.into_iter().filter_map(|part| part.text) {
                    self.words.text(&text, listener);
                }
            }
            None => {}
        }
        if let Some(refusal) = delta.refusal.filter(|refusal| !refusal.is_empty()) {
            self.refused = true;
            self.words.text(&refusal, listener);
        }
        for piece in delta.tool_calls.into_iter().flatten() {
            if !self.calls.add(&piece) {
                let reason = format!("it asks for more than {MOST_PARTS} tools at once");
                return Err(Trouble::Garbled(reason));
            }
        }
        Ok(())
    }

    /// The reply, if all of it came. How long it took is not known here.
    pub(super) fn finish(self, listener: &mut dyn Listener) -> Result<Reply, Trouble> {
        // Without a reason, only a server that says so has come to its end, and not in the middle of a call.
        if self.reason.is_none() && (!self.done || self.calls.has_half()) {
            return Err(Trouble::Cut);
        }
        let reason = self.reason.as_deref().unwrap_or_default();
        let was_cut = matches!(reason, "length" | "max_tokens");
        let refused = self.refused || matches!(reason, "content_filter" | "refusal");
        let asked = self.calls.len();
        let native = self.calls.finish(self.tools.catalog(), was_cut);
        let is_half = native.len() < asked;
        let rescues = self.rescue && native.is_empty() && !refused;
        let offer = Some(self.tools).filter(|_| rescues);
        let mut said = self.words.finish(offer, was_cut, listener);
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
fn complaint(json: &str, is_error: bool) -> Result<(), Trouble> {
    const COMPLAINTS: [&str; 5] = ["message", "detail", "errors", "error_message", "msg"];
    let value = serde_json::from_str::<Value>(json).unwrap_or_default();
    if is_error || COMPLAINTS.iter().any(|key| value.get(key).is_some()) {
        return Err(Trouble::Said(value));
    }
    Ok(())
}

/// What is JSON but not of the usual shape may be an error of a proxy, in its own words.
fn odd(json: &str, error: &serde_json::Error) -> Trouble {
    match serde_json::from_str::<Value>(json) {
        Ok(value) if value.get("error").is_some() => Trouble::Said(value),
        _ => Trouble::Garbled(format!("a piece is no part of an answer ({error})")),
    }
}

#[cfg(test)]
mod tests;
