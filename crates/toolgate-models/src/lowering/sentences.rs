//! Describes the constraints of a schema in short sentences. Constraints that don't have a sentence
//! are quoted as JSON, so that nothing is silently dropped.

use serde_json::{Map, Value};

use super::keywords::{KeywordKind, keyword_kind};
use super::phrase::{describe_alternatives, describe_schema};
use super::text::{add, cut};

const MAX_QUOTED: usize = 120;

pub(super) const MAX_SENTENCE_LEN: usize = 600;

// Schemas that are nested deeper are quoted as JSON.
pub(super) const MAX_DEPTH: usize = 8;

pub(super) fn add_description(schema: &mut Map<String, Value>, sentence: &str) {
    match schema.get_mut("description") {
        Some(Value::String(description)) => add(description, sentence),
        _ => {
            schema.insert("description".to_owned(), sentence.into());
        }
    }
}

pub(super) fn quoted(value: &Value) -> String {
    cut(value.to_string(), MAX_QUOTED)
}

/// Renders names as `'a', 'b' and 'c'`.
pub(super) fn join_quoted<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("'{name}'")).collect();
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

pub(super) fn join_at_most<T>(
    all: &[T],
    most: usize,
    said: impl Fn(&T) -> String,
    between: &str,
) -> String {
    let mut shown: Vec<String> = all.iter().take(most).map(said).collect();
    if all.len() > most {
        shown.push("…".to_owned());
    }
    shown.join(between)
}

pub(super) fn constraints(schema: &Map<String, Value>, shown: impl Fn(&str) -> bool) -> String {
    let mut text = String::new();
    for sentence in sentences(schema, &shown, MAX_DEPTH) {
        push_sentence(&mut text, &sentence);
    }
    text
}

/// Adds a sentence unless the text has it already or is too long.
pub(super) fn push_sentence(text: &mut String, sentence: &str) {
    const MAX_TEXT: usize = 8 << 10;
    const MORE: &str = "[…]";
    if text.contains(sentence) || text.ends_with(MORE) {
        return;
    }
    let fits = text.len() + sentence.len() <= MAX_TEXT;
    add(text, if fits { sentence } else { MORE });
}

pub(super) fn sentences(
    schema: &Map<String, Value>,
    shown: &dyn Fn(&str) -> bool,
    depth: usize,
) -> Vec<String> {
    let mut said = Vec::new();
    let mut unsaid = Map::new();
    let hidden = schema.iter().filter(|(keyword, _)| !shown(keyword));
    for (keyword, value) in hidden.filter(|(keyword, _)| *keyword != "allOf") {
        match sentence(keyword, value, depth) {
            Some(sentence) => said.push(sentence),
            None => {
                unsaid.insert(keyword.clone(), value.clone());
            }
        }
    }
    said.extend(describe_ranges(schema, shown));
    let all = schema.get("allOf").filter(|_| !shown("allOf"));
    for part in all.and_then(Value::as_array).into_iter().flatten() {
        said.push(match depth.checked_sub(1) {
            Some(depth) => format!("{}.", capitalised(&describe_schema(part, depth))),
            None => format!("Also: {part}"),
        });
    }
    if !unsaid.is_empty() {
        said.push(format!("Also: {}", Value::Object(unsaid)));
    }
    said.retain(|sentence| !sentence.is_empty());
    let bounded = said.into_iter();
    bounded.map(|said| cut(said, MAX_SENTENCE_LEN)).collect()
}

// The keywords for minimum, maximum, and the exclusive ones, and the unit that is counted.
const RANGES: [(&str, &str, &str, &str, &str); 5] = [
    ("minContains", "maxContains", "", "", "such item"),
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

fn describe_ranges(schema: &Map<String, Value>, shown: &dyn Fn(&str) -> bool) -> Vec<String> {
    let hidden = |keyword: &str| schema.get(keyword).filter(|_| !shown(keyword));
    let mut said = Vec::new();
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
                (unit, _) => format!(" {unit}s"),
            };
            said.push(capitalised(&format!("{}{unit}.", bounds.join(", "))));
        }
    }
    said
}

