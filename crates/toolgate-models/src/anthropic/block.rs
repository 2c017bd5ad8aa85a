//! A content block of a streamed reply, while its pieces arrive.

use super::wire::parse_json;
use crate::wire_format::ReplyStreamError;
use crate::{CallArguments, MessagePart};

pub(super) struct StreamBlock {
    pub(super) index: u64,
    pub(super) part: MessagePart,
    // The JSON received so far: the arguments of a call, or the input of a block type we don't
    // know, which must be sent back unchanged.
    pub(super) input: String,
    pub(super) closed: bool,
}

impl StreamBlock {
    pub(super) fn is_call(&self) -> bool {
        matches!(self.part, MessagePart::Call(_))
    }

    // Empty input normally means "no arguments". Only for a block that was cut off it means that
    // the arguments are missing, so callers ask about those blocks only.
    pub(super) fn is_incomplete_call(&self) -> bool {
        let arguments = CallArguments::parse(&self.input);
        let is_whole = matches!(arguments, CallArguments::Object(_));
        self.is_call() && (self.input.trim().is_empty() || !is_whole)
    }

    pub(super) fn into_part(self) -> Result<Option<MessagePart>, ReplyStreamError> {
        let mut part = self.part;
        match &mut part {
            MessagePart::Text { text } if text.is_empty() => return Ok(None),
            MessagePart::Call(call) => call.arguments = CallArguments::parse(&self.input),
            MessagePart::Opaque { value, .. } if !self.input.is_empty() => {
                value["input"] = parse_json(&self.input)?;
            }
            _ => {}
        }
        Ok(Some(part))
    }
}
