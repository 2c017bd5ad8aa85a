//! A schema as a part of a sentence: `list of string`, `integer (at least 1): How many`.

use serde_json::{Map, Value};

use super::choice::are_apart;
use super::keywords::types;
use super::text::cut;
use super::words::{DEEPEST, few, quoted, sentences};

/// The longest description that is told within another.
const LONGEST_TEXT: usize = 300;

pub(super) fn phrase(schema: &Value, depth: usize) -> String {
    match schema {
        Value::Object(keywords) => told(keywords, "", depth),
        Value::Bool(false) => "not allowed".to_owned(),
        _ => "anything".to_owned(),
    }
}

pub(super) fn of_property(name: &str, schema: &Map<String, Value>) -> String {
    format!("'{name}': {}", told(schema, name, DEEPEST))
}

/// A parameter that stands in no `properties`.
pub(super) fn parameter(name: &str, schema: &Value, required: bool) -> String {
    let empty = Map::new();
    let keywords = schema.as_object().unwrap_or(&empty);
    let (kind, mut parts) = parts(keywords, DEEPEST);
    let kind = kind.unwrap_or_else(|| "anything".to_owned());
    parts.insert(0, kind);
    parts.extend(required.then(|| "required".to_owned()));
    let text = text_of(keywords, name).map(|text| format!(": {text}"));
    format!(
        "'{name}' ({}){}",
        parts.join(", "),
        text.unwrap_or_default()
    )
}

pub(super) fn text_of(schema: &Map<String, Value>, name: &str) -> Option<String> {
    let description = schema.get("description").and_then(Value::as_str);
    let text = description.or_else(|| title(schema, name))?;
    let short = cut(text.to_owned(), LONGEST_TEXT);
    Some(short.trim_end_matches('.').to_owned()).filter(|short| !short.is_empty())
}

/// A title is a name for what a description tells: it counts only where there is none, and if it is more than the name of
/// the property.
pub(super) fn title<'a>(schema: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    let letters = |text: &str| -> String {
        let letters = text.chars().filter(|c| c.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect()
    };
    let title = schema.get("title").and_then(Value::as_str);
    title.filter(|title| letters(title) != letters(name))
}

pub(super) fn alternatives(schemas: &[Value], depth: usize) -> String {
    few(schemas, 5, |schema| phrase(schema, depth), " or ")
}

fn told(keywords: &Map<String, Value>, name: &str, depth: usize) -> String {
    let (kind, parts) = parts(keywords, depth);
    let demands = parts.join(", ");
    let told = match kind {
        Some(kind) if demands.is_empty() => kind,
        Some(kind) => format!("{kind} ({demands})"),
        None => demands,
    };
    match text_of(keywords, name) {
        Some(text) if told.is_empty() => text,
        Some(text) => format!("{told}: {text}"),
        None if told.is_empty() => "anything".to_owned(),
        None => told,
    }
}

fn parts(keywords: &Map<String, Value>, depth: usize) -> (Option<String>, Vec<String>) {
    let (kind, told) = kind(keywords, depth);
    let shown = |keyword: &str| {
        told.contains(&keyword) || matches!(keyword, "default" | "examples" | "deprecated")
    };
    let sentences = sentences(keywords, &shown, depth).into_iter();
    let clauses = sentences.map(|sentence| clause(&sentence));
    (kind, clauses.collect())
}

/// What a value is: `string`, `list of string`, `one of "a", "b"`. And the keywords that this tells.
fn kind(keywords: &Map<String, Value>, depth: usize) -> (Option<String>, &'static [&'static str]) {
    let list = |keyword| keywords.get(keyword).and_then(Value::as_array);
    if let Some(values) = list("enum") {
        let values = few(values, 10, quoted, ", ");
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
                let items = told(items, "", depth);
                (Some(format!("list of {items}")), &["type", "items"])
            }
            None => (Some(named.join(" or ")), &["type"]),
        };
    }
    match (list("anyOf"), list("oneOf"), deeper) {
        (Some(any), _, Some(depth)) => (Some(alternatives(any, depth)), &["anyOf"]),
        (None, Some(one), Some(depth)) if are_apart(one) => {
            (Some(alternatives(one, depth)), &["oneOf"])
        }
        _ => (None, &[]),
    }
}

pub(super) fn clause(sentence: &str) -> String {
    let mut chars = sentence.strip_suffix('.').unwrap_or(sentence).chars();
    let first = chars.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(chars).collect()
}
