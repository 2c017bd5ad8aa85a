//! Schemas of which one applies: as one schema, and in words.

use serde_json::{Map, Value, json};

use super::keywords::{only_describes, types};
use super::phrase::{clause, of_property, text_of};
use super::root::Form;
use super::text::cut;
use super::words::{LONGEST_SENTENCE, few, listed, quoted};

/// The most branches that are told one by one.
const MOST: usize = 12;

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

/// True if no value fits two of these schemas, as far as that is plain: by their types, their values, or the values of a
/// property that one of the two needs.
pub(super) fn are_apart(schemas: &[Value]) -> bool {
    const MOST: usize = 64;
    let pairs = || {
        let each = schemas.iter().enumerate();
        each.flat_map(|(at, one)| schemas[..at].iter().map(move |other| (one, other)))
    };
    schemas.len() <= MOST
        && pairs().all(|(one, other)| {
            have_no_value_in_common(one, other) || are_told_apart_by_a_property(one, other)
        })
}

fn have_no_value_in_common(one: &Value, other: &Value) -> bool {
    if let (Some(values), Some(others)) = (certain_values(one), certain_values(other)) {
        return !values.iter().any(|value| others.contains(value));
    }
    let types = |schema: &Value| -> Vec<String> {
        let types = schema.as_object().map(types).unwrap_or_default();
        let types = types.into_iter().map(|name| match name {
            "integer" => "number".to_owned(),
            name => name.to_owned(),
        });
        types.collect()
    };
    let (one, other) = (types(one), types(other));
    !one.is_empty() && !other.is_empty() && !one.iter().any(|name| other.contains(name))
}

fn are_told_apart_by_a_property(one: &Value, other: &Value) -> bool {
    let needs = |schema: &Value, name: &str| {
        let required = schema.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|other| other == name))
    };
    let properties = one.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().any(|(name, property)| {
        let differs = other["properties"].get(name).is_some_and(|other| {
            let certain = certain_values(property).is_some() && certain_values(other).is_some();
            certain && have_no_value_in_common(property, other)
        });
        differs && (needs(one, name) || needs(other, name))
    })
}

/// The rule of a choice between forms, by what sets them apart; empty if there is nothing to choose.
pub(super) fn said(mut labels: Vec<String>, exactly_one: bool) -> String {
    labels.dedup();
    let free = labels.iter().any(String::is_empty);
    labels.retain(|label| !label.is_empty());
    let total = labels.len();
    labels.truncate(MOST);
    if total > MOST {
        labels.push(format!("one of {} more forms", total - MOST));
    }
    let or = labels.join(", or ");
    match (total, exactly_one, free) {
        (0, ..) => String::new(),
        (1, _, false) => format!("Give {or}."),
        (_, _, true) => format!("Give either {or}, or none of these."),
        (2, true, false) => format!("Give either {or}, not both."),
        (_, true, false) => format!("Give either {or}, only one of these."),
        (_, false, false) => format!("Give either {or}."),
    }
}

/// What a form asks for beyond what these properties show: `'action' "create" with 'title' ('n': at least 5)`. Names that
/// are asked for anyway are left out.
pub(super) fn label(
    form: &Form,
    shown: &Map<String, Value>,
    is_given: &dyn Fn(&String) -> bool,
) -> String {
    let fixed: Vec<(&str, &Value)> = form
        .properties
        .iter()
        .filter_map(|(name, property)| match certain_values(property)? {
            [value] => Some((name.as_str(), value)),
            _ => None,
        })
        .collect();
    let is_fixed = |name: &str| fixed.iter().any(|(other, _)| *other == name);
    let needed = form.required.iter();
    let needed = needed.filter(|name| !is_fixed(name) && !is_given(name));
    let needed = listed(needed.map(String::as_str));
    let more = more(form, shown, &is_fixed);
    let fixed: Vec<String> = fixed
        .iter()
        .map(|(name, value)| format!("'{name}' {}", quoted(value)))
        .collect();
    let head = match (fixed.join(" and "), needed) {
        (fixed, needed) if needed.is_empty() => fixed,
        (fixed, needed) if fixed.is_empty() => needed,
        (fixed, needed) => format!("{fixed} with {needed}"),
    };
    match (head, more) {
        (head, more) if more.is_empty() => head,
        (head, more) if head.is_empty() => format!("arguments ({more})"),
        (head, more) => format!("{head} ({more})"),
    }
}

/// A form by all that it declares, for where it has to be told from others and no name or value does.
pub(super) fn outline(form: &Form) -> String {
    let properties = form.properties.iter().map(|(name, property)| {
        let rules = property.as_object().into_iter().flatten();
        let rules = rules.filter(|(keyword, _)| !only_describes(keyword));
        let rules = rules.map(|(keyword, value)| (keyword.clone(), value.clone()));
        of_property(name, &rules.collect())
    });
    let properties: Vec<String> = properties.collect();
    match cut(properties.join("; "), LONGEST_SENTENCE) {
        all if all.is_empty() => "any arguments".to_owned(),
        all => format!("arguments ({all})"),
    }
}

