//! Finds the sub-schemas in a schema's keywords, grouped by the values they apply to.

use serde_json::{Map, Value};

use crate::arguments::JsonSize;

/// Sub-schemas that apply to the same value.
pub(super) fn in_place_schemas(keywords: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let lists = ["allOf", "anyOf", "oneOf"]
        .into_iter()
        .filter_map(|keyword| keywords.get(keyword)?.as_array())
        .flatten();
    let single = ["not", "if", "then", "else"]
        .into_iter()
        .filter_map(|keyword| keywords.get(keyword));
    let by_name = ["dependentSchemas", "dependencies"]
        .into_iter()
        .flat_map(|keyword| named_entries(keywords, keyword))
        .map(|(_, schema)| schema);
    lists.chain(single).chain(by_name)
}

pub(super) fn named_entries<'a>(
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

/// Schemas for properties without a declared name.
pub(super) fn other_properties(keywords: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    ["additionalProperties", "unevaluatedProperties"]
        .into_iter()
        .filter_map(|keyword| keywords.get(keyword))
}

/// Schemas for items by position: `prefixItems`, or `items` as a list in older drafts.
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

// Estimates the work of one check: one step for the sub-schema itself, and one for each entry of a
// list that has to be searched.
pub(super) fn subschema_cost(keywords: &Map<String, Value>) -> u64 {
    const BYTES_PER_STEP: u64 = 16;
    let values = ["enum", "const"].iter().map(|keyword| {
        // The value is compared with each option in turn, down to its leaves.
        let size = |value| JsonSize::measure(value, usize::MAX).unwrap_or_default();
        let size = keywords.get(*keyword).map(size).unwrap_or_default();
        size.values + size.bytes / BYTES_PER_STEP
    });
    let lists = [
        "required",
        "properties",
        "patternProperties",
        "dependentRequired",
        "dependencies",
    ];
    let names = lists.iter().map(|keyword| match keywords.get(*keyword) {
        Some(Value::Array(list)) => list.len() as u64,
        Some(Value::Object(entries)) => entries
            .values()
            .map(|value| 1 + value.as_array().map_or(0, Vec::len) as u64)
            .sum(),
        _ => 0,
    });
    1 + values.sum::<u64>() + names.sum::<u64>()
}
