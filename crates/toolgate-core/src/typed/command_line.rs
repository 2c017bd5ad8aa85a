//! [`command_line_arguments`]: arguments as people type them, with lists and objects.

use indexmap::IndexMap;
use serde_json::Value;

use super::{allowed_types, parse_by_schema, schema_parts};
use crate::{Arguments, JsonError};

/// Builds arguments from `key=value` pairs, like [`typed_arguments`](super::typed_arguments),
/// with lists and objects.
///
/// A key that is repeated or ends in `[]` makes a list; `a.b` is the key `b` of the object `a`. A
/// key that the schema declares literally is never split.
pub fn command_line_arguments(
    pairs: &[(&str, &str)],
    schema: &Value,
) -> Result<Arguments, JsonError> {
    let mut arguments = Arguments::new();
    for (path, given) in group_by_path(pairs, schema) {
        let Some(value) = given.value(declared_schema(&path, schema), schema)? else {
            return Err(duplicate_key(&path));
        };
        insert(&mut arguments, &path, value)?;
    }
    Ok(arguments)
}

/// Finds arguments such as `a,b` where the schema wants a list, so that the caller can
/// suggest repeating the key.
///
/// Returns each key with its items. Validation rejects such arguments, because `a,b` may be two
/// items or one with a comma.
pub fn comma_separated_lists<'a>(
    pairs: &[(&'a str, &'a str)],
    schema: &Value,
) -> Vec<(String, Vec<&'a str>)> {
    let mut lists = Vec::new();
    for (path, given) in group_by_path(pairs, schema) {
        let declared = declared_schema(&path, schema);
        let types = allowed_types(declared, schema);
        let wants_list = types.contains(&"array") && !types.contains(&"string");
        if let (Ok(Some(Value::String(_))), [text], true) = (
            given.value(declared, schema),
            given.texts.as_slice(),
            wants_list,
        ) {
            let items = text.split(',').map(str::trim);
            let items: Vec<&str> = items.filter(|item| !item.is_empty()).collect();
            if items.len() > 1 {
                lists.push((path.join("."), items));
            }
        }
    }
    lists
}

// Keys that lead to the same value are grouped, because several of them make a list.
fn group_by_path<'a>(
    pairs: &[(&'a str, &'a str)],
    schema: &Value,
) -> IndexMap<Vec<&'a str>, KeyTexts<'a>> {
    let mut keys: IndexMap<_, KeyTexts<'_>> = IndexMap::new();
    for (key, text) in pairs {
        let (path, is_list) = parse_path(key, schema);
        let given = keys.entry(path).or_default();
        given.texts.push(text);
        given.is_list |= is_list;
    }
    keys
}

fn declared_schema<'a>(path: &[&str], schema: &'a Value) -> &'a Value {
    path.iter()
        .fold(schema, |inside, name| property(inside, name, schema))
}

#[derive(Default)]
struct KeyTexts<'a> {
    texts: Vec<&'a str>,
    is_list: bool,
}

impl KeyTexts<'_> {
    /// `None` if the key was given several times and the schema doesn't declare a list.
    fn value(&self, declared: &Value, document: &Value) -> Result<Option<Value>, JsonError> {
        let types = allowed_types(declared, document);
        let takes_list = types.contains(&"array");
        let items = || {
            let mut parts = schema_parts(declared, document).into_iter();
            parts
                .find_map(|part| part.get("items"))
                .unwrap_or(&Value::Null)
        };
        let list = || {
            let texts = self.texts.iter();
            texts
                .map(|text| parse_by_schema(text, items(), document))
                .collect::<Result<Vec<_>, _>>()
                .map(|list| Some(Value::Array(list)))
        };
        match self.texts.as_slice() {
            _ if self.is_list => list(),
            [text] => match parse_by_schema(text, declared, document)? {
                // A list of one item. `a,b` might mean two, so validation has to reject it.
                Value::String(_)
                    if takes_list && !types.contains(&"string") && !text.contains(',') =>
                {
                    list()
                }
                value => Ok(Some(value)),
            },
            _ if takes_list => list(),
            _ => Ok(None),
        }
    }
}

/// Splits a key into a path, and says whether it ends in `[]`.
fn parse_path<'a>(key: &'a str, schema: &Value) -> (Vec<&'a str>, bool) {
    let is_declared = |key: &str| !property(schema, key, schema).is_null();
    if is_declared(key) {
        return (vec![key], false);
    }
    let (key, is_list) = match key.strip_suffix("[]") {
        Some(key) if !key.is_empty() => (key, true),
        _ => (key, false),
    };
    let path: Vec<&str> = key.split('.').collect();
    match is_declared(key) || path.contains(&"") {
        true => (vec![key], is_list),
        false => (path, is_list),
    }
}

// Follows references and combinators.
fn property<'a>(schema: &'a Value, name: &str, document: &'a Value) -> &'a Value {
    let mut parts = schema_parts(schema, document).into_iter();
    let found = parts.find_map(|part| part.get("properties")?.get(name));
    found.unwrap_or(&Value::Null)
}

