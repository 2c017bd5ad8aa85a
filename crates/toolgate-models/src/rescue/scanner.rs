//! Reads the call that follows a mark.

use super::FoundCalls;
use super::call_mark::{CallMark, FENCE, TAGS};
use super::tool_names::{MatchedTool, find_tool};
use crate::{ModelCall, OfferedTools};

const MAX_NAME_LEN: usize = 256;

pub(super) struct CallScanner<'a> {
    pub(super) text: &'a str,
    offer: &'a OfferedTools,
    // How many bytes and tools may still be looked at. Text that only looks like a call is scanned
    // again from its second byte on, so without a budget hostile text would take quadratic time.
    budget: usize,
}

pub(super) struct ParsedCalls {
    pub(super) calls: Vec<ModelCall>,
    pub(super) complete: bool,
    pub(super) end: usize,
}

impl<'a> CallScanner<'a> {
    pub(super) fn new(text: &'a str, offer: &'a OfferedTools) -> Self {
        Self {
            text,
            offer,
            budget: text.len().saturating_mul(4).saturating_add(1 << 18),
        }
    }

    pub(super) fn parse(&mut self, mark: CallMark, at: usize) -> Option<FoundCalls> {
        let parsed = match mark {
            CallMark::Fence => self.parse_fenced(at),
            CallMark::Json => self.parse_json_calls(at),
            tag => self.parse_tagged(tag, at),
        }?;
        Some(FoundCalls {
            range: at..parsed.end,
            calls: parsed.calls,
            is_marked: !matches!(mark, CallMark::Fence | CallMark::Json),
            complete: parsed.complete,
        })
    }

    fn parse_tagged(&mut self, mark: CallMark, at: usize) -> Option<ParsedCalls> {
        let tag = TAGS.iter().find(|(_, other)| *other == mark)?.0;
        let body = self.skip_space(at + tag.len());
        let mut read = match mark {
            CallMark::Function => self.parse_xml_call(at),
            CallMark::ToolCall if self.starts_with_at(body, "<function=") => {
                self.parse_xml_call(body)
            }
            CallMark::Mistral
                if !self.starts_with_at(body, "[") && !self.starts_with_at(body, "{") =>
            {
                self.parse_mistral_call(body)
            }
            _ => self.parse_json_calls(body),
        }?;
        let closing: &[&str] = match mark {
            CallMark::ToolCall | CallMark::Function => &["</tool_call>"],
            CallMark::Tools => &["</tools>"],
            _ => &["<|eom_id|>", "<|eot_id|>"],
        };
        for tag in closing {
            read.end = self.skip(read.end, tag);
        }
        Some(read)
    }

    // A fenced block must have nothing but calls, but its end may be missing.
    fn parse_fenced(&mut self, at: usize) -> Option<ParsedCalls> {
        let info = at + FENCE.len();
        let word = self.text[info..]
            .bytes()
            .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
            .count();
        let body = self.skip_space(info + word);
        let rest = &self.text[body..];
        let mut tags = TAGS.iter();
        let mut read = match tags.find(|(tag, _)| rest.starts_with(tag)) {
            Some((_, mark)) => self.parse_tagged(*mark, body),
            None => self.parse_json_calls(body),
        }?;
        let end = self.skip_space(read.end);
        if end < self.text.len() && !self.starts_with_at(end, FENCE) {
            return None;
        }
        read.end = self.skip(end, FENCE);
        Some(read)
    }

    // Newer Mistral models write `name[ARGS]{…}`.
    fn parse_mistral_call(&mut self, at: usize) -> Option<ParsedCalls> {
        let name = self.parse_name(at, |byte| matches!(byte, b'[' | b'{'))?;
        let tool = self.find_tool(name.trim())?;
        let at = self.skip_space(self.skip(at + name.len(), "[ARGS]"));
        let end = self.find_json_end(at)?;
        let arguments = crate::CallArguments::parse(&self.text[at..end]);
        Some(ParsedCalls {
            calls: vec![tool.to_typed_call(arguments)],
            complete: true,
            end,
        })
    }

    // The text up to one of these bytes, unless that is too far away or on another line.
    pub(super) fn parse_name(&self, at: usize, ends: impl Fn(u8) -> bool) -> Option<&'a str> {
        let text = self.text;
        let mut bytes = text[at..].bytes().take(MAX_NAME_LEN);
        let length = bytes.position(|byte| byte == b'\n' || ends(byte))?;
        let name = &text[at..at + length];
        (!name.is_empty() && text.as_bytes()[at + length] != b'\n').then_some(name)
    }

    pub(super) fn find_tool(&mut self, name: &str) -> Option<MatchedTool<'a>> {
        self.spend_budget(self.offer.len())?;
        find_tool(self.offer, name)
    }

    pub(super) fn starts_with_at(&self, at: usize, text: &str) -> bool {
        self.text[at..].starts_with(text)
    }

    pub(super) fn skip_space(&self, at: usize) -> usize {
        self.text.len() - self.text[at..].trim_start().len()
    }

    fn skip(&self, at: usize, text: &str) -> usize {
        let next = self.skip_space(at);
        if self.starts_with_at(next, text) {
            next + text.len()
        } else {
            at
        }
    }

    pub(super) fn affordable_bytes(&self, at: usize) -> &'a [u8] {
        let rest = &self.text.as_bytes()[at..];
        &rest[..rest.len().min(self.budget)]
    }

    pub(super) fn spend_budget(&mut self, bytes: usize) -> Option<()> {
        self.budget = self.budget.checked_sub(bytes)?;
        Some(())
    }
}
