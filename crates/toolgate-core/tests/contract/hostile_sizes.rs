//! VA6: patterns, large arguments and long lists take bounded time with every schema.

use serde_json::{Value, json};
use toolgate_core::{Schema, SchemaLimits};

use crate::hostile_schemas::{expect_harmless, expect_refused, object};

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
fn va6_items_with_equal_hashes_are_not_compared_pairwise() {
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
fn va6_a_pattern_limits_only_its_own_text() {
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
