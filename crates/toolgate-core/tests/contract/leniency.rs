//! VA5, and what else is accepted or refused besides types.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate_core::{Limits, ToolCall, ToolError, ToolOutput};

use crate::support::{
    Recorder, builder_of, check_parameter, compile, echo, executor_of, open_definition, scripted,
    violation_text, with_schema,
};

#[tokio::test]
async fn va5_unknown_arguments_are_accepted() {
    for (schema, given, received) in [
        (
            json!({ "properties": { "a": {} } }),
            json!({ "x": 1, "a": 2 }),
            json!({ "x": 1, "a": 2 }),
        ),
        (
            json!({ "properties": { "a": {} }, "additionalProperties": false }),
            json!({ "x": 1, "a": 2, "y": null }),
            json!({ "a": 2 }),
        ),
        (
            json!({ "allOf": [{ "properties": { "a": {} } }], "unevaluatedProperties": false }),
            json!({ "x": 1, "a": 2 }),
            json!({ "a": 2 }),
        ),
        (
            json!({ "properties": { "o": { "properties": { "a": {} }, "additionalProperties": false } } }),
            json!({ "o": { "x": { "y": 1 }, "a": 2 } }),
            json!({ "o": { "a": 2 } }),
        ),
    ] {
        let executor = executor_of([echo(with_schema("t", schema))]);
        let envelope = executor
            .execute(ToolCall::new("t", given))
            .await
            .to_envelope();
        assert_eq!(envelope["result"], received);
    }
}

#[tokio::test]
async fn va5_dropped_arguments_are_recorded_with_their_path() {
    let recorder = Recorder::default();
    let closed = json!({ "properties": { "a": {} }, "additionalProperties": false });
    let schema = json!({ "properties": { "o": closed, "l": { "items": closed } }, "additionalProperties": false });
    let executor = builder_of([echo(with_schema("t", schema))])
        .observer(recorder.clone())
        .build();
    let given = json!({ "x": { "o": 1 }, "o": { "p/q~": 1 }, "l": [{}, { "z": 1 }] });
    executor.execute(ToolCall::new("t", given)).await;
    let mut dropped = recorder.only().dropped;
    dropped.sort();
    assert_eq!(dropped, ["l[1].z", "o.p/q~", "x"]);
}

#[test]
fn va5_other_violations_are_still_reported() {
    let schema = compile(
        json!({ "properties": { "a": { "type": "string" } }, "additionalProperties": false, "required": ["b"] }),
    );
    assert_eq!(
        violation_text(&schema, json!({ "x": 1, "a": 5 })),
        "missing 'b', 'a' must be string"
    );
}

#[test]
fn va5_unknown_arguments_take_linear_time() {
    let schema = compile(
        json!({ "properties": { "a": { "type": "string" } }, "additionalProperties": false }),
    );
    let time = |count: usize| {
        let many: serde_json::Map<_, _> = (0..count).map(|i| (format!("k{i}"), json!(i))).collect();
        let begin = own_time();
        let valid = schema.check(Value::Object(many)).unwrap();
        let took = own_time() - begin;
        assert_eq!(valid.dropped().len(), count);
        assert_eq!(valid.as_value(), &json!({}));
        took
    };
    let best = |count| (0..5).map(|_| time(count)).min().unwrap();
    let (few, many) = (best(1_000), best(50_000));
    // With fifty times as many, linear work grows 50 times and quadratic work 2,500 times.
    assert!(many < few * 500, "{few:?}, {many:?}");
}

/// CPU time of this thread, because a busy machine mustn't count.
fn own_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(now).unwrap()
}

