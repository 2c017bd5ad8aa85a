//! A content block of a streamed answer, and the part it becomes.

use super::wire::read;
use crate::wire_format::ReplyStreamError;
use crate::{CallArguments, MessagePart};

pub(super) struct StreamBlock {
    pub(super) index: u64,
    pub(super) part: MessagePart,
    // Arguments as they were written so far, of a call or of a block type we don't know. The latter
    // is kept to be sent back unchanged.
    pub(super) input: String,
    pub(super) closed: bool,
}

impl StreamBlock {
    pub(super) fn is_call(&self) -> bool {
        matches!(self.part, MessagePart::Call(_))
    }

    // An empty input means no arguments, unless the block was cut off.
    pub(super) fn is_incomplete_call(&self) -> bool {
        let arguments = CallArguments::read(&self.input);
        let is_whole = matches!(arguments, CallArguments::Object(_));
        self.is_call() && (self.input.trim().is_empty() || !is_whole)
    }

    pub(super) fn into_part(self) -> Result<Option<MessagePart>, ReplyStreamError> {
        let mut part = self.part;
        match &mut part {
            MessagePart::Text { text } if text.is_empty() => return Ok(None),
            MessagePart::Call(call) => call.arguments = CallArguments::read(&self.input),
            MessagePart::Opaque { value, .. } if !self.input.is_empty() => {
                value["input"] = read(&self.input)?;
            }
            _ => {}
        }
        Ok(Some(part))
    }
}
