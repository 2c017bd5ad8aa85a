//! What comes back, understood event by event, without a socket.

use serde_json::value::RawValue;
use toolgate_core::Arguments;

use super::block::{Block, Content};
use super::wire::{
    BlockDelta, BlockStart, BlockStop, CallBlock, Counts, Delta, Kind, MessageDelta, MessageStart,
    TextBlock, ThinkingBlock, Whole, read,
};
use crate::message::MOST_PARTS;
use crate::reply_buffer::ReplyBuffer;
use crate::wire_format::{Progress, ReplyReader, StreamError, utf8};
use crate::{AssistantMessage, CallArguments, Catalog, Part, Reply, Stop};

fn garbled(reason: &str) -> StreamError {
    StreamError::Garbled(reason.to_owned())
}

pub(crate) struct Stream<'a> {
    catalog: &'a Catalog,
    blocks: Vec<Block>,
    stop: Option<String>,
    counts: Counts,
    finished: bool,
}

impl<'a> Stream<'a> {
    pub(super) fn new(catalog: &'a Catalog) -> Self {
        Self {
            catalog,
            blocks: Vec::new(),
            stop: None,
            counts: Counts::default(),
            finished: false,
        }
    }

    fn begin(
        &mut self,
        index: u64,
        block: &RawValue,
        reply: &mut ReplyBuffer<'_>,
    ) -> Result<(), StreamError> {
        if self.open(index).is_ok() {
            return Err(garbled("a block begins twice"));
        }
        if self.blocks.len() == MOST_PARTS {
            return Err(StreamError::Garbled(format!(
                "more than {MOST_PARTS} blocks"
            )));
        }
        let content = match read::<Kind<'_>>(block.get())?.kind.as_deref() {
            Some("text") => {
                let block: TextBlock = read(block.get())?;
                reply.tell_text(&block.text);
                Content::Text(block.text)
            }
            Some("thinking") => {
                let block: ThinkingBlock = read(block.get())?;
                reply.tell_thinking(&block.thinking);
                Content::Thinking {
                    text: block.thinking,
                    signature: block.signature,
                }
            }
            Some("tool_use") => {
                let block: CallBlock<'_> = read(block.get())?;
                // Usually an empty object that the pieces to come replace.
                let input = block.input.map_or("", RawValue::get);
                let is_empty =
                    CallArguments::read(input) == CallArguments::Object(Arguments::new());
                Content::Call {
                    id: block.id.unwrap_or_default(),
                    name: block.name.unwrap_or_default(),
                    input: if is_empty { "" } else { input }.to_owned(),
                }
            }
            _ => Content::Other {
                block: read(block.get())?,
                input: String::new(),
            },
        };
        self.blocks.push(Block {
            index,
            content,
            closed: false,
        });
        Ok(())
    }

    fn grow(
        &mut self,
        index: u64,
        delta: &Delta<'_>,
        reply: &mut ReplyBuffer<'_>,
    ) -> Result<(), StreamError> {
        let block = self.open(index)?;
        match (&*delta.kind, &mut block.content) {
            ("text_delta", Content::Text(text)) => {
                text.push_str(&delta.text);
                reply.tell_text(&delta.text);
            }
            ("thinking_delta", Content::Thinking { text, .. }) => {
                text.push_str(&delta.thinking);
                reply.tell_thinking(&delta.thinking);
            }
            ("signature_delta", Content::Thinking { signature, .. }) => {
                signature.push_str(&delta.signature);
            }
            ("input_json_delta", Content::Call { input, .. } | Content::Other { input, .. }) => {
                input.push_str(&delta.partial_json);
            }
            ("text_delta" | "thinking_delta" | "signature_delta" | "input_json_delta", _) => {
                return Err(garbled("a piece does not fit its block"));
            }
            // Citations, and what is yet to come.
            _ => {}
        }
        Ok(())
    }

    fn open(&mut self, index: u64) -> Result<&mut Block, StreamError> {
        let mut blocks = self.blocks.iter_mut().rev();
        blocks
            .find(|block| block.index == index && !block.closed)
            .ok_or_else(|| garbled("a piece of a block that did not begin"))
    }
}

