//! Calls that a small model wrote as text instead of asking for them properly.
//!
//! What counts as a call:
//! - It names a tool that was offered, by any of its names, and is complete. Anything else stays text.
//! - Between marks that are made for calls it may stand anywhere: `<tool_call>`, `<function=…>`, `<tools>`, `<|python_tag|>`,
//!   `[TOOL_CALLS]`; only not right behind a backtick or inside a fence, where it is a quotation.
//! - Plain or fenced JSON is what people are shown as an example, too. It counts only as the last thing of the text, since a
//!   model that calls stops there and one that explains goes on, and only with its arguments, unless it is all of the text.
//! - What looks like a tool's definition (it has a `description`) is none.
//!
//! Arguments in XML are text and typed by the schema; so are strings in JSON that the schema does not take as strings.

mod detector;
mod json;
mod last;
mod mark;
mod names;
mod scan;
#[cfg(test)]
mod tests;
mod xml;

use std::ops::Range;

pub(crate) use detector::CallDetector;

use crate::{ModelCall, Offer};
use mark::{Seen, Walk};
use scan::Scan;

/// The most calls that are taken out of one text.
const MOST_CALLS: usize = 128;

#[derive(Debug, PartialEq)]
pub(crate) struct Rescued {
    /// In the order they were written; at least one.
    pub(crate) calls: Vec<ModelCall>,
    pub(crate) text: String,
    kept: Vec<Range<usize>>,
}

impl Rescued {
    /// What is left for the person behind `from`: what stands before was told already.
    pub(crate) fn rest(&self, text: &str, from: usize) -> String {
        words(text, &self.kept, from)
    }
}

struct Found {
    place: Range<usize>,
    calls: Vec<ModelCall>,
    /// It stands between marks made for calls: no example.
    firm: bool,
    complete: bool,
}

/// Takes the calls out of a finished text; `None` if there are none.
pub(crate) fn rescue(text: &str, offer: &Offer) -> Option<Rescued> {
    let found = without_examples(text, find(text, offer));
    if found.is_empty() {
        return None;
    }
    let kept = gaps(text, &found);
    let words = words(text, &kept, 0);
    let calls = found.into_iter().flat_map(|found| found.calls).collect();
    Some(Rescued {
        calls,
        text: words,
        kept,
    })
}

/// The calls that a text ends in: what has words behind it may be taken back by them.
pub(crate) fn last_calls(text: &str, offer: &Offer) -> Vec<ModelCall> {
    let found = without_examples(text, find(text, offer));
    let mut end = text.len();
    let is_last = |found: &&Found| {
        let is_last = text[found.place.end..end].trim().is_empty();
        end = found.place.start;
        is_last
    };
    let last = found.iter().rev().take_while(is_last).count();
    let last = found.into_iter().rev().take(last).rev();
    last.flat_map(|found| found.calls).collect()
}

/// What is left for the person behind `from`: what stands before was told already.
fn words(text: &str, kept: &[Range<usize>], from: usize) -> String {
    let pieces = kept.iter().map(|piece| {
        let start = piece.start.max(from).min(piece.end);
        text[start..piece.end].trim()
    });
    let pieces: Vec<&str> = pieces.filter(|piece| !piece.is_empty()).collect();
    pieces.join("\n")
}

fn find(text: &str, offer: &Offer) -> Vec<Found> {
    let mut scan = Scan::new(text, offer);
    let mut walk = Walk::default();
    let mut found: Vec<Found> = Vec::new();
    let mut calls = 0;
    while let Some(seen) = walk.next(text.as_bytes()) {
        let place = walk.at();
        let read = match seen {
            Seen::Mark(mark) => scan.read(mark, place),
            Seen::Maybe => None,
        };
        match read {
            Some(read) if calls + read.calls.len() <= MOST_CALLS => {
                calls += read.calls.len();
                walk.leap(read.place.end);
                found.push(read);
            }
            _ => walk.pass(seen),
        }
    }
    found
}

/// Plain JSON is a call only where nothing but calls comes after it.
fn without_examples(text: &str, mut found: Vec<Found>) -> Vec<Found> {
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
        let Found { firm, complete, .. } = found[index];
        keep[index] = firm || (last && (complete || alone));
    }
    let mut keep = keep.into_iter();
    found.retain(|_| keep.next().unwrap_or_default());
    found
}

fn gaps(text: &str, found: &[Found]) -> Vec<Range<usize>> {
    let mut gaps = Vec::with_capacity(found.len() + 1);
    let mut start = 0;
    for found in found {
        gaps.push(start..found.place.start);
        start = found.place.end;
    }
    gaps.push(start..text.len());
    gaps
}
