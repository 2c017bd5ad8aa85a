//! Reads calls that are written in JSON, in the shapes that models know from their training.

use std::collections::HashMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::MAX_CALLS;
use super::scanner::{CallScanner, ParsedCalls};
use crate::{CallArguments, ModelCall};

// One of `{"name", "arguments"}`, `{"name", "parameters"}`, `{"function": {…}}` and `{"function":
// "name", "arguments"}`. A duplicate key is an error.
#[derive(Deserialize)]
struct CallShape<'a> {
    name: Option<String>,
    #[serde(borrow)]
    function: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    parameters: Option<&'a RawValue>,
    description: Option<IgnoredAny>,
}

impl CallScanner<'_> {
    /// Reads one or more JSON values, each a call or a list of calls, separated by white space or a
    /// semicolon. Ignores what comes after them.
    pub(super) fn parse_json_calls(&mut self, at: usize) -> Option<ParsedCalls> {
        let mut read = ParsedCalls {
            calls: Vec::new(),
            complete: true,
            end: at,
        };
        loop {
            let start = self.skip_space(read.end);
            let start =
                start + usize::from(!read.calls.is_empty() && self.starts_with_at(start, ";"));
            let start = self.skip_space(start);
            if !self.starts_with_at(start, "{") && !self.starts_with_at(start, "[") {
                break;
            }
            // A mark of Mistral, not a list.
            if self.starts_with_at(start, "[TOOL_CALLS]") {
                break;
            }
            let Some(end) = self.find_json_end(start) else {
                break;
            };
            let Some(calls) = self.parse_calls(&self.text[start..end]) else {
                break;
            };
            if read.calls.len() + calls.len() > MAX_CALLS {
                break;
            }
            read.complete &= calls.iter().all(|call| call.complete);
            read.calls.extend(calls.into_iter().map(|call| call.call));
            read.end = end;
        }
        (!read.calls.is_empty()).then_some(read)
    }

    /// Finds the end of the JSON object or list that begins at `at`. Looks only at brackets and
    /// strings; parsing shows whether it is JSON.
    pub(super) fn find_json_end(&mut self, at: usize) -> Option<usize> {
        let bytes = self.affordable_bytes(at);
        let length = balanced_len(bytes);
        self.spend_budget(length.unwrap_or(bytes.len()))?;
        Some(at + length?)
    }

    // All or nothing: a list that has anything else isn't a list of calls.
    fn parse_calls(&mut self, json: &str) -> Option<Vec<JsonCall>> {
        if json.starts_with('{') {
            return Some(vec![self.parse_call(json)?]);
        }
        let list: Vec<&RawValue> = serde_json::from_str(json).ok()?;
        if list.len() > MAX_CALLS {
            return None;
        }
        list.into_iter()
            .map(|item| self.parse_call(item.get()))
            .collect()
    }

    fn parse_call(&mut self, json: &str) -> Option<JsonCall> {
        let outer: CallShape<'_> = serde_json::from_str(json).ok()?;
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
        let arguments = CallArguments::parse(given.map_or("", RawValue::get));
        let complete = given.is_some_and(|given| {
            given.get().starts_with('{') || matches!(arguments, CallArguments::Object(_))
        });
        Some(JsonCall {
            call: self.find_tool(&name)?.to_typed_call(arguments),
            complete,
        })
    }
}

fn balanced_len(bytes: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    if !matches!(bytes.first(), Some(b'{' | b'[')) {
        return None;
    }
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b'"' => at = find_string_end(bytes, at)?,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

fn find_string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

struct JsonCall {
    call: ModelCall,
    complete: bool,
}

fn has_only_usual_keys(json: &str) -> bool {
    let is_usual = |key: &String| {
        matches!(
            key.as_str(),
            "name" | "function" | "arguments" | "parameters" | "type" | "id" | "index"
        )
    };
    serde_json::from_str::<HashMap<String, IgnoredAny>>(json)
        .is_ok_and(|object| object.keys().all(is_usual))
}
