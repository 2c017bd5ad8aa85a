//! Describes a schema as part of a sentence: `list of string`, `integer (at least 1): How many`.

use serde_json::{Map, Value};

use super::alternatives::are_disjoint;
use super::keywords::types;
use super::sentences::{MAX_DEPTH, join_at_most, quoted, sentences};
use super::text::cut;

const MAX_TEXT_LEN: usize = 300;

pub(super) fn describe_schema(schema: &Value, depth: usize) -> String {
    match schema {
        Value::Object(keywords) => describe_value(keywords, "", depth),
        Value::Bool(false) => "not allowed".to_owned(),
        _ => "anything".to_owned(),
    }
}

pub(super) fn describe_property(name: &str, schema: &Map<String, Value>) -> String {
    format!("'{name}': {}", describe_value(schema, name, MAX_DEPTH))
}

/// Describes a parameter that isn't listed in `properties`.
pub(super) fn describe_parameter(name: &str, schema: &Value, required: bool) -> String {
    let empty = Map::new();
    let keywords = schema.as_object().unwrap_or(&empty);
    let (kind, mut parts) = describe_parts(keywords, MAX_DEPTH);
    let kind = kind.unwrap_or_else(|| "anything".to_owned());
    parts.insert(0, kind);
    parts.extend(required.then(|| "required".to_owned()));
    let text = short_description(keywords, name).map(|text| format!(": {text}"));
    format!(
        "'{name}' ({}){}",
        parts.join(", "),
        text.unwrap_or_default()
    )
}

pub(super) fn short_description(schema: &Map<String, Value>, name: &str) -> Option<String> {
    let description = schema.get("description").and_then(Value::as_str);
    let text = description.or_else(|| title(schema, name))?;
    let short = cut(text.to_owned(), MAX_TEXT_LEN);
    Some(short.trim_end_matches('.').to_owned()).filter(|short| !short.is_empty())
}

// A title is used only without a description, and only if it says more than the property's name.
pub(super) fn title<'a>(schema: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    let letters = |text: &str| -> String {
        let letters = text.chars().filter(|c| c.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect()
    };
    let title = schema.get("title").and_then(Value::as_str);
    title.filter(|title| letters(title) != letters(name))
}

pub(super) fn describe_alternatives(schemas: &[Value], depth: usize) -> String {
    join_at_most(schemas, 5, |schema| describe_schema(schema, depth), " or ")
}

fn describe_value(keywords: &Map<String, Value>, name: &str, depth: usize) -> String {
    let (kind, parts) = describe_parts(keywords, depth);
    let constraints = parts.join(", ");
    let text = match kind {
        Some(kind) if constraints.is_empty() => kind,
        Some(kind) => format!("{kind} ({constraints})"),
        None => constraints,
    };
    match short_description(keywords, name) {
        Some(description) if text.is_empty() => description,
        Some(description) => format!("{text}: {description}"),
        None if text.is_empty() => "anything".to_owned(),
        None => text,
    }
}

fn describe_parts(keywords: &Map<String, Value>, depth: usize) -> (Option<String>, Vec<String>) {
    let (kind, covered) = describe_kind(keywords, depth);
    let shown = |keyword: &str| {
        covered.contains(&keyword) || matches!(keyword, "default" | "examples" | "deprecated")
    };
    let sentences = sentences(keywords, &shown, depth).into_iter();
    let clauses = sentences.map(|sentence| to_clause(&sentence));
    (kind, clauses.collect())
}

// Describes the kind of a value, such as `string`, `list of string` or `one of "a", "b"`, and
// returns the keywords that this covers.
fn describe_kind(
    keywords: &Map<String, Value>,
    depth: usize,
) -> (Option<String>, &'static [&'static str]) {
    let list = |keyword| keywords.get(keyword).and_then(Value::as_array);
    if let Some(values) = list("enum") {
        let values = join_at_most(values, 10, quoted, ", ");
        return (Some(format!("one of {values}")), &["enum", "type"]);
    }
    if let Some(value) = keywords.get("const") {
        return (Some(quoted(value)), &["const", "type"]);
    }
    let named = types(keywords);
    let deeper = depth.checked_sub(1);
    if !named.is_empty() {
        let items = keywords.get("items").and_then(Value::as_object);
        let items = items.filter(|items| named == ["array"] && !items.is_empty());
        return match items.zip(deeper) {
            Some((items, depth)) => {
                let items = describe_value(items, "", depth);
                (Some(format!("list of {items}")), &["type", "items"])
            }
            None => (Some(named.join(" or ")), &["type"]),
        };
    }
    match (list("anyOf"), list("oneOf"), deeper) {
        (Some(any), _, Some(depth)) => (Some(describe_alternatives(any, depth)), &["anyOf"]),
        (None, Some(one), Some(depth)) if are_disjoint(one) => {
            (Some(describe_alternatives(one, depth)), &["oneOf"])
        }
        _ => (None, &[]),
    }
}

pub(super) fn to_clause(sentence: &str) -> String {
    let mut chars = sentence.strip_suffix('.').unwrap_or(sentence).chars();
    let first = chars.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(chars).collect()
}
