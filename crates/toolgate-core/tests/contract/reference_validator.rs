//! VA1, compared with a validator that shares no code with ours: Python's `jsonschema`, which
//! `./test.sh` installs with the MCP SDK.

use std::io::Write;
use std::process::{Command, Stdio};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, TestRng, TestRunner};
use serde_json::{Value, json};
use toolgate_core::{Schema, SchemaLimits};

use crate::properties::{arguments, document};

/// Reads a list of `[schema, arguments]` and prints a list of verdicts.
const JUDGE: &str = r#"
import json, sys
from jsonschema import Draft202012Validator
print(json.dumps([Draft202012Validator(schema).is_valid(given) for schema, given in json.load(sys.stdin)]))
"#;

/// Typical schemas of servers, with arguments that narrowly miss them. The expected verdicts follow
/// the standard; the other validator has to agree.
fn known() -> Vec<(Value, Value, bool)> {
    let lamp = json!({
        "type": "object",
        "properties": {
            "deviceName": { "type": "string", "minLength": 1 },
            "level": { "type": "integer", "minimum": 0, "maximum": 99 },
            "tags": { "type": "array", "items": { "enum": ["a", "b"] }, "uniqueItems": true },
        },
        "required": ["deviceName"],
    });
    let either = json!({ "oneOf": [{ "required": ["a"] }, { "required": ["b"] }] });
    let referring = json!({
        "properties": { "tree": { "$ref": "#/$defs/node" } },
        "$defs": { "node": { "properties": { "kids": { "items": { "$ref": "#/$defs/node" } }, "n": { "type": "number" } } } },
    });
    let closed =
        json!({ "allOf": [{ "properties": { "a": {} } }], "unevaluatedProperties": false });
    let cases = [
        (&lamp, json!({ "deviceName": "x", "level": 5.0 }), true),
        (&lamp, json!({ "deviceName": "x", "level": 5.5 }), false),
        (&lamp, json!({ "deviceName": "x", "level": "5" }), false),
        (&lamp, json!({ "deviceName": "x", "level": true }), false),
        (&lamp, json!({ "deviceName": "x", "level": 100 }), false),
        (&lamp, json!({ "deviceName": "" }), false),
        (&lamp, json!({ "level": 1 }), false),
        (
            &lamp,
            json!({ "deviceName": "x", "tags": ["a", "b"] }),
            true,
        ),
        (
            &lamp,
            json!({ "deviceName": "x", "tags": ["a", "a"] }),
            false,
        ),
        (&lamp, json!({ "deviceName": "x", "tags": ["c"] }), false),
        (&either, json!({ "a": 1 }), true),
        (&either, json!({ "a": 1, "b": 1 }), false),
        (&either, json!({}), false),
        (
            &referring,
            json!({ "tree": { "kids": [{ "kids": [{ "n": 1 }] }] } }),
            true,
        ),
        (
            &referring,
            json!({ "tree": { "kids": [{ "kids": [{ "n": "1" }] }] } }),
            false,
        ),
        (&closed, json!({ "a": 1 }), true),
        (
            &json!({ "not": { "required": ["a"] } }),
            json!({ "a": null }),
            false,
        ),
        (
            &json!({ "propertyNames": { "maxLength": 2 } }),
            json!({ "abc": 1 }),
            false,
        ),
        (
            &json!({ "dependentRequired": { "a": ["b"] } }),
            json!({ "a": 1 }),
            false,
        ),
        (
            &json!({ "properties": { "a": { "const": 1 } } }),
            json!({ "a": 1.0 }),
            true,
        ),
        (
            &json!({ "properties": { "a": { "multipleOf": 0.5 } } }),
            json!({ "a": 1.25 }),
            false,
        ),
        (
            &json!({ "properties": { "a": { "maxLength": 2 } } }),
            json!({ "a": "äöü" }),
            false,
        ),
        (
            &json!({ "properties": { "a": { "maxLength": 2 } } }),
            json!({ "a": "💡💡" }),
            true,
        ),
        (
            &json!({ "properties": { "a": { "pattern": "b" } } }),
            json!({ "a": "abc" }),
            true,
        ),
        (
            &json!({ "properties": { "a": { "contains": { "type": "null" } } } }),
            json!({ "a": [] }),
            false,
        ),
        (
            &json!({ "properties": { "a": { "prefixItems": [{ "type": "null" }], "items": false } } }),
            json!({ "a": [null, 1] }),
            false,
        ),
    ];
    let cases = cases.into_iter();
    cases
        .map(|(schema, given, verdict)| (schema.clone(), given, verdict))
        .collect()
}

fn verdict(schema: &Value, given: &Value) -> Option<bool> {
    let compiled = Schema::compile(schema.clone(), &SchemaLimits::default()).ok()?;
    match compiled.check(given.clone()) {
        Ok(valid) if valid.dropped().is_empty() => Some(true),
        // Validation left something out to make it fit, so the original arguments didn't.
        Ok(_) | Err(_) => Some(false),
    }
}

#[test]
fn va1_server_schemas_are_applied_as_the_standard_says() {
    for (schema, given, expected) in known() {
        assert_eq!(verdict(&schema, &given), Some(expected), "{schema} {given}");
    }
}

#[test]
fn va1_results_agree_with_a_reference_validator() {
    let Some(clients) = thirdparty::MCP_CLIENTS.folder() else {
        return;
    };
    let rng = TestRng::deterministic_rng(Config::default().rng_algorithm);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let pairs = (document(), arguments());
    let random = (0..1_000).map(|_| pairs.new_tree(&mut runner).unwrap().current());
    let mut cases: Vec<(Value, Value, bool)> = known();
    cases.extend(random.filter_map(|(schema, given)| {
        let ours = verdict(&schema, &given)?;
        Some((schema, given, ours))
    }));
    assert!(cases.len() > 500, "nearly all random schemas are usable");
    let asked: Vec<_> = cases
        .iter()
        .map(|(schema, given, _)| (schema, given))
        .collect();
    let theirs = judged(
        &clients.join("python/bin/python"),
        &json!(asked).to_string(),
    );
    assert_eq!(theirs.len(), cases.len());
    for ((schema, given, ours), theirs) in cases.iter().zip(theirs) {
        assert_eq!(*ours, theirs, "{schema} {given}");
    }
}

fn judged(python: &std::path::Path, asked: &str) -> Vec<bool> {
    let mut child = Command::new(python)
        .args(["-c", JUDGE])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(asked.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}