/// What a form demands besides names and single values, and how it is described.
fn more(form: &Form, shown: &Map<String, Value>, is_fixed: &dyn Fn(&str) -> bool) -> String {
    let of_properties = form.properties.iter().filter_map(|(name, property)| {
        let unshown = unshown(property, shown.get(name), is_fixed(name));
        (!unshown.is_empty()).then(|| of_property(name, &unshown))
    });
    let mut more: Vec<String> = of_properties.collect();
    let of_all = [form.demands(), form.rules.clone()];
    let of_all = of_all.iter().filter(|rule| !rule.is_empty());
    more.extend(of_all.map(|rule| clause(rule)));
    if form.is_closed() {
        // Elsewhere a name too much is no matter. A form that it does not fit is another form.
        let is_optional = |name: &&String| !is_fixed(name) && !form.required.contains(name);
        let optional = listed(
            form.properties
                .keys()
                .filter(is_optional)
                .map(String::as_str),
        );
        more.push(match optional.as_str() {
            "" => "nothing else".to_owned(),
            names => format!("besides only {names}"),
        });
    }
    more.extend(text_of(&form.rest, ""));
    cut(more.join("; "), LONGEST_SENTENCE)
}

/// What a property of a form says that the property that is shown does not. Where that is a choice and this one of it, the
/// descriptions are there to be read.
fn unshown(property: &Value, shown: Option<&Value>, is_fixed: bool) -> Map<String, Value> {
    let Value::Object(property) = property else {
        return Map::new();
    };
    let offered = shown.and_then(|shown| shown.get("anyOf")?.as_array());
    let offered = offered.filter(|list| list.iter().any(|one| one.as_object() == Some(property)));
    let alternatives = match offered {
        Some(list) => list.as_slice(),
        None => shown.map(std::slice::from_ref).unwrap_or_default(),
    };
    let is_told = |keyword: &str| {
        (is_fixed && matches!(keyword, "const" | "enum" | "type"))
            || (offered.is_some() && only_describes(keyword))
    };
    let is_same = |(keyword, value): (&String, &Value)| {
        let same = |shown: &Value| shown.get(keyword) == Some(value);
        !alternatives.is_empty() && alternatives.iter().all(same)
    };
    let mut unshown = property.clone();
    unshown.retain(|keyword, _| !is_told(keyword));
    if unshown.iter().all(is_same) {
        return Map::new();
    }
    // Of rules it takes all or none, as some mean something only together.
    unshown.retain(|keyword, value| {
        !((keyword == "type" || only_describes(keyword)) && is_same((keyword, value)))
    });
    unshown
}

/// `if`, `then` and `else` in words.
pub(super) fn condition(when: &Form, then: &str, otherwise: &str) -> String {
    match (circumstances(when), then, otherwise) {
        (_, "", "") => String::new(),
        (when, then, "") => format!("If {when}, give {then}."),
        (when, "", otherwise) => format!("Unless {when}, give {otherwise}."),
        (when, then, otherwise) => format!("If {when}, give {then}, else {otherwise}."),
    }
}

fn circumstances(when: &Form) -> String {
    let names = listed(when.required.iter().map(String::as_str));
    let values = when.properties.iter().map(|(name, property)| {
        let told = |keyword: &String| matches!(keyword.as_str(), "const" | "enum" | "type");
        property
            .as_object()
            .filter(|rules| rules.keys().all(told))?;
        let values = few(certain_values(property)?, MOST, quoted, " or ");
        Some(format!("'{name}' is {values}"))
    });
    let values: Option<Vec<String>> = values.collect();
    let is_more = |name: &String| !when.properties.contains_key(name);
    let nothing_more = when.demands().is_empty() && when.rules.is_empty() && !when.is_closed();
    match values.filter(|_| nothing_more) {
        Some(values) if values.is_empty() && when.required.is_empty() => {
            "anything is given".to_owned()
        }
        Some(values) if values.is_empty() && when.required.len() == 1 => {
            format!("{names} is given")
        }
        Some(values) if values.is_empty() => format!("{names} are given"),
        Some(values) if !when.required.iter().any(is_more) => values.join(" and "),
        _ => format!("given {}", label(when, &Map::new(), &|_| false)),
    }
}

/// What `not` forbids, in words.
pub(super) fn forbidden(not: &Map<String, Value>) -> String {
    let branches = not.get("anyOf").and_then(Value::as_array);
    let branches = branches.filter(|branches| not.len() == 1 && branches.len() <= MOST);
    if let Some(branches) = branches {
        let said = branches.iter().filter_map(Value::as_object).map(forbidden);
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
        (_, 0) => "No arguments are allowed.".to_owned(),
        _ => {
            let not = Value::Object(not.clone()).to_string();
            format!(
                "The arguments must not match {}.",
                cut(not, LONGEST_SENTENCE)
            )
        }
    }
}
