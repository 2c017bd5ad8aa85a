//! `${VAR}`, `${VAR:-default}`, `${env:VAR}` and `${env://VAR}` in the strings of a section.

use std::collections::BTreeSet;

use serde_json::Value;
use toolgate_core::escape;

/// A variable that has no value and no default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unset {
    pub(crate) name: String,
    /// Way to the string inside the section.
    pub(crate) way: Vec<String>,
}

/// Replaces variables in every string of a value; finds all that are unset.
pub(crate) fn expand(
    value: &mut Value,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Vec<Unset> {
    let mut unset = Vec::new();
    walk(value, environment, &mut Vec::new(), &mut unset);
    unset
}

/// A text about a value, with its variables as they stand in the file: what one stands for may be a secret.
pub(crate) fn unexpand(
    text: &str,
    written: &Value,
    environment: &dyn Fn(&str) -> Option<String>,
) -> String {
    let mut names = BTreeSet::new();
    references(written, &mut names);
    names.iter().fold(text.to_owned(), |text, name| {
        let value = environment(name).filter(|value| !value.is_empty());
        value.map_or(text.clone(), |value| {
            let reference = format!("${{{name}}}");
            let text = text.replace(&value, &reference);
            text.replace(&escape(&value), &reference)
        })
    })
}

/// The way to the first string that holds `text`.
pub(crate) fn find(value: &Value, text: &str) -> Option<Vec<String>> {
    let inside = |name: String, value: &Value| {
        let mut way = find(value, text)?;
        way.insert(0, name);
        Some(way)
    };
    match value {
        Value::String(string) => string.contains(text).then(Vec::new),
        Value::Array(array) => array
            .iter()
            .enumerate()
            .find_map(|(index, value)| inside(index.to_string(), value)),
        Value::Object(object) => object
            .iter()
            .find_map(|(name, value)| inside(name.clone(), value)),
        _ => None,
    }
}

/// Collects what stands in `${…}` in the strings of a value: names of variables, and whatever else
/// is written that way.
pub(crate) fn references(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Array(array) => array.iter().for_each(|value| references(value, names)),
        Value::Object(object) => object.values().for_each(|value| references(value, names)),
        Value::String(text) => {
            for part in text.split("${").skip(1) {
                let Some((inner, _)) = part.split_once('}') else {
                    continue;
                };
                let name = Reference::parse(inner).map_or(inner, |reference| reference.name);
                names.insert(name.to_owned());
            }
        }
        _ => {}
    }
}

fn walk(
    value: &mut Value,
    environment: &dyn Fn(&str) -> Option<String>,
    way: &mut Vec<String>,
    unset: &mut Vec<Unset>,
) {
    let mut inside = |name: String, value: &mut Value| {
        way.push(name);
        walk(value, environment, way, unset);
        way.pop();
    };
    match value {
        Value::Array(array) => array
            .iter_mut()
            .enumerate()
            .for_each(|(index, value)| inside(index.to_string(), value)),
        Value::Object(object) => object
            .iter_mut()
            .for_each(|(name, value)| inside(name.clone(), value)),
        Value::String(text) => match expand_text(text, environment) {
            Ok(expanded) => *text = expanded,
            Err(name) => unset.push(Unset {
                name,
                way: way.clone(),
            }),
        },
        _ => {}
    }
}

/// `Err` names the first unset variable. What is no variable, such as `${input:x}` of other clients, stays as it is.
fn expand_text(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start);
        out.push_str(before);
        let Some(end) = from.find('}') else {
            rest = from;
            break;
        };
        let (reference, after) = from.split_at(end + 1);
        match Reference::parse(&reference[2..end]) {
            None => out.push_str(reference),
            Some(Reference { name, default }) => {
                // As in a shell, `:-` also stands in for a variable that is set to nothing.
                let value =
                    environment(name).filter(|value| default.is_none() || !value.is_empty());
                out.push_str(
                    &value
                        .or(default.map(str::to_owned))
                        .ok_or_else(|| name.to_owned())?,
                );
            }
        }
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

struct Reference<'a> {
    name: &'a str,
    default: Option<&'a str>,
}

impl<'a> Reference<'a> {
    fn parse(inner: &'a str) -> Option<Self> {
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        let name = match name.strip_prefix("env:") {
            Some(name) => name.strip_prefix("//").unwrap_or(name),
            None => name,
        };
        let sound = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let sound = sound && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        sound.then_some(Self { name, default })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn environment(name: &str) -> Option<String> {
        match name {
            "HOST" => Some("example.org".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        }
    }

    #[test]
    fn variables_are_replaced() {
        for (text, expected) in [
            ("plain", Ok("plain")),
            (
                "https://${HOST}/${env:HOST}",
                Ok("https://example.org/example.org"),
            ),
            ("${NOPE:-x}${EMPTY:-y}${EMPTY}", Ok("xy")),
            ("${NOPE:-}", Ok("")),
            ("${env://HOST}${env://NOPE:-x}", Ok("example.orgx")),
            ("a${NOPE}", Err("NOPE")),
            (
                "${input:key} ${} ${a b} $HOST ${HOST",
                Ok("${input:key} ${} ${a b} $HOST ${HOST"),
            ),
        ] {
            assert_eq!(
                expand_text(text, &environment),
                expected.map(str::to_owned).map_err(str::to_owned),
                "{text}"
            );
        }
    }

    #[test]
    fn every_unset_variable_is_found_with_its_place() {
        let mut value = json!({ "a": ["${HOST}", "${ONE}"], "b": { "c": "${TWO}" } });
        let unset = expand(&mut value, &environment);
        assert_eq!(value["a"][0], "example.org");
        let found: Vec<(&str, String)> = unset
            .iter()
            .map(|unset| (unset.name.as_str(), unset.way.join(".")))
            .collect();
        assert_eq!(
            found,
            [("ONE", "a.1".to_owned()), ("TWO", "b.c".to_owned())]
        );
    }
}