impl ReplyReader for Stream<'_> {
    fn read(
        &mut self,
        name: &str,
        data: &[u8],
        reply: &mut ReplyBuffer<'_>,
    ) -> Result<(), StreamError> {
        let data = utf8(data)?;
        let kind = read::<Kind<'_>>(data)?.kind;
        match kind.as_deref().unwrap_or(name) {
            "message_start" => {
                let start: MessageStart = read(data)?;
                self.counts.update(start.message.usage);
            }
            "content_block_start" => {
                let start: BlockStart<'_> = read(data)?;
                self.begin(start.index, start.content_block, reply)?;
            }
            "content_block_delta" => {
                let delta: BlockDelta<'_> = read(data)?;
                self.grow(delta.index, &delta.delta, reply)?;
            }
            "content_block_stop" => {
                let stop: BlockStop = read(data)?;
                self.open(stop.index)?.closed = true;
            }
            "message_delta" => {
                let delta: MessageDelta = read(data)?;
                self.stop = delta.delta.stop_reason.or(self.stop.take());
                self.counts.update(delta.usage);
            }
            "message_stop" => self.finished = true,
            "error" => return Err(StreamError::Said(read(data)?)),
            // `ping`, and what is yet to come.
            _ => {}
        }
        Ok(())
    }

    fn read_whole(&mut self, body: &[u8], reply: &mut ReplyBuffer<'_>) -> Result<(), StreamError> {
        let text = String::from_utf8_lossy(body);
        if read::<Kind<'_>>(&text)?.kind.as_deref() == Some("error") {
            return Err(StreamError::Said(read(&text)?));
        }
        let whole: Whole<'_> = read(&text)?;
        for (index, block) in (0..).zip(whole.content) {
            self.begin(index, block, reply)?;
            self.open(index)?.closed = true;
        }
        self.stop = whole.stop_reason;
        self.counts.update(whole.usage);
        self.finished = true;
        Ok(())
    }

    fn has_begun(&self, _: &ReplyBuffer<'_>) -> bool {
        !self.blocks.is_empty()
    }

    fn progress(&self) -> Progress {
        match self.finished {
            true => Progress::Done,
            false => Progress::Open,
        }
    }

    fn finish(self, _: &mut ReplyBuffer<'_>) -> Result<Reply, StreamError> {
        if !self.finished {
            return Err(StreamError::Cut);
        }
        let stop = self.stop.as_deref().unwrap_or_default();
        let is_full = stop == "model_context_window_exceeded";
        let mut stop = match stop {
            "max_tokens" | "model_context_window_exceeded" => Stop::Length,
            "refusal" => Stop::Refusal,
            "pause_turn" => Stop::Pause,
            // Not what it says but what it wants: some servers end a turn of calls like any other.
            _ if self.blocks.iter().any(Block::is_call) => Stop::Calls,
            _ => Stop::End,
        };
        let last = self.blocks.len().saturating_sub(1);
        let mut parts = Vec::new();
        for (index, block) in self.blocks.into_iter().enumerate() {
            let was_cut = stop == Stop::Length && index == last;
            // What a model refuses to finish is not done by halves.
            let is_void = stop == Stop::Refusal && block.is_call();
            if was_cut && block.is_half_a_call() {
                stop = Stop::CutCall;
                continue;
            }
            if is_void {
                continue;
            }
            if !block.closed && block.is_half_a_call() {
                return Err(StreamError::Cut);
            }
            parts.extend(block.content.part(self.catalog)?);
        }
        let is_use = |part: &Part| matches!(part, Part::Text { .. } | Part::Call(_));
        if is_full && !parts.iter().any(is_use) {
            return Err(StreamError::Full);
        }
        Ok(Reply {
            message: AssistantMessage { parts },
            stop,
            usage: self.counts.usage(),
            first_token: None,
        })
    }
}

#[cfg(test)]
mod tests;
