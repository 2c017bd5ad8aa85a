//! Reduces a schema to the keywords that a provider keeps, and describes the others in words.
//!
//! Such a provider parses schemas into a struct and silently drops all keywords without a field.

use serde_json::{Map, Value, json};

use super::alternatives::are_disjoint;
use super::keywords::{allows_type, only_describes, type_names, types};
use super::text::add;
use super::{phrase, sentences};

pub(super) fn reduce(
    mut schema: Map<String, Value>,
    name: &str,
    kept: &[&str],
) -> Map<String, Value> {
    flatten(&mut schema);
    unify_choices(&mut schema);
    normalize_values(&mut schema);
    let (mut schema, dropped) = split(schema, kept);
    let description = description(&schema, &dropped, name);
    if !description.is_empty() {
        schema.insert("description".to_owned(), description.into());
    }
    for (keyword, value) in &mut schema {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                properties.retain(|_, property| *property != json!({ "not": {} }));
                for (name, property) in properties {
                    reduce_in_place(property, name, kept);
                }
            }
            ("items", items) => reduce_in_place(items, "", kept),
            ("anyOf", Value::Array(branches)) => {
                for branch in branches {
                    reduce_in_place(branch, name, kept);
                }
            }
            _ => {}
        }
    }
    schema
}

fn reduce_in_place(schema: &mut Value, name: &str, kept: &[&str]) {
    if let Value::Object(keywords) = schema {
        *keywords = reduce(std::mem::take(keywords), name, kept);
    }
}

fn split(schema: Map<String, Value>, kept: &[&str]) -> (Map<String, Value>, Map<String, Value>) {
    let (mut schema, mut dropped): (Map<_, _>, Map<_, _>) = schema
        .into_iter()
        .partition(|(keyword, _)| kept.contains(&keyword.as_str()));
    // The provider refuses the whole request if `items` is a boolean instead of an object.
    if let Some(items) = schema.get_mut("items").filter(|items| items.is_boolean()) {
        dropped.insert("items".to_owned(), items.take());
        *items = json!({});
    }
    (schema, dropped)
}

fn description(schema: &Map<String, Value>, dropped: &Map<String, Value>, name: &str) -> String {
    let own = schema.get("description").and_then(Value::as_str);
    let title = || phrase::title(dropped, name);
    let own = own.or_else(title);
    let mut description = own.unwrap_or_default().to_owned();
    add(
        &mut description,
        &sentences::constraints(dropped, |_| false),
    );
    description
}

fn flatten(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(branches)) = schema.shift_remove("allOf") {
        for branch in branches {
            if let Value::Object(mut branch) = branch {
                flatten(&mut branch);
                merge_schema(schema, branch);
            }
        }
    }
}

// Adds the constraints of another schema. What can't be merged into one keyword is kept in `allOf`.
fn merge_schema(schema: &mut Map<String, Value>, other: Map<String, Value>) {
    let groups: Vec<&str> = schema
        .keys()
        .filter_map(|keyword| keyword_group(keyword))
        .collect();
    let (apart, other): (Map<_, _>, Map<_, _>) = other.into_iter().partition(|(keyword, _)| {
        keyword_group(keyword).is_some_and(|group| groups.contains(&group))
    });
    let mut left = apart;
    for (keyword, value) in other {
        let Some(own) = schema.get_mut(&keyword) else {
            schema.insert(keyword, value);
            continue;
        };
        if let Some(value) = merge_keyword(&keyword, own, value) {
            left.insert(keyword, value);
        }
    }
    if left.is_empty() {
        return;
    }
    let all = schema.entry("allOf").or_insert_with(|| json!([]));
    if let Value::Array(all) = all {
        all.push(left.into());
    }
}

// Keywords that have a meaning only together.
fn keyword_group(keyword: &str) -> Option<&'static str> {
    match keyword {
        "if" | "then" | "else" => Some("if"),
        "contains" | "minContains" | "maxContains" => Some("contains"),
        _ => None,
    }
}

