//! The keywords of JSON Schema: what kind of value each has, and whether a value is valid for it.

use serde_json::{Map, Value};

use super::text::is_visible;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeywordKind {
    // Text for people.
    Prose,
    // Text for programs, such as a pattern.
    Text,
    Type,
    Names,
    NamesByName,
    Value,
    Values,
    Number,
    PositiveNumber,
    Count,
    Flag,
    Schema,
    // A schema that is often just `true` or `false`.
    SchemaOrFlag,
    SchemaList,
    SchemasByName,
    Reference,
    // About the schema itself, or targets of references. The model doesn't need it.
    Metadata,
    // From older drafts.
    Legacy,
    Unknown,
}

pub(super) fn keyword_kind(keyword: &str) -> KeywordKind {
    match keyword {
        // The most frequent keywords come first, because names are compared in order.
        "type" => KeywordKind::Type,
        "title" | "description" => KeywordKind::Prose,
        "properties" | "patternProperties" | "dependentSchemas" => KeywordKind::SchemasByName,
        "required" => KeywordKind::Names,
        "pattern" | "format" | "contentEncoding" | "contentMediaType" => KeywordKind::Text,
        "dependentRequired" => KeywordKind::NamesByName,
        "const" | "default" => KeywordKind::Value,
        "enum" | "examples" => KeywordKind::Values,
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => KeywordKind::Number,
        "multipleOf" => KeywordKind::PositiveNumber,
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => KeywordKind::Count,
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" | "nullable" => KeywordKind::Flag,
        "not" | "if" | "then" | "else" | "contains" | "propertyNames" | "contentSchema" => {
            KeywordKind::Schema
        }
        "items" | "additionalProperties" | "unevaluatedProperties" | "unevaluatedItems" => {
            KeywordKind::SchemaOrFlag
        }
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => KeywordKind::SchemaList,
        "$ref" => KeywordKind::Reference,
        "$defs" | "definitions" | "$id" | "id" | "$schema" | "$anchor" | "$dynamicAnchor"
        | "$dynamicRef" | "$recursiveAnchor" | "$recursiveRef" | "$comment" | "$vocabulary" => {
            KeywordKind::Metadata
        }
        "dependencies" | "additionalItems" => KeywordKind::Legacy,
        _ => KeywordKind::Unknown,
    }
}

/// True for keywords that describe a value without restricting it.
pub(super) fn only_describes(keyword: &str) -> bool {
    matches!(
        keyword,
        "title" | "description" | "default" | "examples" | "deprecated" | "readOnly" | "writeOnly"
    )
}

/// True if the value of a keyword without sub-schemas is valid and can be copied unchanged.
pub(super) fn is_well_formed(holds: KeywordKind, value: &Value) -> bool {
    match holds {
        KeywordKind::Prose | KeywordKind::Text => value.as_str().is_some_and(is_visible),
        KeywordKind::Type => is_type(value),
        KeywordKind::Names => is_names(value),
        KeywordKind::NamesByName => value.as_object().is_some_and(|all| {
            all.iter()
                .all(|(name, names)| is_visible(name) && is_names(names))
        }),
        KeywordKind::Value | KeywordKind::Unknown => is_all_visible(value),
        KeywordKind::Values => value
            .as_array()
            .is_some_and(|list| !list.is_empty() && list.iter().all(is_all_visible)),
        KeywordKind::Number => value.is_number(),
        KeywordKind::PositiveNumber => value.as_f64().is_some_and(|number| number > 0.0),
        KeywordKind::Count => value.is_u64(),
        KeywordKind::Flag => value.is_boolean(),
        _ => false,
    }
}

pub(super) fn types(schema: &Map<String, Value>) -> Vec<&str> {
    type_names(schema.get("type"))
}

pub(super) fn type_names(kind: Option<&Value>) -> Vec<&str> {
    match kind {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

pub(super) fn allows_type(schema: &Map<String, Value>, wanted: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == wanted,
        Some(Value::Array(names)) => names.iter().any(|name| name == wanted),
        _ => true,
    }
}

pub(super) fn names_type(schema: &Map<String, Value>, wanted: &str) -> bool {
    schema.contains_key("type") && allows_type(schema, wanted)
}

pub(super) fn is_type_name(name: &str) -> bool {
    matches!(
        name,
        "string" | "number" | "integer" | "boolean" | "object" | "array" | "null"
    )
}

fn is_type(value: &Value) -> bool {
    match value {
        Value::String(name) => is_type_name(name),
        Value::Array(names) => {
            let known = |name: &Value| name.as_str().is_some_and(is_type_name);
            !names.is_empty() && names.iter().all(known) && are_different(names)
        }
        _ => false,
    }
}

fn is_names(value: &Value) -> bool {
    let shown = |name: &Value| name.as_str().is_some_and(is_visible);
    value
        .as_array()
        .is_some_and(|names| names.iter().all(shown) && are_different(names))
}

// Compares each pair, because real lists are short. A longer one counts as malformed, and is then
// cleaned up with a hash table.
fn are_different(names: &[Value]) -> bool {
    const MAX_COMPARED: usize = 64;
    let first = |index: usize| !names[..index].contains(&names[index]);
    names.len() <= MAX_COMPARED && (0..names.len()).all(first)
}

fn is_all_visible(value: &Value) -> bool {
    match value {
        Value::String(text) => is_visible(text),
        Value::Array(list) => list.iter().all(is_all_visible),
        Value::Object(object) => object
            .iter()
            .all(|(name, value)| is_visible(name) && is_all_visible(value)),
        _ => true,
    }
}

pub(super) fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(list) => 2 + list.iter().map(|value| size(value) + 1).sum::<usize>(),
        Value::Object(object) => {
            let entries = object.iter();
            2 + entries
                .map(|(name, value)| name.len() + size(value) + 4)
                .sum::<usize>()
        }
        _ => 5,
    }
}
