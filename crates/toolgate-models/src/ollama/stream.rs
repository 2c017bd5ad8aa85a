//! What comes back from `/api/chat`: one JSON object per line, until one says that it is done.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::message::MOST_PARTS;
use crate::reply_buffer::ReplyBuffer;
use crate::wire_format::{Progress, ReplyReader, StreamError};
use crate::{CallArguments, ModelCall, Offer, Reply, Stop, Usage};

pub(crate) struct Stream<'a> {
    tools: &'a Offer,
    calls: Vec<ModelCall>,
    done: Option<Done>,
}

#[derive(Debug, Default)]
struct Done {
    length: bool,
    usage: Usage,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, default)]
    message: Option<Said<'a>>,
    #[serde(default)]
    done: bool,
    #[serde(borrow, default)]
    done_reason: Option<Cow<'a, str>>,
    #[serde(default)]
    prompt_eval_count: Option<u64>,
    #[serde(default)]
    eval_count: Option<u64>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Said<'a> {
    #[serde(borrow, default)]
    content: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    thinking: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<WireCall<'a>>>,
}

#[derive(Deserialize)]
struct WireCall<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    function: Option<WireFunction<'a>>,
}

#[derive(Deserialize, Default)]
struct WireFunction<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    /// As they were written: whether a key stands there twice is seen only in the text.
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

impl<'a> Stream<'a> {
    pub(super) fn new(tools: &'a Offer) -> Self {
        Self {
            tools,
            calls: Vec::new(),
            done: None,
        }
    }

    fn message(&mut self, said: Said<'_>, reply: &mut ReplyBuffer<'_>) -> Result<(), StreamError> {
        reply.thinking(&said.thinking.unwrap_or_default());
        reply.text(&said.content.unwrap_or_default());
        for call in said.tool_calls.into_iter().flatten() {
            self.call(&call)?;
        }
        Ok(())
    }

    fn call(&mut self, wire: &WireCall<'_>) -> Result<(), StreamError> {
        if self.calls.len() >= MOST_PARTS {
            let reason = format!("it asks for more than {MOST_PARTS} tools at once");
            return Err(StreamError::Garbled(reason));
        }
        self.calls.push(self.model_call(wire));
        Ok(())
    }

    fn model_call(&self, wire: &WireCall<'_>) -> ModelCall {
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
            arguments: CallArguments::read(arguments.map_or("", RawValue::get)),
        }
    }
}

impl ReplyReader for Stream<'_> {
    fn read(
        &mut self,
        _name: &str,
        line: &[u8],
        reply: &mut ReplyBuffer<'_>,
    ) -> Result<(), StreamError> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let read = match read(line) {
            Ok(read) if read.is_error() => return Err(said(line)),
            Ok(read) => read,
            Err(error) => return Err(odd(line, &error)),
        };
        self.done = read.to_done();
        match read.message {
            Some(message) => self.message(message, reply),
            None if self.done.is_some() => Ok(()),
            None => odd_key(line),
        }
    }

    fn has_begun(&self, reply: &ReplyBuffer<'_>) -> bool {
        reply.has_begun() || !self.calls.is_empty()
    }

    fn progress(&self) -> Progress {
        match self.done {
            Some(_) => Progress::Done,
            None => Progress::Open,
        }
    }

    /// A call that was written as text is found here, when all of it can be read.
    fn finish(mut self, reply: &mut ReplyBuffer<'_>) -> Result<Reply, StreamError> {
        let Some(done) = self.done.take() else {
            return Err(StreamError::Cut);
        };
        let asked = self.calls.len();
        if done.length {
            // The end is missing: what is no object may be the first half of one.
            self.calls
                .retain(|call| matches!(call.arguments, CallArguments::Object(_)));
        }
        let is_half = self.calls.len() < asked;
        let offer = Some(self.tools).filter(|_| self.calls.is_empty());
        let mut said = reply.finish(offer, done.length);
        said.calls.extend(self.calls);
        let stop = match done.length {
            _ if !said.calls.is_empty() => Stop::Calls,
            true if is_half => Stop::CutCall,
            true => Stop::Length,
            false => Stop::End,
        };
        Ok(Reply {
            message: said.message(),
            stop,
            usage: done.usage,
            first_token: None,
        })
    }
}

impl Line<'_> {
    fn is_error(&self) -> bool {
        self.error.is_some_and(|error| error.get() != "null")
    }

    fn to_done(&self) -> Option<Done> {
        self.done.then(|| Done {
            length: self.done_reason.as_deref() == Some("length"),
            usage: Usage {
                input: self.prompt_eval_count.unwrap_or(0),
                output: self.eval_count.unwrap_or(0),
                cached: 0,
            },
        })
    }
}

/// Text is checked once as a whole, which is cheaper than string by string.
fn read(line: &[u8]) -> serde_json::Result<Line<'_>> {
    match str::from_utf8(line) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(line),
    }
}

/// A line that is JSON but not of the usual shape is an error of a proxy or the like, in its own words.
fn odd(line: &[u8], error: &serde_json::Error) -> StreamError {
    let value = serde_json::from_slice::<Value>(line).unwrap_or_default();
    if value.get("message").is_some_and(Value::is_string) || value.get("error").is_some() {
        return StreamError::Said(value);
    }
    StreamError::Garbled(format!("a line is no message of a chat ({error})"))
}

/// A line without a message means nothing, unless it complains.
fn odd_key(line: &[u8]) -> Result<(), StreamError> {
    const COMPLAINTS: [&str; 6] = [
        "detail",
        "errors",
        "error_message",
        // The sentence itself is the key in Ollama 0.11.
        "error parsing tool call",
        "msg",
        "title",
    ];
    let value = serde_json::from_slice::<Value>(line).unwrap_or_default();
    if COMPLAINTS.iter().any(|key| value.get(key).is_some()) {
        return Err(StreamError::Said(value));
    }
    Ok(())
}

fn said(line: &[u8]) -> StreamError {
    StreamError::Said(serde_json::from_slice(line).unwrap_or_default())
}

#[cfg(test)]
mod tests;
