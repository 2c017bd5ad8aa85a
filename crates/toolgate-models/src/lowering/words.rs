//! What a schema demands, in short plain words.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::keywords::types;
use super::text::{add, cut};

/// The longest value or pattern that is quoted.
const LONGEST: usize = 120;

/// How deep lists of lists, and alternatives of alternatives, are put into words.
const DEEPEST: usize = 8;

/// Adds a sentence to a schema's description.
pub(super) fn describe(schema: &mut Map<String, Value>, sentence: &str) {
    match schema.get_mut("description") {
        Some(Value::String(description)) => add(description, sentence),
        _ => {
            schema.insert("description".to_owned(), sentence.into());
        }
    }
}

/// A value as JSON, cut if it is long.
pub(super) fn quoted(value: &Value) -> String {
    cut(value.to_string(), LONGEST)
}

/// `'a', 'b' and 'c'`.
pub(super) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("'{name}'")).collect();
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

/// A parameter that stands in no `properties`.
pub(super) fn parameter(name: &str, schema: &Value, required: bool) -> String {
    let mut text = format!("'{name}' ({}", kind(schema));
    text.push_str(if required { ", required)" } else { ")" });
    if let Some(description) = schema.get("description").and_then(Value::as_str) {
        let short = cut(description.to_owned(), 300);
        let _written = write!(text, ": {}", short.trim_end_matches('.'));
    }
    text
}

/// What a value is: `string`, `list of string`, `one of "a", "b"`.
pub(super) fn kind(schema: &Value) -> String {
    kind_within(schema, DEEPEST)
}

fn kind_within(schema: &Value, depth: usize) -> String {
    let Value::Object(keywords) = schema else {
        return "anything".to_owned();
    };
    if let Some(values) = keywords.get("enum").and_then(Value::as_array) {
        let shown: Vec<String> = values.iter().take(10).map(quoted).collect();
        let more = if values.len() > shown.len() {
            ", …"
        } else {
            ""
        };
        return format!("one of {}{more}", shown.join(", "));
    }
    if let Some(value) = keywords.get("const") {
        return quoted(value);
    }
    let named = types(keywords);
    let deeper = depth.checked_sub(1);
    if named.is_empty() {
        let alternatives = deeper.and_then(|depth| alternatives(keywords, depth));
        return alternatives.unwrap_or_else(|| "anything".to_owned());
    }
    let items = keywords.get("items").filter(|_| named == ["array"]);
    let items = items.zip(deeper);
    let items = items.map(|(items, depth)| kind_within(items, depth));
    match items.filter(|items| items != "anything") {
        Some(items) => format!("list of {items}"),
        None => named.join(" or "),
    }
}

fn alternatives(keywords: &Map<String, Value>, depth: usize) -> Option<String> {
    let list = keywords
        .get("anyOf")
        .or(keywords.get("oneOf"))?
        .as_array()?;
    let mut kinds: Vec<String> = list
        .iter()
        .take(5)
        .map(|schema| kind_within(schema, depth))
        .collect();
    kinds.dedup();
    Some(kinds.join(" or "))
}

/// All that these keywords demand, except what a description or another keyword shows already.
pub(super) fn demands(schema: &Map<String, Value>, shown: impl Fn(&str) -> bool) -> String {
    let mut text = String::new();
    let mut say = |sentence: String| add(&mut text, &sentence);
    let hidden = |keyword: &str| schema.get(keyword).filter(|_| !shown(keyword));
    for (keyword, value) in schema.iter().filter(|(keyword, _)| !shown(keyword)) {
        if let Some(sentence) = sentence(keyword, value) {
            say(sentence);
        }
    }
    for (least, most, above, below, unit) in RANGES {
        let bounds = [
            (least, "at least"),
            (above, "more than"),
            (most, "at most"),
            (below, "less than"),
        ];
        let bounds: Vec<String> = bounds
            .into_iter()
            .filter_map(|(keyword, word)| Some((hidden(keyword)?, word)))
            .map(|(number, word)| format!("{word} {number}"))
            .collect();
        if !bounds.is_empty() {
            let unit = match (unit, bounds.as_slice()) {
                ("", _) => String::new(),
                (unit, [one]) if one.ends_with(" 1") => format!(" {unit}"),
                (unit, _) => format!(" {}", plural(unit)),
            };
            say(capitalised(&format!("{}{unit}.", bounds.join(", "))));
        }
    }
    text
}

/// The least, the most, both exclusive, and of what.
const RANGES: [(&str, &str, &str, &str, &str); 4] = [
    (
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "",
    ),
    ("minLength", "maxLength", "", "", "character"),
    ("minItems", "maxItems", "", "", "item"),
    ("minProperties", "maxProperties", "", "", "key"),
];

fn sentence(keyword: &str, value: &Value) -> Option<String> {
    let text = || Some(cut(value.as_str()?.to_owned(), LONGEST));
    Some(match keyword {
        "const" => format!("Must be exactly {}.", quoted(value)),
        "default" if value.is_null() => return None,
        "default" => format!("Default: {}.", quoted(value)),
        "examples" => {
            let shown: Vec<String> = value.as_array()?.iter().take(3).map(quoted).collect();
            format!("For example {}.", shown.join(", "))
        }
        "format" => format!("Format: {}.", text()?),
        "pattern" => format!("Matches {}.", text()?),
        "contentEncoding" => format!("Encoded as {}.", text()?),
        "contentMediaType" => format!("Content of type {}.", text()?),
        "multipleOf" => format!("A multiple of {value}."),
        "uniqueItems" if value == true => "No duplicates.".to_owned(),
        "deprecated" if value == true => "Deprecated.".to_owned(),
        "prefixItems" => {
            let kinds: Vec<String> = value.as_array()?.iter().take(10).map(kind).collect();
            format!("Items in this order: {}.", kinds.join(", "))
        }
        "contains" => format!("Contains {}.", kind(value)),
        "additionalProperties" if value.is_object() => {
            format!(
                "Other keys may be given; the value of each is {}.",
                kind(value)
            )
        }
        "patternProperties" => {
            let each = value.as_object()?.iter().take(5);
            let each = each.map(|(pattern, schema)| {
                let pattern = cut(pattern.clone(), LONGEST);
                format!("Keys that match {pattern} hold {}.", kind(schema))
            });
            each.collect::<Vec<_>>().join(" ")
        }
        "propertyNames" => format!("Keys: {}.", rule(value)?),
        "dependentRequired" => {
            let each = value.as_object()?.iter().take(10);
            let each = each.filter_map(|(name, names)| {
                let names = listed(names.as_array()?.iter().filter_map(Value::as_str));
                (!names.is_empty()).then(|| format!("'{name}' needs {names}."))
            });
            each.collect::<Vec<_>>().join(" ")
        }
        "not" => format!("Must not be: {}.", rule(value)?),
        _ => return None,
    })
}

/// A schema in words, if there are any for it.
fn rule(schema: &Value) -> Option<String> {
    let keywords = schema.as_object()?;
    let kind = Some(kind(schema)).filter(|kind| kind != "anything");
    let mut text = kind.unwrap_or_default();
    let demands = demands(keywords, |keyword| {
        matches!(keyword, "const" | "default" | "examples")
    });
    add(&mut text, &demands);
    let text = text.trim_end_matches('.');
    (!text.is_empty()).then(|| text.to_owned())
}

fn plural(unit: &str) -> String {
    format!("{unit}s")
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}
