//! Parameters that are repeated in HTTP headers, because their schema has `x-mcp-header`. Revision
//! 2026-07-28 requires it of clients, and servers compare both.

use std::collections::HashSet;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use http::HeaderName;
use serde_json::{Map, Number, Value};
use toolgate_core::text::{escape, truncate};

const MARK: &str = "x-mcp-header";
/// What the name of every such header begins with.
pub(crate) const HEADER_PREFIX: &str = "mcp-param-";
// JavaScript can't tell larger integers apart.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;
const MAX_SHOWN: usize = 100;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HeaderParameter {
    /// The keys that lead to the value in a call's arguments.
    pub(crate) path: Vec<String>,
    pub(crate) header: HeaderName,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be between -{MAX_SAFE_INTEGER} and {MAX_SAFE_INTEGER}")]
pub(crate) struct UnsafeIntegerError;

impl HeaderParameter {
    /// Returns the marked parameters of a tool. A mark at a wrong place or of a wrong form is an
    /// error, which makes the whole tool invalid.
    pub(crate) fn find(schema: &Value) -> Result<Vec<Self>, String> {
        let mut found = Vec::new();
        if schema.get(MARK).is_some() {
            return Err(misplaced());
        }
        collect(schema, &mut Vec::new(), &mut found)?;
        let mut seen = HashSet::new();
        match found.iter().find(|marked| !seen.insert(&marked.header)) {
            Some(second) => Err(format!("two parameters use the header '{}'", second.header)),
            None => Ok(found),
        }
    }

    fn new(path: &[String], schema: &Map<String, Value>, mark: &Value) -> Result<Self, String> {
        let shown = escape(&truncate(&path.join("."), MAX_SHOWN));
        let name = mark.as_str().filter(|name| !name.is_empty());
        let header = name.and_then(|name| {
            let full = format!("{HEADER_PREFIX}{name}");
            HeaderName::try_from(full.as_str()).ok()
        });
        let Some(header) = header else {
            return Err(format!(
                "'{MARK}' of parameter '{shown}' is not a valid header name"
            ));
        };
        match schema.get("type").and_then(Value::as_str) {
            Some("integer" | "string" | "boolean") => Ok(Self {
                path: path.to_vec(),
                header,
            }),
            _ => Err(format!(
                "parameter '{shown}' has '{MARK}' but is not an integer, a string or a boolean"
            )),
        }
    }

    /// The value to put into the header; `None` if the arguments have none.
    pub(crate) fn value(
        &self,
        arguments: &Map<String, Value>,
    ) -> Result<Option<String>, UnsafeIntegerError> {
        Ok(match self.find_value(arguments) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Bool(flag)) => Some(flag.to_string()),
            Some(Value::Number(number)) => Some(integer_text(number)?),
            _ => None,
        })
    }

    /// True if a header's decoded value says the same as the arguments.
    pub(crate) fn is_repeated_by(
        &self,
        header: Option<&str>,
        arguments: &Map<String, Value>,
    ) -> bool {
        match (header, self.find_value(arguments)) {
            (Some(header), Some(Value::String(text))) => header == text,
            (Some(header), Some(Value::Bool(flag))) => header == flag.to_string(),
            (Some(header), Some(Value::Number(number))) => is_same_number(header, number),
            (None, Some(Value::String(_) | Value::Bool(_) | Value::Number(_))) => false,
            (header, _) => header.is_none(),
        }
    }

    fn find_value<'a>(&self, arguments: &'a Map<String, Value>) -> Option<&'a Value> {
        let (first, mut others) = self.path.split_first().map(|(a, b)| (a, b.iter()))?;
        others.try_fold(arguments.get(first)?, |value, key| value.get(key))
    }
}

/// Values that headers can't hold are sent as `=?base64?…?=`.
pub(crate) fn encode_value(value: &str) -> String {
    let edges = [value.bytes().next(), value.bytes().last()];
    let is_plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && !edges.contains(&Some(b' '))
        && !(value.starts_with("=?base64?") && value.ends_with("?="));
    match is_plain {
        true => value.to_owned(),
        false => format!("=?base64?{}?=", BASE64_STANDARD.encode(value)),
    }
}

