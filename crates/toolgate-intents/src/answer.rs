//! Turns tool results into words, and the slots of a sentence into arguments.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::items::{ItemRules, collect_items};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "RawAnswer")]
pub(crate) struct AnswerTemplate(pub(crate) Vec<AnswerCase>);

/// One wording. It fits if all conditions hold and all placeholders in `say` have values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswerCase {
    /// JSON pointers and the values they must have; `null` also matches a missing value.
    #[serde(rename = "if", default)]
    when: Map<String, Value>,
    /// Makes the case fit only errors, namely those that contain this text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
    say: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawAnswer {
    One(String),
    Several(Vec<RawAnswerCase>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawAnswerCase {
    Say(String),
    Full(AnswerCase),
}

impl From<RawAnswer> for AnswerTemplate {
    fn from(written: RawAnswer) -> Self {
        let cases = match written {
            RawAnswer::One(say) => vec![RawAnswerCase::Say(say)],
            RawAnswer::Several(cases) => cases,
        };
        let case = |written| match written {
            RawAnswerCase::Full(case) => case,
            RawAnswerCase::Say(say) => AnswerCase {
                when: Map::new(),
                failed: None,
                say,
            },
        };
        Self(cases.into_iter().map(case).collect())
    }
}

pub(crate) struct AnswerWording<'a> {
    pub(crate) and: &'a str,
    /// Said before a rounded number, such as `about`.
    pub(crate) rounded_prefix: &'a str,
    pub(crate) done: &'a str,
    pub(crate) units: &'a HashMap<String, String>,
}

impl AnswerTemplate {
    pub(crate) fn render_result(
        &self,
        text: &str,
        slots: &Map<String, Value>,
        wording: &AnswerWording<'_>,
    ) -> String {
        let result = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
        let rendered = self
            .0
            .iter()
            .filter(|case| case.is_met(&result))
            .find_map(|case| {
                fill_placeholders(&case.say, |name| match name.starts_with('/') {
                    true => pointer_text(&result, name, wording),
                    false => slot_text(slots, name, wording.and),
                })
            });
        rendered.unwrap_or_else(|| default_text(&result, wording))
    }

    pub(crate) fn render_error(
        &self,
        text: &str,
        slots: &Map<String, Value>,
        wording: &AnswerWording<'_>,
    ) -> String {
        let is_this = |case: &&AnswerCase| {
            let failed = case.failed.as_deref();
            failed.is_some_and(|words| text.contains(words))
        };
        let rendered = self.0.iter().find(is_this).and_then(|case| {
            fill_placeholders(&case.say, |name| slot_text(slots, name, wording.and))
        });
        rendered.unwrap_or_else(|| text.to_owned())
    }
}

impl AnswerCase {
    fn is_met(&self, result: &Value) -> bool {
        let matches = |(pointer, wanted): (&String, &Value)| {
            let found = result.pointer(pointer).unwrap_or(&Value::Null);
            found == wanted || wanted.is_null() && found.as_array().is_some_and(Vec::is_empty)
        };
        self.failed.is_none() && self.when.iter().all(matches)
    }
}

/// Fills the `{…}` placeholders of a text. `None` if one of them has no value.
pub(crate) fn fill_placeholders(
    text: &str,
    mut value: impl FnMut(&str) -> Option<String>,
) -> Option<String> {
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

/// Fills the slots of an argument template and drops every argument whose slot is empty.
pub(crate) fn fill_arguments(
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
        // A string that is nothing but a slot keeps the slot's type, so a level stays a number.
        Value::String(text) => match text
            .strip_prefix('{')
            .and_then(|text| text.strip_suffix('}'))
        {
            Some(name) if !name.contains('{') => slots.get(name).cloned(),
            _ => Some(fill_placeholders(text, |name| slot_text(slots, name, ","))?.into()),
        },
        Value::Array(list) => Some(
            list.iter()
                .filter_map(|value| fill_value(value, slots))
                .collect(),
        ),
        Value::Object(object) => Some(Value::Object(fill_arguments(object, slots))),
        other => Some(other.clone()),
    }
}

fn slot_text(slots: &Map<String, Value>, name: &str, and: &str) -> Option<String> {
    slots.get(name).map(|value| value_text(value, and))
}

pub(crate) fn collect_slot_names(template: &Value, names: &mut Vec<String>) {
    match template {
        Value::String(text) => {
            fill_placeholders(text, |name| {
                names.push(name.to_owned());
                Some(String::new())
            });
        }
        Value::Array(list) => list.iter().for_each(|item| collect_slot_names(item, names)),
        Value::Object(object) => object
            .values()
            .for_each(|item| collect_slot_names(item, names)),
        _ => {}
    }
}

/// The value at a pointer in words. `/a/*` joins all items of a list, `/a div 7` and `/a mod 7`
/// divide, and `/a float` is a double that may be rounded.
fn pointer_text(result: &Value, pointer: &str, wording: &AnswerWording<'_>) -> Option<String> {
    let and = wording.and;
    if pointer.contains("/*") {
        let items = collect_items(result, pointer, None, &ItemRules::default(), |_, _| true);
        let names: Vec<String> = items.into_iter().map(|item| item.name).collect();
        return (!names.is_empty()).then(|| join_items(&names, and));
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
    if let Some(quantity) = found.as_str().and_then(|text| quantity_text(text, wording)) {
        return Some(quantity);
    }
    let is_something = !found.is_null() && found.as_str() != Some("");
    is_something.then(
        || match is_shortened(found) || is_float && is_rounded(found) {
            true => format!("{} {}", wording.rounded_prefix, value_text(found, and)),
            false => value_text(found, and),
        },
    )
}

/// Whole numbers of this size or more are rounded when they are spoken.
const ROUNDED_FROM: f64 = 1e15;

fn is_shortened(value: &Value) -> bool {
    let is_long = |float: f64| match float.fract() == 0.0 {
        true => float.abs() >= ROUNDED_FROM,
        false => float.abs() >= 1e12,
    };
    value.is_f64() && value.as_f64().is_some_and(is_long)
}

// True if a double is too large to be exact, so that the real result may be a neighbor.
fn is_rounded(value: &Value) -> bool {
    const EXACT_BELOW: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;
    let float = value.as_f64();
    float.is_some_and(|float| float.abs() >= EXACT_BELOW)
}

pub(crate) fn value_text(value: &Value, and: &str) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if float.fract() == 0.0 && float.abs() < ROUNDED_FROM => {
                format!("{float:.0}")
            }
            // Twelve digits hide the noise of binary fractions: 0.1 + 0.2 is spoken as 0.3.
            Some(float) if number.is_f64() => round_to_digits(float, 12),
            _ => number.to_string(),
        },
        Value::Array(list) => {
            let items: Vec<String> = list.iter().map(|value| value_text(value, and)).collect();
            join_items(&items, and)
        }
        other => other.to_string(),
    }
}