#[test]
fn keywords_of_every_draft_are_understood() {
    for (schema, good, bad) in [
        (
            json!({ "unevaluatedProperties": { "type": "integer" }, "anyOf": [{ "properties": { "a": {} }, "required": ["a"] }, {}] }),
            json!({ "a": "x", "b": 1 }),
            json!({ "a": "x", "b": "y" }),
        ),
        (
            json!({ "dependentSchemas": { "a": { "required": ["b"] } } }),
            json!({ "a": 1, "b": 1 }),
            json!({ "a": 1 }),
        ),
        (
            json!({ "dependentRequired": { "a": ["b"] } }),
            json!({ "b": 1 }),
            json!({ "a": 1 }),
        ),
        (
            json!({ "$schema": "http://json-schema.org/draft-07/schema#", "dependencies": { "a": ["b"], "c": { "required": ["d"] } } }),
            json!({ "a": 1, "b": 1 }),
            json!({ "c": 1 }),
        ),
        (
            json!({ "propertyNames": { "pattern": "^[a-z]+$" } }),
            json!({ "ab": 1 }),
            json!({ "A1": 1 }),
        ),
        (
            json!({ "properties": { "a": { "contains": { "const": 1 }, "minContains": 2 } } }),
            json!({ "a": [1, 1] }),
            json!({ "a": [1] }),
        ),
        (
            json!({ "properties": { "a": { "prefixItems": [{ "type": "string" }], "items": { "type": "integer" } } } }),
            json!({ "a": ["x", 1, 2] }),
            json!({ "a": ["x", "y"] }),
        ),
        (
            json!({ "properties": { "a": { "prefixItems": [true], "unevaluatedItems": false } } }),
            json!({ "a": [1] }),
            json!({ "a": [1, 2] }),
        ),
        (
            json!({ "if": { "properties": { "k": { "const": 1 } }, "required": ["k"] }, "then": { "required": ["a"] }, "else": { "required": ["b"] } }),
            json!({ "k": 1, "a": 1 }),
            json!({ "k": 1, "b": 1 }),
        ),
        // Draft-07, declared and not.
        (
            json!({ "$schema": "http://json-schema.org/draft-07/schema", "properties": { "a": { "items": [{ "type": "string" }], "additionalItems": false } } }),
            json!({ "a": ["x"] }),
            json!({ "a": ["x", 1] }),
        ),
        (
            json!({ "properties": { "a": { "items": [{ "type": "string" }], "additionalItems": false } } }),
            json!({ "a": ["x"] }),
            json!({ "a": ["x", 1] }),
        ),
        (
            json!({ "$schema": "https://json-schema.org/draft-07/schema#", "properties": { "a": { "$ref": "#/definitions/a" } }, "definitions": { "a": { "type": "string" } } }),
            json!({ "a": "x" }),
            json!({ "a": 1 }),
        ),
        // Draft-06.
        (
            json!({ "$schema": "http://json-schema.org/draft-06/schema#", "properties": { "a": { "exclusiveMinimum": 0, "const": 1 } } }),
            json!({ "a": 1 }),
            json!({ "a": 0 }),
        ),
        // Draft-04, declared and not.
        (
            json!({ "$schema": "http://json-schema.org/draft-04/schema#", "id": "http://example.org/t", "properties": { "a": { "minimum": 0, "exclusiveMinimum": true } } }),
            json!({ "a": 1 }),
            json!({ "a": 0 }),
        ),
        (
            json!({ "properties": { "a": { "minimum": 0, "exclusiveMinimum": true } } }),
            json!({ "a": 1 }),
            json!({ "a": 0 }),
        ),
        // 2019-09.
        (
            json!({ "$schema": "https://json-schema.org/draft/2019-09/schema", "$defs": { "a": { "$anchor": "here", "type": "string" } }, "properties": { "a": { "$ref": "#here" } } }),
            json!({ "a": "x" }),
            json!({ "a": 1 }),
        ),
        // A schema's identity doesn't matter, and parameters may be called like keywords.
        (
            json!({ "$id": "https://example.org/s", "properties": { "a": { "$ref": "#/$defs/a" } }, "$defs": { "a": { "type": "string" } } }),
            json!({ "a": "x" }),
            json!({ "a": 1 }),
        ),
        (
            json!({ "properties": { "$id": { "type": "string" }, "$schema": { "type": "string" }, "$ref": { "type": "string" }, "id": { "type": "string" } } }),
            json!({ "$id": "x", "$schema": "y", "$ref": "z", "id": "i" }),
            json!({ "$ref": 1 }),
        ),
        (
            json!({ "properties": { "a": { "$schema": "https://example.org/x", "id": "https://example.org/y", "type": "string" } } }),
            json!({ "a": "x" }),
            json!({ "a": 1 }),
        ),
        (
            json!({ "properties": { "a": { "$ref": "#/$defs/a%20b~1c" } }, "$defs": { "a b/c": { "type": "string" } } }),
            json!({ "a": "x" }),
            json!({ "a": 1 }),
        ),
    ] {
        let compiled = compile(schema.clone());
        assert_eq!(violation_text(&compiled, good), "", "{schema}");
        assert_ne!(violation_text(&compiled, bad), "", "{schema}");
    }
}

