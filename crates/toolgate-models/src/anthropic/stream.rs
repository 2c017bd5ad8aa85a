//! Parses the events of a reply, without touching a socket.

use serde_json::Value;
use serde_json::value::RawValue;
use toolgate_core::Arguments;

use super::block::StreamBlock;
use super::wire::{
    AnthropicUsage, BlockDelta, BlockStart, BlockStop, CallBlock, ContentDelta, EventTag,
    MessageDelta, MessageStart, TextBlock, ThinkingBlock, WholeMessage, parse_json,
};
use crate::message::MAX_PARTS;
use crate::reply_buffer::ReplyBuffer;
use crate::wire_format::{ReadResult, ReplyReader, ReplyStreamError, StreamProgress, parse_utf8};
use crate::{
    AssistantMessage, CallArguments, Catalog, MessagePart, ModelCall, ModelReply, Provider,
    StopReason,
};

fn malformed_error(reason: &str) -> ReplyStreamError {
    ReplyStreamError::Malformed(reason.to_owned())
}

pub(crate) struct AnthropicReader<'a> {
    catalog: &'a Catalog,
    blocks: Vec<StreamBlock>,
    stop: Option<String>,
    usage: AnthropicUsage,
    finished: bool,
}

impl<'a> AnthropicReader<'a> {
    pub(super) fn new(catalog: &'a Catalog) -> Self {
        Self {
            catalog,
            blocks: Vec::new(),
            stop: None,
            usage: AnthropicUsage::default(),
            finished: false,
        }
    }

    fn start_block(
        &mut self,
        index: u64,
        block: &RawValue,
        reply: &mut ReplyBuffer<'_>,
    ) -> ReadResult {
        if self.find_open_block(index).is_ok() {
            return Err(malformed_error("a block begins twice"));
        }
        if self.blocks.len() == MAX_PARTS {
            return Err(ReplyStreamError::Malformed(format!(
                "more than {MAX_PARTS} blocks"
            )));
        }
        let mut input = String::new();
        let part = match parse_json::<EventTag<'_>>(block.get())?.kind.as_deref() {
            Some("text") => {
                let TextBlock { text } = parse_json(block.get())?;
                reply.forward_text(&text);
                MessagePart::Text { text }
            }
            Some("thinking") => {
                let block: ThinkingBlock = parse_json(block.get())?;
                reply.forward_thinking(&block.thinking);
                MessagePart::Thinking {
                    text: block.thinking,
                    signature: Some(block.signature).filter(|signature| !signature.is_empty()),
                }
            }
            Some("tool_use") => {
                let block: CallBlock<'_> = parse_json(block.get())?;
                let no_arguments = CallArguments::Object(Arguments::new());
                // Usually `{}`, and the arguments follow in pieces. Some servers send them here.
                let given = block.input.map_or("", RawValue::get);
                if CallArguments::parse(given) != no_arguments {
                    input = given.to_owned();
                }
                MessagePart::Call(ModelCall {
                    id: ModelCall::id_or_new(block.id.unwrap_or_default()),
                    name: self.catalog.listed_name(&block.name.unwrap_or_default()),
                    arguments: no_arguments,
                })
            }
            _ => MessagePart::Opaque {
                provider: Provider::Anthropic,
                value: Value::Object(parse_json(block.get())?),
            },
        };
        self.blocks.push(StreamBlock {
            index,
            part,
            input,
            closed: false,
        });
        Ok(())
    }

    fn extend_block(
        &mut self,
        index: u64,
        delta: &ContentDelta<'_>,
        reply: &mut ReplyBuffer<'_>,
    ) -> ReadResult {
        let block = self.find_open_block(index)?;
        match (&*delta.kind, &mut block.part) {
            ("text_delta", MessagePart::Text { text }) => {
                text.push_str(&delta.text);
                reply.forward_text(&delta.text);
            }
            ("thinking_delta", MessagePart::Thinking { text, .. }) => {
                text.push_str(&delta.thinking);
                reply.forward_thinking(&delta.thinking);
            }
            ("signature_delta", MessagePart::Thinking { signature, .. }) => {
                let more = signature.take().unwrap_or_default() + &delta.signature;
                *signature = Some(more).filter(|signature| !signature.is_empty());
            }
            ("input_json_delta", MessagePart::Call(_) | MessagePart::Opaque { .. }) => {
                block.input.push_str(&delta.partial_json);
            }
            ("text_delta" | "thinking_delta" | "signature_delta" | "input_json_delta", _) => {
                return Err(malformed_error("a piece does not fit its block"));
            }
            // Citations, and types added later.
            _ => {}
        }
        Ok(())
    }

    fn find_open_block(&mut self, index: u64) -> Result<&mut StreamBlock, ReplyStreamError> {
        let mut blocks = self.blocks.iter_mut().rev();
        blocks
            .find(|block| block.index == index && !block.closed)
            .ok_or_else(|| malformed_error("a piece of a block that did not begin"))
    }
}