fn round_to_digits(value: f64, digits: usize) -> String {
    let short = format!("{value:.*e}", digits.saturating_sub(1)).parse::<f64>();
    match short {
        Ok(short) if (1e-6..ROUNDED_FROM).contains(&short.abs()) || short == 0.0 => {
            short.to_string()
        }
        Ok(short) => format!("{short:e}"),
        Err(_) => value.to_string(),
    }
}

/// Shortens a quantity such as `37.7777777778 degC` and spells out its unit.
fn quantity_text(text: &str, wording: &AnswerWording<'_>) -> Option<String> {
    let (number, unit) = text.split_once(' ')?;
    let unit = wording.units.get(unit)?;
    let value: f64 = number.parse().ok()?;
    // Two decimals, or four significant digits for small values.
    let before = value.abs().max(1.0).log10().floor() as usize + 1;
    let number = round_to_digits(value, (before + 2).max(4));
    Some(format!("{number} {unit}"))
}

pub(crate) fn join_items(items: &[String], last: &str) -> String {
    // A longer list is too long to listen to.
    const MAX_SPOKEN: usize = 30;
    if items.len() > MAX_SPOKEN {
        let more = items.len() - MAX_SPOKEN;
        return format!("{}, … (+{more})", items[..MAX_SPOKEN].join(", "));
    }
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}

/// The fallback wording for a result: the sentence it contains, or else its fields.
fn default_text(result: &Value, wording: &AnswerWording<'_>) -> String {
    const SENTENCES: [&str; 5] = ["sentence", "message", "summary", "text", "answer"];
    let sentence = SENTENCES.iter().find_map(|key| result.get(key)?.as_str());
    match (sentence, result) {
        (Some(sentence), _) if !sentence.is_empty() => sentence.to_owned(),
        (_, Value::Null) => wording.done.to_owned(),
        (_, Value::String(text)) if text.is_empty() || text == "(no output)" => {
            wording.done.to_owned()
        }
        (_, Value::String(text)) => text.clone(),
        (_, other) => describe_value(other, wording, 0),
    }
}

fn describe_value(value: &Value, wording: &AnswerWording<'_>, depth: usize) -> String {
    // Results are untrusted and may nest deeply. Deeper values are printed as JSON.
    const MAX_DEPTH: usize = 4;
    match value {
        Value::Object(object) if depth < MAX_DEPTH => {
            let fields = object.iter().filter(|(_, value)| !value.is_null());
            let fields = fields.map(|(key, value)| {
                format!("{key}: {}", describe_value(value, wording, depth + 1))
            });
            let text = fields.collect::<Vec<_>>().join(", ");
            match depth {
                0 => text,
                _ => format!("({text})"),
            }
        }
        Value::Array(list) if depth < MAX_DEPTH => {
            let items = list
                .iter()
                .map(|value| describe_value(value, wording, depth + 1));
            join_items(&items.collect::<Vec<_>>(), wording.and)
        }
        other => value_text(other, wording.and),
    }
}

#[cfg(test)]
mod tests;
