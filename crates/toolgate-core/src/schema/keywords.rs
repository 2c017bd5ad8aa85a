//! Which sub-schemas a keyword holds, and which value of an instance they apply to.

use serde_json::{Map, Value};

/// Sub-schemas that apply to the very same value.
pub(super) fn in_place(keywords: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let lists = ["allOf", "anyOf", "oneOf"]
        .into_iter()
        .filter_map(|keyword| keywords.get(keyword)?.as_array())
        .flatten();
    let single = ["not", "if", "then", "else"]
        .into_iter()
        .filter_map(|keyword| keywords.get(keyword));
    let by_name = ["dependentSchemas", "dependencies"]
        .into_iter()
        .filter_map(|keyword| keywords.get(keyword)?.as_object());
    lists.chain(single).chain(by_name.flat_map(Map::values))
}

pub(super) fn by_pattern(keywords: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    keywords
        .get("patternProperties")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::values)
}

pub(super) fn other_properties(keywords: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    ["additionalProperties", "unevaluatedProperties"]
        .into_iter()
        .filter_map(|keyword| keywords.get(keyword))
}

/// Schemas for items by position: `prefixItems`, and `items` as a list in older drafts.
pub(super) fn tuple(keywords: &Map<String, Value>) -> &[Value] {
    let list = |keyword| {
        keywords
            .get(keyword)
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice)
    };
    if keywords.contains_key("prefixItems") {
        list("prefixItems")
    } else {
        list("items")
    }
}

pub(super) fn other_items(keywords: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    ["items", "additionalItems", "contains", "unevaluatedItems"]
        .into_iter()
        .filter_map(|keyword| keywords.get(keyword))
        .filter(|schema| schema.is_object())
}

pub(super) fn child<'a>(
    keywords: &'a Map<String, Value>,
    keyword: &str,
    name: &str,
) -> Option<&'a Value> {
    keywords.get(keyword)?.get(name)
}

pub(super) fn names_in<'a>(
    keywords: &'a Map<String, Value>,
    keyword: &str,
) -> impl Iterator<Item = &'a str> {
    keywords
        .get(keyword)
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(|object| object.keys().map(String::as_str))
}

/// What one sub-schema costs per value: itself, and every list that is gone through.
pub(super) fn own_cost(schema: &Value) -> u64 {
    let lengths = [
        "enum",
        "required",
        "properties",
        "patternProperties",
        "dependentRequired",
    ]
    .iter()
    .map(|keyword| match schema.get(keyword) {
        Some(Value::Array(list)) => list.len(),
        Some(Value::Object(list)) => list.len(),
        _ => 0,
    });
    1 + lengths.sum::<usize>() as u64
}