impl ReplyReader for AnthropicReader<'_> {
    fn read_event(&mut self, name: &str, data: &[u8], reply: &mut ReplyBuffer<'_>) -> ReadResult {
        // Never fails on a stream: `server_event` has already replaced invalid UTF-8.
        let data = parse_utf8(data)?;
        let kind = parse_json::<EventTag<'_>>(data)?.kind;
        match kind.as_deref().unwrap_or(name) {
            "message_start" => {
                let start: MessageStart = parse_json(data)?;
                self.usage.update(start.message.usage);
            }
            "content_block_start" => {
                let start: BlockStart<'_> = parse_json(data)?;
                self.start_block(start.index, start.content_block, reply)?;
            }
            "content_block_delta" => {
                let delta: BlockDelta<'_> = parse_json(data)?;
                self.extend_block(delta.index, &delta.delta, reply)?;
            }
            "content_block_stop" => {
                let stop: BlockStop = parse_json(data)?;
                self.find_open_block(stop.index)?.closed = true;
            }
            "message_delta" => {
                let delta: MessageDelta = parse_json(data)?;
                self.stop = delta.delta.stop_reason.or(self.stop.take());
                self.usage.update(delta.usage);
            }
            "message_stop" => self.finished = true,
            "error" => return Err(ReplyStreamError::Reported(parse_json(data)?)),
            // `ping`, and types added later.
            _ => {}
        }
        Ok(())
    }

    fn read_whole(&mut self, body: &[u8], reply: &mut ReplyBuffer<'_>) -> ReadResult {
        // Replaces invalid UTF-8, as was done for the data of events.
        let text = String::from_utf8_lossy(body);
        if parse_json::<EventTag<'_>>(&text)?.kind.as_deref() == Some("error") {
            return Err(ReplyStreamError::Reported(parse_json(&text)?));
        }
        let whole: WholeMessage<'_> = parse_json(&text)?;
        for (index, block) in (0..).zip(whole.content) {
            self.start_block(index, block, reply)?;
            self.find_open_block(index)?.closed = true;
        }
        self.stop = whole.stop_reason;
        self.usage.update(whole.usage);
        self.finished = true;
        Ok(())
    }

    fn has_begun(&self, _: &ReplyBuffer<'_>) -> bool {
        !self.blocks.is_empty()
    }

    fn progress(&self) -> StreamProgress {
        if self.finished {
            StreamProgress::Done
        } else {
            StreamProgress::Open
        }
    }

    fn finish(self, _: &mut ReplyBuffer<'_>) -> Result<ModelReply, ReplyStreamError> {
        if !self.finished {
            return Err(ReplyStreamError::Truncated);
        }
        let stop = self.stop.as_deref().unwrap_or_default();
        let context_exceeded = stop == "model_context_window_exceeded";
        let mut stop = match stop {
            "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
            "refusal" => StopReason::Refusal,
            "pause_turn" => StopReason::Pause,
            // Some servers report a normal end even if the reply has calls, so the content decides,
            // not the reason.
            _ if self.blocks.iter().any(StreamBlock::is_call) => StopReason::Calls,
            _ => StopReason::End,
        };
        let last = self.blocks.len().saturating_sub(1);
        let mut parts = Vec::new();
        for (index, block) in self.blocks.into_iter().enumerate() {
            let is_truncated = stop == StopReason::Length && index == last;
            // None of the calls of a refused reply may run.
            let is_refused_call = stop == StopReason::Refusal && block.is_call();
            if is_truncated && block.is_incomplete_call() {
                stop = StopReason::TruncatedCall;
                continue;
            }
            if is_refused_call {
                continue;
            }
            if !block.closed && block.is_incomplete_call() {
                return Err(ReplyStreamError::Truncated);
            }
            parts.extend(block.into_part()?);
        }
        let is_usable =
            |part: &MessagePart| matches!(part, MessagePart::Text { .. } | MessagePart::Call(_));
        if context_exceeded && !parts.iter().any(is_usable) {
            return Err(ReplyStreamError::ContextExceeded);
        }
        Ok(ModelReply::new(
            AssistantMessage { parts },
            stop,
            self.usage.usage(),
        ))
    }
}

#[cfg(test)]
mod tests;
