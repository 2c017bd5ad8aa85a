//! Which sub-schemas a keyword holds, and which value of an instance they apply to.

use serde_json::{Map, Value};

use crate::arguments::Size;

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
        .flat_map(|keyword| named(keywords, keyword))
        .map(|(_, schema)| schema);
    lists.chain(single).chain(by_name)
}

/// The entries of a keyword that holds an object.
pub(super) fn named<'a>(
    keywords: &'a Map<String, Value>,
    keyword: &str,
) -> impl Iterator<Item = (&'a str, &'a Value)> {
    keywords
        .get(keyword)
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.as_str(), value))
}

/// Schemas for properties that are not declared by name.
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

/// What one sub-schema costs per value: itself, and every list that is gone through.
pub(super) fn own_cost(keywords: &Map<String, Value>) -> u64 {
    const BYTES_AT_ONCE: u64 = 16;
    let values = ["enum", "const"].iter().map(|keyword| {
        // Compared one by one, and deeply.
        let size = |value| Size::of(value, usize::MAX).unwrap_or_default();
        let size = keywords.get(*keyword).map(size).unwrap_or_default();
        size.values + size.bytes / BYTES_AT_ONCE
    });
    let names = [
        "required",
        "properties",
        "patternProperties",
        "dependentRequired",
        "dependencies",
    ]
    .iter()
    .map(|keyword| match keywords.get(*keyword) {
        Some(Value::Array(list)) => list.len() as u64,
        Some(Value::Object(list)) => list
            .values()
            .map(|value| 1 + value.as_array().map_or(0, Vec::len) as u64)
            .sum(),
        _ => 0,
    });
    1 + values.sum::<u64>() + names.sum::<u64>()
}
