//! Reads what stands behind a mark.

use super::Found;
use super::mark::{FENCE, Mark, TAGS};
use super::names::{Meant, find};
use crate::{ModelCall, Offer};

/// The longest name that is read.
const LONGEST_NAME: usize = 256;

/// A text with calls in it. Places are bytes from its beginning.
pub(super) struct Scan<'a> {
    pub(super) text: &'a str,
    offer: &'a Offer,
    /// Bytes and tools that may still be looked at. What looks like a call and is none is looked at again, from its second
    /// byte on; this keeps a text made of nothing else from taking the square of its length.
    budget: usize,
}

pub(super) struct Read {
    pub(super) calls: Vec<ModelCall>,
    pub(super) complete: bool,
    pub(super) end: usize,
}

impl<'a> Scan<'a> {
    pub(super) fn new(text: &'a str, offer: &'a Offer) -> Self {
        Self {
            text,
            offer,
            budget: text.len().saturating_mul(4).saturating_add(1 << 18),
        }
    }

    pub(super) fn read(&mut self, mark: Mark, at: usize) -> Option<Found> {
        let read = match mark {
            Mark::Fence => self.fence(at),
            Mark::Json => self.values(at),
            tag => self.tagged(tag, at),
        }?;
        Some(Found {
            place: at..read.end,
            calls: read.calls,
            firm: !matches!(mark, Mark::Fence | Mark::Json),
            complete: read.complete,
        })
    }

    fn tagged(&mut self, mark: Mark, at: usize) -> Option<Read> {
        let tag = TAGS.iter().find(|(_, other)| *other == mark)?.0;
        let body = self.skip_space(at + tag.len());
        let mut read = match mark {
            Mark::Function => self.function(at),
            Mark::ToolCall if self.has(body, "<function=") => self.function(body),
            Mark::Mistral if !self.has(body, "[") && !self.has(body, "{") => self.named(body),
            _ => self.values(body),
        }?;
        let closing: &[&str] = match mark {
            Mark::ToolCall | Mark::Function => &["</tool_call>"],
            Mark::Tools => &["</tools>"],
            _ => &["<|eom_id|>", "<|eot_id|>"],
        };
        for tag in closing {
            read.end = self.skip(read.end, tag);
        }
        Some(read)
    }

    /// A fence with nothing but calls in it; its end may be missing.
    fn fence(&mut self, at: usize) -> Option<Read> {
        let info = at + FENCE.len();
        let word = self.text[info..]
            .bytes()
            .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
            .count();
        let body = self.skip_space(info + word);
        let rest = &self.text[body..];
        let mut tags = TAGS.iter();
        let mut read = match tags.find(|(tag, _)| rest.starts_with(tag)) {
            Some((_, mark)) => self.tagged(*mark, body),
            None => self.values(body),
        }?;
        let end = self.skip_space(read.end);
        if end < self.text.len() && !self.has(end, FENCE) {
            return None;
        }
        read.end = self.skip(end, FENCE);
        Some(read)
    }

    /// `name[ARGS]{…}` of newer Mistral models.
    fn named(&mut self, at: usize) -> Option<Read> {
        let name = self.name(at, |byte| matches!(byte, b'[' | b'{'))?;
        let tool = self.tool(name.trim())?;
        let at = self.skip_space(self.skip(at + name.len(), "[ARGS]"));
        let end = self.extent(at)?;
        let arguments = crate::CallArguments::read(&self.text[at..end]);
        Some(Read {
            calls: vec![tool.call_in_json(arguments)],
            complete: true,
            end,
        })
    }

    /// What stands before one of these bytes, if that is not too far away.
    pub(super) fn name(&self, at: usize, ends: impl Fn(u8) -> bool) -> Option<&'a str> {
        let text = self.text;
        let mut bytes = text[at..].bytes().take(LONGEST_NAME);
        let length = bytes.position(|byte| byte == b'\n' || ends(byte))?;
        let name = &text[at..at + length];
        (!name.is_empty() && text.as_bytes()[at + length] != b'\n').then_some(name)
    }

    pub(super) fn tool(&mut self, name: &str) -> Option<Meant<'a>> {
        self.pay(self.offer.len())?;
        find(self.offer, name)
    }

    pub(super) fn has(&self, at: usize, text: &str) -> bool {
        self.text[at..].starts_with(text)
    }

    pub(super) fn skip_space(&self, at: usize) -> usize {
        self.text.len() - self.text[at..].trim_start().len()
    }

    fn skip(&self, at: usize, text: &str) -> usize {
        let next = self.skip_space(at);
        if self.has(next, text) {
            next + text.len()
        } else {
            at
        }
    }

    pub(super) fn ahead(&self, at: usize) -> &'a [u8] {
        let rest = &self.text.as_bytes()[at..];
        &rest[..rest.len().min(self.budget)]
    }

    /// Pays for looking at so many bytes; `None` if there is nothing left to pay with.
    pub(super) fn pay(&mut self, bytes: usize) -> Option<()> {
        self.budget = self.budget.checked_sub(bytes)?;
        Some(())
    }
}
