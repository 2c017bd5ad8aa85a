//! `key=value` on the command line, typed by the tool's schema.

use serde_json::{Map, Value};
use toolgate_core::ToolError;

/// Makes arguments of pairs. A value becomes what the schema says of its key; where it says nothing, JSON if it is JSON, else
/// text. What does not fit stays text, and validation tells what was wanted.
pub(crate) fn typed(
    pairs: &[(&str, &str)],
    schema: Option<&Value>,
) -> Result<Map<String, Value>, ToolError> {
    let mut arguments = Map::new();
    for (key, text) in pairs {
        let declared = schema.and_then(|schema| schema.get("properties")?.get(key));
        let value = match declared {
            Some(declared) => by_schema(text, declared, schema.unwrap_or(declared)),
            None => serde_json::from_str(text).unwrap_or_else(|_| Value::from(*text)),
        };
        if arguments.insert((*key).to_owned(), value).is_some() {
            return Err(ToolError::invalid(*key, "given twice"));
        }
    }
    Ok(arguments)
}

/// `a=b=c` is the key `a` with the value `b=c`.
pub(crate) fn split(argument: &str) -> Option<(&str, &str)> {
    argument.split_once('=').filter(|(key, _)| !key.is_empty())
}

fn by_schema(text: &str, declared: &Value, document: &Value) -> Value {
    let mut types = Vec::new();
    collect_types(declared, document, 8, &mut types);
    let json = serde_json::from_str::<Value>(text).ok();
    match json {
        Some(json) if fits(&json, &types) || (types.is_empty() && !json.is_string()) => json,
        _ => Value::from(text),
    }
}

fn fits(value: &Value, types: &[String]) -> bool {
    let name = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => {
            return types
                .iter()
                .any(|name| name == "number" || name == "integer");
        }
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        // Text is taken as it was typed, quotes and all.
        Value::String(_) => return false,
    };
    types.iter().any(|wanted| wanted == name)
}

/// The types a schema names, also behind references, combinators and enumerations.
fn collect_types(schema: &Value, document: &Value, deeper: usize, types: &mut Vec<String>) {
    if deeper == 0 {
        return;
    }
    match schema.get("type") {
        Some(Value::String(name)) => types.push(name.clone()),
        Some(Value::Array(names)) => {
            types.extend(names.iter().filter_map(Value::as_str).map(str::to_owned));
        }
        _ => {
            for option in schema
                .get("enum")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                types.push(type_name(option).to_owned());
            }
        }
    }
    for keyword in ["anyOf", "oneOf", "allOf"] {
        for part in schema
            .get(keyword)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            collect_types(part, document, deeper - 1, types);
        }
    }
    let reference = schema
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|reference| reference.strip_prefix('#'));
    if let Some(target) = reference.and_then(|pointer| document.pointer(pointer)) {
        collect_types(target, document, deeper - 1, types);
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
            ("r", "7", json!(7)),
            ("u", "7", json!(7)),
            ("u", "07", json!("07")),
            ("unknown", "[1]", json!([1])),
            ("unknown", "012", json!("012")),
        ] {
            assert_eq!(
                typed(&[(key, text)], Some(&schema)).unwrap()[key],
                expected,
                "{key}={text}"
            );
        }
    }

    #[test]
    fn a_key_given_twice_is_refused() {
        let error = typed(&[("a", "1"), ("a", "2")], None).unwrap_err();
        assert_eq!(error.to_string(), "Invalid parameters: 'a' given twice");
    }

    #[test]
    fn the_first_equals_sign_splits() {
        for (argument, expected) in [
            ("a=b=c", Some(("a", "b=c"))),
            ("a=", Some(("a", ""))),
            ("=b", None),
            ("a", None),
        ] {
            assert_eq!(split(argument), expected);
        }
    }
}
