//! Recognizes schemas that can be sent unchanged. Most can, and checking costs less than copying.

use serde_json::{Map, Value};

use super::SchemaRules;
use super::copy::MAX_SCHEMA_BYTES;
use super::keywords::{KeywordKind, is_well_formed, keyword_kind, size};
use super::root;
use super::text::is_visible;

/// True if lowering would not change the schema.
pub(super) fn fits(document: &Value, rules: &SchemaRules) -> bool {
    let Value::Object(schema) = document else {
        return false;
    };
    let is_object = value_of(schema, "type").is_some_and(|name| name == "object");
    let has_properties = value_of(schema, "properties").is_some();
    if !is_object || !has_properties || !root::is_plain(schema) {
        return false;
    }
    let known = |keyword: &str| matches!(keyword, "type" | "properties" | "required");
    if rules.keywords.is_some() && !schema.keys().all(|keyword| known(keyword)) {
        return false;
    }
    let mut room = MAX_SCHEMA_BYTES;
    is_well_formed_schema(schema, rules, &mut room, 0)
}

fn is_well_formed_schema(
    schema: &Map<String, Value>,
    rules: &SchemaRules,
    room: &mut usize,
    depth: usize,
) -> bool {
    const MAX_DEPTH: usize = 32;
    let is_kept = |keyword: &String| {
        let kept = rules
            .keywords
            .is_none_or(|kept| kept.contains(&keyword.as_str()));
        // Reducing rewrites `anyOf`, so a schema with one never fits as it is.
        kept && (rules.keywords.is_none() || keyword != "anyOf")
    };
    let kind = value_of(schema, "type");
    let typed = rules.keywords.is_none() || kind.is_some() || value_of(schema, "enum").is_none();
    let listed = !kind.is_some_and(names_array) || value_of(schema, "items").is_some();
    depth <= MAX_DEPTH
        && typed
        && listed
        && schema.iter().all(|(keyword, value)| {
            let part = |value: &Value, room: &mut usize| {
                let keywords = value.as_object();
                keywords
                    .is_some_and(|keywords| is_well_formed_schema(keywords, rules, room, depth + 1))
            };
            let sound = match keyword_kind(keyword) {
                KeywordKind::Schema => part(value, room),
                KeywordKind::SchemaOrFlag if value.is_boolean() => rules.keywords.is_none(),
                KeywordKind::SchemaOrFlag => part(value, room),
                KeywordKind::SchemaList => value.as_array().is_some_and(|list| {
                    !list.is_empty() && list.iter().all(|value| part(value, room))
                }),
                KeywordKind::SchemasByName => value.as_object().is_some_and(|named| {
                    named.iter().all(|(name, value)| {
                        let legal = keyword != "properties" || (rules.is_parameter_name)(name);
                        legal
                            && is_visible(name)
                            && spend_budget(room, name.len() + 4)
                            && part(value, room)
                    })
                }),
                holds => is_well_formed(holds, value) && spend_budget(room, size(value)),
            };
            sound && is_kept(keyword) && spend_budget(room, keyword.len() + 4)
        })
}

// Schemas have few keywords, so a linear search is faster than hashing.
fn value_of<'a>(schema: &'a Map<String, Value>, wanted: &str) -> Option<&'a Value> {
    let found = schema.iter().find(|(keyword, _)| *keyword == wanted);
    found.map(|(_, value)| value)
}

fn names_array(kind: &Value) -> bool {
    match kind {
        Value::Array(names) => names.iter().any(|name| name == "array"),
        name => name == "array",
    }
}

fn spend_budget(room: &mut usize, bytes: usize) -> bool {
    *room = room.saturating_sub(bytes);
    *room > 0
}
