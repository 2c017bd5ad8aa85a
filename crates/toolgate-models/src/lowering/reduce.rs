//! For a provider that reads a schema into a structure and loses what that has no place for: only the keywords that arrive,
//! the rest in words.

use serde_json::{Map, Value, json};

use super::choice::are_apart;
use super::keywords::{allows, only_describes, types};
use super::text::add;
use super::{phrase, words};

/// Reduces a sub-schema to these keywords. `name` is that of the property it stands for.
pub(super) fn reduce(
    mut schema: Map<String, Value>,
    name: &str,
    kept: &[&str],
) -> Map<String, Value> {
    flatten(&mut schema);
    one_way_to_choose(&mut schema);
    values(&mut schema);
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
    // A flag where the structure wants an object would cost the whole request.
    if let Some(items) = schema.get_mut("items").filter(|items| items.is_boolean()) {
        dropped.insert("items".to_owned(), items.take());
        *items = json!({});
    }
    (schema, dropped)
}

/// What was said already, what a title adds to it, and what is about to be lost.
fn description(schema: &Map<String, Value>, dropped: &Map<String, Value>, name: &str) -> String {
    let own = schema.get("description").and_then(Value::as_str);
    let title = || phrase::title(dropped, name);
    let own = own.or_else(title);
    let mut description = own.unwrap_or_default().to_owned();
    add(&mut description, &words::demands(dropped, |_| false));
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

/// Makes a schema demand what another does too. What can not be said by one keyword goes on beside it, in `allOf`.
fn meet(schema: &mut Map<String, Value>, other: Map<String, Value>) {
    let groups: Vec<&str> = schema.keys().filter_map(|keyword| group(keyword)).collect();
    let (apart, other): (Map<_, _>, Map<_, _>) = other
        .into_iter()
        .partition(|(keyword, _)| group(keyword).is_some_and(|group| groups.contains(&group)));
    let mut left = apart;
    for (keyword, value) in other {
        let Some(own) = schema.get_mut(&keyword) else {
            schema.insert(keyword, value);
            continue;
        };
        if let Some(value) = met(&keyword, own, value) {
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

/// Keywords that mean something only together.
fn group(keyword: &str) -> Option<&'static str> {
    match keyword {
        "if" | "then" | "else" => Some("if"),
        "contains" | "minContains" | "maxContains" => Some("contains"),
        _ => None,
    }
}

/// Makes the value of a keyword demand what another value does too, or gives that back.
fn met(keyword: &str, own: &mut Value, other: Value) -> Option<Value> {
    match (keyword, own, other) {
        (_, own, other) if *own == other => return None,
        ("properties", Value::Object(own), Value::Object(others)) => {
            for (name, property) in others {
                match (own.get_mut(&name), property) {
                    (Some(Value::Object(own)), Value::Object(property)) => meet(own, property),
                    (_, property) => {
                        own.insert(name, property);
                    }
                }
            }
        }
        ("items", Value::Object(own), Value::Object(other)) => meet(own, other),
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
        // What is said outside is about this very use.
        (keyword, ..) if only_describes(keyword) => {}
        (_, _, other) => return Some(other),
    }
    None
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
    if !schema.contains_key("anyOf")
        && let Some(branches) = schema.shift_remove("oneOf")
    {
        let list = branches.as_array().map(Vec::as_slice);
        if !are_apart(list.unwrap_or_default()) {
            words::describe(schema, "Only one of the forms may fit.");
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
    let carried = |keyword: &str| matches!(keyword, "type" | "properties" | "required");
    let demands = words::demands(schema, carried);
    add(&mut text, &demands);
    text
}
