//! Schemas of which one applies: as one schema, and in words.

use serde_json::{Map, Value, json};

use super::root::Form;
use super::words::{listed, quoted};

/// The most branches that are told one by one.
const MOST: usize = 12;

/// A schema for what one of these allows.
pub(super) fn either(mut alternatives: Vec<Value>) -> Value {
    let mut different: Vec<Value> = Vec::new();
    if let Some(values) = all_values(&alternatives).filter(|_| alternatives.len() > 1) {
        let same = |keyword: &str| {
            let first = alternatives[0].get(keyword);
            let all = alternatives.iter().all(|other| other.get(keyword) == first);
            first.filter(|_| all).cloned()
        };
        let mut schema = Map::new();
        for keyword in ["type", "title", "description"] {
            schema.extend(same(keyword).map(|value| (keyword.to_owned(), value)));
        }
        schema.insert("enum".to_owned(), values.into());
        return schema.into();
    }
    for alternative in alternatives.drain(..) {
        if !different.contains(&alternative) {
            different.push(alternative);
        }
    }
    match different.len() {
        1 => different.pop().unwrap_or_default(),
        _ if different.contains(&json!({})) => json!({}),
        _ => json!({ "anyOf": different }),
    }
}

/// All values that schemas allow, if each allows only certain ones.
pub(super) fn all_values(schemas: &[Value]) -> Option<Vec<Value>> {
    let mut all: Vec<Value> = Vec::new();
    for schema in schemas {
        for value in certain_values(schema)? {
            if !all.contains(value) {
                all.push(value.clone());
            }
        }
    }
    Some(all)
}

fn certain_values(schema: &Value) -> Option<&[Value]> {
    match (schema.get("const"), schema.get("enum")) {
        (Some(value), _) => Some(std::slice::from_ref(value)),
        (None, Some(values)) => Some(values.as_array()?),
        (None, None) => None,
    }
}

/// The rule of a choice between objects, in words; empty if there is nothing to choose.
pub(super) fn said(branches: &[Form], required: &[String], exactly_one: bool) -> String {
    let labels = branches
        .iter()
        .map(|branch| label(branch, branches, required));
    let mut labels: Vec<String> = labels.collect();
    labels.dedup();
    let free = labels.iter().any(String::is_empty);
    labels.retain(|label| !label.is_empty());
    let total = labels.len();
    if total < 2 && !(total == 1 && free && exactly_one) {
        return String::new();
    }
    labels.truncate(MOST);
    if total > MOST {
        labels.push(format!("one of {} more forms", total - MOST));
    }
    let or = labels.join(", or ");
    let end = match (exactly_one, free) {
        (_, true) => ", or none of these",
        (true, false) if total == 2 => ", not both",
        (true, false) => ", only one of these",
        (false, false) => "",
    };
    format!("Give either {or}{end}.")
}

/// What sets a branch apart: `'action' "create" with 'title'`.
fn label(branch: &Form, all: &[Form], required: &[String]) -> String {
    let fixed: Vec<(&str, &Value)> = branch
        .properties
        .iter()
        .filter_map(|(name, property)| match certain_values(property)? {
            [value] => Some((name.as_str(), value)),
            _ => None,
        })
        .collect();
    let common = |name: &String| all.iter().all(|branch| branch.required.contains(name));
    let is_fixed = |name: &String| fixed.iter().any(|(other, _)| other == name);
    let needed = branch.required.iter();
    let needed = needed.filter(|name| !common(name) && !is_fixed(name) && !required.contains(name));
    let needed = listed(needed.map(String::as_str));
    let fixed: Vec<String> = fixed
        .into_iter()
        .map(|(name, value)| format!("'{name}' {}", quoted(value)))
        .collect();
    match (fixed.join(" and "), needed) {
        (fixed, needed) if needed.is_empty() => fixed,
        (fixed, needed) if fixed.is_empty() => needed,
        (fixed, needed) => format!("{fixed} with {needed}"),
    }
}

/// `if`, `then` and `else` in words, as far as they are about certain values and required properties.
pub(super) fn condition(when: &Form, then: &Form, otherwise: &Form) -> String {
    let values = when.properties.iter().filter_map(|(name, property)| {
        let values: Vec<String> = certain_values(property)?
            .iter()
            .take(MOST)
            .map(quoted)
            .collect();
        Some(format!("'{name}' is {}", values.join(" or ")))
    });
    let mut when_said: Vec<String> = values.collect();
    if when_said.is_empty() && when.properties.is_empty() && !when.required.is_empty() {
        let names = listed(when.required.iter().map(String::as_str));
        when_said.push(format!(
            "{names} {} given",
            if when.required.len() == 1 {
                "is"
            } else {
                "are"
            }
        ));
    }
    let needs = |form: &Form| listed(form.required.iter().map(String::as_str));
    let (then, otherwise) = (needs(then), needs(otherwise));
    let when = when_said.join(" and ");
    match (then.as_str(), otherwise.as_str()) {
        _ if when.is_empty() => String::new(),
        ("", "") => String::new(),
        (then, "") => format!("If {when}, give {then}."),
        ("", otherwise) => format!("Unless {when}, give {otherwise}."),
        (then, otherwise) => format!("If {when}, give {then}, else {otherwise}."),
    }
}

/// What `not` forbids, in words.
pub(super) fn forbidden(not: &Map<String, Value>) -> String {
    let branches = not.get("anyOf").and_then(Value::as_array);
    if let Some(branches) = branches {
        let said = branches
            .iter()
            .filter_map(Value::as_object)
            .take(MOST)
            .map(forbidden);
        return said.collect::<Vec<_>>().join(" ");
    }
    let required = not.get("required").and_then(Value::as_array);
    let names: Vec<&str> = required
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    match (names.as_slice(), not.len()) {
        ([name], 1) => format!("Do not give '{name}'."),
        ([_, _, ..], 1) => format!("Do not give {} together.", listed(names)),
        (_, 0) => String::new(),
        _ => format!(
            "The arguments must not match {}.",
            quoted(&Value::Object(not.clone()))
        ),
    }
}
