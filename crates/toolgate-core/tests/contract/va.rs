//! VA: arguments are checked, and what is wrong is said in the contract's words.

use serde_json::{Value, json};
use toolgate_core::{Limits, Schema, SchemaLimits, ToolCall, ToolError, ToolOutput};

use crate::support::{
    Log, Recorder, builder_of, echo, executor_of, logging, open, scripted, with_schema,
};

fn compile(schema: Value) -> Schema {
    Schema::compile(schema, &SchemaLimits::default()).unwrap()
}

/// What the schema says of the arguments; empty if they are valid.
fn complaint(schema: &Schema, arguments: Value) -> String {
    match schema.check(arguments) {
        Ok(_) => String::new(),
        Err(error) => error
            .to_string()
            .strip_prefix("Invalid parameters: ")
            .unwrap()
            .to_owned(),
    }
}

/// One parameter `p` with this schema, against values and what is said of each.
fn check_parameter(schema: &Value, cases: &[(Value, &str)]) {
    let compiled = compile(json!({ "type": "object", "properties": { "p": schema } }));
    for (value, expected) in cases {
        let said = complaint(&compiled, json!({ "p": value }));
        assert_eq!(said, *expected, "{schema} against {value}");
    }
}

#[tokio::test]
async fn va1_a_failing_call_never_reaches_the_tool() {
    let schema =
        json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] });
    let tool = scripted(with_schema("t", schema), |_, _| async { panic!("ran") });
    let recorder = Recorder::default();
    let executor = builder_of([tool]).observer(recorder.clone()).build();
    for arguments in [
        json!({}),
        json!({ "a": 1 }),
        json!({ "a": null }),
        json!([]),
        json!("a"),
        json!(null),
    ] {
        let envelope = executor
            .execute(ToolCall::new("t", arguments))
            .await
            .to_envelope();
        assert_eq!(envelope["error_kind"], "invalid_arguments");
    }
    assert!(recorder.started().is_empty());
}

#[tokio::test]
async fn va1_arguments_are_checked_against_the_schema_of_that_tool() {
    let of = |name: &str, kind: &str| {
        echo(with_schema(
            name,
            json!({ "properties": { "a": { "type": kind } } }),
        ))
    };
    let executor = executor_of([of("s", "string"), of("n", "number")]);
    for (name, value, success) in [
        ("s", json!("x"), true),
        ("s", json!(1), false),
        ("n", json!(1), true),
        ("n", json!("x"), false),
    ] {
        let outcome = executor
            .execute(ToolCall::new(name, json!({ "a": value })))
            .await;
        assert_eq!(outcome.is_success(), success);
    }
}

#[test]
fn va2_one_missing_parameter_is_named() {
    let schema = compile(json!({ "required": ["city"] }));
    assert_eq!(
        schema.check(json!({})).unwrap_err().to_string(),
        "Invalid parameters: missing 'city'"
    );
}

#[test]
fn va2_all_missing_parameters_are_reported_at_once() {
    let schema = compile(json!({ "required": ["b", "a", "c"] }));
    assert_eq!(
        schema.check(json!({ "a": 1 })).unwrap_err().to_string(),
        "Invalid parameters: missing 'b', missing 'c'"
    );
}

#[test]
fn va2_all_violations_are_reported_at_once() {
    let schema = compile(json!({
        "properties": { "n": { "type": "integer" }, "e": { "enum": ["x"] }, "o": { "required": ["i"] } },
        "required": ["m"],
    }));
    assert_eq!(
        complaint(&schema, json!({ "e": "y", "o": {}, "n": "1" })),
        "missing 'm', missing 'o.i', 'e' must be one of: x, 'n' must be integer"
    );
}

#[test]
fn va2_null_for_a_required_parameter_that_does_not_allow_it_counts_as_missing() {
    let schema = compile(json!({
        "properties": {
            "s": { "type": "string" },
            "e": { "enum": ["x"] },
            "r": { "$ref": "#/$defs/r" },
            "n": { "type": ["string", "null"] },
        },
        "required": ["s", "e", "r", "n"],
        "$defs": { "r": { "type": "object" } },
    }));
    assert_eq!(
        complaint(
            &schema,
            json!({ "s": null, "e": null, "r": null, "n": null })
        ),
        "missing 's', missing 'e', missing 'r'"
    );
}

#[test]
fn va2_required_parameters_behind_a_combinator_or_a_reference_are_missing_too() {
    for schema in [
        json!({ "allOf": [{ "properties": { "a": { "type": "string" } }, "required": ["a"] }] }),
        json!({ "$ref": "#/$defs/x", "$defs": { "x": { "properties": { "a": { "type": "string" } }, "required": ["a"] } } }),
        json!({ "if": {}, "then": { "required": ["a"] }, "properties": { "a": { "type": "string" } } }),
    ] {
        let schema = compile(schema);
        for arguments in [json!({}), json!({ "a": null })] {
            assert_eq!(complaint(&schema, arguments), "missing 'a'");
        }
    }
}