// Merges another value into a keyword's value, or returns it if the two can't be merged.
fn merge_keyword(keyword: &str, own: &mut Value, other: Value) -> Option<Value> {
    match (keyword, own, other) {
        (_, own, other) if *own == other => return None,
        ("properties", Value::Object(own), Value::Object(others)) => {
            for (name, property) in others {
                match (own.get_mut(&name), property) {
                    (Some(Value::Object(own)), Value::Object(property)) => {
                        merge_schema(own, property);
                    }
                    (_, property) => {
                        own.insert(name, property);
                    }
                }
            }
        }
        ("items", Value::Object(own), Value::Object(other)) => merge_schema(own, other),
        ("required", Value::Array(own), Value::Array(mut others)) => {
            others.retain(|name| !own.contains(name));
            own.extend(others);
        }
        ("type", own, other) => match common_types(own, &other) {
            Some(both) => *own = both,
            None => return Some(other),
        },
        ("enum", Value::Array(own), Value::Array(others)) => {
            let is_common = |value: &Value| others.contains(value);
            if !own.iter().any(is_common) {
                return Some(others.into());
            }
            own.retain(is_common);
        }
        ("description", Value::String(own), Value::String(other)) => add(own, &other),
        // The outer description wins, because it is about this particular use.
        (keyword, ..) if only_describes(keyword) => {}
        (_, _, other) => return Some(other),
    }
    None
}

fn common_types(one: &Value, other: &Value) -> Option<Value> {
    let (one, other) = (type_names(Some(one)), type_names(Some(other)));
    let in_both =
        |name: &&str| other.contains(name) || (*name == "integer" && other.contains(&"number"));
    let narrowed = other
        .iter()
        .filter(|name| **name == "integer" && one.contains(&"number"));
    let mut common: Vec<&str> = one.iter().copied().filter(in_both).collect();
    common.extend(narrowed);
    common.dedup();
    match common.as_slice() {
        [] => None,
        [name] => Some(json!(name)),
        names => Some(json!(names)),
    }
}

// `oneOf` becomes `anyOf`, and a single alternative to `null` becomes a list of types.
fn unify_choices(schema: &mut Map<String, Value>) {
    if !schema.contains_key("anyOf")
        && let Some(branches) = schema.shift_remove("oneOf")
    {
        let list = branches.as_array().map(Vec::as_slice);
        if !are_disjoint(list.unwrap_or_default()) {
            sentences::add_description(schema, "Only one of the forms may fit.");
        }
        schema.insert("anyOf".to_owned(), branches);
    }
    let Some(Value::Array(branches)) = schema.get_mut("anyOf") else {
        return;
    };
    let is_null = |branch: &Value| {
        let says_more = branch.as_object().is_some_and(|branch| branch.len() > 1);
        !says_more && branch.get("type").is_some_and(|name| name == "null")
    };
    let was = branches.len();
    let mut others: Vec<Value> = branches
        .iter()
        .filter(|branch| !is_null(branch))
        .cloned()
        .collect();
    let or_null = others.len() < was;
    if others.len() != 1 || (or_null && others[0].get("type").is_none()) {
        return;
    }
    let Some(Value::Object(mut only)) = others.pop() else {
        return;
    };
    flatten(&mut only);
    normalize_values(&mut only);
    if or_null {
        allow_null(&mut only);
    }
    schema.shift_remove("anyOf");
    merge_schema(schema, only);
}

// Rewrites `const` and `nullable`, and adds types that are implied by `enum`.
fn normalize_values(schema: &mut Map<String, Value>) {
    if !schema.contains_key("enum")
        && let Some(value) = schema.shift_remove("const")
    {
        schema.insert("enum".to_owned(), json!([value]));
    }
    if schema.get("nullable").is_some_and(|flag| flag == true) {
        allow_null(schema);
    }
    if schema.contains_key("type") || schema.contains_key("anyOf") {
        return;
    }
    let implied = match schema.get("enum").and_then(Value::as_array) {
        Some(values) if values.iter().all(Value::is_string) => "string",
        Some(values) if values.iter().all(Value::is_number) => "number",
        _ => return,
    };
    schema.insert("type".to_owned(), implied.into());
}

fn allow_null(schema: &mut Map<String, Value>) {
    if !schema.contains_key("type") || allows_type(schema, "null") {
        return;
    }
    let mut names: Vec<Value> = types(schema).into_iter().map(Value::from).collect();
    names.push("null".into());
    schema.insert("type".to_owned(), names.into());
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
}

pub(super) fn root_constraints(schema: &Map<String, Value>) -> String {
    let description = schema.get("description").and_then(Value::as_str);
    let mut text = description.unwrap_or_default().to_owned();
    let carried = |keyword: &str| matches!(keyword, "type" | "properties" | "required");
    let constraints = sentences::constraints(schema, carried);
    add(&mut text, &constraints);
    text
}
