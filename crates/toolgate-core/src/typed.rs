//! Converts arguments that arrive as text to the types that a schema declares: `key=value` on the
//! command line, or a call that a model wrote as text. No other arguments are ever converted.

mod command_line;

use std::collections::HashSet;

use serde_json::Value;

use crate::schema::json_type;
use crate::{Arguments, JsonError, parse_json};

pub use command_line::{comma_separated_lists, command_line_arguments};

/// Builds arguments from pairs of a key and a text, with the types that the schema declares.
///
/// Without a declared type, valid JSON is parsed unless it is a string. A value that doesn't fit
/// stays text, so that validation can report it. Fails if a key is given twice.
pub fn typed_arguments(pairs: &[(&str, &str)], schema: &Value) -> Result<Arguments, JsonError> {
    let mut arguments = Arguments::new();
    for (key, text) in pairs {
        let declared = schema
            .get("properties")
            .and_then(|all| all.get(key))
            .unwrap_or(&Value::Null);
        if arguments
            .insert((*key).to_owned(), parse_by_schema(text, declared, schema)?)
            .is_some()
        {
            return Err(JsonError::DuplicateKey {
                key: (*key).to_owned(),
            });
        }
    }
    Ok(arguments)
}

fn parse_by_schema(text: &str, declared: &Value, document: &Value) -> Result<Value, JsonError> {
    let types = allowed_types(declared, document);
    // A JSON string would lose the quotes that were typed.
    let fits =
        |json: &Value| !json.is_string() && (types.is_empty() || types.contains(&json_type(json)));
    match parse_json(text.as_bytes()) {
        Ok(json) if fits(&json) => Ok(json),
        Err(twice @ JsonError::DuplicateKey { .. }) if types != ["string"] => Err(twice),
        _ => Ok(Value::from(text)),
    }
}

/// The types a schema allows, including those behind references, combinators and enumerations.
/// Integers count as numbers.
fn allowed_types(schema: &Value, document: &Value) -> Vec<&'static str> {
    let mut types = Vec::new();
    for part in schema_parts(schema, document) {
        match part.get("type") {
            Some(Value::String(name)) => types.extend(known_type(name)),
            Some(Value::Array(names)) => {
                let names = names.iter().filter_map(Value::as_str);
                types.extend(names.filter_map(known_type));
            }
            _ => {
                let words = part.get("enum").and_then(Value::as_array);
                let words = words.into_iter().flatten().chain(part.get("const"));
                types.extend(words.map(json_type));
            }
        }
    }
    types
}

// Visits each sub-schema once, however often a server's schema refers to it,
// so that recursion ends.
fn schema_parts<'a>(schema: &'a Value, document: &'a Value) -> Vec<&'a Value> {
    let mut parts = Vec::new();
    let mut seen = HashSet::new();
    let mut pending = vec![schema];
    while let Some(schema) = pending.pop() {
        if !seen.insert(std::ptr::from_ref(schema)) {
            continue;
        }
        let list = |keyword| {
            let list = schema.get(keyword).and_then(Value::as_array);
            list.into_iter().flatten()
        };
        pending.extend(["anyOf", "oneOf", "allOf"].into_iter().flat_map(list));
        let reference = schema.get("$ref").and_then(Value::as_str);
        let pointer = reference.and_then(|reference| reference.strip_prefix('#'));
        pending.extend(pointer.and_then(|pointer| document.pointer(pointer)));
        parts.push(schema);
    }
    parts
}

fn known_type(name: &str) -> Option<&'static str> {
    let name = if name == "integer" { "number" } else { name };
    ["null", "boolean", "number", "string", "array", "object"]
        .into_iter()
        .find(|known| *known == name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_recursive_schema_is_visited_once() {
        let refer = json!({ "anyOf": vec![json!({ "$ref": "#/$defs/a" }); 100] });
        let document =
            json!({ "$defs": { "a": refer }, "properties": { "x": { "$ref": "#/$defs/a" } } });
        assert!(allowed_types(&document["properties"]["x"], &document).is_empty());
    }

    #[test]
    fn values_become_what_the_schema_says() {
        let schema = json!({
            "properties": {
                "s": { "type": "string" }, "i": { "type": "integer" }, "n": { "type": "number" }, "b": { "type": "boolean" },
                "a": { "type": "array" }, "o": { "type": "object" }, "maybe": { "type": ["string", "null"] },
                "e": { "enum": [1, "one"] }, "any": {}, "r": { "$ref": "#/$defs/count" },
                "u": { "anyOf": [{ "type": "integer" }, { "type": "string" }] }
            },
            "$defs": { "count": { "type": "integer" } }
        });
        for (key, text, expected) in [
            ("s", "012", json!("012")),
            ("s", "5", json!("5")),
            ("s", "\"quoted\"", json!("\"quoted\"")),
            ("s", "a=b", json!("a=b")),
            ("s", "", json!("")),
            ("i", "5", json!(5)),
            ("i", "five", json!("five")),
            ("n", "-2.5e3", json!(-2500.0)),
            ("b", "true", json!(true)),
            ("b", "yes", json!("yes")),
            ("a", "[1,2]", json!([1, 2])),
            ("o", r#"{"x":1}"#, json!({ "x": 1 })),
            ("maybe", "null", json!(null)),
            ("maybe", "5", json!("5")),
            ("e", "1", json!(1)),
            ("e", "one", json!("one")),
            ("any", "5", json!(5)),
            ("any", "plain", json!("plain")),
            ("any", "\"q\"", json!("\"q\"")),
            ("unknown", "\"q\"", json!("\"q\"")),
            ("s", r#"{"x":1,"x":2}"#, json!(r#"{"x":1,"x":2}"#)),
            ("r", "7", json!(7)),
            ("u", "7", json!(7)),
            ("u", "07", json!("07")),
            ("unknown", "[1]", json!([1])),
            ("unknown", "012", json!("012")),
        ] {
            assert_eq!(
                typed_arguments(&[(key, text)], &schema).unwrap()[key],
                expected,
                "{key}={text}"
            );
        }
    }

    #[test]
    fn a_key_given_twice_is_refused() {
        let error = typed_arguments(&[("a", "1"), ("a", "2")], &Value::Null).unwrap_err();
        assert_eq!(error.to_string(), "'a' given twice");
        let error = typed_arguments(&[("o", r#"{"x":1,"x":2}"#)], &Value::Null).unwrap_err();
        assert_eq!(error.to_string(), "'x' given twice");
    }
}