#[test]
fn va3_integers() {
    let wrong = "'p' must be integer";
    check_parameter(
        &json!({ "type": "integer" }),
        &[
            (json!(5), ""),
            (json!(5.0), ""),
            (json!(-0.0), ""),
            (json!(9_007_199_254_740_993_i64), ""),
            (json!(u64::MAX), ""),
            (json!(5.5), wrong),
            (json!("5"), wrong),
            (json!(true), wrong),
            (json!([5]), wrong),
        ],
    );
}

#[test]
fn va3_strings_are_strict() {
    let wrong = "'p' must be string";
    check_parameter(
        &json!({ "type": "string" }),
        &[
            (json!(""), ""),
            (json!(5), wrong),
            (json!(true), wrong),
            (json!(["a"]), wrong),
            (json!({}), wrong),
        ],
    );
}

#[test]
fn va3_numbers_booleans_arrays_and_objects() {
    for (kind, good, bad) in [
        ("number", json!([1, 1.5, -2e10]), json!(["1", true, [], {}])),
        (
            "boolean",
            json!([true, false]),
            json!([0, 1, "true", [], {}]),
        ),
        ("array", json!([[], [1, "a"]]), json!([{}, "[]", 1])),
        ("object", json!([{}, { "a": 1 }]), json!([[], "{}", 1])),
    ] {
        let wrong = format!("'p' must be {kind}");
        let cases = |values: &Value, said: &str| -> Vec<(Value, String)> {
            values
                .as_array()
                .unwrap()
                .iter()
                .map(|value| (value.clone(), said.to_owned()))
                .collect()
        };
        let all = [cases(&good, ""), cases(&bad, &wrong)].concat();
        let all: Vec<(Value, &str)> = all
            .iter()
            .map(|(value, said)| (value.clone(), said.as_str()))
            .collect();
        check_parameter(&json!({ "type": kind }), &all);
    }
}

