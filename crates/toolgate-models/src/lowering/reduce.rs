//! For a provider that reads a schema into a structure and loses what that has no place for: only the keywords that arrive,
//! the rest in words.

use serde_json::{Map, Value, json};

use super::keywords::{allows, only_describes, types};
use super::text::add;
use super::words;

/// Reduces a sub-schema to these keywords. `name` is that of the property it stands for.
pub(super) fn reduce(
    mut schema: Map<String, Value>,
    name: &str,
    kept: &[&str],
) -> Map<String, Value> {
    flatten(&mut schema);
    one_way_to_choose(&mut schema);
    values(&mut schema);
    let description = description(&schema, name, kept);
    if !description.is_empty() {
        schema.insert("description".to_owned(), description.into());
    }
    schema.retain(|keyword, _| kept.contains(&keyword.as_str()));
    for (keyword, value) in &mut schema {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                properties.retain(|_, property| *property != json!({ "not": {} }));
                for (name, property) in properties {
                    reduce_in_place(property, name, kept);
                }
            }
            // A flag where the structure wants an object would cost the whole request.
            ("items", flag @ Value::Bool(_)) => *flag = json!({}),
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

/// What was said already, what a title adds to it, and what is about to be lost.
fn description(schema: &Map<String, Value>, name: &str, kept: &[&str]) -> String {
    let text = |keyword| schema.get(keyword).and_then(Value::as_str);
    let letters = |text: &str| -> String {
        let letters = text.chars().filter(|c| c.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect()
    };
    let title = text("title").filter(|title| letters(title) != letters(name));
    let mut description = match (text("description"), title) {
        (Some(description), _) => description.to_owned(),
        (None, Some(title)) => title.to_owned(),
        (None, None) => String::new(),
    };
    let demands = words::demands(schema, |keyword| kept.contains(&keyword));
    add(&mut description, &demands);
    description
}

/// `allOf` becomes part of the schema itself.
fn flatten(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(branches)) = schema.shift_remove("allOf") {
        for branch in branches {
            if let Value::Object(mut branch) = branch {
                flatten(&mut branch);
                meet(schema, branch);
            }
        }
    }
}

/// Makes a schema demand what another does too. Where both can not be said in one, it stays with its own.
fn meet(schema: &mut Map<String, Value>, other: Map<String, Value>) {
    for (keyword, value) in other {
        let Some(own) = schema.get_mut(&keyword) else {
            schema.insert(keyword, value);
            continue;
        };
        match (keyword.as_str(), own, value) {
            ("properties", Value::Object(own), Value::Object(others)) => {
                for (name, property) in others {
                    match (own.get_mut(&name), property) {
                        (Some(Value::Object(own)), Value::Object(property)) => meet(own, property),
                        (None, property) => {
                            own.insert(name, property);
                        }
                        _ => {}
                    }
                }
            }
            ("items", Value::Object(own), Value::Object(other)) => meet(own, other),
            ("required", Value::Array(own), Value::Array(others)) => {
                for name in others {
                    if !own.contains(&name) {
                        own.push(name);
                    }
                }
            }
            ("type", own, other) => {
                let both = common_types(own, &other);
                *own = both.unwrap_or_else(|| own.take());
            }
            ("enum", Value::Array(own), Value::Array(others)) => {
                let common: Vec<Value> = own
                    .iter()
                    .filter(|value| others.contains(value))
                    .cloned()
                    .collect();
                if !common.is_empty() {
                    *own = common;
                }
            }
            ("description", Value::String(own), Value::String(other)) if *own != other => {
                add(own, &other);
            }
            _ => {}
        }
    }
}

fn common_types(one: &Value, other: &Value) -> Option<Value> {
    let list = |value: &Value| -> Vec<String> {
        let holder = Map::from_iter([("type".to_owned(), value.clone())]);
        types(&holder).into_iter().map(str::to_owned).collect()
    };
    let (one, other) = (list(one), list(other));
    let in_both = |name: &String| {
        other.contains(name) || (name == "integer" && other.iter().any(|other| other == "number"))
    };
    let narrowed = other
        .iter()
        .filter(|name| *name == "integer" && one.iter().any(|one| one == "number"));
    let mut common: Vec<&String> = one
        .iter()
        .filter(|name| in_both(name))
        .chain(narrowed)
        .collect();
    common.dedup();
    match common.as_slice() {
        [] => None,
        [name] => Some(json!(name)),
        names => Some(json!(names)),
    }
}

/// `oneOf` becomes `anyOf`; `null` as the only other choice becomes one of the types.
fn one_way_to_choose(schema: &mut Map<String, Value>) {
    if let Some(branches) = schema.shift_remove("oneOf")
        && !schema.contains_key("anyOf")
    {
        schema.insert("anyOf".to_owned(), branches);
    }
    let Some(Value::Array(branches)) = schema.get_mut("anyOf") else {
        return;
    };
    let is_null = |branch: &Value| branch.get("type").is_some_and(|name| name == "null");
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
    values(&mut only);
    if or_null {
        allow_null(&mut only);
    }
    schema.shift_remove("anyOf");
    meet(schema, only);
}

/// `const`, `nullable` and types that go without saying.
fn values(schema: &mut Map<String, Value>) {
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
    if !schema.contains_key("type") || allows(schema, "null") {
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

/// What the root demands beyond its properties, for the description of the tool.
pub(super) fn of_root(schema: &Map<String, Value>) -> String {
    let description = schema.get("description").and_then(Value::as_str);
    let mut text = description.unwrap_or_default().to_owned();
    let demands = words::demands(schema, only_describes);
    add(&mut text, &demands);
    text
}