fn insert(arguments: &mut Arguments, path: &[&str], value: Value) -> Result<(), JsonError> {
    let Some((last, parents)) = path.split_last() else {
        return Ok(());
    };
    let mut object = arguments;
    for name in parents {
        let inner = object
            .entry(*name)
            .or_insert_with(|| Arguments::new().into());
        object = inner
            .as_object_mut()
            .ok_or_else(|| duplicate_key(&[name]))?;
    }
    match object.insert((*last).to_owned(), value) {
        None => Ok(()),
        Some(_) => Err(duplicate_key(path)),
    }
}

fn duplicate_key(path: &[&str]) -> JsonError {
    JsonError::DuplicateKey {
        key: path.join("."),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "properties": {
                "labels": { "type": "array", "items": { "type": "string" } },
                "ids": { "anyOf": [{ "type": "array", "items": { "$ref": "#/$defs/id" } }, { "type": "null" }] },
                "either": { "type": ["string", "array"] },
                "title": { "type": "string" },
                "a.b": { "type": "string" },
                "box": { "$ref": "#/$defs/box" },
                "odd[]": { "type": "string" },
            },
            "$defs": {
                "id": { "type": "integer" },
                "box": { "type": "object", "properties": {
                    "size": { "type": "object", "properties": { "code": { "type": "string" }, "n": { "type": "integer" } } },
                    "tags": { "type": "array", "items": { "type": "string" } },
                } },
            },
        })
    }

    fn read(words: &str) -> Result<Value, String> {
        let pairs: Vec<(&str, &str)> = words
            .split_whitespace()
            .filter_map(|word| word.split_once('='))
            .collect();
        command_line_arguments(&pairs, &schema())
            .map(Value::Object)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn lists_and_objects_are_typed_without_json() {
        for (words, expected) in [
            ("labels=bug labels=ui", json!({ "labels": ["bug", "ui"] })),
            ("labels[]=bug", json!({ "labels": ["bug"] })),
            ("labels=bug labels[]=7", json!({ "labels": ["bug", "7"] })),
            ("labels=bug", json!({ "labels": ["bug"] })),
            (r#"labels=["bug","ui"]"#, json!({ "labels": ["bug", "ui"] })),
            // Two labels, or one with a comma: only the person who typed it knows.
            ("labels=bug,ui", json!({ "labels": "bug,ui" })),
            ("ids=5", json!({ "ids": [5] })),
            ("ids=null", json!({ "ids": null })),
            ("ids=5 ids=x", json!({ "ids": [5, "x"] })),
            ("either=x", json!({ "either": "x" })),
            ("either=x either=y", json!({ "either": ["x", "y"] })),
            ("a.b=1", json!({ "a.b": "1" })),
            ("odd[]=1", json!({ "odd[]": "1" })),
            (
                "box.size.n=3 box.size.code=07",
                json!({ "box": { "size": { "n": 3, "code": "07" } } }),
            ),
            (
                "box.tags=x title=t box.tags=1",
                json!({ "box": { "tags": ["x", "1"] }, "title": "t" }),
            ),
            (
                r#"box={"x":1} box.size.n=2"#,
                json!({ "box": { "x": 1, "size": { "n": 2 } } }),
            ),
            (
                "free.deep=1 free.list[]=2",
                json!({ "free": { "deep": 1, "list": [2] } }),
            ),
            (".x=1 y.=2 z..z=3", json!({ ".x": 1, "y.": 2, "z..z": 3 })),
        ] {
            assert_eq!(read(words), Ok(expected), "{words}");
        }
    }

    #[test]
    fn commas_suggest_a_list_only_where_a_list_is_required() {
        for (pair, expected) in [
            (("labels", "bug,ui"), Some(("labels", vec!["bug", "ui"]))),
            (("box.tags", "a b, c"), Some(("box.tags", vec!["a b", "c"]))),
            (("ids", "5,6"), Some(("ids", vec!["5", "6"]))),
            (("labels", r#"["bug","ui"]"#), None),
            (("labels", "bug,"), None),
            (("labels[]", "bug,ui"), None),
            // These take the text as it is.
            (("title", "a,b"), None),
            (("either", "a,b"), None),
            (("unknown", "a,b"), None),
        ] {
            let expected = expected.map(|(key, items)| (key.to_owned(), items));
            let found = comma_separated_lists(&[pair], &schema());
            assert_eq!(found, Vec::from_iter(expected), "{pair:?}");
        }
    }

    #[test]
    fn only_list_keys_may_be_repeated() {
        for (words, expected) in [
            ("title=a title=b", "'title' given twice"),
            ("x=1 x=2", "'x' given twice"),
            ("box.size.n=1 box.size.n=2", "'box.size.n' given twice"),
            ("x=1 x.y=2", "'x' given twice"),
            ("x.y=1 x=2", "'x' given twice"),
            (r#"box={"size":1} box.size=2"#, "'box.size' given twice"),
        ] {
            assert_eq!(read(words), Err(expected.to_owned()), "{words}");
        }
    }
}