/// Returns `None` if the encoding is invalid.
pub(crate) fn decode_value(value: &str) -> Option<String> {
    let encoded = value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="));
    match encoded {
        None => Some(value.to_owned()),
        Some(encoded) => String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok(),
    }
}

fn collect(
    schema: &Value,
    path: &mut Vec<String>,
    found: &mut Vec<HeaderParameter>,
) -> Result<(), String> {
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        let Some(properties) = value.as_object().filter(|_| keyword == "properties") else {
            check_unmarked(keyword, value)?;
            continue;
        };
        for (name, property) in properties {
            path.push(name.clone());
            if let Value::Object(property) = property
                && let Some(mark) = property.get(MARK)
            {
                found.push(HeaderParameter::new(path, property, mark)?);
            }
            collect(property, path, found)?;
            path.pop();
        }
    }
    Ok(())
}

/// Looks for marks in schemas that aren't reached through `properties` alone: whether they apply to
/// a call would depend on its arguments.
fn check_unmarked(keyword: &str, value: &Value) -> Result<(), String> {
    let schemas: Vec<&Value> = match (keyword, value) {
        // Data, which may have any keys.
        ("default" | "const" | "enum" | "examples" | MARK, _) => return Ok(()),
        ("properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas", _) => {
            value
                .as_object()
                .into_iter()
                .flat_map(Map::values)
                .collect()
        }
        (_, Value::Array(schemas)) => schemas.iter().collect(),
        (_, schema) => vec![schema],
    };
    for schema in schemas.into_iter().filter_map(Value::as_object) {
        if schema.contains_key(MARK) {
            return Err(misplaced());
        }
        for (keyword, value) in schema {
            check_unmarked(keyword, value)?;
        }
    }
    Ok(())
}

fn misplaced() -> String {
    format!("'{MARK}' is only allowed on parameters that are reached through 'properties' alone")
}

fn integer_text(number: &Number) -> Result<String, UnsafeIntegerError> {
    let is_safe = match (number.as_i64(), number.as_f64()) {
        (Some(integer), _) => integer.unsigned_abs() <= MAX_SAFE_INTEGER,
        (None, float) => float.is_some_and(|float| float.abs() <= MAX_SAFE_INTEGER as f64),
    };
    if !is_safe {
        return Err(UnsafeIntegerError);
    }
    // JSON Schema takes 42.0 for an integer too.
    let whole = number.as_f64().filter(|float| float.fract() == 0.0);
    Ok(match whole {
        Some(whole) => format!("{whole:.0}"),
        None => number.to_string(),
    })
}

