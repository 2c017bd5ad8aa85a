//! Calls in the XML of Qwen3-Coder: `<function=name><parameter=key>value</parameter></function>`.

use memchr::memmem;
use serde_json::Value;
use toolgate_core::{JsonError, parse_json, typed_arguments};

use super::scan::{Read, Scan};
use crate::CallArguments;

const PARAMETER: &str = "<parameter=";
const END_OF_PARAMETER: &str = "</parameter>";
const END: &str = "</function>";

impl Scan<'_> {
    /// The function that begins here. Without its end it is cut, and no call.
    pub(super) fn function(&mut self, at: usize) -> Option<Read> {
        let text = self.text;
        let name = self.name(at + "<function=".len(), |byte| byte == b'>')?;
        let tool = self.tool(name.trim())?;
        let mut pairs = Vec::new();
        let mut end = at + "<function=".len() + name.len() + 1;
        loop {
            end = self.skip_space(end);
            if !self.has(end, PARAMETER) {
                break;
            }
            let key = self.name(end + PARAMETER.len(), |byte| byte == b'>')?;
            let start = end + PARAMETER.len() + key.len() + 1;
            let ahead = self.ahead(start);
            let length = memmem::find(ahead, END_OF_PARAMETER.as_bytes());
            self.pay(length.unwrap_or(ahead.len()))?;
            let value = &text[start..start + length?];
            pairs.push((key.trim(), without_line_ends(value)));
            end = start + value.len() + END_OF_PARAMETER.len();
        }
        if self.has(end, END) {
            end += END.len();
        } else if !self.has(end, "</tool_call>") {
            return None;
        }
        self.pay(end - at)?;
        Some(Read {
            calls: vec![tool.call(arguments(&pairs, tool.definition().parameters()))],
            complete: true,
            end,
        })
    }
}

/// The template puts a value on lines of its own.
fn without_line_ends(value: &str) -> &str {
    let value = value.strip_prefix('\r').unwrap_or(value);
    let value = value.strip_prefix('\n').unwrap_or(value);
    let value = value.strip_suffix('\n').unwrap_or(value);
    value.strip_suffix('\r').unwrap_or(value)
}

fn arguments(pairs: &[(&str, &str)], schema: &Value) -> CallArguments {
    match typed_arguments(pairs, schema) {
        Ok(arguments) => CallArguments::Object(arguments),
        Err(_) => CallArguments::Unusable(as_it_came(pairs)),
    }
}

/// As JSON with the key that was given twice, so that the model is told of it like everybody else.
fn as_it_came(pairs: &[(&str, &str)]) -> String {
    let pairs = pairs.iter().map(|(key, value)| {
        let key = Value::from(*key);
        match parse_json(value.as_bytes()) {
            Err(JsonError::Duplicate { .. }) => format!("{key}:{value}"),
            _ => format!("{key}:{}", Value::from(*value)),
        }
    });
    format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
}
