//! Words made of what a tool answered, and arguments made of what a person said.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::items::{Kinds, items};

/// What is said of a result: the first of these that fits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Written")]
pub(crate) struct Answer(pub(crate) Vec<Case>);

/// What is said if all conditions hold and all pointers lead somewhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// Pointers, and what must be there; `null` if there must be nothing.
    #[serde(rename = "if", default)]
    when: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
    /// With `{slot}` and `{/pointer}`.
    say: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    One(String),
    Some(Vec<WrittenCase>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenCase {
    Say(String),
    Full(Case),
}

impl From<Written> for Answer {
    fn from(written: Written) -> Self {
        let cases = match written {
            Written::One(say) => vec![WrittenCase::Say(say)],
            Written::Some(cases) => cases,
        };
        let case = |written| match written {
            WrittenCase::Full(case) => case,
            WrittenCase::Say(say) => Case {
                when: Map::new(),
                failed: None,
                say,
            },
        };
        Self(cases.into_iter().map(case).collect())
    }
}

pub(crate) struct Joining<'a> {
    pub(crate) and: &'a str,
    /// Said before a number that is not told in full.
    pub(crate) about: &'a str,
    pub(crate) done: &'a str,
    pub(crate) units: &'a HashMap<String, String>,
}

impl Answer {
    pub(crate) fn to_words(
        &self,
        text: &str,
        slots: &Map<String, Value>,
        joining: &Joining<'_>,
    ) -> String {
        let result = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
        let said = self
            .0
            .iter()
            .filter(|case| case.holds(&result))
            .find_map(|case| {
                fill(&case.say, |name| match name.starts_with('/') {
                    true => spoken_at(&result, name, joining),
                    false => slots.get(name).map(|value| spoken(value, joining.and)),
                })
            });
        said.unwrap_or_else(|| plain(&result, joining))
    }

    /// What is said of a failure: what the tool says, unless there are better words for it.
    pub(crate) fn to_failure(
        &self,
        text: &str,
        slots: &Map<String, Value>,
        joining: &Joining<'_>,
    ) -> String {
        let is_this = |case: &&Case| {
            let failed = case.failed.as_deref();
            failed.is_some_and(|words| text.contains(words))
        };
        let said = self.0.iter().find(is_this).and_then(|case| {
            fill(&case.say, |name| {
                slots.get(name).map(|value| spoken(value, joining.and))
            })
        });
        said.unwrap_or_else(|| text.to_owned())
    }
}

impl Case {
    fn holds(&self, result: &Value) -> bool {
        let matches = |(pointer, wanted): (&String, &Value)| {
            let found = result.pointer(pointer).unwrap_or(&Value::Null);
            found == wanted || wanted.is_null() && found.as_array().is_some_and(Vec::is_empty)
        };
        self.failed.is_none() && self.when.iter().all(matches)
    }
}

/// Fills `{…}` in a text; nothing if one of them can not be filled.
pub(crate) fn fill(text: &str, mut value: impl FnMut(&str) -> Option<String>) -> Option<String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}')?;
        filled.push_str(before);
        filled.push_str(&value(name)?);
        rest = after;
    }
    filled.push_str(rest);
    Some(filled)
}

/// Arguments with their slots filled. What needs a slot that is empty is left out.
pub(crate) fn arguments(
    template: &Map<String, Value>,
    slots: &Map<String, Value>,
) -> Map<String, Value> {
    let filled = template
        .iter()
        .filter_map(|(key, value)| Some((key.clone(), fill_value(value, slots)?)));
    filled.collect()
}

fn fill_value(template: &Value, slots: &Map<String, Value>) -> Option<Value> {
    match template {
        // A slot that is all of a text keeps its type.
        Value::String(text) => match text
            .strip_prefix('{')
            .and_then(|text| text.strip_suffix('}'))
        {
            Some(name) if !name.contains('{') => slots.get(name).cloned(),
            _ => {
                fill(text, |name| slots.get(name).map(|value| spoken(value, ","))).map(Value::from)
            }
        },
        Value::Array(list) => Some(
            list.iter()
                .filter_map(|value| fill_value(value, slots))
                .collect(),
        ),
        Value::Object(object) => Some(Value::Object(arguments(object, slots))),
        other => Some(other.clone()),
    }
}

pub(crate) fn slots_in(template: &Value, names: &mut Vec<String>) {
    match template {
        Value::String(text) => {
            fill(text, |name| {
                names.push(name.to_owned());
                Some(String::new())
            });
        }
        Value::Array(list) => list.iter().for_each(|value| slots_in(value, names)),
        Value::Object(object) => object.values().for_each(|value| slots_in(value, names)),
        _ => {}
    }
}

