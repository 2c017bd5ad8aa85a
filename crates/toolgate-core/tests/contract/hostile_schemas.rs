//! VA6: no schema can make us fetch anything, nor spend more than a bounded time and memory.
//!
//! Each schema here is refused when the tool is registered, naming the keyword, or checks the arguments given with it in no
//! time; both on a thread with a small stack, because overflowing it ends the whole process.

use std::net::TcpListener;

use serde_json::{Map, Value, json};
use tokio::time::Instant;
use toolgate_core::{Redactor, Schema, SchemaError, SchemaLimits};

use crate::support::{on_a_small_stack, secs};

fn object(entries: impl IntoIterator<Item = (String, Value)>) -> Value {
    Value::Object(entries.into_iter().collect::<Map<_, _>>())
}

/// `$defs` in which `d0` leads to `d1` and so on; the last one is `last`.
fn chain(length: usize, link: impl Fn(Value) -> Value, last: &Value) -> Value {
    let next = |i: usize| link(json!({ "$ref": format!("#/$defs/d{}", i + 1) }));
    object((0..=length).map(|i| {
        (
            format!("d{i}"),
            if i == length { last.clone() } else { next(i) },
        )
    }))
}

fn from_d0(defs: &Value) -> Value {
    json!({ "properties": { "p": { "$ref": "#/$defs/d0" } }, "$defs": defs })
}

fn nested(depth: usize, wrap: impl Fn(Value) -> Value, core: Value) -> Value {
    (0..depth).fold(core, |inner, _| wrap(inner))
}

/// `{"a": {"a": … 1}}`
fn deep_arguments(depth: usize) -> Value {
    nested(depth, |inner| json!({ "a": inner }), json!(1))
}

/// The keyword that was blamed, or `None` if the schema was accepted and checked the arguments in no time.
fn fate(schema: Value, arguments: Value) -> Option<String> {
    let shown = Redactor::default().json(&schema, 300);
    on_a_small_stack(&shown.clone(), move || {
        let begin = Instant::now();
        let fate = match Schema::compile(schema, &SchemaLimits::default()) {
            Ok(schema) => {
                // Valid or not does not matter here.
                let _verdict = schema.check(arguments).is_ok();
                None
            }
            Err(SchemaError::Keyword { keyword, .. } | SchemaError::TooDeep { keyword, .. }) => {
                Some(keyword)
            }
            Err(error) => Some(error.to_string()),
        };
        let time = begin.elapsed();
        // A debug build on a busy machine; in release each is a matter of milliseconds.
        assert!(time < secs(20), "{time:?}: {shown}");
        fate
    })
}

fn expect_refused(keyword: &str, schema: Value) {
    let shown = Redactor::default().json(&schema, 200);
    let fate = fate(schema, json!({ "p": 1 }));
    assert_eq!(fate.as_deref(), Some(keyword), "{shown}");
}

fn expect_harmless(schema: Value, arguments: Value) {
    let shown = Redactor::default().json(&schema, 200);
    assert_eq!(fate(schema, arguments), None, "{shown}");
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
        assert!(fate(from_d0(&chain(30, link, &json!({}))), json!({})).is_some());
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
    assert!(fate(recursive, deep_arguments(60)).is_some());
    let any = json!({ "anyOf": [{ "additionalProperties": { "$ref": "#" } }, { "patternProperties": { "": { "$ref": "#" } } }] });
    assert!(fate(any, deep_arguments(60)).is_some());
}

