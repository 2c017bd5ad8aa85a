//! The shape of JSON: keys and types.

use std::collections::BTreeSet;

use serde_json::Value as Json;

/// Every path in a value with its type, such as `.value: number`; lists by their first item.
pub(crate) fn shape(json: &Json) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    walk(json, "", &mut all);
    all
}

fn walk(json: &Json, path: &str, all: &mut BTreeSet<String>) {
    let kind = match json {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "list",
        Json::Object(_) => "object",
    };
    all.insert(format!("{path}: {kind}"));
    match json {
        Json::Array(items) => {
            if let Some(first) = items.first() {
                walk(first, &format!("{path}[]"), all);
            }
        }
        Json::Object(fields) => {
            for (key, value) in fields {
                walk(value, &format!("{path}.{key}"), all);
            }
        }
        _ => {}
    }
}

/// What differs, one line each: `-` only in the first, `+` only in the second.
pub(crate) fn difference(first: &BTreeSet<String>, second: &BTreeSet<String>) -> Vec<String> {
    let gone = first.difference(second).map(|line| format!("-{line}"));
    let new = second.difference(first).map(|line| format!("+{line}"));
    gone.chain(new).collect()
}

#[test]
fn shapes_tell_keys_and_types_apart() {
    let first = shape(&serde_json::json!({ "a": 1, "b": [{ "c": null }] }));
    let second = shape(&serde_json::json!({ "a": 2, "b": [{ "c": true }], "d": "" }));
    assert_eq!(
        difference(&first, &second),
        ["-.b[].c: null", "+.b[].c: boolean", "+.d: string"]
    );
    assert!(difference(&first, &first.clone()).is_empty());
}