/// What a pointer leads to, as it is said; each item of a list where there is a `*`.
fn spoken_at(result: &Value, pointer: &str, joining: &Joining<'_>) -> Option<String> {
    let and = joining.and;
    if pointer.contains("/*") {
        let items = items(result, pointer, None, &Kinds::default(), |_, _| true);
        let names: Vec<String> = items.into_iter().map(|item| item.name).collect();
        return (!names.is_empty()).then(|| listed(&names, and));
    }
    if let Some((pointer, by)) = pointer.split_once(" div ") {
        let (found, by) = (result.pointer(pointer)?.as_i64()?, by.parse().ok()?);
        return Some(found.abs().checked_div(by)?.to_string());
    }
    if let Some((pointer, by)) = pointer.split_once(" mod ") {
        let (found, by) = (result.pointer(pointer)?.as_i64()?, by.parse().ok()?);
        return Some(found.abs().checked_rem(by)?.to_string());
    }
    let (pointer, is_float) = match pointer.strip_suffix(" float") {
        Some(pointer) => (pointer, true),
        None => (pointer, false),
    };
    let found = result.pointer(pointer)?;
    if let Some(quantity) = found.as_str().and_then(|text| quantity(text, joining)) {
        return Some(quantity);
    }
    let is_something = !found.is_null() && found.as_str() != Some("");
    is_something.then(|| match is_cut(found) || is_float && is_rounded(found) {
        true => format!("{} {}", joining.about, spoken(found, and)),
        false => spoken(found, and),
    })
}

/// From here on not all digits of a whole number are told.
const LONG: f64 = 1e15;

/// True if a number has digits before its point that are not told.
fn is_cut(value: &Value) -> bool {
    let told = |float: f64| if float.fract() == 0.0 { LONG } else { 1e12 };
    let is_long = |float: f64| float.abs() >= told(float);
    value.is_f64() && value.as_f64().is_some_and(is_long)
}

/// True if a number that was calculated as a double may stand for others near it.
fn is_rounded(value: &Value) -> bool {
    const EXACT_BELOW: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;
    value
        .as_f64()
        .is_some_and(|float| float.abs() >= EXACT_BELOW)
}

pub(crate) fn spoken(value: &Value, and: &str) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if float.fract() == 0.0 && float.abs() < LONG => format!("{float:.0}"),
            // The noise of binary fractions is of no use to anybody.
            Some(float) if number.is_f64() => rounded(float, 12),
            _ => number.to_string(),
        },
        Value::Array(list) => {
            let items: Vec<String> = list.iter().map(|value| spoken(value, and)).collect();
            listed(&items, and)
        }
        other => other.to_string(),
    }
}

fn rounded(value: f64, digits: usize) -> String {
    let short = format!("{value:.*e}", digits.saturating_sub(1)).parse::<f64>();
    match short {
        Ok(short) if (1e-6..LONG).contains(&short.abs()) || short == 0.0 => short.to_string(),
        Ok(short) => format!("{short:e}"),
        Err(_) => value.to_string(),
    }
}

/// A quantity such as `37.7777777778 degC` as people write it.
fn quantity(text: &str, joining: &Joining<'_>) -> Option<String> {
    let (number, unit) = text.split_once(' ')?;
    let unit = joining.units.get(unit)?;
    let value: f64 = number.parse().ok()?;
    // Two digits after the point, or four that count.
    let before = value.abs().max(1.0).log10().floor() as usize + 1;
    let number = rounded(value, (before + 2).max(4));
    Some(format!("{number} {unit}"))
}

/// `a, b and c`, cut where nobody listens any more.
pub(crate) fn listed(items: &[String], last: &str) -> String {
    const MOST: usize = 30;
    if items.len() > MOST {
        let more = items.len() - MOST;
        return format!("{}, … (+{more})", items[..MOST].join(", "));
    }
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}

/// A result in words where nobody wrote down how to say it: the sentence it has, or what is in it.
fn plain(result: &Value, joining: &Joining<'_>) -> String {
    const SENTENCES: [&str; 5] = ["sentence", "message", "summary", "text", "answer"];
    let sentence = SENTENCES
        .iter()
        .filter_map(|key| result.get(key))
        .find_map(Value::as_str);
    match (sentence, result) {
        (Some(sentence), _) if !sentence.is_empty() => sentence.to_owned(),
        (_, Value::Null) => joining.done.to_owned(),
        (_, Value::String(text)) if text.is_empty() || text == "(no output)" => {
            joining.done.to_owned()
        }
        (_, Value::String(text)) => text.clone(),
        (_, other) => in_words(other, joining, 0),
    }
}

fn in_words(value: &Value, joining: &Joining<'_>, depth: usize) -> String {
    const DEEPEST: usize = 4;
    match value {
        Value::Object(object) if depth < DEEPEST => {
            let fields = object.iter().filter(|(_, value)| !value.is_null());
            let said = fields
                .map(|(key, value)| format!("{key}: {}", in_words(value, joining, depth + 1)));
            let said = said.collect::<Vec<_>>().join(", ");
            if depth == 0 {
                said
            } else {
                format!("({said})")
            }
        }
        Value::Array(list) if depth < DEEPEST => {
            let items: Vec<String> = list
                .iter()
                .map(|value| in_words(value, joining, depth + 1))
                .collect();
            listed(&items, joining.and)
        }
        other => spoken(other, joining.and),
    }
}

#[cfg(test)]
mod tests;