/// `42.0` and `42` are the same number.
fn is_same_number(header: &str, expected: &Number) -> bool {
    let expected = expected.to_string();
    let integer = |text: &str| text.parse::<i128>().ok();
    if let (Some(header), Some(expected)) = (integer(header), integer(&expected)) {
        return header == expected;
    }
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
    number(header).is_some_and(|header| number(&expected) == Some(header))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(properties: impl Into<Value>) -> Value {
        let properties: Value = properties.into();
        json!({ "type": "object", "properties": properties })
    }

    fn arguments(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn marks_are_found_along_properties() {
        let nested = object(json!({ "floor": { "type": "integer", "x-mcp-header": "Floor" } }));
        let schema = object(json!({
            "region": { "type": "string", "x-mcp-header": "Region" },
            "at": nested,
            // Only data: neither is a mark.
            "x-mcp-header": { "type": "string", "default": { "x-mcp-header": 1 } },
        }));
        let found = HeaderParameter::find(&schema).unwrap();
        let found: Vec<(String, &str)> = found
            .iter()
            .map(|marked| (marked.path.join("."), marked.header.as_str()))
            .collect();
        let expected = [
            ("region", "mcp-param-region"),
            ("at.floor", "mcp-param-floor"),
        ];
        assert_eq!(
            found,
            expected.map(|(path, header)| (path.to_owned(), header))
        );
    }

    #[test]
    fn an_invalid_mark_is_an_error() {
        let marked = |kind: &str, mark: Value| json!({ "type": kind, "x-mcp-header": mark });
        let good = || marked("string", json!("A"));
        for schema in [
            object(json!({ "a": marked("string", json!("")) })),
            object(json!({ "a": marked("string", json!("no token")) })),
            object(json!({ "a": marked("string", json!("a\r\nb")) })),
            object(json!({ "a": marked("string", json!("ä")) })),
            object(json!({ "a": marked("string", json!(7)) })),
            object(json!({ "a": marked("number", json!("A")) })),
            object(json!({ "a": marked("object", json!("A")) })),
            object(json!({ "a": marked("array", json!("A")) })),
            object(json!({ "a": { "x-mcp-header": "A" } })),
            object(json!({ "a": good(), "b": marked("string", json!("a")) })),
            object(json!({ "a": { "type": "array", "items": good() } })),
            object(json!({ "a": { "type": "array", "items": object(json!({ "b": good() })) } })),
            object(json!({ "a": { "oneOf": [good()] } })),
            object(json!({ "a": { "not": good() } })),
            json!({ "type": "object", "allOf": [object(json!({ "a": good() }))] }),
            json!({ "type": "object", "if": {}, "then": object(json!({ "a": good() })) }),
            json!({ "type": "object", "$defs": { "a": good() } }),
            json!({ "type": "object", "additionalProperties": good() }),
            json!({ "type": "object", "patternProperties": { "^a": good() } }),
            json!({ "type": "object", "x-mcp-header": "A" }),
        ] {
            assert!(HeaderParameter::find(&schema).is_err(), "{schema}");
        }
    }

    #[test]
    fn values_become_text_and_are_compared_with_it() {
        let parameter = HeaderParameter {
            path: vec!["at".to_owned(), "x".to_owned()],
            header: HeaderName::from_static("mcp-param-x"),
        };
        let max = MAX_SAFE_INTEGER;
        for (value, expected) in [
            (json!("us-west1"), Ok(Some("us-west1".to_owned()))),
            (json!(""), Ok(Some(String::new()))),
            (json!(-7), Ok(Some("-7".to_owned()))),
            (json!(42.0), Ok(Some("42".to_owned()))),
            (json!(1e3), Ok(Some("1000".to_owned()))),
            (json!(max), Ok(Some(max.to_string()))),
            (json!(max + 1), Err(UnsafeIntegerError)),
            (json!(u64::MAX), Err(UnsafeIntegerError)),
            (json!(1e300), Err(UnsafeIntegerError)),
            (json!(true), Ok(Some("true".to_owned()))),
            (json!(null), Ok(None)),
            (json!(["a"]), Ok(None)),
        ] {
            let shown = value.to_string();
            let arguments = arguments(json!({ "at": { "x": value } }));
            assert_eq!(parameter.value(&arguments), expected, "{shown}");
            if let Ok(text) = expected {
                let text = text.as_deref();
                assert!(parameter.is_repeated_by(text, &arguments), "{shown}");
                assert!(!parameter.is_repeated_by(Some("other"), &arguments));
                assert_eq!(parameter.is_repeated_by(None, &arguments), text.is_none());
            }
        }
        for without in [json!({}), json!({ "at": 1 }), json!({ "at": {} })] {
            let arguments = arguments(without);
            assert_eq!(parameter.value(&arguments), Ok(None));
            assert!(parameter.is_repeated_by(None, &arguments));
            assert!(!parameter.is_repeated_by(Some(""), &arguments));
        }
        let number = |number: Value| arguments(json!({ "at": { "x": number } }));
        assert!(parameter.is_repeated_by(Some("42.0"), &number(json!(42))));
        assert!(!parameter.is_repeated_by(Some("42.0"), &number(json!("42"))));
        let above = number(json!(max + 2));
        assert!(!parameter.is_repeated_by(Some(&(max + 3).to_string()), &above));
    }

    #[test]
    fn values_that_headers_cannot_hold_are_encoded() {
        for (value, expected) in [
            ("us-west1", "us-west1"),
            ("two words", "two words"),
            ("", ""),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("edge ", "=?base64?ZWRnZSA=?="),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("a\tb", "=?base64?YQli?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("=?base64?x", "=?base64?x"),
        ] {
            assert_eq!(encode_value(value), expected, "{value:?}");
            assert_eq!(decode_value(expected).as_deref(), Some(value));
        }
        assert_eq!(decode_value("=?base64?!?="), None);
    }
}
