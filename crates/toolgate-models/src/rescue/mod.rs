//! Finds calls that a small model wrote as text instead of asking for them properly.
//!
//! What counts as a call:
//! - It names a tool that was offered, by any of its names, and is complete.
//!   Anything else stays text.
//! - Between marks that are made for calls it may be anywhere: `<tool_call>`,
//!   `<function=…>`, `<tools>`, `<|python_tag|>`, `[TOOL_CALLS]`. Right behind a backtick or
//!   inside a fence it's a quotation.
//! - Plain or fenced JSON may also be an example. It counts only as the last thing of the text,
//!   because a model that calls stops there and one that explains goes on, and only with its
//!   arguments, unless it's all of the text.
//! - What looks like a tool's definition (it has a `description`) doesn't count.
//!
//! Arguments in XML are text and typed by the schema; so are JSON strings that the schema
//! doesn't accept as strings.

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
    // In the order they were written; at least one.
    pub(crate) calls: Vec<ModelCall>,
    pub(crate) text: String,
    kept: Vec<Range<usize>>,
}

impl RescuedCalls {
    /// The text for the person behind `from`. What comes before was forwarded already.
    pub(crate) fn rest(&self, text: &str, from: usize) -> String {
        join_kept(text, &self.kept, from)
    }
}

struct FoundCalls {
    place: Range<usize>,
    calls: Vec<ModelCall>,
    // Between marks that are made for calls, so it isn't an example.
    is_marked: bool,
    complete: bool,
}

/// Takes the calls out of a finished text; `None` if there are none.
pub(crate) fn rescue(text: &str, offer: &OfferedTools) -> Option<RescuedCalls> {
    let found = without_examples(text, find(text, offer));
    if found.is_empty() {
        return None;
    }
    let kept = gaps(text, &found);
    let words = join_kept(text, &kept, 0);
    let calls = found.into_iter().flat_map(|found| found.calls).collect();
    Some(RescuedCalls {
        calls,
        text: words,
        kept,
    })
}

/// The calls that a text ends in. Words behind a call may take it back.
pub(crate) fn last_calls(text: &str, offer: &OfferedTools) -> Vec<ModelCall> {
    let found = without_examples(text, find(text, offer));
    let mut end = text.len();
    let is_last = |found: &&FoundCalls| {
        let is_last = text[found.place.end..end].trim().is_empty();
        end = found.place.start;
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
        let place = walk.at();
        let read = match seen {
            MarkMatch::Mark(mark) => scan.read(mark, place),
            MarkMatch::Maybe => None,
        };
        match read {
            Some(read) if calls + read.calls.len() <= MAX_CALLS => {
                calls += read.calls.len();
                walk.jump_to(read.place.end);
                found.push(read);
            }
            _ => walk.skip(seen),
        }
    }
    found
}

// Plain JSON is a call only if nothing but calls comes after it.
fn without_examples(text: &str, mut found: Vec<FoundCalls>) -> Vec<FoundCalls> {
    let blank = |range: Range<usize>| text[range].trim().is_empty();
    let places = found.iter().map(|found| found.place.clone());
    let starts = places.clone().map(|place| place.start).chain([text.len()]);
    let ends = [0].into_iter().chain(places.map(|place| place.end));
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
            is_marked: firm,
            complete,
            ..
        } = found[index];
        keep[index] = firm || (last && (complete || alone));
    }
    let mut keep = keep.into_iter();
    found.retain(|_| keep.next().unwrap_or_default());
    found
}

fn gaps(text: &str, found: &[FoundCalls]) -> Vec<Range<usize>> {
    let mut gaps = Vec::with_capacity(found.len() + 1);
    let mut start = 0;
    for found in found {
        gaps.push(start..found.place.start);
        start = found.place.end;
    }
    gaps.push(start..text.len());
    gaps
}
