//! VA6: no schema can make us fetch anything, or spend more than bounded time and memory.
//!
//! Each schema here is either refused at registration, naming the keyword, or checks the
//! given arguments quickly. Both run on a thread with a small stack, because a stack overflow
//! ends the whole process.

use serde_json::{Map, Value, json};
use tokio::time::Instant;
use toolgate_core::{Redactor, Schema, SchemaError, SchemaLimits};

use crate::support::{on_a_small_stack, secs};

pub(crate) fn object(entries: impl IntoIterator<Item = (String, Value)>) -> Value {
    Value::Object(entries.into_iter().collect::<Map<_, _>>())
}

/// `$defs` in which `d0` leads to `d1` and so on; the last one is `last`.
pub(crate) fn chain(length: usize, link: impl Fn(Value) -> Value, last: &Value) -> Value {
    let next = |i: usize| link(json!({ "$ref": format!("#/$defs/d{}", i + 1) }));
    object((0..=length).map(|i| {
        (
            format!("d{i}"),
            if i == length { last.clone() } else { next(i) },
        )
    }))
}

pub(crate) fn from_d0(defs: &Value) -> Value {
    json!({ "properties": { "p": { "$ref": "#/$defs/d0" } }, "$defs": defs })
}

pub(crate) fn nested(depth: usize, wrap: impl Fn(Value) -> Value, core: Value) -> Value {
    (0..depth).fold(core, |inner, _| wrap(inner))
}

/// `{"a": {"a": … 1}}`
pub(crate) fn deep_arguments(depth: usize) -> Value {
    nested(depth, |inner| json!({ "a": inner }), json!(1))
}

/// The keyword that was blamed, or `None` if the schema was accepted and
/// checked the arguments quickly.
pub(crate) fn blamed_keyword(schema: Value, arguments: Value) -> Option<String> {
    let shown = Redactor::default().json(&schema, 300);
    on_a_small_stack(&shown.clone(), move || {
        let begin = Instant::now();
        let fate = match Schema::compile(schema, &SchemaLimits::default()) {
            Ok(schema) => {
                // Whether the arguments are valid doesn't matter here.
                let _verdict = schema.check(arguments).is_ok();
                None
            }
            Err(SchemaError::Keyword { keyword, .. } | SchemaError::TooDeep { keyword, .. }) => {
                Some(keyword)
            }
            Err(error) => Some(error.to_string()),
        };
        let time = begin.elapsed();
        // Generous for debug builds on busy machines; in release each takes milliseconds.
        assert!(time < secs(20), "{time:?}: {shown}");
        fate
    })
}

pub(crate) fn expect_refused(keyword: &str, schema: Value) {
    let shown = Redactor::default().json(&schema, 200);
    let fate = blamed_keyword(schema, json!({ "p": 1 }));
    assert_eq!(fate.as_deref(), Some(keyword), "{shown}");
}

pub(crate) fn expect_harmless(schema: Value, arguments: Value) {
    let shown = Redactor::default().json(&schema, 200);
    assert_eq!(blamed_keyword(schema, arguments), None, "{shown}");
}

#[test]
fn va6_doubling_is_refused_whatever_doubles() {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let link = |next: Value| json!({ keyword: [next.clone(), next] });
        expect_refused("$ref", from_d0(&chain(30, link, &json!({}))));
    }
    for link in [
        |next: Value| json!({ "if": next.clone(), "then": next }),
        |next: Value| json!({ "not": next.clone(), "else": next }),
        |next: Value| json!({ "dependentSchemas": { "a": next.clone(), "b": next } }),
        |next: Value| json!({ "dependencies": { "a": next.clone(), "b": next } }),
        |next: Value| json!({ "items": { "allOf": [next.clone(), next] } }),
        |next: Value| json!({ "allOf": [{ "properties": { "a": next.clone() } }, { "additionalProperties": next }] }),
    ] {
        assert!(blamed_keyword(from_d0(&chain(30, link, &json!({}))), json!({})).is_some());
    }
}

#[test]
fn va6_doubling_without_references_is_refused_too() {
    let twice = |inner: Value| json!({ "allOf": [inner.clone(), inner] });
    expect_refused("allOf", nested(16, twice, json!({ "type": "object" })));
}

#[test]
fn va6_doubling_through_recursion_that_consumes_input_is_refused() {
    let recursive = json!({
        "$ref": "#/$defs/n",
        "$defs": { "n": { "allOf": [{ "properties": { "a": { "$ref": "#/$defs/n" } } }, { "properties": { "a": { "$ref": "#/$defs/n" } } }] } },
    });
    assert!(blamed_keyword(recursive, deep_arguments(60)).is_some());
    let any = json!({ "anyOf": [{ "additionalProperties": { "$ref": "#" } }, { "patternProperties": { "": { "$ref": "#" } } }] });
    assert!(blamed_keyword(any, deep_arguments(60)).is_some());
}

