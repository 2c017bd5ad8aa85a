//! What the keywords of JSON Schema hold, and whether they do.

use serde_json::{Map, Value};

use super::text::is_shown;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    Prose,
    Text,
    /// `type`: a name of a type or several.
    Type,
    Names,
    NamesByName,
    Value,
    Values,
    Number,
    Positive,
    Count,
    Flag,
    Schema,
    /// A sub-schema that is often just true or false, and may stay so.
    SchemaOrFlag,
    /// A list of sub-schemas that must not be empty.
    Schemas,
    Named,
    /// `$ref`.
    Reference,
    /// What a schema says of itself or keeps for references: nothing that a model needs.
    Itself,
    Old,
    Unknown,
}

pub(super) fn holds(keyword: &str) -> Holds {
    match keyword {
        // First what stands in every schema: names are compared one after the other.
        "type" => Holds::Type,
        "title" | "description" => Holds::Prose,
        "properties" | "patternProperties" | "dependentSchemas" => Holds::Named,
        "required" => Holds::Names,
        "pattern" | "format" | "contentEncoding" | "contentMediaType" => Holds::Text,
        "dependentRequired" => Holds::NamesByName,
        "const" | "default" => Holds::Value,
        "enum" | "examples" => Holds::Values,
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => Holds::Number,
        "multipleOf" => Holds::Positive,
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => Holds::Count,
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" | "nullable" => Holds::Flag,
        "not" | "if" | "then" | "else" | "contains" | "propertyNames" | "contentSchema" => {
            Holds::Schema
        }
        "items" | "additionalProperties" | "unevaluatedProperties" | "unevaluatedItems" => {
            Holds::SchemaOrFlag
        }
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Holds::Schemas,
        "$ref" => Holds::Reference,
        "$defs" | "definitions" | "$id" | "id" | "$schema" | "$anchor" | "$dynamicAnchor"
        | "$dynamicRef" | "$recursiveAnchor" | "$recursiveRef" | "$comment" | "$vocabulary" => {
            Holds::Itself
        }
        "dependencies" | "additionalItems" => Holds::Old,
        _ => Holds::Unknown,
    }
}

/// True for keywords that describe a value without restricting it.
pub(super) fn only_describes(keyword: &str) -> bool {
    matches!(
        keyword,
        "title" | "description" | "default" | "examples" | "deprecated" | "readOnly" | "writeOnly"
    )
}

/// True if a keyword that holds no sub-schemas can stay exactly as it is.
pub(super) fn is_sound(holds: Holds, value: &Value) -> bool {
    match holds {
        Holds::Prose | Holds::Text => value.as_str().is_some_and(is_shown),
        Holds::Type => is_type(value),
        Holds::Names => is_names(value),
        Holds::NamesByName => value.as_object().is_some_and(|all| {
            all.iter()
                .all(|(name, names)| is_shown(name) && is_names(names))
        }),
        Holds::Value | Holds::Unknown => is_all_shown(value),
        Holds::Values => value
            .as_array()
            .is_some_and(|list| !list.is_empty() && list.iter().all(is_all_shown)),
        Holds::Number => value.is_number(),
        Holds::Positive => value.as_f64().is_some_and(|number| number > 0.0),
        Holds::Count => value.is_u64(),
        Holds::Flag => value.is_boolean(),
        Holds::Schema
        | Holds::SchemaOrFlag
        | Holds::Schemas
        | Holds::Named
        | Holds::Reference
        | Holds::Itself
        | Holds::Old => false,
    }
}

pub(super) fn types(schema: &Map<String, Value>) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// True if a value of this type may pass.
pub(super) fn allows(schema: &Map<String, Value>, wanted: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == wanted,
        Some(Value::Array(names)) => names.iter().any(|name| name == wanted),
        _ => true,
    }
}

/// True if the type is named, alone or among others.
pub(super) fn names(schema: &Map<String, Value>, wanted: &str) -> bool {
    schema.contains_key("type") && allows(schema, wanted)
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
    let shown = |name: &Value| name.as_str().is_some_and(is_shown);
    value
        .as_array()
        .is_some_and(|names| names.iter().all(shown) && are_different(names))
}

/// Lists of names are short where they are honest; a long one goes the way that costs a table.
fn are_different(names: &[Value]) -> bool {
    const MOST: usize = 64;
    let first = |index: usize| !names[..index].contains(&names[index]);
    names.len() <= MOST && (0..names.len()).all(first)
}

fn is_all_shown(value: &Value) -> bool {
    match value {
        Value::String(text) => is_shown(text),
        Value::Array(list) => list.iter().all(is_all_shown),
        Value::Object(object) => object
            .iter()
            .all(|(name, value)| is_shown(name) && is_all_shown(value)),
        _ => true,
    }
}

/// About how many bytes of JSON.
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
