//! Calls in JSON, in the shapes that models have seen.

use std::collections::HashMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::MOST_CALLS;
use super::scan::{Read, Scan};
use crate::{CallArguments, ModelCall};

/// `{"name", "arguments"}`, `{"name", "parameters"}`, `{"function": {…}}`, `{"function": "name", "arguments"}`. A key that is
/// given twice is an error.
#[derive(Deserialize)]
struct Shape<'a> {
    name: Option<String>,
    #[serde(borrow)]
    function: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    parameters: Option<&'a RawValue>,
    description: Option<IgnoredAny>,
}

/// What may stand beside the name of a call without arguments.
const USUAL_KEYS: [&str; 7] = [
    "name",
    "function",
    "arguments",
    "parameters",
    "type",
    "id",
    "index",
];

impl Scan<'_> {
    /// One or more JSON values, each a call or a list of calls, with nothing but space or a semicolon between them. What
    /// comes after them is none of its business.
    pub(super) fn values(&mut self, at: usize) -> Option<Read> {
        let mut read = Read {
            calls: Vec::new(),
            complete: true,
            end: at,
        };
        loop {
            let start = self.skip_space(read.end);
            let start = start + usize::from(!read.calls.is_empty() && self.has(start, ";"));
            let start = self.skip_space(start);
            if !self.has(start, "{") && !self.has(start, "[") {
                break;
            }
            // The next mark of its own.
            if self.has(start, "[TOOL_CALLS]") {
                break;
            }
            let Some(end) = self.extent(start) else { break };
            let Some(calls) = self.calls(&self.text[start..end]) else {
                break;
            };
            if read.calls.len() + calls.len() > MOST_CALLS {
                break;
            }
            read.complete &= calls.iter().all(|call| call.complete);
            read.calls.extend(calls.into_iter().map(|call| call.call));
            read.end = end;
        }
        (!read.calls.is_empty()).then_some(read)
    }

    /// Where the JSON object or list that begins here ends. Only brackets and strings are looked at; whether it is JSON is
    /// found out by reading it.
    pub(super) fn extent(&mut self, at: usize) -> Option<usize> {
        let bytes = self.ahead(at);
        let length = balanced(bytes);
        self.pay(length.unwrap_or(bytes.len()))?;
        Some(at + length?)
    }

    /// All or nothing: a list with anything else in it is no list of calls.
    fn calls(&mut self, json: &str) -> Option<Vec<Call>> {
        if json.starts_with('{') {
            return Some(vec![self.call(json)?]);
        }
        let list: Vec<&RawValue> = serde_json::from_str(json).ok()?;
        if list.len() > MOST_CALLS {
            return None;
        }
        list.into_iter().map(|item| self.call(item.get())).collect()
    }

    fn call(&mut self, json: &str) -> Option<Call> {
        let outer: Shape<'_> = serde_json::from_str(json).ok()?;
        let inner = outer.function.filter(|json| json.get().starts_with('{'));
        let (json, shape) = match inner {
            Some(inner) if outer.name.is_none() => {
                (inner.get(), serde_json::from_str(inner.get()).ok()?)
            }
            _ => (json, outer),
        };
        if shape.description.is_some() || (shape.arguments.is_some() && shape.parameters.is_some())
        {
            return None;
        }
        let given = shape.arguments.or(shape.parameters);
        if given.is_none() && !has_only_usual_keys(json) {
            return None;
        }
        let name = match shape.name {
            Some(name) => name,
            None => serde_json::from_str(shape.function?.get()).ok()?,
        };
        let arguments = CallArguments::read(given.map_or("", RawValue::get));
        let complete = given.is_some_and(|given| {
            given.get().starts_with('{') || matches!(arguments, CallArguments::Object(_))
        });
        Some(Call {
            call: self.tool(&name)?.call_in_json(arguments),
            complete,
        })
    }
}

fn balanced(bytes: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    if !matches!(bytes.first(), Some(b'{' | b'[')) {
        return None;
    }
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b'"' => at = end_of_string(bytes, at)?,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

fn end_of_string(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

struct Call {
    call: ModelCall,
    complete: bool,
}

fn has_only_usual_keys(json: &str) -> bool {
    serde_json::from_str::<HashMap<String, IgnoredAny>>(json)
        .is_ok_and(|object| object.keys().all(|key| USUAL_KEYS.contains(&key.as_str())))
}