#[test]
fn va6_nested_unevaluated_keywords_are_refused() {
    for (keyword, unevaluated) in [
        ("allOf", "unevaluatedProperties"),
        ("anyOf", "unevaluatedProperties"),
        ("oneOf", "unevaluatedItems"),
        ("anyOf", "unevaluatedItems"),
    ] {
        let wrap = |inner: Value| json!({ keyword: [inner], unevaluated: { "type": "integer" } });
        let schema = nested(25, wrap, json!({ "properties": { "a": {} } }));
        expect_refused(keyword, schema);
    }
}

#[test]
fn va6_deep_schemas_are_refused_before_anything_recurses() {
    // Built by hand: the `json!` macro itself would overflow the stack.
    let under = |keyword: &str, inner: Value| object([(keyword.to_owned(), inner)]);
    for keyword in ["not", "items", "properties", "enum", "default", "x-own"] {
        let schema = nested(2_000, |inner| under(keyword, inner), json!({}));
        expect_refused(keyword, schema);
        let list = |inner: Value| under(keyword, Value::Array(vec![inner]));
        expect_refused(keyword, nested(1_000, list, json!({})));
    }
    expect_refused("not", nested(129, |inner| under("not", inner), json!({})));
    expect_harmless(
        nested(60, |inner| under("not", inner), json!({})),
        json!({}),
    );
}

#[test]
fn va6_long_chains_of_references_fit_on_a_small_stack() {
    expect_refused("$ref", from_d0(&chain(9_000, |next| next, &json!({}))));
    expect_refused(
        "$ref",
        from_d0(&chain(100, |next| json!({ "allOf": [next] }), &json!({}))),
    );
    let step = |next: Value| json!({ "properties": { "a": next } });
    expect_harmless(
        from_d0(&chain(2_000, step, &json!({}))),
        json!({ "p": deep_arguments(60) }),
    );
}

#[test]
fn va6_stacked_schemas_and_deep_arguments_together_fit_on_a_small_stack() {
    for required in ["a", "b"] {
        let core = json!({ "properties": { "a": { "$ref": "#" } }, "required": [required] });
        for (stacked, depth) in [(55, 63), (55, 16), (15, 60), (12, 63)] {
            for keyword in ["allOf", "anyOf", "oneOf"] {
                let schema = nested(stacked, |inner| json!({ keyword: [inner] }), core.clone());
                expect_harmless(schema, deep_arguments(depth));
            }
        }
    }
}

#[test]
fn va6_thousands_of_sub_schemas_are_counted_not_compiled() {
    let many = |n: usize| object((0..n).map(|i| (format!("k{i}"), json!({ "type": "string" }))));
    expect_harmless(json!({ "properties": many(2_000) }), json!({}));
    expect_refused("properties", json!({ "properties": many(20_000) }));
    expect_refused("allOf", json!({ "allOf": vec![json!({}); 20_000] }));
    let yes = object((0..50_000).map(|i| (format!("k{i}"), json!(true))));
    expect_refused(
        "properties",
        json!({ "allOf": vec![json!({}); 9_000], "properties": yes }),
    );
    let tuple =
        json!({ "allOf": vec![json!({}); 9_000], "prefixItems": vec![json!(true); 50_000] });
    expect_refused("prefixItems", json!({ "properties": { "p": tuple } }));
    // Unreferenced definitions cost nothing.
    expect_harmless(json!({ "$defs": many(20_000) }), json!({}));
}

#[test]
fn va6_keywords_of_the_wrong_type_are_refused() {
    for schema in [
        json!({ "properties": 5 }),
        json!({ "properties": { "p": 5 } }),
        json!({ "required": "x" }),
        json!({ "required": [1] }),
        json!({ "$ref": 7 }),
        json!({ "properties": { "p": { "items": [[[]]] } } }),
        json!({ "properties": { "p": { "type": 5 } } }),
        json!({ "properties": { "p": { "type": ["string", "text"] } } }),
        json!({ "properties": { "p": { "enum": "a" } } }),
        json!({ "properties": { "p": { "minimum": "0" } } }),
        json!({ "properties": { "p": { "pattern": 5 } } }),
        json!({ "properties": { "p": { "pattern": "(" } } }),
        json!({ "properties": { "p": { "maxLength": -1 } } }),
        json!({ "allOf": {} }),
        json!({ "allOf": [] }),
        json!({ "anyOf": [null] }),
        json!({ "not": 1 }),
        json!({ "patternProperties": { "(": {} } }),
        json!({ "additionalProperties": "no" }),
    ] {
        assert!(
            blamed_keyword(schema.clone(), json!({ "p": [] })).is_some(),
            "{schema}"
        );
    }
}