/// Describes one keyword: empty if there is nothing to say, `None` if it must be quoted as JSON.
fn sentence(keyword: &str, value: &Value, depth: usize) -> Option<String> {
    let text = || Some(cut(value.as_str()?.to_owned(), MAX_QUOTED));
    let list = || value.as_array().map(Vec::as_slice);
    Some(match keyword {
        "const" => format!("Must be exactly {}.", quoted(value)),
        "enum" => format!("One of {}.", join_at_most(list()?, 10, quoted, ", ")),
        "default" if value.is_null() => String::new(),
        "default" => format!("Default: {}.", quoted(value)),
        "examples" => format!("For example {}.", join_at_most(list()?, 3, quoted, ", ")),
        "format" => format!("Format: {}.", text()?),
        "pattern" => format!("Matches {}.", text()?),
        "contentEncoding" => format!("Encoded as {}.", text()?),
        "contentMediaType" => format!("Content of type {}.", text()?),
        "multipleOf" => format!("A multiple of {value}."),
        "uniqueItems" if value == true => "No duplicates.".to_owned(),
        "deprecated" if value == true => "Deprecated.".to_owned(),
        "required" => match join_quoted(list()?.iter().filter_map(Value::as_str)) {
            names if names.is_empty() => names,
            names => format!("Needs {names}."),
        },
        "dependentRequired" => {
            let all: Vec<(&String, &Value)> = value.as_object()?.iter().collect();
            let needs = |(name, names): &(&String, &Value)| {
                let names = names.as_array().into_iter().flatten();
                match join_quoted(names.filter_map(Value::as_str)) {
                    names if names.is_empty() => names,
                    names => format!("'{name}' needs {names}."),
                }
            };
            join_at_most(&all, 10, needs, " ")
        }
        _ => match keyword_kind(keyword) {
            KeywordKind::Schema
            | KeywordKind::SchemaOrFlag
            | KeywordKind::SchemaList
            | KeywordKind::SchemasByName => nested_sentence(keyword, value, depth.checked_sub(1)?)?,
            KeywordKind::Type => format!("Of type {}.", quoted(value)),
            // `describe_ranges` covers numbers. The rest describes, or means nothing to JSON
            // Schema.
            _ => String::new(),
        },
    })
}

fn nested_sentence(keyword: &str, value: &Value, depth: usize) -> Option<String> {
    let within = |schema: &Value| describe_schema(schema, depth);
    let list = || value.as_array().map(Vec::as_slice);
    let is_empty = value.as_object().is_some_and(Map::is_empty);
    Some(match keyword {
        "items" | "unevaluatedItems" if value == false => "No other items.".to_owned(),
        "items" if is_empty || value.is_boolean() => String::new(),
        "items" => format!("Each item is {}.", within(value)),
        "prefixItems" => format!(
            "Items in this order: {}.",
            join_at_most(list()?, 10, within, ", ")
        ),
        "contains" => format!("Contains {}.", within(value)),
        // Undeclared arguments are removed before the call (requirement VA5), so it
        // isn't mentioned that they are forbidden. A schema for them does restrict their values.
        "additionalProperties" | "unevaluatedProperties" if value.is_boolean() => String::new(),
        "additionalProperties" | "unevaluatedProperties" => {
            let each = within(value);
            format!("Other keys may be given; the value of each is {each}.")
        }
        "patternProperties" => {
            let all: Vec<(&String, &Value)> = value.as_object()?.iter().collect();
            let hold = |(pattern, schema): &(&String, &Value)| {
                let pattern = cut((*pattern).clone(), MAX_QUOTED);
                format!("Keys that match {pattern} hold {}.", within(schema))
            };
            join_at_most(&all, 5, hold, " ")
        }
        "propertyNames" => format!("Keys: {}.", within(value)),
        "anyOf" => format!("Either {}.", describe_alternatives(list()?, depth)),
        "oneOf" => format!(
            "Exactly one of: {}.",
            join_at_most(list()?, 5, within, "; ")
        ),
        "not" if is_empty => "Not allowed.".to_owned(),
        "not" => format!("Must not be: {}.", within(value)),
        _ if value.is_boolean() => String::new(),
        _ => return None,
    })
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}
