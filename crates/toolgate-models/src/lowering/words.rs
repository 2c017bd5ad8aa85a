//! What a schema demands, in short plain words; where there are none, as JSON. Nothing is passed over in silence.

use serde_json::{Map, Value};

use super::keywords::{Holds, holds};
use super::phrase::{alternatives, phrase};
use super::text::{add, cut};

/// The longest value or pattern that is quoted.
const LONGEST: usize = 120;

/// The longest sentence, whatever it is about.
pub(super) const LONGEST_SENTENCE: usize = 600;

/// How deep schemas within schemas are put into words; what is deeper is JSON.
pub(super) const DEEPEST: usize = 8;

pub(super) fn describe(schema: &mut Map<String, Value>, sentence: &str) {
    match schema.get_mut("description") {
        Some(Value::String(description)) => add(description, sentence),
        _ => {
            schema.insert("description".to_owned(), sentence.into());
        }
    }
}

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

pub(super) fn few<T>(all: &[T], most: usize, said: impl Fn(&T) -> String, between: &str) -> String {
    let mut shown: Vec<String> = all.iter().take(most).map(said).collect();
    if all.len() > most {
        shown.push("…".to_owned());
    }
    shown.join(between)
}

/// All that these keywords demand, except what a description or another keyword shows already.
pub(super) fn demands(schema: &Map<String, Value>, shown: impl Fn(&str) -> bool) -> String {
    let mut text = String::new();
    for sentence in sentences(schema, &shown, DEEPEST) {
        say(&mut text, &sentence);
    }
    text
}

/// Adds a sentence that is new to others. Once they are a long text, nobody reads on.
pub(super) fn say(text: &mut String, sentence: &str) {
    const LONGEST: usize = 8 << 10;
    const MORE: &str = "[…]";
    if text.contains(sentence) || text.ends_with(MORE) {
        return;
    }
    let fits = text.len() + sentence.len() <= LONGEST;
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
    said.extend(ranges(schema, shown));
    let all = schema.get("allOf").filter(|_| !shown("allOf"));
    for part in all.and_then(Value::as_array).into_iter().flatten() {
        said.push(match depth.checked_sub(1) {
            Some(depth) => format!("{}.", capitalised(&phrase(part, depth))),
            None => format!("Also: {part}"),
        });
    }
    if !unsaid.is_empty() {
        said.push(format!("Also: {}", Value::Object(unsaid)));
    }
    said.retain(|sentence| !sentence.is_empty());
    let bounded = said.into_iter();
    bounded.map(|said| cut(said, LONGEST_SENTENCE)).collect()
}

/// The least, the most, both exclusive, and of what.
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

fn ranges(schema: &Map<String, Value>, shown: &dyn Fn(&str) -> bool) -> Vec<String> {
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

/// What one keyword demands: empty if nothing, `None` if there are no words for it.
fn sentence(keyword: &str, value: &Value, depth: usize) -> Option<String> {
    let text = || Some(cut(value.as_str()?.to_owned(), LONGEST));
    let list = || value.as_array().map(Vec::as_slice);
    Some(match keyword {
        "const" => format!("Must be exactly {}.", quoted(value)),
        "enum" => format!("One of {}.", few(list()?, 10, quoted, ", ")),
        "default" if value.is_null() => String::new(),
        "default" => format!("Default: {}.", quoted(value)),
        "examples" => format!("For example {}.", few(list()?, 3, quoted, ", ")),
        "format" => format!("Format: {}.", text()?),
        "pattern" => format!("Matches {}.", text()?),
        "contentEncoding" => format!("Encoded as {}.", text()?),
        "contentMediaType" => format!("Content of type {}.", text()?),
        "multipleOf" => format!("A multiple of {value}."),
        "uniqueItems" if value == true => "No duplicates.".to_owned(),
        "deprecated" if value == true => "Deprecated.".to_owned(),
        "required" => match listed(list()?.iter().filter_map(Value::as_str)) {
            names if names.is_empty() => names,
            names => format!("Needs {names}."),
        },
        "dependentRequired" => {
            let all: Vec<(&String, &Value)> = value.as_object()?.iter().collect();
            let needs = |(name, names): &(&String, &Value)| {
                let names = names.as_array().into_iter().flatten();
                match listed(names.filter_map(Value::as_str)) {
                    names if names.is_empty() => names,
                    names => format!("'{name}' needs {names}."),
                }
            };
            few(&all, 10, needs, " ")
        }
        _ => match holds(keyword) {
            Holds::Schema | Holds::SchemaOrFlag | Holds::Schemas | Holds::Named => {
                of_parts(keyword, value, depth.checked_sub(1)?)?
            }
            Holds::Type => format!("Of type {}.", quoted(value)),
            // Numbers are told as ranges; the rest describes, or means nothing to JSON Schema.
            _ => String::new(),
        },
    })
}

fn of_parts(keyword: &str, value: &Value, depth: usize) -> Option<String> {
    let within = |schema: &Value| phrase(schema, depth);
    let list = || value.as_array().map(Vec::as_slice);
    let is_empty = value.as_object().is_some_and(Map::is_empty);
    Some(match keyword {
        "items" | "unevaluatedItems" if value == false => "No other items.".to_owned(),
        "items" if is_empty || value.is_boolean() => String::new(),
        "items" => format!("Each item is {}.", within(value)),
        "prefixItems" => format!("Items in this order: {}.", few(list()?, 10, within, ", ")),
        "contains" => format!("Contains {}.", within(value)),
        // Where names that nothing declares are forbidden they are left out before the call (VA5 of the contract): it does
        // not fail by them, so that takes no words, unless it is what tells forms apart. A schema does refuse values.
        "additionalProperties" | "unevaluatedProperties" if value.is_boolean() => String::new(),
        "additionalProperties" | "unevaluatedProperties" => {
            let each = within(value);
            format!("Other keys may be given; the value of each is {each}.")
        }
        "patternProperties" => {
            let all: Vec<(&String, &Value)> = value.as_object()?.iter().collect();
            let hold = |(pattern, schema): &(&String, &Value)| {
                let pattern = cut((*pattern).clone(), LONGEST);
                format!("Keys that match {pattern} hold {}.", within(schema))
            };
            few(&all, 5, hold, " ")
        }
        "propertyNames" => format!("Keys: {}.", within(value)),
        "anyOf" => format!("Either {}.", alternatives(list()?, depth)),
        "oneOf" => format!("Exactly one of: {}.", few(list()?, 5, within, "; ")),
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
