//! Merges alternative schemas into one, and describes how they differ.

use serde_json::{Map, Value, json};

use super::keywords::{only_describes, type_names};
use super::phrase::{describe_property, short_description, to_clause};
use super::root::ArgumentForm;
use super::sentences::{MAX_SENTENCE_LEN, join_at_most, join_quoted, quoted};
use super::text::cut;

// How many branches are listed one by one.
const MAX_LISTED: usize = 12;

pub(super) fn merge_alternatives(mut alternatives: Vec<Value>) -> Value {
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

/// All values that the schemas allow, if each has a `const` or an `enum`.
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

/// True if no value matches two of these schemas. Decided only by types, values, and the values of
/// a property that one of the two requires; false if those don't tell.
pub(super) fn are_disjoint(schemas: &[Value]) -> bool {
    const MAX_COMPARED: usize = 64;
    let pairs = || {
        let each = schemas.iter().enumerate();
        each.flat_map(|(at, one)| schemas[..at].iter().map(move |other| (one, other)))
    };
    schemas.len() <= MAX_COMPARED
        && pairs().all(|(one, other)| {
            have_disjoint_values(one, other) || differ_in_required_property(one, other)
        })
}

fn have_disjoint_values(one: &Value, other: &Value) -> bool {
    if let (Some(values), Some(others)) = (certain_values(one), certain_values(other)) {
        return !values.iter().any(|value| others.contains(value));
    }
    let (one, other) = (type_names(one.get("type")), type_names(other.get("type")));
    let is_number = |name: &&str| matches!(*name, "integer" | "number");
    let overlaps =
        |name: &&str| other.contains(name) || is_number(name) && other.iter().any(is_number);
    !one.is_empty() && !other.is_empty() && !one.iter().any(overlaps)
}

fn differ_in_required_property(one: &Value, other: &Value) -> bool {
    let needs = |schema: &Value, name: &str| {
        let required = schema.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|other| other == name))
    };
    let properties = one.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().any(|(name, property)| {
        let differs = other["properties"].get(name).is_some_and(|other| {
            let certain = certain_values(property).is_some() && certain_values(other).is_some();
            certain && have_disjoint_values(property, other)
        });
        differs && (needs(one, name) || needs(other, name))
    })
}

/// A sentence about which forms of arguments there are, from the labels that tell them apart;
/// empty without a choice.
pub(super) fn choice_rule(mut labels: Vec<String>, exactly_one: bool) -> String {
    labels.dedup();
    let free = labels.iter().any(String::is_empty);
    labels.retain(|label| !label.is_empty());
    let total = labels.len();
    labels.truncate(MAX_LISTED);
    if total > MAX_LISTED {
        labels.push(format!("one of {} more forms", total - MAX_LISTED));
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

/// Describes what a form requires beyond the properties in `shown`, such as `'action'
/// "create" with 'title' ('n': at least 5)`. Leaves out names for which `is_given` holds,
/// which are always required.
pub(super) fn describe_form(
    form: &ArgumentForm,
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
    let needed = join_quoted(needed.map(String::as_str));
    let more = extra_constraints(form, shown, &is_fixed);
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

// What a form requires apart from names and fixed values, and its description.
fn extra_constraints(
    form: &ArgumentForm,
    shown: &Map<String, Value>,
    is_fixed: &dyn Fn(&str) -> bool,
) -> String {
    let of_properties = form.properties.iter().filter_map(|(name, property)| {
        let unshown = additional_rules(property, shown.get(name), is_fixed(name));
        (!unshown.is_empty()).then(|| describe_property(name, &unshown))
    });
    let mut more: Vec<String> = of_properties.collect();
    let of_all = [form.constraints(), form.rules.clone()];
    let of_all = of_all.iter().filter(|rule| !rule.is_empty());
    more.extend(of_all.map(|rule| to_clause(rule)));
    if form.is_closed() {
        // Unknown arguments are normally harmless. Here they mean that another form was intended.
        let is_optional = |name: &&String| !is_fixed(name) && !form.required.contains(name);
        let optional = join_quoted(
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
    more.extend(short_description(&form.rest, ""));
    cut(more.join("; "), MAX_SENTENCE_LEN)
}

// The keywords of a form's property that the shown property doesn't have.
fn additional_rules(property: &Value, shown: Option<&Value>, is_fixed: bool) -> Map<String, Value> {
    let Value::Object(property) = property else {
        return Map::new();
    };
    let is_same = |(keyword, value): (&String, &Value)| {
        shown.is_some_and(|shown| shown.get(keyword) == Some(value))
    };
    let mut unshown = property.clone();
    unshown
        .retain(|keyword, _| !(is_fixed && matches!(keyword.as_str(), "const" | "enum" | "type")));
    if unshown.iter().all(is_same) {
        return Map::new();
    }
    // The other keywords are kept all together, because some depend on each other.
    unshown.retain(|keyword, value| {
        !((keyword == "type" || only_describes(keyword)) && is_same((keyword, value)))
    });
    unshown
}

pub(super) fn condition_rule(when: &ArgumentForm, then: &str, otherwise: &str) -> String {
    match (describe_condition(when), then, otherwise) {
        (_, "", "") => String::new(),
        (when, then, "") => format!("If {when}, give {then}."),
        (when, "", otherwise) => format!("Unless {when}, give {otherwise}."),
        (when, then, otherwise) => format!("If {when}, give {then}, else {otherwise}."),
    }
}

fn describe_condition(when: &ArgumentForm) -> String {
    let names = join_quoted(when.required.iter().map(String::as_str));
    let values = when.properties.iter().map(|(name, property)| {
        let told = |keyword: &String| matches!(keyword.as_str(), "const" | "enum" | "type");
        property
            .as_object()
            .filter(|rules| rules.keys().all(told))?;
        let values = join_at_most(certain_values(property)?, MAX_LISTED, quoted, " or ");
        Some(format!("'{name}' is {values}"))
    });
    let values: Option<Vec<String>> = values.collect();
    let is_more = |name: &String| !when.properties.contains_key(name);
    let nothing_more = when.constraints().is_empty() && when.rules.is_empty() && !when.is_closed();
    match values.filter(|_| nothing_more) {
        Some(values) if values.is_empty() && when.required.is_empty() => {
            "anything is given".to_owned()
        }
        Some(values) if values.is_empty() && when.required.len() == 1 => {
            format!("{names} is given")
        }
        Some(values) if values.is_empty() => format!("{names} are given"),
        Some(values) if !when.required.iter().any(is_more) => values.join(" and "),
        _ => format!("given {}", describe_form(when, &Map::new(), &|_| false)),
    }
}

pub(super) fn forbidden_rule(not: &Map<String, Value>) -> String {
    let branches = not.get("anyOf").and_then(Value::as_array);
    let branches = branches.filter(|branches| not.len() == 1 && branches.len() <= MAX_LISTED);
    if let Some(branches) = branches {
        let said = branches
            .iter()
            .filter_map(Value::as_object)
            .map(forbidden_rule);
        return said.collect::<Vec<_>>().join(" ");
    }
    let required = not.get("required").and_then(Value::as_array);
    let names: Vec<&str> = required
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    match (names.as_slice(), not.len()) {
        ([name], 1) => format!("Don't give '{name}'."),
        ([_, _, ..], 1) => format!("Don't give {} together.", join_quoted(names)),
        (_, 0) => "No arguments are allowed.".to_owned(),
        _ => {
            let not = Value::Object(not.clone()).to_string();
            format!(
                "The arguments must not match {}.",
                cut(not, MAX_SENTENCE_LEN)
            )
        }
    }
}
