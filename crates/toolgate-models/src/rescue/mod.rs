//! Finds calls that a small model wrote as text instead of making them properly.
//!
//! Rules for what counts as a call:
//! - It is complete and names a tool that was offered, by any of its names.
//! - After a mark that models use only for calls, it may be anywhere in the text: `<tool_call>`,
//!   `<function=…>`, `<tools>`, `<|python_tag|>`, `[TOOL_CALLS]`. After a backtick or in a fenced
//!   code block, the mark is a quotation and doesn't count.
//! - Plain or fenced JSON may be an example. It counts only at the end of the text, because a model
//!   that makes a call stops there and one that explains something goes on. It must have arguments,
//!   unless it's the whole text.
//! - JSON with a `description` is a tool's definition, not a call.
//!
//! Arguments in XML are text, and are converted to the types in the schema. So are JSON strings for
//! parameters that can't be strings.

mod call_mark;
mod detector;
mod json;
mod scanner;
#[cfg(test)]
mod tests;
mod tool_names;
mod trailing_json;
mod xml;

use std::ops::Range;

pub(crate) use detector::CallDetector;

use crate::{ModelCall, OfferedTools};
use call_mark::{MarkMatch, MarkScanner};
use scanner::CallScanner;

const MAX_CALLS: usize = 128;

#[derive(Debug, PartialEq)]
pub(crate) struct RescuedCalls {
    // At least one, in the order they were written.
    pub(crate) calls: Vec<ModelCall>,
    // What is left for the user.
    pub(crate) text: String,
    // Where `text` is in the original text.
    kept: Vec<Range<usize>>,
}

impl RescuedCalls {
    /// The text for the user from the byte `from` on. Everything before was forwarded already.
    pub(crate) fn remaining_text(&self, text: &str, from: usize) -> String {
        join_kept(text, &self.kept, from)
    }
}

struct FoundCalls {
    range: Range<usize>,
    calls: Vec<ModelCall>,
    // After a mark that is used only for calls, so it isn't an example.
    is_marked: bool,
    complete: bool,
}

/// Takes the calls out of a complete text; `None` if there are none.
pub(crate) fn rescue(text: &str, offer: &OfferedTools) -> Option<RescuedCalls> {
    let found = without_examples(text, find(text, offer));
    if found.is_empty() {
        return None;
    }
    let kept = find_gaps(text, &found);
    let words = join_kept(text, &kept, 0);
    let calls = found.into_iter().flat_map(|found| found.calls).collect();
    Some(RescuedCalls {
        calls,
        text: words,
        kept,
    })
}

/// The calls at the very end of a text. Words after a call may revoke it.
pub(crate) fn last_calls(text: &str, offer: &OfferedTools) -> Vec<ModelCall> {
    let found = without_examples(text, find(text, offer));
    let mut end = text.len();
    let is_last = |found: &&FoundCalls| {
        let is_last = text[found.range.end..end].trim().is_empty();
        end = found.range.start;
        is_last
    };
    let last = found.iter().rev().take_while(is_last).count();
    let last = found.into_iter().rev().take(last).rev();
    last.flat_map(|found| found.calls).collect()
}

fn join_kept(text: &str, kept: &[Range<usize>], from: usize) -> String {
    let pieces = kept.iter().map(|piece| {
        let start = piece.start.max(from).min(piece.end);
        text[start..piece.end].trim()
    });
    let pieces: Vec<&str> = pieces.filter(|piece| !piece.is_empty()).collect();
    pieces.join("\n")
}

fn find(text: &str, offer: &OfferedTools) -> Vec<FoundCalls> {
    let mut scan = CallScanner::new(text, offer);
    let mut walk = MarkScanner::default();
    let mut found: Vec<FoundCalls> = Vec::new();
    let mut calls = 0;
    while let Some(seen) = walk.next(text.as_bytes()) {
        let at = walk.at();
        let read = match seen {
            MarkMatch::Mark(mark) => scan.parse(mark, at),
            MarkMatch::Maybe => None,
        };
        match read {
            Some(read) if calls + read.calls.len() <= MAX_CALLS => {
                calls += read.calls.len();
                walk.jump_to(read.range.end);
                found.push(read);
            }
            _ => walk.skip(seen),
        }
    }
    found
}

// Drops plain JSON that has anything but calls after it, because it's an example.
fn without_examples(text: &str, mut found: Vec<FoundCalls>) -> Vec<FoundCalls> {
    let blank = |range: Range<usize>| text[range].trim().is_empty();
    let ranges = found.iter().map(|found| found.range.clone());
    let starts = ranges.clone().map(|range| range.start).chain([text.len()]);
    let ends = [0].into_iter().chain(ranges.map(|range| range.end));
    let gaps: Vec<bool> = ends
        .zip(starts)
        .map(|(end, start)| blank(end..start))
        .collect();
    let alone = gaps.iter().all(|blank| *blank);
    let mut last = true;
    let mut index = found.len();
    let mut keep = vec![false; index];
    while index > 0 {
        last &= gaps[index];
        index -= 1;
        let FoundCalls {
            is_marked,
            complete,
            ..
        } = found[index];
        keep[index] = is_marked || (last && (complete || alone));
    }
    let mut keep = keep.into_iter();
    found.retain(|_| keep.next().unwrap_or_default());
    found
}

fn find_gaps(text: &str, found: &[FoundCalls]) -> Vec<Range<usize>> {
    let mut gaps = Vec::with_capacity(found.len() + 1);
    let mut start = 0;
    for found in found {
        gaps.push(start..found.range.start);
        start = found.range.end;
    }
    gaps.push(start..text.len());
    gaps
}
