//! Reads calls in Qwen3-Coder's XML: `<function=name><parameter=key>value</parameter></function>`.

use memchr::memmem;
use serde_json::Value;
use toolgate_core::{JsonError, parse_json, typed_arguments};

use super::scanner::{CallScanner, ParsedCalls};
use crate::CallArguments;

const PARAMETER: &str = "<parameter=";
const END_OF_PARAMETER: &str = "</parameter>";
const END: &str = "</function>";

impl CallScanner<'_> {
    pub(super) fn parse_xml_call(&mut self, at: usize) -> Option<ParsedCalls> {
        let text = self.text;
        let name = self.parse_name(at + "<function=".len(), |byte| byte == b'>')?;
        let tool = self.find_tool(name.trim())?;
        let mut pairs = Vec::new();
        let mut end = at + "<function=".len() + name.len() + 1;
        loop {
            end = self.skip_space(end);
            if !self.starts_with_at(end, PARAMETER) {
                break;
            }
            let key = self.parse_name(end + PARAMETER.len(), |byte| byte == b'>')?;
            let start = end + PARAMETER.len() + key.len() + 1;
            let ahead = self.affordable_bytes(start);
            let length = memmem::find(ahead, END_OF_PARAMETER.as_bytes());
            self.spend_budget(length.unwrap_or(ahead.len()))?;
            let value = &text[start..start + length?];
            pairs.push((key.trim(), trim_line_ends(value)));
            end = start + value.len() + END_OF_PARAMETER.len();
        }
        if self.starts_with_at(end, END) {
            end += END.len();
        } else if !self.starts_with_at(end, "</tool_call>") {
            return None;
        }
        self.spend_budget(end - at)?;
        Some(ParsedCalls {
            calls: vec![tool.to_call(arguments(&pairs, tool.definition().parameters()))],
            complete: true,
            end,
        })
    }
}

// Qwen's template puts each value on lines of its own.
fn trim_line_ends(value: &str) -> &str {
    let value = value.strip_prefix('\r').unwrap_or(value);
    let value = value.strip_prefix('\n').unwrap_or(value);
    let value = value.strip_suffix('\n').unwrap_or(value);
    value.strip_suffix('\r').unwrap_or(value)
}

fn arguments(pairs: &[(&str, &str)], schema: &Value) -> CallArguments {
    match typed_arguments(pairs, schema) {
        Ok(arguments) => CallArguments::Object(arguments),
        // A key stands twice, in the call or in one of its values.
        Err(_) => CallArguments::Unusable(to_json_with_duplicates(pairs)),
    }
}

// Builds JSON that has the duplicate key, so that the executor reports it like any other call's.
fn to_json_with_duplicates(pairs: &[(&str, &str)]) -> String {
    let pairs = pairs.iter().map(|(key, value)| {
        let key = Value::from(*key);
        match parse_json(value.as_bytes()) {
            // The duplicate is in the value, whose text stays as it is.
            Err(JsonError::DuplicateKey { .. }) => format!("{key}:{value}"),
            _ => format!("{key}:{}", Value::from(*value)),
        }
    });
    format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
}