#[test]
fn va6_what_asks_for_the_unevaluated_again_and_again_is_refused() {
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
fn va6_references_that_lead_nowhere_but_back_are_refused() {
    for schema in [
        json!({ "$ref": "#" }),
        json!({ "allOf": [{ "$ref": "#" }] }),
        json!({ "anyOf": [{ "$ref": "#/anyOf/0" }] }),
        json!({ "properties": { "p": { "$ref": "#/$defs/a" } }, "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } } }),
        json!({ "properties": { "p": { "not": { "$ref": "#/properties/p" } } } }),
    ] {
        expect_refused("$ref", schema);
    }
}

#[test]
fn va6_references_out_of_the_document_are_refused() {
    for reference in [
        "http://example.org/schema.json",
        "https://example.org/schema.json#/a",
        "file:///etc/passwd",
        "other.json",
        "/absolute.json",
        "//example.org/x",
        "urn:uuid:deadbeef-0000-0000-0000-000000000000",
        "http://json-schema.org/draft-07/schema#",
        "#nowhere",
        "#/$defs/nowhere",
        "#/properties/p/",
        "#%2fnowhere",
        "#/%ff",
        "",
        " #",
    ] {
        expect_refused(
            "$ref",
            json!({ "properties": { "p": { "$ref": reference } } }),
        );
    }
    for keyword in ["$dynamicRef", "$recursiveRef"] {
        expect_refused(keyword, json!({ "properties": { "p": { keyword: "#" } } }));
    }
}

#[test]
fn va6_nothing_is_fetched_and_no_file_is_read() {
    let canary = TcpListener::bind("127.0.0.1:0").unwrap();
    canary.set_nonblocking(true).unwrap();
    let url = format!("http://{}/schema.json", canary.local_addr().unwrap());
    // A file that would be a perfect schema.
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("schema.json");
    std::fs::write(&file, r#"{"type":"object"}"#).unwrap();
    let path = format!("file://{}", file.display());
    for outside in [&url, &path] {
        for schema in [
            json!({ "$ref": outside }),
            json!({ "properties": { "p": { "$ref": format!("{outside}#/a") } } }),
            json!({ "$id": outside, "properties": { "p": { "$ref": "schema.json" } } }),
            json!({ "$defs": { "unused": { "$ref": outside } }, "properties": { "p": { "$ref": "#/$defs/unused" } } }),
            json!({ "properties": { "p": { "$id": outside, "type": "string" } } }),
        ] {
            assert!(
                fate(schema.clone(), json!({ "p": 1 })).is_some(),
                "{schema}"
            );
        }
        // These need nothing from there, and so are taken.
        for schema in [
            json!({ "$schema": outside, "type": "object" }),
            json!({ "$id": outside, "type": "object" }),
            json!({ "properties": { "p": { "$schema": outside } } }),
            json!({ "properties": { "p": { "default": { "$ref": outside }, "examples": [{ "$ref": outside }] } } }),
        ] {
            expect_harmless(schema, json!({ "p": 1 }));
        }
    }
    let caught = canary.accept();
    assert_eq!(
        caught.unwrap_err().kind(),
        std::io::ErrorKind::WouldBlock,
        "nobody called"
    );
}

#[test]
fn va6_a_reference_can_not_mean_another_place_than_the_one_that_was_measured() {
    let link = |next: Value| json!({ "allOf": [next.clone(), next] });
    let calm = object((0..=30).map(|i| (format!("d{i}"), json!({}))));
    let bomb = || chain(30, link, &json!({}));
    let with_anchor = |keyword: &str| {
        let mut defs = bomb();
        defs["d0"][keyword] = json!("a");
        json!({ "properties": { "p": { "$ref": "#a" }, "q": { "const": { "$anchor": "a" } } }, "$defs": defs })
    };
    let hidden =
        json!({ "id": "http://x.example/", "$defs": bomb(), "allOf": [{ "$ref": "#/$defs/d0" }] });
    let old = "http://json-schema.org/draft-04/schema#";
    let mut declared = hidden.clone();
    declared["$schema"] = json!(old);
    for (keyword, schema) in [
        (
            "$id",
            json!({ "$defs": calm, "properties": { "p": { "$id": "http://x.example/", "$defs": bomb(), "$ref": "#/$defs/d0" } } }),
        ),
        (
            "id",
            json!({ "$schema": old, "$defs": calm, "properties": { "p": hidden } }),
        ),
        (
            "$id",
            json!({
                "properties": { "p": { "$ref": "#/$defs/x/$defs/inner" } },
                "$defs": { "d0": {}, "x": { "$id": "http://x.example/", "$defs": { "inner": { "$ref": "#/$defs/d0" }, "d0": {} } } },
            }),
        ),
        (
            "$ref",
            json!({ "properties": { "p": { "$ref": "#/examples/0" } }, "examples": [{ "$id": "http://x.example/", "$ref": "#/$defs/d0" }], "$defs": calm }),
        ),
        ("$anchor", with_anchor("$anchor")),
        ("$dynamicAnchor", with_anchor("$dynamicAnchor")),
    ] {
        expect_refused(keyword, schema);
    }
    // A `$schema` inside is left out, so that `id` means nothing.
    expect_harmless(
        json!({ "$defs": calm, "properties": { "p": declared } }),
        json!({ "p": {} }),
    );
}

#[test]
fn va6_deep_schemas_are_refused_before_anything_recurses() {
    // Made by hand: the `json!` macro itself would overflow the stack.
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
    // What nobody refers to costs nothing.
    expect_harmless(json!({ "$defs": many(20_000) }), json!({}));
}

#[test]
fn va6_patterns_are_matched_in_linear_time_or_refused() {
    let long = "a".repeat(30_000);
    let of = |pattern: &str| json!({ "properties": { "p": { "pattern": pattern } } });
    for pattern in [
        "^(a+)+$",
        "^(a|a)*$",
        "^(a|aa)+b$",
        "(.*a){20}b",
        "^[\\w.-]+@[\\w-]+\\.[a-z]{2,}$",
        "^\\d{4}-\\d{2}$",
    ] {
        expect_harmless(of(pattern), json!({ "p": long }));
    }
    for pattern in [
        "^(a|a)*(?!b)$",
        "(?=(a+))\\1+b",
        "(?<=a)b",
        "((a{1,100}){1,100}){1,100}",
        "(a{1000}){1000}",
        "a{100000}",
        "\\p{L}{1000}",
        "\\cJ((a{1,100}){1,100}){1,100}",
        "[[](((a{1,100}){1,100}){1,100})]",
    ] {
        expect_refused("pattern", of(pattern));
        expect_refused(
            "patternProperties",
            json!({ "patternProperties": { pattern: {} } }),
        );
    }
    expect_refused("pattern", of(&"a".repeat(1 << 20)));
    expect_refused("pattern", of(&"\\d".repeat(6_000)));
    expect_refused("pattern", of(&"\\s".repeat(2_000)));
    expect_refused("pattern", of(&"(".repeat(10_000)));
}

#[test]
fn va6_many_small_patterns_are_as_expensive_as_a_large_one() {
    let all = object((0..200).map(|i| {
        (
            format!("k{i}"),
            json!({ "pattern": format!("\\p{{L}}{{10}}{i}") }),
        )
    }));
    expect_refused("pattern", json!({ "properties": all }));
    let one = "a".repeat(4_000);
    let all = object((0..2_000).map(|i| (format!("k{i}"), json!({ "$ref": "#/$defs/one" }))));
    expect_harmless(
        json!({ "properties": all, "$defs": { "one": { "pattern": one } } }),
        json!({}),
    );
}

#[test]
fn va6_large_arguments_are_checked_in_bounded_time_or_refused() {
    let numbers = json!({ "p": vec![0; 100_000] });
    let items = |schema: Value| json!({ "properties": { "p": { "items": schema } } });
    for schema in [
        items(json!({ "type": "string" })),
        items(json!({ "allOf": vec![json!({ "type": "string" }); 150] })),
        items(json!({ "anyOf": vec![json!({ "type": "string" }); 150] })),
        items(json!({ "enum": (0..9_000).collect::<Vec<_>>() })),
        json!({ "properties": { "p": { "uniqueItems": true } } }),
        json!({ "properties": { "p": { "contains": { "const": 1 } } } }),
    ] {
        expect_harmless(schema, numbers.clone());
    }
    let keys = object((0..50_000).map(|i| (format!("k{i}"), json!(0))));
    for schema in [
        json!({ "propertyNames": { "pattern": "^([a-z]+)+[0-9]$" } }),
        json!({ "patternProperties": { "([a-z]+)+x": false }, "additionalProperties": { "type": "string" } }),
        json!({ "anyOf": [{ "additionalProperties": { "type": "integer" } }], "unevaluatedProperties": false }),
        json!({ "required": (0..5_000).map(|i| format!("k{i}")).collect::<Vec<_>>(), "additionalProperties": false }),
    ] {
        expect_harmless(schema, keys.clone());
    }
}

#[test]
fn va6_a_huge_enum_is_compared_with_few_values() {
    let long = "x".repeat(1_000);
    let options: Vec<Value> = (0..3_000).map(|i| json!([format!("{long}{i}")])).collect();
    let schema = json!({ "properties": { "p": { "items": { "enum": options } } } });
    expect_harmless(
        schema,
        json!({ "p": vec![json!([format!("{long}y")]); 900] }),
    );
}

#[test]
fn va6_items_whose_hashes_are_all_the_same_are_not_compared_with_each_other() {
    /// All ways to nest `n` pairs of brackets.
    fn brackets(n: usize) -> Vec<Value> {
        let mut lists: Vec<Vec<Vec<Value>>> = vec![vec![vec![]]];
        for size in 1..n {
            let mut found = Vec::new();
            for first in 1..=size {
                for head in lists[first - 1].clone() {
                    for tail in &lists[size - first] {
                        let mut list = vec![Value::Array(head.clone())];
                        list.extend(tail.iter().cloned());
                        found.push(list);
                    }
                }
            }
            lists.push(found);
        }
        lists.concat().into_iter().map(Value::Array).collect()
    }
    let items = brackets(11);
    assert!(items.len() > 20_000);
    expect_harmless(
        json!({ "properties": { "p": { "uniqueItems": true } } }),
        json!({ "p": items }),
    );
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
            fate(schema.clone(), json!({ "p": [] })).is_some(),
            "{schema}"
        );
    }
}

#[test]
fn va6_a_pattern_for_one_text_does_not_forbid_another_to_be_long() {
    let schema = json!({
        "properties": {
            "sha": { "type": "string", "pattern": "^[0-9a-f]{40}$" },
            "content": { "type": "string" },
        },
    });
    let schema = Schema::compile(schema, &SchemaLimits::default()).unwrap();
    let content = "x".repeat(1_000_000);
    schema
        .check(json!({ "content": content, "sha": "a".repeat(40) }))
        .unwrap();
    let error = schema
        .check(json!({ "content": content, "sha": "b" }))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "Invalid parameters: 'sha' must match ^[0-9a-f]{40}$"
    );
}