#[test]
fn the_format_of_a_text_is_a_hint_to_the_model_only() {
    check_parameter(
        &json!({ "type": "string", "format": "date" }),
        &[(json!("tomorrow"), "")],
    );
}

#[tokio::test]
async fn arguments_over_the_limit_are_refused_with_their_size() {
    let mut limits = Limits::default();
    limits.max_arguments = 100;
    let executor = builder_of([echo(open_definition("t"))])
        .limits(limits)
        .build();
    let text = |length: usize| json!({ "a": "x".repeat(length) });
    assert!(
        executor
            .execute(ToolCall::new("t", text(92)))
            .await
            .is_success()
    );
    let envelope = executor
        .execute(ToolCall::new("t", text(93)))
        .await
        .to_envelope();
    assert_eq!(
        envelope["error"],
        "The arguments of 't' take 101 bytes; the limit is 100"
    );
    assert_eq!(envelope["error_kind"], "too_large");
}

#[tokio::test]
async fn f7_arguments_of_more_values_than_the_limit_are_too_large() {
    let executor = builder_of([echo(open_definition("t"))]).build();
    // Besides the zeros, the arguments object and the list count as values.
    for (zeros, runs) in [(9_998, true), (9_999, false)] {
        let arguments = json!({ "a": vec![0; zeros] });
        let outcome = executor.execute(ToolCall::new("t", arguments)).await;
        assert_eq!(outcome.is_success(), runs, "{zeros}");
        if !runs {
            let envelope = outcome.to_envelope();
            assert_eq!(envelope["error_kind"], "too_large");
            assert_eq!(
                envelope["error"],
                "The arguments of 't' hold more than 10000 values, which is the limit"
            );
        }
    }
}

#[tokio::test]
async fn the_size_of_arguments_is_that_of_their_json() {
    let mut limits = Limits::default();
    for arguments in [
        json!({ "a": [1, 22, -333, true, false, null, "x"], "b": { "c": {} } }),
        json!({}),
        json!({ "n": [u64::MAX, i64::MIN, 0] }),
    ] {
        limits.max_arguments = arguments.to_string().len();
        let exactly = builder_of([echo(open_definition("t"))])
            .limits(limits.clone())
            .build();
        limits.max_arguments -= 1;
        let less = builder_of([echo(open_definition("t"))])
            .limits(limits.clone())
            .build();
        assert!(
            exactly
                .execute(ToolCall::new("t", arguments.clone()))
                .await
                .is_success(),
            "{arguments}"
        );
        assert!(
            !less
                .execute(ToolCall::new("t", arguments))
                .await
                .is_success()
        );
    }
}

#[tokio::test]
async fn errors_of_a_tools_own_rules_read_like_schema_errors() {
    let tool = scripted(open_definition("t"), |_, _| async {
        Err::<ToolOutput, _>(ToolError::invalid("day", "must be a date"))
    });
    let envelope = executor_of([tool])
        .execute(ToolCall::new("t", json!({})))
        .await
        .to_envelope();
    assert_eq!(
        envelope["error"],
        "Invalid parameters: 'day' must be a date"
    );
}
