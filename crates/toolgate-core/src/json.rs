//! A strict JSON parser: a duplicate key is an error, because picking one of the values silently
//! would drop the other.

use std::cell::RefCell;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

use crate::schema::json_type;
use crate::{Arguments, ToolError, Violation, has_more_values};

/// Why bytes are not the expected JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// The bytes are not JSON, or nested too deeply.
    #[error("{problem}")]
    Syntax {
        /// The parser's message, with line and column.
        problem: String,
    },
    #[error("'{key}' given twice")]
    DuplicateKey { key: String },
    #[error("expected a JSON object, found {found}")]
    NotAnObject { found: &'static str },
    #[error("more than {limit} values, which is the limit")]
    TooManyValues { limit: usize },
}

impl JsonError {
    pub fn into_tool_error(self, tool: &str) -> ToolError {
        let violation = match self {
            JsonError::TooManyValues { limit } => return ToolError::too_many_values(tool, limit),
            JsonError::Syntax { problem } => {
                Violation::new("arguments", format!("must be a JSON object: {problem}"))
            }
            JsonError::DuplicateKey { key } => {
                Violation::new(crate::text::escape_truncated(&key, 100), "given twice")
            }
            JsonError::NotAnObject { .. } => Violation::new("arguments", "must be object"),
        };
        ToolError::InvalidArguments {
            violations: vec![violation],
            required: Vec::new(),
            misspelled: Vec::new(),
        }
    }
}

/// Parses one JSON value. Duplicate keys and nesting beyond 128 levels are errors. A leading
/// byte-order mark is skipped.
pub fn parse_json(bytes: &[u8]) -> Result<Value, JsonError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let duplicate = RefCell::new(None);
    let mut parser = serde_json::Deserializer::from_slice(bytes);
    let parsed = StrictVisitor {
        duplicate: &duplicate,
    }
    .deserialize(&mut parser)
    .and_then(|value| parser.end().map(|()| value));
    match (parsed, duplicate.into_inner()) {
        (_, Some(key)) => Err(JsonError::DuplicateKey { key }),
        (Ok(value), None) => Ok(value),
        (Err(error), None) => Err(JsonError::Syntax {
            problem: crate::text::escape_truncated(&error.to_string(), 200),
        }),
    }
}

/// Like [`parse_json`], for a JSON object.
pub fn parse_object(bytes: &[u8]) -> Result<Arguments, JsonError> {
    match parse_json(bytes)? {
        Value::Object(object) => Ok(object),
        other => Err(JsonError::NotAnObject {
            found: json_type(&other),
        }),
    }
}

/// Like [`parse_object`], for untrusted text: an object with more than `max_values` values is
/// rejected before it takes memory.
pub fn parse_object_within(bytes: &[u8], max_values: usize) -> Result<Arguments, JsonError> {
    if has_more_values(bytes, max_values) {
        return Err(JsonError::TooManyValues { limit: max_values });
    }
    parse_object(bytes)
}

/// A JSON object inside a larger type, deserialized as strictly as by [`parse_object`].
#[derive(Debug, Clone, PartialEq)]
pub struct StrictObject(pub Arguments);

impl<'de> Deserialize<'de> for StrictObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let duplicate = RefCell::new(None);
        let strict = StrictVisitor {
            duplicate: &duplicate,
        };
        match strict.deserialize(deserializer)? {
            Value::Object(object) => Ok(Self(object)),
            other => Err(D::Error::custom(JsonError::NotAnObject {
                found: json_type(&other),
            })),
        }
    }
}

// Records the duplicate key on the side: serde's errors are text and can't carry it.
#[derive(Clone, Copy)]
struct StrictVisitor<'a> {
    duplicate: &'a RefCell<Option<String>>,
}

impl<'de> DeserializeSeed<'de> for StrictVisitor<'_> {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictVisitor<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("number out of range"))
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }
    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(value) = sequence.next_element_seed(self)? {
            array.push(value);
        }
        Ok(Value::Array(array))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            match object.entry(key) {
                Entry::Vacant(place) => {
                    place.insert(entries.next_value_seed(self)?);
                }
                Entry::Occupied(taken) => {
                    self.duplicate.replace(Some(taken.key().clone()));
                    return Err(A::Error::custom("duplicate key"));
                }
            }
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn valid_json_is_parsed_unchanged() {
        let text = r#" {"b": [1, -2, 3.5, 9007199254740993, 1e3], "a": {"x": null, "y": true}, "é": "\u00e9\n"} "#;
        let expected = json!({ "b": [1, -2, 3.5, 9_007_199_254_740_993_i64, 1000.0], "a": { "x": null, "y": true }, "é": "é\n" });
        assert_eq!(parse_json(text.as_bytes()).unwrap(), expected);
        assert_eq!(parse_json(b"\xef\xbb\xbf{}").unwrap(), json!({}));
    }

    #[test]
    fn invalid_json_gives_a_clear_message() {
        for (text, expected) in [
            (r#"{"a":1,"a":2}"#, "Invalid parameters: 'a' given twice"),
            (
                r#"{"o":{"a":1,"b":[{"a":1,"a":1}]}}"#,
                "Invalid parameters: 'a' given twice",
            ),
            (
                r#"{"\u0061":1,"a":2}"#,
                "Invalid parameters: 'a' given twice",
            ),
            ("[1]", "Invalid parameters: 'arguments' must be object"),
            ("5", "Invalid parameters: 'arguments' must be object"),
            ("null", "Invalid parameters: 'arguments' must be object"),
            (
                "",
                "Invalid parameters: 'arguments' must be a JSON object: EOF while parsing a value at line 1 column 0",
            ),
            (
                "{a: 1}",
                "Invalid parameters: 'arguments' must be a JSON object: key must be a string at line 1 column 2",
            ),
            (
                "{} {}",
                "Invalid parameters: 'arguments' must be a JSON object: trailing characters at line 1 column 4",
            ),
            (
                r#"{"n": 1e999}"#,
                "Invalid parameters: 'arguments' must be a JSON object: number out of range at line 1 column 11",
            ),
            (
                r#"{"s": "\ud800"}"#,
                "Invalid parameters: 'arguments' must be a JSON object: unexpected end of hex escape at line 1 column 14",
            ),
        ] {
            let error = parse_object(text.as_bytes())
                .unwrap_err()
                .into_tool_error("echo");
            assert_eq!(error.to_string(), expected, "{text}");
        }
    }

    #[test]
    fn deep_nesting_and_invalid_utf8_are_errors_not_crashes() {
        for bytes in [
            "[".repeat(100_000).as_bytes(),
            br#"{"a":"#.repeat(5_000).as_slice(),
            b"{\"a\":\"\xff\"}",
            b"\x00",
        ] {
            assert!(matches!(parse_json(bytes), Err(JsonError::Syntax { .. })));
        }
    }
}