#[test]
fn va3_nested_schemas_are_checked_too() {
    let schema = json!({
        "type": "object",
        "properties": { "list": { "type": "array", "items": { "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] } } },
    });
    check_parameter(
        &schema,
        &[
            (json!({ "list": [{ "n": 1 }, { "n": 2 }] }), ""),
            (
                json!({ "list": [{ "n": 1 }, { "n": "2" }] }),
                "'p.list[1].n' must be integer",
            ),
            (json!({ "list": [{}] }), "missing 'p.list[0].n'"),
            (json!({ "list": [5] }), "'p.list[0]' must be object"),
        ],
    );
}

#[tokio::test]
async fn va3_nothing_is_coerced() {
    let schema = json!({ "properties": { "i": { "type": "integer" }, "n": { "type": "number" } } });
    let executor = executor_of([echo(with_schema("t", schema))]);
    let text = r#"{"i":5.0,"n":9007199254740993}"#;
    let outcome = executor
        .execute(ToolCall::from_json("t", text.as_bytes()))
        .await;
    assert_eq!(
        outcome.to_model_text(),
        text,
        "numbers arrive as they were sent"
    );
}

#[tokio::test]
async fn va3_null_for_an_optional_parameter_that_does_not_allow_it_counts_as_not_given() {
    let log = Log::json();
    let schema = json!({
        "properties": {
            "s": { "type": "string" },
            "either": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
            "nullable": { "type": ["string", "null"] },
            "any": {},
        },
        "required": ["any"],
    });
    let executor = logging([echo(with_schema("t", schema))], &[]);
    let arguments =
        json!({ "s": null, "either": null, "nullable": null, "any": null, "unknown": null });
    let outcome = executor.execute(ToolCall::new("t", arguments)).await;
    assert_eq!(
        outcome.to_envelope()["result"],
        json!({ "nullable": null, "any": null, "unknown": null })
    );
    assert_eq!(log.only()["fields"]["changes"], "-s, -either");
}

#[test]
fn va4_enums_list_their_options() {
    check_parameter(
        &json!({ "enum": ["on", "off", 1, 2.5, true, null, ["a"], { "b": 1 }] }),
        &[
            (json!("on"), ""),
            (json!(1.0), ""),
            (json!({ "b": 1 }), ""),
            (
                json!("On"),
                r#"'p' must be one of: on, off, 1, 2.5, true, null, ["a"], {"b":1}"#,
            ),
        ],
    );
    // A Cyrillic letter that looks like a Latin one.
    check_parameter(
        &json!({ "enum": ["open"] }),
        &[(json!("оpen"), "'p' must be one of: open")],
    );
    check_parameter(
        &json!({ "const": "x" }),
        &[(json!("y"), "'p' must be one of: x")],
    );
}

#[test]
fn va4_a_huge_enum_is_cut() {
    let options: Vec<String> = (0..5_000).map(|i| format!("o{i}")).collect();
    let schema = compile(json!({ "properties": { "p": { "enum": options } } }));
    let said = complaint(&schema, json!({ "p": "x" }));
    assert!(
        said.starts_with("'p' must be one of: o0, o1, ")
            && said.ends_with(", o49, … (5000 in all)"),
        "{said}"
    );
}

#[test]
fn va4_names_are_paths() {
    let schema = compile(json!({
        "properties": {
            "o": { "properties": { "inner": { "properties": { "depth": { "type": "integer" } } } } },
            "a": { "items": { "type": "integer" } },
            "m": { "items": { "items": { "properties": { "x": { "type": "integer" } } } } },
        },
    }));
    for (arguments, expected) in [
        (
            json!({ "o": { "inner": { "depth": "x" } } }),
            "'o.inner.depth' must be integer",
        ),
        (json!({ "a": [1, "x"] }), "'a[1]' must be integer"),
        (
            json!({ "m": [[{ "x": 1 }], [{}, { "x": "y" }]] }),
            "'m[1][1].x' must be integer",
        ),
    ] {
        assert_eq!(complaint(&schema, arguments), expected);
    }
}

#[test]
fn va4_missing_ones_come_first_then_the_order_of_the_arguments() {
    let integer = || json!({ "type": "integer" });
    let schema = compile(json!({
        "properties": { "a": integer(), "b": integer(), "c": { "required": ["x"], "properties": { "y": integer() } } },
        "required": ["z"],
    }));
    assert_eq!(
        complaint(&schema, json!({ "c": { "y": "" }, "b": "", "a": "" })),
        "missing 'z', missing 'c.x', 'c.y' must be integer, 'b' must be integer, 'a' must be integer"
    );
    let list = compile(json!({ "properties": { "a": { "items": integer() } } }));
    let said = complaint(&list, json!({ "a": vec!["x"; 12] }));
    assert!(
        said.contains("'a[9]' must be integer, 'a[10]' must be integer"),
        "by number, not by text: {said}"
    );
}

#[test]
fn va4_several_types_are_joined_and_null_comes_last() {
    check_parameter(
        &json!({ "type": ["null", "string"] }),
        &[
            (json!("x"), ""),
            (json!(null), ""),
            (json!(1), "'p' must be string or null"),
        ],
    );
    check_parameter(
        &json!({ "type": ["integer", "boolean", "null"] }),
        &[(json!("x"), "'p' must be boolean or integer or null")],
    );
}

#[test]
fn va4_other_keywords_have_their_words() {
    for (schema, bad, expected) in [
        (json!({ "minimum": 0 }), json!(-1), "must be at least 0"),
        (
            json!({ "maximum": 99.5 }),
            json!(100),
            "must be at most 99.5",
        ),
        (
            json!({ "exclusiveMinimum": 0 }),
            json!(0),
            "must be more than 0",
        ),
        (
            json!({ "exclusiveMaximum": 1 }),
            json!(1),
            "must be less than 1",
        ),
        (
            json!({ "multipleOf": 5 }),
            json!(7),
            "must be a multiple of 5",
        ),
        (
            json!({ "pattern": "^[a-z]+$" }),
            json!("A"),
            "must match ^[a-z]+$",
        ),
        (
            json!({ "minItems": 1 }),
            json!([]),
            "must have at least 1 item",
        ),
        (
            json!({ "minItems": 2 }),
            json!([]),
            "must have at least 2 items",
        ),
        (
            json!({ "maxItems": 1 }),
            json!([1, 2]),
            "must have at most 1 item",
        ),
        (
            json!({ "minLength": 1 }),
            json!(""),
            "must have at least 1 character",
        ),
        (
            json!({ "maxLength": 2 }),
            json!("abc"),
            "must have at most 2 characters",
        ),
        (
            json!({ "minProperties": 1 }),
            json!({}),
            "must have at least 1 property",
        ),
        (
            json!({ "maxProperties": 2 }),
            json!({ "a": 1, "b": 1, "c": 1 }),
            "must have at most 2 properties",
        ),
        (
            json!({ "uniqueItems": true }),
            json!([1, 1]),
            "must not have an item twice",
        ),
        (
            json!({ "contains": { "type": "string" } }),
            json!([1]),
            "must contain an item of the required form",
        ),
        (
            json!({ "not": { "type": "string" } }),
            json!("x"),
            "has a form that is not allowed",
        ),
        (json!(false), json!(1), "is not allowed"),
        (
            json!({ "propertyNames": { "maxLength": 1 } }),
            json!({ "ab": 1 }),
            "has a property name that is not allowed",
        ),
    ] {
        check_parameter(&schema, &[(bad, &format!("'p' {expected}"))]);
    }
}

#[test]
fn va4_a_combinator_says_that_no_form_matches() {
    let none = "'p' matches none of the allowed forms";
    let either = json!([{ "type": "string" }, { "type": "integer" }]);
    check_parameter(
        &json!({ "anyOf": either }),
        &[(json!("x"), ""), (json!([]), none)],
    );
    check_parameter(
        &json!({ "oneOf": either }),
        &[(json!(1), ""), (json!([]), none)],
    );
    check_parameter(
        &json!({ "oneOf": [{ "type": "integer" }, { "type": "number" }] }),
        &[
            (json!(1.5), ""),
            (json!(1), "'p' matches more than one of the allowed forms"),
        ],
    );
    check_parameter(
        &json!({ "allOf": [{ "type": "string" }, { "minLength": 2 }] }),
        &[
            (json!("xy"), ""),
            (json!("x"), "'p' must have at least 2 characters"),
            (json!(1), "'p' must be string"),
        ],
    );
}

#[test]
fn va4_at_the_root_the_name_is_arguments() {
    for (schema, expected) in [
        (
            json!({ "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] }),
            "'arguments' matches none of the allowed forms",
        ),
        (
            json!({ "minProperties": 1 }),
            "'arguments' must have at least 1 property",
        ),
        (
            json!({ "not": {} }),
            "'arguments' has a form that is not allowed",
        ),
    ] {
        assert_eq!(complaint(&compile(schema), json!({})), expected);
    }
}

#[test]
fn va4_more_than_fifty_violations_are_counted() {
    let schema = compile(json!({ "properties": { "a": { "items": { "type": "string" } } } }));
    let said = complaint(&schema, json!({ "a": vec![0; 80] }));
    assert!(
        said.ends_with("'a[49]' must be string, and 30 more"),
        "{said}"
    );
}

#[test]
fn va4_names_and_patterns_from_outside_can_not_forge_a_text() {
    let schema = compile(json!({ "additionalProperties": { "type": "string" } }));
    let said = complaint(&schema, json!({ "x\n'y'\u{1b}[31m\u{202e}": 1 }));
    assert_eq!(said, r"'x\n'y'\u{1b}[31m\u{202e}' must be string");
    let said = complaint(&schema, json!({ "k".repeat(10_000): 1 }));
    assert!(said.len() < 200, "{said}");
}

#[tokio::test]
async fn va5_arguments_that_the_schema_does_not_know_are_accepted() {
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
async fn va5_what_is_left_out_is_recorded_with_its_path() {
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
fn va5_what_is_wrong_besides_is_still_said() {
    let schema = compile(
        json!({ "properties": { "a": { "type": "string" } }, "additionalProperties": false, "required": ["b"] }),
    );
    assert_eq!(
        complaint(&schema, json!({ "x": 1, "a": 5 })),
        "missing 'b', 'a' must be string"
    );
}

#[test]
fn va5_many_unknown_arguments_are_left_out_in_no_time() {
    let schema = compile(
        json!({ "properties": { "a": { "type": "string" } }, "additionalProperties": false }),
    );
    let many: serde_json::Map<_, _> = (0..50_000).map(|i| (format!("k{i}"), json!(i))).collect();
    let begin = tokio::time::Instant::now();
    let valid = schema.check(Value::Object(many)).unwrap();
    assert_eq!(valid.dropped().len(), 50_000);
    assert_eq!(valid.as_value(), &json!({}));
    assert!(
        begin.elapsed() < crate::support::secs(10),
        "{:?}",
        begin.elapsed()
    );
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
        // Who a schema says it is does not matter, and parameters may be called like keywords.
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
        assert_eq!(complaint(&compiled, good), "", "{schema}");
        assert_ne!(complaint(&compiled, bad), "", "{schema}");
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
    let executor = builder_of([echo(open("t"))]).limits(limits).build();
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
async fn the_size_of_arguments_is_that_of_their_json() {
    let mut limits = Limits::default();
    for arguments in [
        json!({ "a": [1, 22, -333, true, false, null, "x"], "b": { "c": {} } }),
        json!({}),
        json!({ "n": [u64::MAX, i64::MIN, 0] }),
    ] {
        limits.max_arguments = arguments.to_string().len();
        let exactly = builder_of([echo(open("t"))]).limits(limits.clone()).build();
        limits.max_arguments -= 1;
        let less = builder_of([echo(open("t"))]).limits(limits.clone()).build();
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
async fn a_rule_of_the_tools_own_reads_like_one_of_the_schema() {
    let tool = scripted(open("t"), |_, _| async {
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
